// How long loads from DRAM take: one by one, as tiles of several TBs, and in products whose matrices come from there.
//   cold DIR   writes DIR/cold_loads.csv, DIR/cold_tiles.csv, DIR/cold_products.csv
#include "suite.cuh"
static const size_t POOL = 4ull << 30, FLUSH = 256ull << 20;
static char* P;
static float4* FL;
static unsigned* OUT;
__global__ void k_flush(float4* p, size_t n, float v) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) p[i] = make_float4(v, v, v, v);
}
__global__ void k_fill(const uint4* p, size_t n, unsigned* out) {
  unsigned x = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    uint4 v = __ldcg(p + i);
    x ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (x == 0x12345) out[0] = x;
}
// what L2 holds before: written lines ("dirty"), the same 0.2 ms later ("rest"), lines that were read ("clean")
static const char* LINES = "dirty";
static void flush() {
  static float v = 0;
  if (LINES[0] == 'c') {
    k_fill<<<528, 512>>>((const uint4*)FL, FLUSH / 16, OUT);
  } else {
    k_flush<<<528, 512>>>(FL, FLUSH / 16, v += 1);
  }
  if (LINES[0] == 'r') k_gate<<<1, 1>>>(200000);
}
// ---- one lane, one load at a time; `seen`: cycles of each
__global__ void k_chase(const char* p, const unsigned long long* at, int n, unsigned* seen) {
  unsigned x = 0;
  for (int i = 0; i < n; i++) {
    const char* a = p + at[i] + x;
    asm volatile("" ::"l"(a) : "memory");
    unsigned t0 = tick(), v;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(a) : "memory");
    x = v & 1;  // zeros
    asm volatile("" ::"r"(x) : "memory");
    unsigned t1 = tick() + x;
    seen[i] = t1 - t0;
  }
}
static void chase(FILE* f, const char* what, size_t span, size_t step, int order) {
  const int n = 40000;
  std::vector<unsigned long long> at(n);
  unsigned long long s = 88172645463325252ull + span + step;
  for (int i = 0; i < n; i++) {
    s ^= s << 13; s ^= s >> 7; s ^= s << 17;
    at[i] = order ? (unsigned long long)i * step % span : s % (span / step) * step;
  }
  unsigned long long* d;
  CK(cudaMalloc(&d, 8 * n));
  CK(cudaMemcpy(d, at.data(), 8 * n, cudaMemcpyHostToDevice));
  for (int again = 0; again < 2; again++) {
    if (!again) flush();
    k_chase<<<1, 1>>>(P, d, n, OUT);
    std::vector<unsigned> seen(n);
    CK(cudaMemcpy(seen.data(), OUT, 4 * n, cudaMemcpyDeviceToHost));
    std::vector<double> v(seen.begin() + 100, seen.end());
    std::map<int, int> bins;
    double sum = 0;
    for (double x : v) {
      sum += x;
      bins[(int)x / 10 * 10]++;
    }
    for (auto& b : bins) fprintf(f, "%s,%zu,%zu,%d,%d,%d\n", what, span, step, again, b.first, b.second);
    printf("%s span %zu step %zu again %d: median %.0f p90 %.0f p99 %.0f mean %.1f\n", what, span, step, again, pct(v, .5), pct(v, .9), pct(v, .99), sum / v.size());
  }
  CK(cudaFree(d));
}
// ---- TBs of 128 threads copy tiles of ROWS x 128 B into shared memory, `DEPTH` under way
template <int ROWS, int DEPTH>
__global__ void __launch_bounds__(128) k_tiles(const char* p, size_t pitch, int steps, unsigned* cyc) {
  __shared__ __align__(128) char t[DEPTH][ROWS * 144];
  const char* a = p + (size_t)blockIdx.x * 128 + (size_t)(threadIdx.x / 8) * pitch + threadIdx.x % 8 * 16;
  unsigned to = (unsigned)__cvta_generic_to_shared(t) + threadIdx.x / 8 * 144 + threadIdx.x % 8 * 16;
  int slot = 0;
  auto load = [&]() {
#pragma unroll
    for (int j = 0; j < ROWS / 16; j++)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + slot * ROWS * 144 + j * 16 * 144), "l"(a + (size_t)j * 16 * pitch) : "memory");
    a += ROWS * pitch;
    slot = slot + 1 == DEPTH ? 0 : slot + 1;
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  for (int i = 0; i < DEPTH - 1; i++) load();
  unsigned t0 = tick();
  for (int k = 0; k < steps; k++) {
    if (DEPTH > 1) asm volatile("cp.async.wait_group %0;" ::"n"(DEPTH > 1 ? DEPTH - 2 : 0) : "memory");
    __syncthreads();
    if (k + DEPTH - 1 < steps || DEPTH == 1) load(); else asm volatile("cp.async.commit_group;" ::: "memory");
    if (DEPTH == 1) asm volatile("cp.async.wait_group 0;" ::: "memory");
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) cyc[blockIdx.x] = tick() - t0;
}
template <int ROWS, int DEPTH>
static void tiles(FILE* f, int tbs, size_t pitch, int steps) {
  for (int again = 0; again < 2; again++) {
    std::vector<double> mid;
    for (int r = 0; r < 5; r++) {
      if (!again) flush();
      k_tiles<ROWS, DEPTH><<<tbs, 128>>>(P, pitch, steps, OUT);
      if (again) k_tiles<ROWS, DEPTH><<<tbs, 128>>>(P, pitch, steps, OUT);
      std::vector<unsigned> c(tbs);
      CK(cudaMemcpy(c.data(), OUT, 4 * tbs, cudaMemcpyDeviceToHost));
      std::vector<double> v(c.begin(), c.end());
      mid.push_back(pct(v, .5) / steps);
    }
    Stat s = stat_of(mid);
    fprintf(f, "%s,%d,%d,%d,%zu,%d,%d,%.1f,%.1f,%.1f\n", LINES, ROWS, DEPTH, tbs, pitch, steps, again, s.med, s.mn, s.mx);
    printf("%s tiles %d rows depth %d tbs %d pitch %zu %s: %.1f cycles a step [%.1f %.1f]\n", LINES, ROWS, DEPTH, tbs, pitch, again ? "again" : "cold", s.med, s.mn, s.mx);
  }
}
// ---- products
template <class G>
static void product(FILE* f, const char* name, int M, int N, int K) {
  using T = typename G::T;
  T* A = (T*)P;
  T* B = (T*)(P + (256ull << 20));
  T* C = (T*)(P + (1ull << 30));
  GemmArgs<T> g{A, B, C, M, N, K, K, N, N, 0, 0, 0, 0};
  CK(cudaFuncSetAttribute(gemm_k<G, 0>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)G::SMEM));
  dim3 grid(N / G::BN, (M + G::BM - 1) / G::BM, 1);
  cudaEvent_t e0, e1;
  CK(cudaEventCreate(&e0));
  CK(cudaEventCreate(&e1));
  for (const char* how : {"cold", "warm"}) {
    std::vector<double> us;
    for (int r = 0; r < 15; r++) {
      if (how[0] == 'c') flush(); else gemm_k<G, 0><<<grid, G::NT, G::SMEM>>>(g, Sync{});
      k_gate<<<1, 1>>>(20000);
      CK(cudaEventRecord(e0));
      gemm_k<G, 0><<<grid, G::NT, G::SMEM>>>(g, Sync{});
      CK(cudaEventRecord(e1));
      CK(cudaEventSynchronize(e1));
      float ms;
      CK(cudaEventElapsedTime(&ms, e0, e1));
      us.push_back(1e3 * ms);
    }
    Stat s = stat_of(us);
    fprintf(f, "%s,%s,%d,%d,%d,%d,%s,%.3f,%.3f,%.3f\n", LINES, name, M, N, K, (int)(grid.x * grid.y), how, s.med, s.mn, s.mx);
    printf("%s %s %d x %d x %d %s: %.2f us [%.2f %.2f]\n", LINES, name, M, N, K, how, s.med, s.mn, s.mx);
  }
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  CK(cudaMalloc(&P, POOL));
  CK(cudaMalloc(&FL, FLUSH));
  CK(cudaMalloc(&OUT, 1 << 20));
  CK(cudaMemset(P, 0, POOL));
  FILE* f = fopen((dir + "/cold_loads.csv").c_str(), "w");
  fprintf(f, "what,span,step,again,cycles,loads\n");
  for (size_t span : {32ull << 20, 4ull << 30}) chase(f, "random", span, 128, 0);
  for (size_t step : {32ull, 128ull, 8192ull}) chase(f, "in order", POOL, step, 1);
  fclose(f);
  f = fopen((dir + "/cold_tiles.csv").c_str(), "w");
  fprintf(f, "lines,rows,depth,tbs,pitch,steps,again,cycles,least,most\n");
  for (const char* lines : {"dirty", "rest", "clean"}) for (int tbs : {1, 4, 16, 64, 132, 264}) {
    LINES = lines;
    for (size_t pitch : {(size_t)tbs * 128, (size_t)8192, (size_t)32768, (size_t)16896}) {
      if (pitch < (size_t)tbs * 128) continue;
      tiles<32, 1>(f, tbs, pitch, 64);
      tiles<32, 2>(f, tbs, pitch, 64);
      if (lines[0] == 'd') tiles<32, 3>(f, tbs, pitch, 64);
    }
    tiles<16, 1>(f, tbs, (size_t)tbs * 128, 64);
    tiles<64, 1>(f, tbs, (size_t)tbs * 128, 64);
    tiles<64, 3>(f, tbs, (size_t)tbs * 128, 64);
  }
  fclose(f);
  f = fopen((dir + "/cold_products.csv").c_str(), "w");
  fprintf(f, "lines,kernel,M,N,K,tbs,how,us,least,most\n");
  for (const char* lines : {"dirty", "rest", "clean"}) {
    LINES = lines;
    product<S64>(f, "sgemm_64x64x16", 64, 64, 512);
    product<S64>(f, "sgemm_64x64x16", 64, 64, 2048);
    product<H64>(f, "hgemm_64x64x32", 64, 64, 768);
    product<H64>(f, "hgemm_64x64x32", 64, 64, 8192);
    for (int n : {1024, 4096, 8448, 16384}) for (int k : {1024, 2816, 4096, 16384}) product<H64>(f, "hgemm_64x64x32", 64, n, k);
    for (int n : {2048, 4096}) for (int k : {1408, 2816}) product<H64>(f, "hgemm_64x64x32", 64, n, k);
    product<S32>(f, "sgemm_32x32x32", 32, 3072, 1024);
    product<S32>(f, "sgemm_32x32x32", 32, 8448, 2816);
    product<S64>(f, "sgemm_64x64x16", 64, 4096, 4096);
    product<H128w8>(f, "hgemm_128x128x32_8warps", 128, 4096, 4096);
    product<H128w8>(f, "hgemm_128x128x32_8warps", 128, 16384, 4096);
  }
  fclose(f);
}
