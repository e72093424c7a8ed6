// What copies into shared memory take of the array that loads from shared memory read. Half of an SM's 16 warps load as
// fast as they may; the others copy a K step of the tensor GEMM (A: 128 rows of 64 B, B: 32 rows of 256 B) again and again.
//   array DIR   writes DIR/array.csv: tbs, what, pad_a, pad_b (bytes added to a row in shared memory), load (none: copies
//   alone), cycles_a_load (of the SM), steps (copied meanwhile), cycles_a_step
#include "suite.cuh"
enum { NONE, LDSM, LDS32 };
// `copies`: the most steps; 0: none
template <int WHAT, int PADA, int PADB, int KIND>
__global__ void __launch_bounds__(512, 1) k(const char* A, const char* B, size_t ld, int turns, unsigned long long* cyc, int copies) {
  constexpr int ST = 3, SA = 64 + PADA, SB = 256 + PADB, ASZ = 128 * SA, BSZ = 32 * SB;
  extern __shared__ __align__(16) char smem[];
  __shared__ volatile int done;
  const unsigned base = ((unsigned)__cvta_generic_to_shared(smem) + 127) / 128 * 128;
  if (threadIdx.x == 0) done = 0;
  __syncthreads();
  if (threadIdx.x >= 256) {
    const unsigned first = base + ST * (ASZ + BSZ) + threadIdx.x % 32 * (KIND == LDS32 ? 4 : 16);
    unsigned sum = 0;
    unsigned long long t0 = clock64();
#pragma unroll 1
    for (int i = 0; i < turns; i++) {
      const unsigned at = first + i % 7 * 512;  // the compiler would load once what does not change
#pragma unroll
      for (int j = 0; j < 8; j++) {
        unsigned x, y = 0, z = 0, w = 0;
        if (KIND == LDSM) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(at + j * 512));
        else asm volatile("ld.shared.u32 %0,[%1];" : "=r"(x) : "r"(at + j * 512));
        sum += x ^ y ^ z ^ w;
      }
    }
    unsigned long long t1 = clock64();
    if (sum == 12345) cyc[0] = 1;
    asm volatile("bar.sync 1, 256;");
    if (threadIdx.x == 256) {
      done = turns > 0;
      cyc[3 * blockIdx.x] = t1 - t0;
    }
    return;
  }
  if (!copies) return;
  const int tid = threadIdx.x, ar = tid / 4, ac = tid % 4 * 16, br = tid / 16, bc = tid % 16 * 16;
  const char* pA = A + (size_t)(blockIdx.x / 8 % 8 * 128 + ar) * ld + ac;
  const char* pB = B + (size_t)br * ld + blockIdx.x % 8 * 256 + bc;
  const unsigned dA = base + ar * SA + ac, dB = base + ST * ASZ + br * SB + bc;
  auto go = [&](int st, int s) {
    const char *a = pA + 64 * (s % 64), *b = pB + (size_t)32 * (s % 64) * ld;
#pragma unroll
    for (int j = 0; j < 2; j++) {
      if (WHAT & 2) asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(dB + st * BSZ + j * 16 * SB), "l"(b + (size_t)j * 16 * ld));
      if (WHAT & 1) asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(dA + st * ASZ + j * 64 * SA), "l"(a + (size_t)j * 64 * ld));
    }
    asm volatile("cp.async.commit_group;");
  };
  for (int i = 0; i < ST - 1; i++) go(i, i);
  unsigned long long t0 = clock64();
  int st = ST - 1, n = 0;
  for (; n < copies && (n % 4 || !done); n++) {
    asm volatile("cp.async.wait_group %0;" ::"n"(ST - 2));
    go(st, n);
    st = st + 1 == ST ? 0 : st + 1;
  }
  unsigned long long t1 = clock64();
  asm volatile("cp.async.wait_all;");
  if (tid == 0) {
    cyc[3 * blockIdx.x + 1] = t1 - t0;
    cyc[3 * blockIdx.x + 2] = n;
  }
}
static FILE* OUT;
static unsigned long long* CYC;
static char* M;
static double median(const std::vector<unsigned long long>& all, int from) {
  std::vector<double> v;
  for (size_t i = from; i < all.size(); i += 3) v.push_back((double)all[i]);
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}
template <int WHAT, int PADA, int PADB, int KIND>
static void one(int tbs, int turns, int copies) {
  const int smem = 160 * 1024;
  CK(cudaFuncSetAttribute(k<WHAT, PADA, PADB, KIND>, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  CK(cudaMemset(CYC, 0, 24 * tbs));
  for (int i = 0; i < 4; i++) k<WHAT, PADA, PADB, KIND><<<tbs, 512, smem>>>(M, M + (32 << 20), 8192, turns, CYC, copies);
  CK(cudaDeviceSynchronize());
  std::vector<unsigned long long> all(3 * tbs);
  CK(cudaMemcpy(all.data(), CYC, 24 * tbs, cudaMemcpyDeviceToHost));
  const char* what = WHAT == 1 ? "A" : WHAT == 2 ? "B" : "AB";
  const char* load = KIND == LDSM ? "ldmatrix.x4" : KIND == LDS32 ? "LDS.32" : "none";
  double steps = median(all, 2);
  fprintf(OUT, "%d,%s,%d,%d,%s,%.3f,%.0f,%.1f\n", tbs, copies ? what : "none", PADA, PADB, load, turns ? median(all, 0) / (64.0 * turns) : 0.0, steps,
          steps > 0 ? median(all, 1) / steps : 0.0);
}
template <int WHAT, int PADA, int PADB>
static void beside(int tbs) {
  one<WHAT, PADA, PADB, NONE>(tbs, 0, 2000);
  one<WHAT, PADA, PADB, LDSM>(tbs, 2000, 1 << 30);
  one<WHAT, PADA, PADB, LDS32>(tbs, 4000, 1 << 30);
}
int main(int argc, char** argv) {
  OUT = fopen((std::string(argv[1]) + "/array.csv").c_str(), "w");
  fprintf(OUT, "tbs,what,pad_a,pad_b,load,cycles_a_load,steps,cycles_a_step\n");
  CK(cudaMalloc(&M, (size_t)256 << 20));
  CK(cudaMemset(M, 0, (size_t)256 << 20));
  CK(cudaMalloc(&CYC, 65536));
  for (int tbs : {1, 8, 132}) {
    one<3, 16, 16, LDSM>(tbs, 2000, 0);
    one<3, 16, 16, LDS32>(tbs, 4000, 0);
    beside<1, 16, 16>(tbs);
    beside<2, 16, 16>(tbs);
    beside<3, 16, 16>(tbs);
    beside<1, 0, 0>(tbs);
    beside<2, 0, 0>(tbs);
    beside<3, 0, 0>(tbs);
  }
  fclose(OUT);
  return 0;
}
