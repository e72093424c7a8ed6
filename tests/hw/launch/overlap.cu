// Kernels that overlap: how late one starts that a gate kernel of another stream lets go, beside which kernels one
// starts that asks for other shared memory, and how TBs of two ages share an SM.
//   overlap DIR   writes DIR/chains.csv, DIR/carve.csv, DIR/ages.csv
#include "suite.cuh"
static const int STAGES = 8, REPS = 5, MOST = 1024;
static unsigned* CTR;
static TbRec* REC;
static unsigned long long* GATES;
__global__ void k_started(const unsigned* p, unsigned need, unsigned long long* rec) {
  unsigned long long t0 = gtime();
  poll(p, need);
  rec[0] = t0; rec[1] = gtime();
}
// spins `ns`, or until the TB of the same number of the kernel before has ended and then `ns`
__global__ void k_body(unsigned long long ns, const unsigned* wait, unsigned* post, Sync sy) {
  unsigned long long t0 = tb_begin<2>(sy);
  if (wait && threadIdx.x == 0) poll(wait + blockIdx.x, 1);
  __syncthreads();
  unsigned long long t = gtime();
  while (gtime() - t < ns) {}
  __syncthreads();
  if (post && threadIdx.x == 0) { __threadfence(); atomicAdd(post + blockIdx.x, 1u); }
  tb_end<2>(sy, t0);
}
struct Cfg { const char *name, *kind; int tbs; double us; int smem, gate_smem, prio, waits, how; };  // how: 0 two streams with gates, 1 one stream with gates, 2 two streams without gates, 3 one stream beside a long kernel
static cudaStream_t HI, LO, LO2;
static FILE* F;
template <class G>
static void gemm(const typename G::T* a, const typename G::T* w, typename G::T* c, int m, int n, int k, size_t smem, cudaStream_t s, const Sync& y) {
  GemmArgs<typename G::T> g{a, w, c, m, n, k, k, n, n, 0, 0, 0, 0};
  launch_ex(gemm_k<G, 2>, dim3(n / G::BN, m / G::BM), dim3(G::NT), smem, s, false, g, y);
}
static __half *HX[2], *HW;
static float *FX[2], *FW;
static void stage(const Cfg& c, int i, cudaStream_t s, Sync y) {
  unsigned* base = CTR + 1024;
  if (c.kind[0] == 's') {
    k_body<<<c.tbs, 128, (size_t)c.smem * 1024, s>>>((unsigned long long)(c.us * 1000), c.waits && i ? base + (i - 1) * 1024 : nullptr, c.waits ? base + i * 1024 : nullptr, y);
    return;
  }
  bool h = c.kind[0] == 'h';
  int bm = h ? 64 : 32, cols = 1024 / bm, rows = c.tbs / cols;
  if (c.waits) {
    y.post = base + i * 1024; y.post_mode = 2; y.post_stride = cols;
    if (i) { y.wait = base + (i - 1) * 1024; y.wait_mode = 2; y.wait_stride = cols; y.wait_k = bm; y.need = 1; }
  }
  if (h) gemm<H64>(HX[i & 1], HW, HX[1 - (i & 1)], rows * 64, 1024, 1024, std::max<size_t>(H64::SMEM, c.smem * 1024), s, y);
  else gemm<S32>(FX[i & 1], FW, FX[1 - (i & 1)], rows * 32, 1024, 1024, std::max<size_t>(S32::SMEM, c.smem * 1024), s, y);
}
static void chain(const Cfg& c) {
  cudaStream_t s[2] = {c.prio == 1 ? HI : LO, c.prio == 2 ? HI : c.prio == 1 ? LO : LO2};
  cudaEvent_t f, j; CK(cudaEventCreateWithFlags(&f, cudaEventDisableTiming)); CK(cudaEventCreateWithFlags(&j, cudaEventDisableTiming));
  for (int r = 0; r < REPS; r++) {
    CK(cudaMemsetAsync(CTR, 0, 1 << 20, s[0]));
    CK(cudaMemsetAsync(REC, 0, sizeof(TbRec) * MOST * (STAGES + 1), s[0]));
    CK(cudaMemsetAsync(GATES, 0, 1 << 12, s[0]));
    CK(cudaDeviceSynchronize());
    k_gate<<<1, 1, 0, s[0]>>>(600000);
    CK(cudaMemsetAsync(CTR, 0, 1 << 20, s[0]));
    CK(cudaEventRecord(f, s[0]));
    CK(cudaStreamWaitEvent(s[1], f, 0));
    if (c.how == 3) { Sync y; y.trace = REC + STAGES * MOST; k_body<<<c.tbs, 128, 0, s[1]>>>(100000, nullptr, nullptr, y); }
    for (int i = 0; i < STAGES; i++) {
      cudaStream_t st = s[c.how == 1 || c.how == 3 ? 0 : i & 1];
      Sync y; y.trace = REC + i * MOST; y.kernel = i; y.started = CTR + i;
      if (i && c.how != 2 && c.how != 3) k_started<<<1, 1, (size_t)c.gate_smem * 1024, st>>>(CTR + i - 1, c.tbs, GATES + 2 * i);
      stage(c, i, st, y);
    }
    CK(cudaEventRecord(j, s[1]));
    CK(cudaStreamWaitEvent(s[0], j, 0));
    CK(cudaDeviceSynchronize());
    std::vector<TbRec> h(STAGES * MOST);
    std::vector<unsigned long long> g(2 * STAGES);
    CK(cudaMemcpy(h.data(), REC, h.size() * sizeof(TbRec), cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(g.data(), GATES, g.size() * 8, cudaMemcpyDeviceToHost));
    if (!r) continue;
    unsigned long long t0 = ~0ull;
    for (int t = 0; t < c.tbs; t++) t0 = std::min(t0, h[t].t0);
    for (int i = 0; i < STAGES; i++) {
      unsigned long long a = ~0ull, b = 0, x = ~0ull, z = 0;
      std::map<unsigned, int> sms;
      for (int t = 0; t < c.tbs; t++) {
        const TbRec& q = h[i * MOST + t];
        a = std::min(a, q.t0); b = std::max(b, q.t0); x = std::min(x, q.t1); z = std::max(z, q.t1);
        sms[q.sm]++;
      }
      int most = 0;
      for (auto& kv : sms) most = std::max(most, kv.second);
      fprintf(F, "%s,%d,%d,%lld,%lld,%lld,%lld,%lld,%lld,%d,%d\n", c.name, r, i, g[2 * i] ? (long long)(g[2 * i] - t0) : -1, g[2 * i + 1] ? (long long)(g[2 * i + 1] - t0) : -1, (long long)(a - t0), (long long)(b - t0), (long long)(x - t0), (long long)(z - t0), (int)sms.size(), most);
    }
  }
  fflush(F);
  printf("%s\n", c.name); fflush(stdout);
}
template <class G>
static void fill(typename G::T** a, typename G::T** b, typename G::T** c, int m, int n, int k) {
  for (auto [p, e] : {std::pair{a, (size_t)m * k}, std::pair{b, (size_t)k * n}, std::pair{c, (size_t)m * n}}) {
    CK(cudaMalloc(p, e * sizeof(typename G::T)));
    init_rand<<<1024, 256>>>(*p, e, 0.5f, 7);
  }
}
struct Span { double whole, tb, first, last; };  // us from a start: TBs' median, first start, last end
static Span span(const TbRec* d, int tbs, unsigned long long* zero) {
  std::vector<TbRec> h(tbs);
  CK(cudaMemcpy(h.data(), d, tbs * sizeof(TbRec), cudaMemcpyDeviceToHost));
  unsigned long long a = ~0ull, z = 0;
  std::vector<double> v;
  for (auto& q : h) { a = std::min(a, q.t0); z = std::max(z, q.t1); v.push_back((q.t1 - q.t0) / 1e3); }
  if (!*zero) *zero = a;
  return {(z - a) / 1e3, stat_of(v).med, (a - *zero) / 1e3, (z - *zero) / 1e3};
}
// 132 TBs, one an SM, and then `young` times as many more of the same kernel
template <class G>
static void ages(const char* name) {
  const int n = G::BN * 12, k = 2048;
  typename G::T *a, *b, *c;
  fill<G>(&a, &b, &c, G::BM * 33, n, k);
  for (int old = 0; old < 3; old++)
  for (int young = old ? 0 : 1; young < (old == 2 ? 2 : 4); young++) {
    if (G::SMEM * (old + young) > 220 * 1024 || G::NT * (old + young) > 2048 || old + young > G::MINB) continue;
    std::vector<double> v[6];
    for (int r = 0; r < 6; r++) {
      CK(cudaMemset(CTR, 0, 1 << 20));
      CK(cudaMemset(REC, 0, sizeof(TbRec) * 8192));
      CK(cudaDeviceSynchronize());
      k_gate<<<1, 1, 0, HI>>>(150000);
      cudaEvent_t f; CK(cudaEventCreateWithFlags(&f, cudaEventDisableTiming));
      CK(cudaEventRecord(f, HI)); CK(cudaStreamWaitEvent(LO, f, 0));
      Sync y; y.trace = REC; y.started = CTR;
      if (old) gemm<G>(a, b, c, G::BM * 11 * old, n, k, G::SMEM, HI, y);
      if (old && young) k_started<<<1, 1, 0, LO>>>(CTR, 132 * old, GATES);
      Sync q; q.trace = REC + 4096;
      if (young) gemm<G>(a, b, c, G::BM * 11 * young, n, k, G::SMEM, LO, q);
      CK(cudaDeviceSynchronize());
      CK(cudaEventDestroy(f));
      if (!r) continue;
      unsigned long long zero = 0;
      Span o{}, s{};
      if (old) o = span(REC, 132 * old, &zero);
      if (young) s = span(REC + 4096, 132 * young, &zero);
      const double x[6] = {o.tb, o.last, s.first, s.tb, s.last, 0};
      for (int i = 0; i < 5; i++) v[i].push_back(x[i]);
    }
    fprintf(F, "%s,%d,%d,%.3f,%.3f,%.3f,%.3f,%.3f\n", name, old, young, stat_of(v[0]).med, stat_of(v[1]).med, stat_of(v[2]).med, stat_of(v[3]).med, stat_of(v[4]).med);
    fflush(F);
  }
  CK(cudaFree(a)); CK(cudaFree(b)); CK(cudaFree(c));
  printf("ages %s\n", name); fflush(stdout);
}
// a kernel that asks for shared memory while TBs of one that asks for other shared memory run
template <int V>
__global__ void k_hold(unsigned long long ns, Sync sy) {
  unsigned long long t0 = tb_begin<2>(sy);
  while (gtime() - t0 < ns) {}
  __syncthreads();
  tb_end<2>(sy, t0);
}
static void carve(int zkb, int zt, int ykb, int pref) {
  CK(cudaFuncSetAttribute(k_hold<0>, cudaFuncAttributePreferredSharedMemoryCarveout, pref));
  for (int r = 0; r < 3; r++) {
    CK(cudaMemset(CTR, 0, 1 << 20));
    CK(cudaMemset(REC, 0, sizeof(TbRec) * 8192));
    CK(cudaDeviceSynchronize());
    k_gate<<<1, 1, 0, HI>>>(150000);
    cudaEvent_t f; CK(cudaEventCreateWithFlags(&f, cudaEventDisableTiming));
    CK(cudaEventRecord(f, HI)); CK(cudaStreamWaitEvent(LO, f, 0));
    Sync y; y.trace = REC; y.started = CTR;
    k_hold<0><<<zt, 128, zkb * 1024, HI>>>(60000, y);
    k_started<<<1, 1, 0, LO>>>(CTR, zt, GATES);
    Sync q; q.trace = REC + 4096;
    k_hold<1><<<132, 128, ykb * 1024, LO>>>(5000, q);
    CK(cudaDeviceSynchronize());
    CK(cudaEventDestroy(f));
    std::vector<TbRec> h(8192);
    CK(cudaMemcpy(h.data(), REC, sizeof(TbRec) * 8192, cudaMemcpyDeviceToHost));
    unsigned long long z = ~0ull;
    for (int t = 0; t < zt; t++) z = std::min(z, h[t].t0);
    std::map<unsigned, int> busy, sms;
    for (int t = 0; t < zt; t++) busy[h[t].sm]++;
    double first = 1e9, last = 0; int beside = 0, most = 0;
    for (int t = 0; t < 132; t++) {
      double s = (h[4096 + t].t0 - z) / 1e3;
      first = std::min(first, s); last = std::max(last, s);
      if (s < 59 && busy.count(h[4096 + t].sm)) beside++;
      sms[h[4096 + t].sm]++;
    }
    for (auto& kv : sms) most = std::max(most, kv.second);
    if (r == 2) fprintf(F, "%d,%d,%d,%d,%.3f,%.3f,%d,%d,%d\n", zkb, zt, pref, ykb, first, last, beside, (int)sms.size(), most);
  }
  fflush(F);
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  int lo, hi;
  CK(cudaDeviceGetStreamPriorityRange(&lo, &hi));
  CK(cudaStreamCreateWithPriority(&HI, cudaStreamNonBlocking, hi));
  CK(cudaStreamCreateWithPriority(&LO, cudaStreamNonBlocking, lo));
  CK(cudaStreamCreateWithPriority(&LO2, cudaStreamNonBlocking, lo));
  CK(cudaMalloc(&CTR, 1 << 20));
  CK(cudaMalloc(&REC, sizeof(TbRec) * MOST * (STAGES + 1)));
  CK(cudaMalloc(&GATES, 1 << 12));
  CK(cudaMemset(CTR, 0, 1 << 20));
  for (auto p : {&HX[0], &HX[1], &HW}) { CK(cudaMalloc(p, (size_t)2048 * 1024 * 2)); init_rand<<<1024, 256>>>(*p, (size_t)2048 * 1024, 0.05f, 3); }
  for (auto p : {&FX[0], &FX[1], &FW}) { CK(cudaMalloc(p, (size_t)2048 * 1024 * 4)); init_rand<<<1024, 256>>>(*p, (size_t)2048 * 1024, 0.05f, 3); }
  CK(cudaFuncSetAttribute(k_body, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024));
  CK(cudaFuncSetAttribute(k_started, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024));
  CK(cudaFuncSetAttribute(gemm_k<H64, 2>, cudaFuncAttributeMaxDynamicSharedMemorySize, 226 * 1024));
  CK(cudaFuncSetAttribute(gemm_k<H128w8, 2>, cudaFuncAttributeMaxDynamicSharedMemorySize, 226 * 1024));
  F = fopen((dir + "/carve.csv").c_str(), "w");
  fprintf(F, "held_kb,held_tbs,held_preferred,kb,first_us,last_us,beside,sms,most\n");
  for (int v : {0, 1}) { auto k = v ? k_hold<1> : k_hold<0>; CK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024)); }
  for (int pref : {-1, 0, 100})
    for (int zkb : {0, 8, 29, 57, 100})
      for (int zt : {66, 132})
        for (int ykb : {0, 1, 8, 16, 29, 57, 100})
          if (pref < 0 || (zkb != 8 && zt == 132 && zkb < 57)) carve(zkb, zt, ykb, pref);
  fclose(F);
  printf("carve\n"); fflush(stdout);
  F = fopen((dir + "/chains.csv").c_str(), "w");
  fprintf(F, "config,rep,stage,gate_start,gate_end,first_start,last_start,first_end,last_end,sms,most\n");
  const Cfg all[] = {
    {"h64 hi/lo waits", "h", 64, 0, 0, 0, 1, 1, 0},
    {"h64 equal waits", "h", 64, 0, 0, 0, 0, 1, 0},
    {"h64 lo/hi waits", "h", 64, 0, 0, 0, 2, 1, 0},
    {"h64 hi/lo no waits", "h", 64, 0, 0, 0, 1, 0, 0},
    {"h64 hi/lo waits gate smem 29", "h", 64, 0, 0, 29, 1, 1, 0},
    {"h64 one stream gates", "h", 64, 0, 0, 0, 1, 0, 1},
    {"h64 hi/lo no gates no waits", "h", 64, 0, 0, 0, 1, 0, 2},
    {"h64 hi beside long", "h", 64, 0, 0, 0, 1, 0, 3},
    {"h64 equal beside long", "h", 64, 0, 0, 0, 0, 0, 3},
    {"h64 hi/lo waits 256 TBs", "h", 256, 0, 0, 0, 1, 1, 0},
    {"s32 hi/lo waits", "f", 96, 0, 0, 0, 1, 1, 0},
    {"s32 equal waits", "f", 96, 0, 0, 0, 0, 1, 0},
    {"spin 10 hi/lo waits", "s", 64, 10, 0, 0, 1, 1, 0},
    {"spin 10 hi/lo no waits", "s", 64, 10, 0, 0, 1, 0, 0},
    {"spin 10 equal no waits", "s", 64, 10, 0, 0, 0, 0, 0},
    {"spin 10 hi/lo no waits smem 29", "s", 64, 10, 29, 0, 1, 0, 0},
    {"spin 10 hi/lo no waits smem 29 both", "s", 64, 10, 29, 29, 1, 0, 0},
    {"spin 10 equal no waits smem 29", "s", 64, 10, 29, 0, 0, 0, 0},
    {"spin 10 equal no waits smem 29 both", "s", 64, 10, 29, 29, 0, 0, 0},
    {"spin 30 hi/lo no waits", "s", 96, 30, 0, 0, 1, 0, 0},
    {"spin 30 hi/lo no waits smem 29", "s", 96, 30, 29, 0, 1, 0, 0},
    {"spin 3 equal no waits", "s", 132, 3, 0, 0, 0, 0, 0},
    {"spin 3 hi/lo no waits", "s", 132, 3, 0, 0, 1, 0, 0},
    {"spin 10 one stream gates", "s", 64, 10, 0, 0, 1, 0, 1},
    {"spin 10 one stream gates smem 29", "s", 64, 10, 29, 0, 1, 0, 1},
    {"spin 10 hi/lo no gates", "s", 64, 10, 0, 0, 1, 0, 2},
    {"spin 10 hi beside long", "s", 64, 10, 0, 0, 1, 0, 3},
    {"spin 10 hi beside long smem 29", "s", 64, 10, 29, 0, 1, 0, 3},
  };
  for (const Cfg& c : all) chain(c);
  fclose(F);
  F = fopen((dir + "/ages.csv").c_str(), "w");
  fprintf(F, "kernel,old,young,old_tb_us,old_end_us,young_start_us,young_tb_us,young_end_us\n");
  ages<S64>("sgemm 64x64x16"); ages<S128>("sgemm 128x128x8"); ages<S32>("sgemm 32x32x32"); ages<H64>("hgemm 64x64x32"); ages<H128w8>("hgemm 128x128x32");
  fclose(F);
  printf("done\n");
  return 0;
}
