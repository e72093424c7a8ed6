// What a K step of the products takes with as many TBs on every SM, by the shape of their grid: so many SMs' TBs read the same rows of A and
// the same columns of B. Plain code, nothing noted in it.
//   shapes DIR   writes DIR/shapes.csv: ns a step, from kernels of K = 512 and 1,792, by events (median, least and most of 9). Rows of A begin
//                as far apart as K is long: where that matters (wide.cu) the difference is no step's time
#include "products.cuh"
template <class G>
static float run(int down, int across, int steps) {
  return event_ns(0, [&] { launch_product<G, -1>(down, across, steps); });
}
template <class G>
static void product(FILE* f, const char* name, std::vector<int> eachs) {
  const int few = 512 / G::BK, many = 1792 / G::BK;
  for (int each : eachs)
    for (int down : {1, 2, 4, 11, 33, 132}) {
      const int tbs = 132 * each;
      std::vector<double> t;
      for (int i = 0; i < 11; i++) {
        double first = run<G>(down, tbs / down, few), second = run<G>(down, tbs / down, many);
        if (i > 1) t.push_back((second - first) / (many - few));
      }
      Stat q = stat_of(t);
      fprintf(f, "%s,%d,%d,%d,%.1f,%.1f,%.1f\n", name, each, down, tbs / down, q.med, q.mn, q.mx);
    }
}
int main(int argc, char** argv) {
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/shapes.csv").c_str(), "w");
  fprintf(f, "kernel,each,down,across,ns,least,most\n");
  product<H64>(f, "hgemm_64x64x32", {1, 2, 4});
  product<H128w8>(f, "hgemm_128x128x32_8warps", {1, 2});
  product<H128w4>(f, "hgemm_128x128x32_4warps", {1, 2});
  product<S64>(f, "sgemm_64x64x16", {1, 2, 4});
  product<S128>(f, "sgemm_128x128x8", {1, 2});
  product<S32>(f, "sgemm_32x32x32", {1, 2, 4});
  fclose(f);
  return 0;
}
