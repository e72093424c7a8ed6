// What a K step of the products takes as they are, nothing noted in it (`plain`: kernels.cu's code; `chains`: that of the chains' plain
// kernels): where an SM has one to four TBs and all others none, and where all SMs have as many.
//   lone DIR        writes DIR/lone.csv: ns a step, from two kernels of unequal depth, by events (median, least and most of 15)
//   lone once       runs those of all SMs once, 64 and 576 steps deep, fp16, plain and of chains, for a profiler
//   lone ages DIR   writes DIR/ages.csv: the same of each of an SM's TBs, the oldest first, from when it began and ended (median, 10th
//                   and 90th per cent of all SMs and seven runs); chains' code, as plain kernels note nothing
#include "products.cuh"
constexpr int HELD = 131;
static int* GO;
// until it may go; notes its clock's cycles and ns meanwhile: an SM beside the product's shares the clock of their GPC
static unsigned long long* CLOCK;
__global__ void k_hold(volatile int* go, unsigned long long* clock) {
  unsigned long long t = gtime(), c = clock64();
  while (!*go) __nanosleep(2000);
  if (threadIdx.x == 0) { clock[2 * blockIdx.x] = clock64() - c; clock[2 * blockIdx.x + 1] = gtime() - t; }
}
static double slowest() {
  double mhz = 1e9;
  for (int i = 0; i < HELD; i++) mhz = std::min(mhz, 1e3 * CLOCK[2 * i] / CLOCK[2 * i + 1]);
  return mhz;
}
// all SMs but one, which may be kept from having TBs of the stream `beside`
struct Others {
  cudaStream_t held, beside;
  Others() {
    CK(cudaFuncSetAttribute(k_hold, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024));
    CK(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
    CK(cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking));
  }
  void hold() {
    CK(cudaMemset(GO, 0, 4));
    CK(cudaDeviceSynchronize());
    k_hold<<<HELD, 32, 227 * 1024, held>>>(GO, CLOCK);
  }
  void let_go() {
    CK(cudaMemsetAsync(GO, 1, 4, beside));
    CK(cudaDeviceSynchronize());
  }
};
template <class G, int MODE>
static float run(cudaStream_t s, int each, bool all, int steps) {
  return event_ns(s, [&] { launch_product<G, MODE>(all ? 11 * each : each, all ? 12 : 1, steps, s); });
}
template <class G, int MODE>
static void product(FILE* f, const char* name, int most) {
  numbers<typename G::T>();  // before SMs are held
  Others others;
  const cudaStream_t s = others.beside;
  for (bool all : {false, true})
    for (int each = 1; each <= most; each++) {
      if (!all) others.hold();
      std::vector<double> t;
      for (int i = 0; i < 17; i++) {
        double few = run<G, MODE>(s, each, all, 64), many = run<G, MODE>(s, each, all, 576);
        if (i > 1) t.push_back((many - few) / 512);
      }
      others.let_go();
      Stat q = stat_of(t);
      fprintf(f, "%s,%s,%d,%s,%.1f,%.1f,%.1f,%.0f\n", name, MODE < 0 ? "plain" : "chains", each, all ? "all" : "one", q.med, q.mn, q.mx, all ? 0. : slowest());
    }
}
template <int MODE>
static void products(FILE* f) {
  product<H128w8, MODE>(f, "hgemm_128x128x32_8warps", 2);
  product<H128w4, MODE>(f, "hgemm_128x128x32_4warps", 2);
  product<H64, MODE>(f, "hgemm_64x64x32", 4);
  product<S128, MODE>(f, "sgemm_128x128x8", 2);
  product<S64, MODE>(f, "sgemm_64x64x16", 4);
  product<S32, MODE>(f, "sgemm_32x32x32", 4);
}
// how long each TB took, by its place among those of its SM; of the kernel's last run
template <class G>
static std::vector<std::vector<double>> lasted(cudaStream_t s, TbRec* records, int each, bool all, int steps) {
  const int down = all ? 11 * each : each, across = all ? 12 : 1;
  Sync sync;
  sync.trace = records;
  launch_product<G, 2>(down, across, steps, s, sync);
  CK(cudaStreamSynchronize(s));
  std::vector<TbRec> h(records, records + down * across);
  std::map<unsigned, std::vector<TbRec>> of;
  for (const TbRec& r : h) of[r.sm].push_back(r);
  std::vector<std::vector<double>> t(each);
  for (auto& [sm, tbs] : of) {
    std::sort(tbs.begin(), tbs.end(), [](const TbRec& a, const TbRec& b) { return a.tb < b.tb; });
    for (size_t i = 0; i < tbs.size() && i < t.size(); i++) t[i].push_back((double)(tbs[i].t1 - tbs[i].t0));
  }
  return t;
}
template <class G>
static void by_age(FILE* f, const char* name, int most) {
  numbers<typename G::T>();
  Others others;
  const cudaStream_t s = others.beside;
  TbRec* records;
  CK(cudaMallocHost(&records, 4096 * sizeof(TbRec)));  // a copy would wait for the SMs that are held
  for (bool all : {false, true})
    for (int each = 2; each <= most; each++) {
      if (!all) others.hold();
      std::vector<std::vector<double>> t(each);
      for (int i = 0; i < 8; i++) {
        auto few = lasted<G>(s, records, each, all, 64), many = lasted<G>(s, records, each, all, 576);
        for (int age = 0; i && age < each; age++)
          for (size_t j = 0; j < many[age].size() && j < few[age].size(); j++) t[age].push_back((many[age][j] - few[age][j]) / 512);
      }
      others.let_go();
      for (int age = 0; age < each; age++)
        fprintf(f, "%s,%d,%s,%d,%.1f,%.1f,%.1f,%.0f\n", name, each, all ? "all" : "one", age, pct(t[age], .5), pct(t[age], .1), pct(t[age], .9), all ? 0. : slowest());
    }
  CK(cudaFreeHost(records));
}
template <class G, int MODE>
static void once(int most) {
  numbers<typename G::T>();
  for (int each = 1; each <= most; each++)
    for (int steps : {64, 576}) run<G, MODE>(0, each, true, steps);
}
int main(int argc, char** argv) {
  CK(cudaMalloc(&GO, 4));
  CK(cudaMallocHost(&CLOCK, HELD * 16));
  if (argc > 1 && !strcmp(argv[1], "once")) {
    once<H128w8, -1>(2); once<H128w4, -1>(2); once<H64, -1>(4);
    once<H128w8, 2>(2); once<H128w4, 2>(2); once<H64, 2>(4);
    return 0;
  }
  if (argc > 1 && !strcmp(argv[1], "ages")) {
    FILE* f = fopen((std::string(argc > 2 ? argv[2] : ".") + "/ages.csv").c_str(), "w");
    fprintf(f, "kernel,each,sms,age,ns,p10,p90,mhz\n");
    by_age<H128w8>(f, "hgemm_128x128x32_8warps", 2);
    by_age<H128w4>(f, "hgemm_128x128x32_4warps", 2);
    by_age<H64>(f, "hgemm_64x64x32", 4);
    by_age<S128>(f, "sgemm_128x128x8", 2);
    by_age<S64>(f, "sgemm_64x64x16", 4);
    by_age<S32>(f, "sgemm_32x32x32", 4);
    fclose(f);
    return 0;
  }
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/lone.csv").c_str(), "w");
  fprintf(f, "kernel,code,each,sms,ns,least,most,mhz\n");
  products<-1>(f);
  products<2>(f);
  fclose(f);
  return 0;
}
