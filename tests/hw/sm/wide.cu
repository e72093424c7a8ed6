// What limits a K step of fp16 products where all TBs read the same rows of A (one row of TBs) or the same columns of B (one column):
// by which SMs take part, and by how far apart rows of A begin.
//   wide DIR   writes DIR/wide.csv: ns of kernels of K = 512 and 1,792, and of a step by their difference, by events (medians of 7, least
//              and most); `pad_a` numbers more than 1,792 from row to row; `sms`: all, those of 1, 2 or 4 GPCs, of one SM a TPC, or of both
//   wide once    launches those of all SMs and K = 1,792 once each, for a profiler
#include <cuda_profiler_api.h>
static __constant__ unsigned wide_sms[8];
static __device__ __forceinline__ int wide_in() {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return wide_sms[sm >> 5] >> (sm & 31) & 1;
}
#define AT_STEP(step) \
  if ((step) == 0 && !wide_in()) return
#include "gpcs.cuh"
#include "products.cuh"
constexpr int DEPTH = 1792;
static FILE* OUT;
static std::vector<int> RANK;  // of each SM's GPC, by its first SM
template <class G>
static float run(int down, int across, int steps, int pad_a) {
  return event_ns(0, [&] { launch_product<G, -1>(down, across, steps, 0, Sync(), DEPTH + pad_a); });
}
static void let(int gpcs, bool one_a_tpc) {
  unsigned mask[8] = {};
  for (int i = 0; i < 132; i++)
    if (RANK[i] < gpcs && !(one_a_tpc && i & 1)) mask[i >> 5] |= 1u << (i & 31);
  CK(cudaMemcpyToSymbol(wide_sms, mask, sizeof mask));
}
template <class G>
static void product(const char* name, std::vector<int> eachs) {
  struct Some { const char* name; int gpcs; bool one_a_tpc; };
  const int few = 512 / G::BK, many = DEPTH / G::BK;
  for (int each : eachs)
    for (int down : {1, 132})
      for (Some q : {Some{"all", 132, false}, {"1 gpc", 1, false}, {"2 gpcs", 2, false}, {"4 gpcs", 4, false}, {"1 a tpc", 132, true}, {"1 a tpc of 4 gpcs", 4, true}})
        for (int pad_a : {0, 32, 64, 128, 256, 320}) {
          if (pad_a && q.gpcs < 132) continue;
          let(q.gpcs, q.one_a_tpc);
          std::vector<double> t, shallow, deep;
          for (int i = 0; i < 9; i++) {
            double first = run<G>(down, 132 * each / down, few, pad_a), second = run<G>(down, 132 * each / down, many, pad_a);
            if (i < 2) continue;
            t.push_back((second - first) / (many - few));
            shallow.push_back(first);
            deep.push_back(second);
          }
          Stat s = stat_of(t);
          fprintf(OUT, "%s,%d,%d,%s,%d,%.1f,%.1f,%.1f,%.0f,%.0f\n", name, each, down, q.name, pad_a, s.med, s.mn, s.mx, stat_of(shallow).med, stat_of(deep).med);
        }
}
template <class G>
static void once(std::vector<int> eachs) {
  for (int each : eachs)
    for (int down : {1, 4, 33, 132})
      for (bool counted : {false, true}) {
        if (counted) CK(cudaProfilerStart());
        run<G>(down, 132 * each / down, DEPTH / G::BK, 0);
        if (counted) CK(cudaProfilerStop());
      }
}
int main(int argc, char** argv) {
  const bool files = argc < 2 || std::string(argv[1]) != "once";
  OUT = files ? fopen((std::string(argc > 1 ? argv[1] : ".") + "/wide.csv").c_str(), "w") : stdout;
  fprintf(OUT, "kernel,each,down,sms,pad_a,ns,least,most,shallow,deep\n");
  std::vector<int> gpc = gpcs_of_sms(), seen;
  for (int sm : gpc_of_sm0().sm) gpc[sm] = gpc[0];  // half of them join no cluster
  for (int g : gpc) {
    auto at = std::find(seen.begin(), seen.end(), g);
    RANK.push_back(at - seen.begin());
    if (at == seen.end()) seen.push_back(g);
  }
  if (!files) {
    let(132, false);
    once<H64>({1, 2, 4});
    once<H128w8>({2});
    once<H128w4>({2});
    return 0;
  }
  product<H64>("hgemm_64x64x32", {1, 2, 4});
  product<H128w4>("hgemm_128x128x32_4warps", {2});
  fclose(OUT);
  return 0;
}
