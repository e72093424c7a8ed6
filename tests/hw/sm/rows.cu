// How many of the sectors that fp32 products store reach L2, by what surrounds the stores: tiles of a thread of T x T outputs, as
// suite.cuh's products write them (T stores of a word to neighbouring places, T rows), counted by what L2 gets.
//   rows DIR   launches each case once, for a profiler (ncu --profile-from-start off --cache-control none --clock-control none
//              --metrics lts__t_sectors_srcunit_tex_op_write.sum), and writes DIR/rows_cases.csv, the cases in that order
#include <cuda_profiler_api.h>
#include "suite.cuh"

// The stores of a product's TB alone: 16 x 16 threads, T x T outputs each, warp w begins w * skew cycles behind the first; between
// two rows of a thread `gap` cycles
template <int T>
__global__ void __launch_bounds__(256) k_rows(float* p, int ldc, int skew, int gap, float v) {
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, w = threadIdx.x >> 5;
  float acc[T][T];
#pragma unroll
  for (int i = 0; i < T; i++)
#pragma unroll
    for (int j = 0; j < T; j++) acc[i][j] = v * (float)(i + j);
  float* c = p + (size_t)blockIdx.y * 16 * T * ldc + (size_t)blockIdx.x * 16 * T;
  __syncthreads();
  const unsigned t0 = tick();
  while (tick() - t0 < (unsigned)(w * skew)) {}
#pragma unroll
  for (int i = 0; i < T; i++) {
    const unsigned t1 = tick();
#pragma unroll
    for (int j = 0; j < T; j++) {
      const int col = T == 8 ? (j / 4) * 64 + tx * 4 + (j & 3) : tx * T + j;
      asm volatile("st.global.f32 [%0], %1;" ::"l"(c + (size_t)(ty * T + i) * ldc + col), "f"(acc[i][j]) : "memory");
    }
    if (gap) while (tick() - t1 < (unsigned)gap) {}
  }
}

static FILE* OUT;
static float* P;
static void note(const char* what, int t, int tbs_x, int tbs_y, int rows, int ldc, int k, int skew, int gap) {
  CK(cudaDeviceSynchronize());
  fprintf(OUT, "%s,%d,%d,%d,%d,%d,%d,%d,%d,%lld\n", what, t, tbs_x, tbs_y, rows, ldc, k, skew, gap, 2ll * t * tbs_x * rows);
}
template <int T>
static void alone(int tbs_x, int tbs_y, int ldc, int skew, int gap) {
  k_rows<T><<<dim3(tbs_x, tbs_y), 256>>>(P, ldc, skew, gap, 1.5f);
  note("stores", T, tbs_x, tbs_y, 16 * T * tbs_y, ldc, 0, skew, gap);
}
template <class G>
static void product(int m, int n, int k) {
  GemmArgs<float> g{P, P + (64 << 20), P + (128 << 20), m, n, k, k, n, n, 0, 0, 0, 0};
  CK(cudaFuncSetAttribute(gemm_k<G, -1>, cudaFuncAttributeMaxDynamicSharedMemorySize, G::SMEM));
  gemm_k<G, -1><<<dim3(n / G::BN, (m + G::BM - 1) / G::BM), G::NT, G::SMEM>>>(g, Sync());
  note("product", G::BM / 16, n / G::BN, (m + G::BM - 1) / G::BM, m, n, k, 0, 0);
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  CK(cudaMalloc(&P, (size_t)1 << 30)); CK(cudaMemset(P, 0, (size_t)1 << 30));
  OUT = fopen((dir + "/rows_cases.csv").c_str(), "w");
  fprintf(OUT, "what,outputs,tbs_x,tbs_y,rows,columns,k,skew,gap,sectors_made\n");
  CK(cudaProfilerStart());
  // one TB, by the distance of rows in memory, by when its warps begin, by what lies between rows
  for (int ldc : {64, 128, 256, 512, 1024, 1536, 2048, 4096, 4608, 4128, 4640, 7168, 8448}) { alone<4>(1, 1, ldc, 0, 0); alone<8>(1, 1, std::max(ldc, 128), 0, 0); alone<2>(1, 1, ldc, 0, 0); }
  for (int skew : {5, 10, 20, 40, 80, 160, 320, 640}) { alone<4>(1, 1, 64, skew, 0); alone<4>(1, 1, 4608, skew, 0); alone<8>(1, 1, 4096, skew, 0); alone<2>(1, 1, 4096, skew, 0); }
  for (int gap : {20, 40, 80, 160, 320}) { alone<4>(1, 1, 64, 0, gap); alone<4>(1, 1, 4608, 0, gap); }
  for (int tbs : {2, 8, 32, 72, 132, 264, 528}) { alone<4>(tbs, 1, 64 * tbs, 0, 0); alone<8>(tbs, 1, 128 * tbs, 0, 0); alone<2>(tbs, 1, 32 * tbs, 0, 0); alone<4>(tbs, 1, 64 * tbs, 100, 0); }
  // whole products: by shape, TBs, K
  for (int k : {16, 64, 512, 1536})
    for (int n : {64, 128, 512, 1536, 4608, 8448}) product<S64>(64, n, k);
  for (int n : {1024, 2048, 8448}) { product<S64>(128, n, 512); product<S64>(256, n, 512); product<S64>(1024, n, 512); }
  for (int k : {8, 64, 512})
    for (int n : {128, 512, 3072, 10240}) product<S128>(128, n, k);
  for (int n : {1024, 4096}) { product<S128>(512, n, 512); product<S128>(1024, n, 512); product<S128>(1200, n, 512); }
  for (int k : {32, 512})
    for (int n : {32, 512, 1536, 4096, 8192}) { product<S32>(32, n, k); product<S32>(16, n, k); }
  for (int n : {4096, 7680}) { product<S32>(64, n, 512); product<S32>(128, n, 512); }
  CK(cudaProfilerStop());
  fclose(OUT);
  return 0;
}
