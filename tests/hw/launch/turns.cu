// TBs of the kernels of the measured chains by how many turns their loops take: start and end of every TB (the kernels'
// own records), what lies between kernels, and the time from event to event without records.
//   turns DIR   writes DIR/turns.csv (a line a kernel: mean over instances), DIR/turns_tbs.csv (TBs of some of them)
#include <functional>
#include <string>
#include "suite.cuh"
static cudaStream_t S;
static unsigned* CTR;
static FILE *OUT, *TBS;
struct Part {
  std::string name, shape;
  int tbs, nt;
  size_t smem;
  std::function<void(const Sync&)> go;
};
template <class G>
static Part gemm(int m, int n, int k, int z = 1, const typename G::T* a = nullptr, typename G::T* c = nullptr) {
  using T = typename G::T;
  GemmArgs<T> g{a ? a : made<T>((size_t)z * m * k, 1.f), made<T>((size_t)z * k * n, .05f), c ? c : made<T>((size_t)z * m * n, 0.f), m, n, k, k, n, n, (long long)m * k, (long long)k * n, (long long)m * n, 0};
  CK(cudaFuncSetAttribute(gemm_k<G, 2>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)G::SMEM));
  dim3 grid(n / G::BN, (m + G::BM - 1) / G::BM, z);
  char s[64];
  snprintf(s, 64, "m=%d;n=%d;k=%d;z=%d", m, n, k, z);
  return {std::string(sizeof(T) == 4 ? "sgemm" : "hgemm") + std::to_string(G::BM), s, (int)(grid.x * grid.y * grid.z), G::NT, G::SMEM, [=](const Sync& y) { launch_ex(gemm_k<G, 2>, grid, dim3(G::NT), (size_t)G::SMEM, S, false, g, y); }};
}
// a batch of 132 tiles of which A, B, or nothing is shared, and rows of B and C lie side by side or apart
template <class G>
static Part tiles(int k, bool same_a, bool same_b, bool wide_b, bool wide_c) {
  using T = typename G::T;
  const int z = 132, m = G::BM, n = G::BN;
  GemmArgs<T> g{made<T>((size_t)z * m * k, 1.f), made<T>((size_t)z * k * n, .05f), made<T>((size_t)z * m * n, 0.f), m, n, k, k, wide_b ? z * n : n, wide_c ? z * n : n, same_a ? 0 : (long long)m * k, same_b ? 0 : wide_b ? n : (long long)k * n, wide_c ? n : (long long)m * n, 0};
  CK(cudaFuncSetAttribute(gemm_k<G, 2>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)G::SMEM));
  dim3 grid(1, 1, z);
  char s[64];
  snprintf(s, 64, "k=%d;A%d;B%d;wideB%d;wideC%d", k, same_a, same_b, wide_b, wide_c);
  return {"hgemm64", s, z, G::NT, G::SMEM, [=](const Sync& y) { launch_ex(gemm_k<G, 2>, grid, dim3(G::NT), (size_t)G::SMEM, S, false, g, y); }};
}
template <typename T, int BM, int BN>
static Part cell(int b, int h, const T* g = nullptr, T* before = nullptr, T* after = nullptr) {
  size_t hs = (size_t)b * h;
  CellArgs<T> a{g ? g : made<T>(3 * hs, 1.f), made<T>(3 * hs, 1.f), before ? before : made<T>(hs, 1.f), after ? after : made<T>(hs, 0.f), b, h};
  dim3 grid(h / BN, (b + BM - 1) / BM);
  char s[64];
  snprintf(s, 64, "b=%d;h=%d", b, h);
  return {sizeof(T) == 4 ? "cell32" : "cell16", s, (int)(grid.x * grid.y), 256, 0, [=](const Sync& y) { launch_ex(gru_k<T, BM, BN, 2>, grid, dim3(256), 0, S, false, a, y); }};
}
static Part softmax(int rows, int cols, const __half* in = nullptr, __half* out = nullptr) {
  SmArgs a{in ? in : made<__half>((size_t)rows * cols, 1.f), out ? out : made<__half>((size_t)rows * cols, 0.f), cols, .125f, 64};
  char s[64];
  snprintf(s, 64, "rows=%d;cols=%d", rows, cols);
  return {"softmax", s, rows / 16, 256, 0, [=](const Sync& y) { launch_ex(softmax_k<16, 2>, dim3(rows / 16), dim3(256), 0, S, false, a, y); }};
}
// stores first or last, and what takes some us between: how long a stream waits behind it
__global__ void k_early(float* p, int early, int late, int n) {
  float* q = p + (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  size_t step = (size_t)gridDim.x * blockDim.x;
  for (int i = 0; i < early; i++) q[i * step] = 1.f;
  unsigned long long t = gtime();
  while (gtime() < t + n) {}
  for (int i = 0; i < late; i++) q[i * step] = 1.f;
}
static void run(const char* what, std::vector<Part> parts, int times = 24, bool keep = false) {
  size_t n = 0;
  for (auto& p : parts) n += p.tbs;
  TbRec* d;
  CK(cudaMalloc(&d, n * sizeof(TbRec)));
  struct Sum { double gap = 0, spread = 0, dur = 0, tb = 0, p10 = 0, p50 = 0, p90 = 0; };
  std::vector<Sum> sum(parts.size());
  double span = 0;
  cudaEvent_t e[2];
  for (auto& x : e) CK(cudaEventCreate(&x));
  std::vector<double> us;
  for (int i = 0; i < times; i++) {
    k_gate<<<1, 1, 0, S>>>((unsigned long long)(100 + parts.size() * 6) * 1000ull);
    CK(cudaMemsetAsync(CTR, 0, 1 << 20, S));
    CK(cudaEventRecord(e[0], S));
    for (size_t j = 0; j < parts.size(); j++) { Sync y; y.kernel = (int)j; parts[j].go(y); }
    CK(cudaEventRecord(e[1], S));
    CK(cudaDeviceSynchronize());
    float ms;
    CK(cudaEventElapsedTime(&ms, e[0], e[1]));
    if (i >= 4) us.push_back(ms * 1e3);
  }
  std::sort(us.begin(), us.end());
  for (int i = 0; i < times; i++) {
    k_gate<<<1, 1, 0, S>>>((unsigned long long)(100 + parts.size() * 6) * 1000ull);
    CK(cudaMemsetAsync(CTR, 0, 1 << 20, S));
    TbRec* at = d;
    for (size_t j = 0; j < parts.size(); j++) { Sync y; y.kernel = (int)j; y.trace = at; at += parts[j].tbs; parts[j].go(y); }
    CK(cudaDeviceSynchronize());
    if (i < 4) continue;
    std::vector<TbRec> h(n);
    CK(cudaMemcpy(h.data(), d, n * sizeof(TbRec), cudaMemcpyDeviceToHost));
    unsigned long long last = 0, begin = ~0ull;
    for (auto& r : h) begin = std::min(begin, r.t0);
    size_t from = 0;
    for (size_t j = 0; j < parts.size(); j++) {
      unsigned long long a = ~0ull, a1 = 0, b = 0;
      std::vector<double> t;
      double mean = 0;
      for (int k = 0; k < parts[j].tbs; k++) {
        const TbRec& r = h[from + k];
        a = std::min(a, r.t0); a1 = std::max(a1, r.t0); b = std::max(b, r.t1);
        t.push_back((double)(r.t1 - r.t0)); mean += t.back();
        if (keep && i == times - 1) fprintf(TBS, "%s,%zu,%s,%d,%u,%llu,%llu\n", what, j, parts[j].name.c_str(), r.tb, r.sm, r.t0 - begin, r.t1 - begin);
      }
      std::sort(t.begin(), t.end());
      Sum& s = sum[j];
      double w = 1. / (times - 4);
      s.gap += w * (last ? (double)a - (double)last : 0); s.spread += w * (a1 - a); s.dur += w * (b - a); s.tb += w * mean / t.size();
      s.p10 += w * t[t.size() / 10]; s.p50 += w * t[t.size() / 2]; s.p90 += w * t[9 * t.size() / 10];
      last = b;
      from += parts[j].tbs;
    }
    span += (double)(last - begin) / (times - 4);
  }
  for (size_t j = 0; j < parts.size(); j++)
    fprintf(OUT, "%s,%zu,%s,%s,%d,%d,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%.3f\n", what, j, parts[j].name.c_str(), parts[j].shape.c_str(), parts[j].tbs, parts[j].nt, sum[j].gap, sum[j].spread, sum[j].dur, sum[j].tb, sum[j].p10, sum[j].p50, sum[j].p90, span, us[us.size() / 2]);
  fflush(OUT);
  CK(cudaFree(d));
  for (auto& x : e) CK(cudaEventDestroy(x));
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  OUT = fopen((dir + "/turns.csv").c_str(), "w");
  TBS = fopen((dir + "/turns_tbs.csv").c_str(), "w");
  fprintf(OUT, "what,stage,kernel,shape,tbs,threads,gap_ns,spread_ns,duration_ns,tb_ns,tb_p10_ns,tb_p50_ns,tb_p90_ns,span_ns,events_us\n");
  fprintf(TBS, "what,stage,kernel,tb,sm,start_ns,end_ns\n");
  CK(cudaStreamCreateWithFlags(&S, cudaStreamNonBlocking));
  CK(cudaMalloc(&CTR, 1 << 20));
  auto twice = [&](const char* what, Part p, bool keep = false) { run(what, {p, p, p}, 24, keep); };
  for (int b : {4, 8, 16, 32, 64}) { twice("cell", cell<__half, 64, 64>(b, 512)); twice("cell", cell<float, 32, 32>(std::min(b, 32), 512)); }
  for (int b : {8, 32, 64}) twice("cell", cell<__half, 64, 64>(b, 64 * 132));
  for (int k : {32, 64, 96, 128, 256, 512, 1024, 2048}) twice("hgemm", gemm<H64>(32, 1536, k));
  for (int k : {64, 256, 1024}) { twice("hgemm", gemm<H64>(64, 1536, k)); twice("hgemm", gemm<H64>(64, 64 * 132, k)); twice("hgemm", gemm<H64>(128, 64 * 132, k)); twice("hgemm", gemm<H64>(64 * 6, 64 * 132, k)); }
  for (int k : {64, 256, 1024}) { twice("hgemm", gemm<H128w8>(128, 1536, k)); twice("hgemm", gemm<H128w8>(128, 128 * 132, k)); twice("hgemm", gemm<H128w8>(256, 128 * 132, k)); }
  for (int k : {16, 32, 64, 256, 1024}) { twice("sgemm", gemm<S64>(64, 1024, k)); twice("sgemm", gemm<S64>(64, 4096, k)); twice("sgemm", gemm<S64>(256, 64 * 132, k)); }
  for (int k : {32, 64, 256, 1024}) twice("sgemm", gemm<S32>(32, 3072, k));
  for (int t : {8, 132, 264, 528, 660, 792, 924, 1056}) twice("softmax", softmax(16 * t, 128), true);
  for (int c : {64, 256, 512, 1024}) { twice("softmax", softmax(16 * 8, c)); twice("softmax", softmax(16 * 132, c)); twice("softmax", softmax(16 * 1056, c)); }
  for (int z : {33, 66, 132}) twice("qk", gemm<H64>(128, 128, 64, z), true);
  for (int k : {256, 1024}) for (int c = 0; c < 16; c++) twice("tiles", tiles<H64>(k, c & 1, c & 2, c & 4, c & 8));
  // whose TBs read the same A (those of a row of tiles), the same B, or nothing that others read
  for (int k : {256, 1024}) {
    twice("hgemm", gemm<H64>(64, 64, k, 132)); twice("hgemm", gemm<H64>(64, 64, k, 264)); twice("hgemm", gemm<H64>(64 * 132, 64, k));
    twice("hgemm", gemm<H64>(64, 64 * 33, k, 4)); twice("hgemm", gemm<H64>(128, 64 * 33, k, 4)); twice("hgemm", gemm<H64>(64, 64 * 4, k, 33)); twice("hgemm", gemm<H64>(128, 64 * 4, k, 33));
    twice("hgemm", gemm<H64>(64 * 16, 64 * 16, k)); twice("hgemm", gemm<H64>(64 * 11, 64 * 12, k)); twice("hgemm", gemm<H64>(64, 64, k, 792));
  }
  twice("hgemm", gemm<H64>(512, 8192, 2048), true);
  twice("hgemm", gemm<H64>(512, 2048, 8192), true);
  {
    const int b = 32, h = 512;
    std::vector<Part> p;
    __half *hb = made<__half>((size_t)b * h * 9, .5f), *gb = made<__half>((size_t)b * h * 3, 0.f);
    Part g0 = gemm<H64>(b, 3 * h, h, 1, hb, gb);
    for (int s = 0; s < 8; s++) {
      p.push_back(gemm<H64>(b, 3 * h, h, 1, hb + (size_t)s * b * h, gb));
      p.push_back(cell<__half, 64, 64>(b, h, gb, hb + (size_t)s * b * h, hb + (size_t)(s + 1) * b * h));
    }
    run("gru 512 32", p, 24, true);
    std::vector<Part> q(16, p[0]), r(16, p[1]);
    run("gru 512 32 products alone", q);
    run("gru 512 32 cells alone", r);
  }
  {
    const int z = 128, s = 128;
    __half *sc = made<__half>((size_t)z * s * s, 0.f), *pr = made<__half>((size_t)z * s * s, 0.f);
    run("attention 128 128", {gemm<H64>(s, s, 64, z, nullptr, sc), softmax(z * s, s, sc, pr), gemm<H64>(s, 64, s, z, pr)}, 24, true);
  }
  // gaps: stores long before the end, or at it
  float* buf = made<float>(64 << 20, 0.f);
  cudaEvent_t e[2];
  for (auto& x : e) CK(cudaEventCreate(&x));
  fprintf(OUT, "#what,tbs,early,late,period_us\n");
  for (int tbs : {1, 8, 132})
    for (int early : {0, 1, 8, 16})
      for (int late : {0, 1}) {
        std::vector<float> v;
        for (int i = 0; i < 12; i++) {
          k_gate<<<1, 1, 0, S>>>(200000ull);
          CK(cudaEventRecord(e[0], S));
          for (int j = 0; j < 20; j++) k_early<<<tbs, 256, 0, S>>>(buf, early, late, 3000);
          CK(cudaEventRecord(e[1], S));
          CK(cudaDeviceSynchronize());
          float ms;
          CK(cudaEventElapsedTime(&ms, e[0], e[1]));
          v.push_back(ms * 50);
        }
        std::sort(v.begin(), v.end());
        fprintf(OUT, "#early,%d,%d,%d,%.3f\n", tbs, early, late, v[v.size() / 2]);
      }
  fclose(OUT); fclose(TBS);
  return 0;
}
