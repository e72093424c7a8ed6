// Products as they are (suite.cuh), of random numbers: what leave.cu, lone.cu, shapes.cu and wide.cu launch.
#pragma once
#include "suite.cuh"
// A, B and C begin so many numbers behind the first; all products' fit in between
constexpr size_t NUMBERS = (size_t)1 << 28, FIRST_B = (size_t)64 << 20, FIRST_C = (size_t)160 << 20;
template <typename T>
static T* numbers() {
  static T* p = made<T>(NUMBERS, .5f);
  return p;
}
// `down` x `across` TBs, `steps` steps; MODE as in suite.cuh: -1 is the plain kernels' code, 2 the chains'. Rows of A
// begin `pitch_a` numbers apart, or as K is long
template <class G, int MODE>
static void launch_product(int down, int across, int steps, cudaStream_t s = 0, const Sync& sync = Sync(), int pitch_a = 0) {
  using T = typename G::T;
  const int m = G::BM * down, n = G::BN * across, k = G::BK * steps;
  T* p = numbers<T>();
  GemmArgs<T> g{p, p + FIRST_B, p + FIRST_C, m, n, k, pitch_a ? pitch_a : k, n, n, 0, 0, 0, 0};
  static const cudaError_t set = cudaFuncSetAttribute(gemm_k<G, MODE>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)G::SMEM);  // once
  CK(set);
  gemm_k<G, MODE><<<dim3(across, down), G::NT, G::SMEM, s>>>(g, sync);
}
// ns from event to event around what `launch` puts into the stream
template <class F>
static float event_ns(cudaStream_t s, F launch) {
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a)); CK(cudaEventCreate(&b));
  CK(cudaEventRecord(a, s));
  launch();
  CK(cudaGetLastError());
  CK(cudaEventRecord(b, s));
  CK(cudaStreamSynchronize(s));
  float ms;
  CK(cudaEventElapsedTime(&ms, a, b));
  CK(cudaEventDestroy(a)); CK(cudaEventDestroy(b));
  return ms * 1e6f;
}
