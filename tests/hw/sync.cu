// How many loads of products join as their TBs go on: whole products of 4 to 128 steps, as they are.
//   sync DIR   writes DIR/sync.csv: kernel, TBs down and across and steps, the second of two launches each, in the order in
//   which a profiler counts them (between profiler start and stop)
#include <cuda_profiler_api.h>
#include "suite.cuh"
static float* POOL;
// halves of -0.5 to 0.5, which are small numbers as floats, too
__global__ void k_fill(unsigned short* p, size_t n) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) p[i] = __half_as_ushort(__float2half_rn(((unsigned)(i * 2654435761u) >> 8) * 0x1p-24f - 0.5f));
}
template <class G>
static void run(FILE* f, const char* name, int down, int across, int steps) {
  using T = typename G::T;
  const int m = G::BM * down, n = G::BN * across, k = steps * G::BK;
  GemmArgs<T> g{(T*)POOL, (T*)POOL + (32 << 20), (T*)POOL + (96 << 20), m, n, k, k, n, n, 0, 0, 0, 0};
  CK(cudaFuncSetAttribute(gemm_k<G, -1>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)G::SMEM));
  for (int i = 0; i < 2; i++) {
    if (i) CK(cudaProfilerStart());
    gemm_k<G, -1><<<dim3(n / G::BN, m / G::BM), G::NT, G::SMEM>>>(g, Sync());
    CK(cudaDeviceSynchronize());
  }
  CK(cudaProfilerStop());
  fprintf(f, "%s,%d,%d,%d\n", name, down, across, steps);
}
int main(int argc, char** argv) {
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/sync.csv").c_str(), "w");
  fprintf(f, "kernel,down,across,steps\n");
  CK(cudaMalloc(&POOL, (size_t)1 << 30));
  k_fill<<<1024, 256>>>((unsigned short*)POOL, (size_t)1 << 29);
  for (int steps : {4, 8, 16, 32, 64, 128}) {
    run<H64>(f, "hgemm_64x64x32", 6, 16, steps);
    run<H64>(f, "hgemm_64x64x32", 11, 12, steps);
    run<H64>(f, "hgemm_64x64x32", 1, 132, steps);
    run<H128w8>(f, "hgemm_128x128x32_8warps", 11, 12, steps);
    run<H128w8>(f, "hgemm_128x128x32_8warps", 4, 32, steps);
    run<H128w4>(f, "hgemm_128x128x32_4warps", 11, 12, steps);
    run<H128w8>(f, "hgemm_128x128x32_8warps", 8, 32, steps);
    run<H128w4>(f, "hgemm_128x128x32_4warps", 8, 32, steps);
    run<H64>(f, "hgemm_64x64x32", 16, 25, steps);
    run<S64>(f, "sgemm_64x64x16", 11, 12, steps);
    run<S128>(f, "sgemm_128x128x8", 11, 12, steps);
  }
  fclose(f);
}
