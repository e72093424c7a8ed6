// Parts of the chains' kernels: shared-memory loads by width, indexed constants, a K step of the
// fp32 product with parts left out, and on which SMs the TBs of cooperative launches land.
//   parts DIR   writes DIR/parts.csv: what, threads, tbs, cycles; and DIR/coop.csv: shape, launch, tb, sm
//   parts DIR shared   writes DIR/shared_parts.csv: the same steps of TBs that share an SM, by age
#include <cooperative_groups.h>
#include "suite.cuh"
static FILE* OUT;
static unsigned long long* CYC;
static void row(const char* what, int threads, int tbs, double cycles) {
  if (cycles <= 0) return;  // too large to be launched
  fprintf(OUT, "%s,%d,%d,%.3f\n", what, threads, tbs, cycles);
  printf("%-52s %5d threads %4d TBs %10.3f cycles\n", what, threads, tbs, cycles);
}
struct Table { int at[256]; };
// W: words a lane; P: 0 all lanes one address, 1 each lane its own, 2 two addresses a warp, 3 sixteen; CHAIN: dependent
template <int W, int P, bool CHAIN>
__global__ void k_lds(int n, unsigned long long* cyc, float* out) {
  __shared__ __align__(16) unsigned s[4096];
  for (int i = threadIdx.x; i < 4096; i += blockDim.x) s[i] = 0;
  __syncthreads();
  const int lane = threadIdx.x & 31;
  const int cell = P == 0 ? 0 : P == 1 ? lane : P == 2 ? lane >> 4 : lane & 15;
  unsigned base = (unsigned)__cvta_generic_to_shared(s) + cell * W * 4, sum = 0;
  unsigned long long t0 = clock64();
  for (int i = 0; i < n; i++) {
#pragma unroll
    for (int j = 0; j < 16; j++) {
      unsigned a, b = 0, c = 0, d = 0;
      unsigned at = CHAIN ? base : base + (j & 7) * 512;
      if (W == 1) asm volatile("ld.volatile.shared.u32 %0,[%1];" : "=r"(a) : "r"(at));
      if (W == 2) asm volatile("ld.volatile.shared.v2.u32 {%0,%1},[%2];" : "=r"(a), "=r"(b) : "r"(at));
      if (W == 4) asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3},[%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at));
      if (CHAIN) base += a;
      else sum += a ^ b ^ c ^ d;
    }
  }
  unsigned long long t1 = clock64();
  if (base + sum == 12345) out[threadIdx.x] = 1;
  if (threadIdx.x == 0) *cyc = t1 - t0;
}
__global__ void k_ldc(const __grid_constant__ Table t, int n, unsigned long long* cyc, float* out) {
  int x = 0;
  unsigned long long t0 = clock64();
  for (int i = 0; i < n; i++)
#pragma unroll
    for (int j = 0; j < 16; j++) x = t.at[x];
  unsigned long long t1 = clock64();
  if (x == 12345) out[0] = 1;
  if (threadIdx.x == 0) *cyc = t1 - t0;
}
// N multiply-adds of 8 sums in turn behind each load of W words; nothing waits for what is loaded but the end
template <int W, int P, int N>
__global__ void k_mix(int n, float x, float y, unsigned long long* cyc, float* out) {
  __shared__ __align__(16) unsigned s[4096];
  for (int i = threadIdx.x; i < 4096; i += blockDim.x) s[i] = 0;
  __syncthreads();
  const int lane = threadIdx.x & 31;
  const int cell = P == 0 ? 0 : P == 1 ? lane : P == 2 ? lane >> 4 : lane & 15;
  unsigned at = (unsigned)__cvta_generic_to_shared(s) + cell * W * 4;
  float acc[8];
  for (int i = 0; i < 8; i++) acc[i] = threadIdx.x + i;
  unsigned a = 0, b = 0, c = 0, d = 0;
  unsigned long long t0 = clock64();
  for (int i = 0; i < n; i++) {
#pragma unroll
    for (int j = 0; j < 8; j++) {
      if (W == 1) asm volatile("ld.volatile.shared.u32 %0,[%1];" : "=r"(a) : "r"(at + j * 512));
      if (W == 2) asm volatile("ld.volatile.shared.v2.u32 {%0,%1},[%2];" : "=r"(a), "=r"(b) : "r"(at + j * 512));
      if (W == 4) asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3},[%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at + j * 512));
#pragma unroll
      for (int k = 0; k < N; k++) asm volatile("fma.rn.f32 %0,%0,%1,%2;" : "+f"(acc[k & 7]) : "f"(x), "f"(y));
    }
  }
  unsigned long long t1 = clock64();
  float sum = __uint_as_float(a ^ b ^ c ^ d);
  for (int i = 0; i < 8; i++) sum += acc[i];
  if (sum == 12345.678f) out[threadIdx.x] = sum;
  if (threadIdx.x == 0) *cyc = t1 - t0;
}
// the fp32 product's loop; F: 1 global loads, 2 stores to shared memory, 4 barriers, 8 loads from it, 16 arithmetic
// AGES: all TBs begin together, and `cyc` has a counter and 4 words a TB: its SM, when a quarter of its steps was done, and all
template <class G, int TM, int TN, int F, bool AGES = false>
__global__ void __launch_bounds__(G::NT, G::MINB) k_sg(const float* A, const float* B, int ld, int KT, unsigned long long* cyc, float* out) {
  extern __shared__ __align__(16) char smem[];
  constexpr int BM = G::BM, BN = G::BN, BK = G::BK, NT = G::NT, LA = G::LA, LB = G::LB;
  float(*As)[BM + 4] = (float(*)[BM + 4])smem;
  float(*Bs)[BN] = (float(*)[BN])(smem + BK * (BM + 4) * 4);
  const int tid = threadIdx.x, tx = tid % (BN / TN), ty = tid / (BN / TN);
  A += (size_t)(blockIdx.x / 8 % 8) * BM * ld;
  B += (size_t)(blockIdx.x % 8) * BN;
  float4 ra[LA], rb[LB];
  for (int i = tid; i < G::SMEM / 4; i += NT) ((float*)smem)[i] = 0.001f * i;
  __syncthreads();
  auto fetch = [&](int kt) {
    if (F & 1) {
#pragma unroll
      for (int i = 0; i < LB; i++) { int q = tid + i * NT, r = q / (BN / 4), c = (q % (BN / 4)) * 4; rb[i] = ldnc4((const float4*)(B + (size_t)(kt * BK + r) * ld + c)); }
#pragma unroll
      for (int i = 0; i < LA; i++) { int q = tid + i * NT, r = q / (BK / 4), c = (q % (BK / 4)) * 4; ra[i] = ldl2((const float4*)(A + (size_t)r * ld + kt * BK + c)); }
    }
  };
  for (int i = 0; i < LA; i++) ra[i] = make_float4(tid, 1, 2, 3);
  for (int i = 0; i < LB; i++) rb[i] = make_float4(tid, 1, 2, 3);
  float acc[TM][TN] = {}, a[TM], b[TN];
  for (int i = 0; i < TM; i++) a[i] = tid + i;
  for (int i = 0; i < TN; i++) b[i] = tid - i;
  auto col = [&](int j) { return TN == 8 ? (j / 4) * (BN / 2) + tx * 4 + (j & 3) : tx * TN + j; };
  if constexpr (AGES) {
    __syncthreads();
    if (tid == 0) { atomicAdd((unsigned*)cyc, 1u); poll((unsigned*)cyc, gridDim.x); }
    __syncthreads();
  }
  fetch(0);
  unsigned long long t0 = clock64(), quarter = 0;
  for (int kt = 0; kt < KT; kt++) {
    if constexpr (AGES) if (tid == 0 && kt == KT / 4) quarter = clock64();
    if (F & 4) __syncthreads();
    if (F & 2) {
#pragma unroll
      for (int i = 0; i < LA; i++) {
        int q = tid + i * NT, r = q / (BK / 4), c = (q % (BK / 4)) * 4;
        As[c][r] = ra[i].x; As[c + 1][r] = ra[i].y; As[c + 2][r] = ra[i].z; As[c + 3][r] = ra[i].w;
      }
#pragma unroll
      for (int i = 0; i < LB; i++) { int q = tid + i * NT, r = q / (BN / 4), c = (q % (BN / 4)) * 4; *(float4*)&Bs[r][c] = rb[i]; }
    }
    if (F & 4) __syncthreads();
    else asm volatile("" ::: "memory");
    AT_STEP(kt);
    if (kt + 1 < KT) fetch(kt + 1);
#pragma unroll
    for (int k = 0; k < BK; k++) {
      if (F & 8) {
#pragma unroll
        for (int i = 0; i < TM; i++) a[i] = As[k][ty * TM + i];
#pragma unroll
        for (int j = 0; j < TN; j++) b[j] = Bs[k][col(j)];
      }
      if (F & 16) {
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
          for (int j = 0; j < TN; j++) acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
      } else {
#pragma unroll
        for (int i = 0; i < TM; i++) asm volatile("" ::"f"(a[i]));
#pragma unroll
        for (int j = 0; j < TN; j++) asm volatile("" ::"f"(b[j]));
      }
    }
  }
  unsigned long long t1 = clock64();
  float s = ra[0].x + rb[0].x;
  for (int i = 0; i < TM; i++) for (int j = 0; j < TN; j++) s += acc[i][j];
  if (s == 12345.678f) out[tid] = s;
  if constexpr (AGES) {
    unsigned long long* rec = cyc + 4 + blockIdx.x * 4;
    if (tid == 0) { rec[0] = smid(); rec[1] = quarter - t0; rec[2] = t1 - t0; }
  } else if (tid == 0) atomicMax(cyc, t1 - t0);
}
template <class K, typename... A>
static double cycles(K k, int tbs, int nt, size_t smem, double per, A... a) {
  unsigned long long c = 0, best = ~0ull;
  for (int i = 0; i < 3; i++) {
    CK(cudaMemset(CYC, 0, 8));
    k<<<tbs, nt, smem>>>(a...);
    CK(cudaDeviceSynchronize());
    CK(cudaMemcpy(&c, CYC, 8, cudaMemcpyDeviceToHost));
    best = std::min(best, c);
  }
  return best / per;
}
template <int W, int P>
static void lds(const char* name) {
  const int n = 500;
  for (int nt : {32, 128, 256, 512}) {
    if (nt == 32) row((std::string("lds chain ") + name).c_str(), nt, 1, cycles(k_lds<W, P, true>, 1, nt, 0, n * 16, n, CYC, (float*)CYC));
    row((std::string("lds ") + name).c_str(), nt, 1, cycles(k_lds<W, P, false>, 1, nt, 0, n * 16, n, CYC, (float*)CYC));
  }
}
template <int W, int P>
static void mix(const char* name) {
  const int n = 1000;
  for (int nt : {128, 256, 512, 1024}) {
    auto one = [&](auto count) {
      constexpr int N = decltype(count)::value;
      row((std::string("mix ") + std::to_string(N) + " ffma + " + name).c_str(), nt, 1, cycles(k_mix<W, P, N>, 1, nt, 0, n * 8, n, 1.0001f, 0.1f, CYC, (float*)CYC));
    };
    one(std::integral_constant<int, 0>());
    one(std::integral_constant<int, 4>());
    one(std::integral_constant<int, 8>());
    one(std::integral_constant<int, 16>());
    one(std::integral_constant<int, 32>());
  }
}
template <class G, int TM, int TN>
static void sg(const char* name, float* M, int many) {
  const int ld = 4096, KT = 4096 / G::BK;
  struct P { int f; const char* what; };
  auto one = [&](auto f, const char* what) {
    constexpr int F = decltype(f)::value;
    row((std::string(name) + " " + what).c_str(), G::NT, many, cycles(k_sg<G, TM, TN, F>, many, G::NT, G::SMEM, KT, M, M + ((size_t)32 << 20), ld, KT, CYC, (float*)CYC));
  };
  one(std::integral_constant<int, 31>(), "all");
  one(std::integral_constant<int, 30>(), "no global loads");
  one(std::integral_constant<int, 28>(), "barriers lds ffma");
  one(std::integral_constant<int, 24>(), "lds ffma");
  one(std::integral_constant<int, 16>(), "ffma");
  one(std::integral_constant<int, 8>(), "lds");
  one(std::integral_constant<int, 6>(), "sts barriers");
}
// TBs by age: cycles a step in the first quarter of their steps, and in all of them
template <class G, int TM, int TN>
static void shared(FILE* f, const char* name, float* M, std::vector<int> counts) {
  const int ld = 4096, KT = 4096 / G::BK;
  auto one = [&](auto flags, const char* what) {
    constexpr int F = decltype(flags)::value;
    auto* k = k_sg<G, TM, TN, F, true>;
    CK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 220 * 1024));
    for (int each : counts) {
      size_t pad = std::max((size_t)G::SMEM, (size_t)(226 / (each + 1) + 1) * 1024);  // no more than so many fit
      std::vector<std::vector<double>> quarter(each), whole(each);
      for (int r = 0; r < 4; r++) {
        CK(cudaMemset(CYC, 0, 1 << 20));
        k<<<132 * each, G::NT, pad>>>(M, M + ((size_t)32 << 20), ld, KT, CYC, (float*)CYC);
        CK(cudaDeviceSynchronize());
        if (!r) continue;
        std::vector<unsigned long long> h(4 + 132 * each * 4);
        CK(cudaMemcpy(h.data(), CYC, h.size() * 8, cudaMemcpyDeviceToHost));
        std::map<unsigned long long, std::vector<int>> sm;
        for (int b = 0; b < 132 * each; b++) sm[h[4 + b * 4]].push_back(b);
        for (auto& kv : sm)
          if ((int)kv.second.size() == each)
            for (int i = 0; i < each; i++) { auto* rec = &h[4 + kv.second[i] * 4]; quarter[i].push_back(rec[1] * 4.0 / KT); whole[i].push_back(rec[2] * 1.0 / KT); }
      }
      printf("%-10s %-26s", name, what);
      for (int i = 0; i < each; i++) {
        fprintf(f, "%s,%s,%d,%d,%d,%.1f,%.1f,%.1f,%.1f\n", name, what, each, i, (int)quarter[i].size(), stat_of(quarter[i]).med, pct(quarter[i], 0.1), pct(quarter[i], 0.9), stat_of(whole[i]).med);
        printf(" | %.0f (%.0f to %.0f), whole %.0f", stat_of(quarter[i]).med, pct(quarter[i], 0.1), pct(quarter[i], 0.9), stat_of(whole[i]).med);
      }
      printf("\n");
    }
  };
  one(std::integral_constant<int, 31>(), "all");
  one(std::integral_constant<int, 30>(), "no global loads");
  one(std::integral_constant<int, 29>(), "no sts");
  one(std::integral_constant<int, 27>(), "no barriers");
  one(std::integral_constant<int, 28>(), "barriers lds ffma");
  one(std::integral_constant<int, 25>(), "global loads lds ffma");
  one(std::integral_constant<int, 26>(), "sts lds ffma");
  one(std::integral_constant<int, 24>(), "lds ffma");
}
__global__ void k_where(unsigned* sm) {
  if (threadIdx.x == 0) {
    sm[blockIdx.x] = smid();
    unsigned long long t = clock64();
    while (clock64() - t < 20000) {}
  }
  __syncthreads();
}
static void where(FILE* f, int nt, int per, int tbs, bool coop) {
  size_t smem = 227 * 1024 / per / 1024 * 1024 - 1024;
  CK(cudaFuncSetAttribute(k_where, cudaFuncAttributeMaxDynamicSharedMemorySize, 226 * 1024));
  unsigned *d, h[1024];
  CK(cudaMalloc(&d, 4096));
  for (int i = 0; i < 2; i++) {
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3(tbs);
    c.blockDim = dim3(nt);
    c.dynamicSmemBytes = smem;
    cudaLaunchAttribute at[1];
    at[0].id = cudaLaunchAttributeCooperative;
    at[0].val.cooperative = 1;
    c.attrs = at;
    c.numAttrs = coop ? 1 : 0;
    CK(cudaLaunchKernelEx(&c, k_where, d));
    CK(cudaDeviceSynchronize());
  }
  CK(cudaMemcpy(h, d, 4 * tbs, cudaMemcpyDeviceToHost));
  CK(cudaFree(d));
  for (int b = 0; b < tbs; b++) fprintf(f, "%d,%d,%d,%d,%d,%u\n", nt, per, tbs, coop, b, h[b]);
  printf("where %d threads %d an SM %d TBs coop %d:", nt, per, tbs, coop);
  for (int b = 0; b < std::min(tbs, 48); b++) printf(" %u", h[b]);
  for (int first : {16, 32, 64, 128, 256})
    if (first <= tbs) {
      std::vector<unsigned> v(h, h + first);
      std::sort(v.begin(), v.end());
      printf(" | %d on %d", first, (int)(std::unique(v.begin(), v.end()) - v.begin()));
    }
  printf("\n");
}
// room for what kernels write, and the matrices that they read
static float* operands() {
  float* M;
  CK(cudaMalloc(&CYC, 1 << 20));
  CK(cudaMalloc(&M, (size_t)512 << 20));
  init_rand<float><<<1024, 256>>>(M, (size_t)128 << 20, 1.f, 7);
  return M;
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  float* M = operands();
  if (argc > 2 && std::string(argv[2]) == "shared") {
    FILE* g = fopen((dir + "/shared_parts.csv").c_str(), "w");
    fprintf(g, "kernel,what,tbs_an_sm,age,tbs,cycles,p10,p90,whole\n");
    shared<S128, 8, 8>(g, "128x128x8", M, {1, 2}); shared<S64, 4, 4>(g, "64x64x16", M, {1, 2, 3, 4}); shared<S32, 2, 2>(g, "32x32x32", M, {1, 2, 4, 6});
    fclose(g);
    return 0;
  }
  OUT = fopen((dir + "/parts.csv").c_str(), "w");
  fprintf(OUT, "what,threads,tbs,cycles\n");
  lds<1, 0>("32 one address"); lds<1, 1>("32 own"); lds<2, 1>("64 own"); lds<2, 3>("64 sixteen"); lds<2, 2>("64 two");
  lds<4, 0>("128 one address"); lds<4, 1>("128 own"); lds<4, 2>("128 two"); lds<4, 3>("128 sixteen");
  Table t = {};
  const int n = 500;
  row("ldc indexed chain", 32, 1, cycles(k_ldc, 1, 32, 0, n * 16, t, n, CYC, (float*)CYC));
  mix<0, 0>("no load"); mix<1, 1>("32 own"); mix<2, 1>("64 own"); mix<2, 2>("64 two"); mix<2, 3>("64 sixteen");
  mix<4, 0>("128 one address"); mix<4, 1>("128 own"); mix<4, 2>("128 two"); mix<4, 3>("128 sixteen");
  for (int per : {1, 132, 264, 528}) {
    sg<S64, 4, 4>("64x64x16", M, per);
    sg<S32, 2, 2>("32x32x32", M, per);
    if (per < 528) sg<S128, 8, 8>("128x128x8", M, per);
  }
  fclose(OUT);
  FILE* f = fopen((dir + "/coop.csv").c_str(), "w");
  fprintf(f, "threads,tbs_per_sm,grid,cooperative,tb,sm\n");
  for (int coop = 0; coop < 2; coop++) {
    where(f, 256, 2, 128, coop); where(f, 256, 2, 192, coop); where(f, 256, 2, 256, coop); where(f, 256, 2, 264, coop);
    where(f, 256, 4, 64, coop); where(f, 256, 4, 256, coop); where(f, 256, 4, 512, coop); where(f, 256, 4, 528, coop);
    where(f, 128, 6, 256, coop); where(f, 128, 6, 512, coop); where(f, 128, 6, 792, coop); where(f, 256, 6, 192, coop); where(f, 256, 6, 528, coop);
  }
  fclose(f);
  return 0;
}
