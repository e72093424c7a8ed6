// Which part of the tensor GEMM's copies is slow: A, B, padding of the rows in shared memory, two halves of a line.
//   copies2 DIR   writes DIR/copies2.csv
#include "suite.cuh"
static unsigned long long* CYC;
static FILE* OUT;
// WHAT 1 A, 2 B; PADA, PADB bytes added to a row in shared memory; ROT: A's rows start at another half of their line
template <int WHAT, int PADA, int PADB, int ST, int NT, int ODD>
__global__ void k(const char* A, const char* B, size_t lda, size_t ldb, int steps, unsigned long long* cyc, int spread) {
  A += (size_t)(blockIdx.x / 8 % 8 * spread) * 128 * lda;
  B += (size_t)(blockIdx.x % 8 * spread) * 256;
  extern __shared__ __align__(128) char smem[];
  constexpr int SA = 64 + PADA, SB = 256 + PADB, ASZ = 128 * SA, BSZ = 32 * SB;
  const int tid = threadIdx.x;
  const int ar = tid / 4, ac = (tid % 4) * 16, br = tid / 16, bc = (tid % 16) * 16;
  const char* pA = A + (size_t)ar * lda + ac;
  const char* pB = B + (size_t)br * ldb + bc;
  const unsigned base = (unsigned)__cvta_generic_to_shared(smem);
  const unsigned dA = base + ar * SA + ac, dB = base + ST * ASZ + br * SB + bc;
  auto go = [&](int st) {
    if (WHAT & 2)
#pragma unroll
      for (int j = 0; j < 32 / (NT / 16); j++) asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(dB + st * BSZ + j * (NT / 16) * SB), "l"(pB + (size_t)j * (NT / 16) * ldb));
    if (WHAT & 1)
#pragma unroll
      for (int j = 0; j < 128 / (NT / 4); j++) asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(dA + st * ASZ + j * (NT / 4) * SA), "l"(pA + (size_t)j * (NT / 4) * lda));
    pA += 64 * ODD;
    pB += 32 * ldb;
    asm volatile("cp.async.commit_group;");
  };
  for (int i = 0; i < ST - 1; i++) go(i);
  unsigned long long t0 = clock64();
  int st = ST - 1;
  for (int s = 0; s < steps; s++) {
    asm volatile("cp.async.wait_group %0;" ::"n"(ST - 2));
    go(st);
    st = st + 1 == ST ? 0 : st + 1;
  }
  unsigned long long t1 = clock64();
  asm volatile("cp.async.wait_all;");
  if (tid == 0) cyc[blockIdx.x] = t1 - t0;
}
static int TBS = 1, SPREAD = 1;
template <int WHAT, int PADA, int PADB, int ST, int NT, int ODD>
static void go(const char* M, size_t lda, size_t ldb) {
  int steps = 120;
  size_t smem = (size_t)ST * (128 * (64 + PADA) + 32 * (256 + PADB));
  CK(cudaFuncSetAttribute(k<WHAT, PADA, PADB, ST, NT, ODD>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)smem));
  for (int i = 0; i < 4; i++) k<WHAT, PADA, PADB, ST, NT, ODD><<<TBS, NT, smem>>>(M, M + (32 << 20), lda, ldb, steps, CYC, SPREAD);
  CK(cudaDeviceSynchronize());
  std::vector<unsigned long long> all(TBS);
  CK(cudaMemcpy(all.data(), CYC, 8 * TBS, cudaMemcpyDeviceToHost));
  std::sort(all.begin(), all.end());
  double c = (double)all[TBS / 2];
  fprintf(OUT, "%d,%d,%s,%d,%d,%d,%d,%d,%zu,%zu,%.1f\n", TBS, SPREAD, WHAT == 1 ? "A" : WHAT == 2 ? "B" : "AB", PADA, PADB, ST, NT, ODD, lda, ldb, (double)c / steps);
}
template <int PADA, int PADB, int ST, int NT, int ODD>
static void three(const char* M, size_t lda, size_t ldb) {
  go<1, PADA, PADB, ST, NT, ODD>(M, lda, ldb);
  go<2, PADA, PADB, ST, NT, ODD>(M, lda, ldb);
  go<3, PADA, PADB, ST, NT, ODD>(M, lda, ldb);
}
int main(int argc, char** argv) {
  OUT = fopen((std::string(argc > 1 ? argv[1] : ".") + "/copies2.csv").c_str(), "w");
  fprintf(OUT, "tbs,spread,what,pad_a,pad_b,stages,threads,halves,lda_B,ldb_B,cycles_a_step\n");
  char* M;
  CK(cudaMalloc(&M, (size_t)256 << 20));
  CK(cudaMemset(M, 0, (size_t)256 << 20));
  CK(cudaMalloc(&CYC, 65536));
  for (int tbs : {1, 8, 33, 66, 132, 264})
    for (int spread : {0, 1}) {
      TBS = tbs; SPREAD = spread;
      if (spread == 0 && tbs == 1) continue;
      for (size_t ldb : {(size_t)2048, (size_t)8192}) {
        three<16, 16, 3, 256, 1>(M, 8192, ldb);
        three<0, 0, 3, 256, 1>(M, 8192, ldb);
      }
      three<32, 32, 3, 256, 1>(M, 8192, 8192);
      three<16, 16, 3, 256, 1>(M, 8192 + 128, 8192 + 256);
      three<0, 0, 3, 256, 1>(M, 8192 + 128, 8192 + 256);
      three<0, 0, 3, 256, 2>(M, 16384, 8192);
    }
  fclose(OUT);
}
