// Three kernels of the measured chains, launched as in stream order with their data in L2, for the profiler's samples of
// what their warps wait for: ncu --section SourceCounters --warp-sampling-interval 0 --cache-control none
// --profile-from-start off loops; its page "source" is what h200_samples.csv has the loops of.
#include "suite.cuh"
#include <cuda_profiler_api.h>
template <typename T>
static T* zeros(size_t n) {
  T* p;
  CK(cudaMalloc(&p, n * sizeof(T)));
  CK(cudaMemset(p, 0, n * sizeof(T)));
  return p;
}
template <class F>
static void profiled(F launch) {
  for (int i = 0; i < 2; i++) launch();
  CK(cudaDeviceSynchronize());
  CK(cudaProfilerStart());
  launch();
  CK(cudaDeviceSynchronize());
  CK(cudaProfilerStop());
}
template <class G>
static void gemm(int m, int n, int k) {
  using T = typename G::T;
  GemmArgs<T> g{zeros<T>((size_t)m * k), zeros<T>((size_t)k * n), zeros<T>((size_t)m * n), m, n, k, k, n, n, 0, 0, 0, 0};
  CK(cudaFuncSetAttribute(gemm_k<G, 2>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)G::SMEM));
  profiled([=] { gemm_k<G, 2><<<dim3(n / G::BN, (m + G::BM - 1) / G::BM), G::NT, G::SMEM>>>(g, Sync()); });
}
int main() {
  gemm<S64>(64, 4096, 1024);
  gemm<H64>(64, 3072, 1024);
  const int batch = 64, hidden = 1024;
  using T = __half;
  CellArgs<T> c{zeros<T>((size_t)batch * 3 * hidden), zeros<T>((size_t)batch * 3 * hidden), zeros<T>((size_t)batch * hidden), zeros<T>((size_t)batch * hidden), batch, hidden};
  profiled([=] { gru_k<T, 64, 64, 2><<<dim3(hidden / 64, batch / 64), 256>>>(c, Sync()); });
  return 0;
}
