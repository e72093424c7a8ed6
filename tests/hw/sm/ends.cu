// When the warps of an fp32 product's TB begin to store, beside each other, and for how long the TB stores: which stores join
// (merge.cu, rows.cu) depends on both.
//   ends DIR   writes DIR/ends.csv: of each product, three runs: how many cycles behind warp w of a TB its warp w + 4, which has the
//              same sub-core, begins (10, 50, 90 % of all pairs), how far its eight warps are apart, and cycles from the first
//              one's begin until the last one has handed over its stores (means over TBs)
#include <string>
static __constant__ unsigned* ends_out;
#define BEFORE_STORES const unsigned ends_begin = tick()
#define BEHIND_STORES \
  if ((threadIdx.x & 31) == 0) ends_at(ends_begin)
#include "common.cuh"
__device__ __forceinline__ void ends_at(unsigned begin) {
  unsigned* p = ends_out + ((size_t)(blockIdx.y * gridDim.x + blockIdx.x) * 8 + (threadIdx.x >> 5)) * 2;
  p[0] = begin;
  p[1] = tick();
}
#define main plain_kernels
#include "kernels.cu"
#undef main
static FILE* OUT;
static float* P;
static unsigned* ENDS;
template <class G>
static void product(const char* kernel, int m, int n, int k) {
  GemmArgs<float> g{P, P + (64 << 20), P + (128 << 20), m, n, k, k, n, n, 0, 0, 0, 0};
  CK(cudaFuncSetAttribute(gemm_k<G, -1>, cudaFuncAttributeMaxDynamicSharedMemorySize, G::SMEM));
  const dim3 grid(n / G::BN, (m + G::BM - 1) / G::BM);
  const int tbs = grid.x * grid.y;
  for (int run = 0; run < 3; run++) {
    gemm_k<G, -1><<<grid, G::NT, G::SMEM>>>(g, Sync());
    CK(cudaDeviceSynchronize());
    std::vector<unsigned> h((size_t)tbs * 16);
    CK(cudaMemcpy(h.data(), ENDS, h.size() * 4, cudaMemcpyDeviceToHost));
    std::vector<int> pairs;
    double apart = 0, stored = 0;
    for (int t = 0; t < tbs; t++) {
      const unsigned* w = &h[(size_t)t * 16];
      int first = 0, last = 0, end = 0;
      for (int i = 0; i < 8; i++) {
        first = std::min(first, (int)(w[i * 2] - w[0]));
        last = std::max(last, (int)(w[i * 2] - w[0]));
        end = std::max(end, (int)(w[i * 2 + 1] - w[0]));
      }
      for (int i = 0; i < 4; i++) pairs.push_back((int)(w[(i + 4) * 2] - w[i * 2]));
      apart += last - first;
      stored += end - first;
    }
    std::sort(pairs.begin(), pairs.end());
    const size_t all = pairs.size();
    fprintf(OUT, "%s,M=%d;N=%d;K=%d,%d,%d,%d,%d,%d,%.0f,%.0f\n", kernel, m, n, k, tbs, run, pairs[all / 10], pairs[all / 2], pairs[all * 9 / 10], apart / tbs, stored / tbs);
  }
}
int main(int argc, char** argv) {
  OUT = fopen((std::string(argc > 1 ? argv[1] : ".") + "/ends.csv").c_str(), "w");
  fprintf(OUT, "kernel,params,tbs,run,pair_p10,pair_median,pair_p90,apart,stores\n");
  CK(cudaMalloc(&P, (size_t)1 << 30)); CK(cudaMemset(P, 0, (size_t)1 << 30));
  CK(cudaMalloc(&ENDS, 64 << 20)); CK(cudaMemcpyToSymbol(ends_out, &ENDS, sizeof ENDS));
  for (int n : {64, 512, 4608, 8448}) product<S64>("sgemm_64x64x16", 64, n, 512);
  product<S64>("sgemm_64x64x16", 1024, 1024, 512);
  product<S64>("sgemm_64x64x16", 256, 8448, 512);
  for (int n : {128, 3072, 10240}) product<S128>("sgemm_128x128x8", 128, n, 512);
  for (int m : {512, 1200}) product<S128>("sgemm_128x128x8", m, 4096, 512);
  for (int n : {32, 4096}) product<S32>("sgemm_32x32x32", 32, n, 512);
  fclose(OUT);
  return 0;
}
