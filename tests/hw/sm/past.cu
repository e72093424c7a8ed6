// How far a warp gets beyond a barrier that others have not reached, and how far apart warps go on: each notes its SM's cycle counter 16 times
// behind the barrier, with so many integer multiply-adds before each, while the last warp of the TB comes 1,000 cycles after the others.
//   past DIR   writes DIR/past.csv: by multiply-adds before each note (and a load from shared memory before the first, or not), TBs an SM (the
//              stored file has those of one), warps of a TB and warp, cycles behind the first note of the TB's last warp: medians of TB 0
#include "common.cuh"
#include <string>
constexpr int TURNS = 64, NOTES = 16;
template <int ADDS, int LOAD>
__global__ void __launch_bounds__(512) k_past(unsigned* out, int* sink, int late) {
  __shared__ int word[32];
  if (threadIdx.x < 32) word[threadIdx.x] = 1;
  const int w = threadIdx.x >> 5, warps = blockDim.x >> 5;
  int x = threadIdx.x;
  __syncthreads();
  for (int i = 0; i < TURNS; i++) {
    if (w == warps - 1)
      for (unsigned begin = tick(); tick() - begin < late;) {}
    unsigned t[NOTES];
    __syncthreads();
    if (LOAD) {
      int v;
      asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(v) : "r"(0) : "memory");
      x += v;
      asm volatile("" : "+r"(x)::"memory");
    }
#pragma unroll
    for (int k = 0; k < NOTES; k++) {
#pragma unroll
      for (int a = 0; a < ADDS; a++) asm volatile("mad.lo.s32 %0, %0, %1, %1;" : "+r"(x) : "r"(late));
      t[k] = tick();
    }
    if ((threadIdx.x & 31) == 0 && blockIdx.x == 0)
      for (int k = 0; k < NOTES; k++) out[((size_t)w * TURNS + i) * NOTES + k] = t[k];
  }
  if (x == 12345) *sink = x;
}
template <int ADDS, int LOAD>
static void measure(FILE* f, unsigned* out) {
  for (int each : {1, 2})
    for (int warps : {4, 8, 16}) {
      CK(cudaFuncSetAttribute(k_past<ADDS, LOAD>, cudaFuncAttributeMaxDynamicSharedMemorySize, 180 << 10));
      for (int run = 0; run < 2; run++) {
        k_past<ADDS, LOAD><<<132 * each, warps * 32, (180 << 10) / each>>>(out, (int*)out + (1 << 20), 1000);
        CK(cudaGetLastError());
        CK(cudaDeviceSynchronize());
      }
      std::vector<unsigned> h(16 * TURNS * NOTES);
      CK(cudaMemcpy(h.data(), out, h.size() * 4, cudaMemcpyDeviceToHost));
      for (int w = 0; w < warps; w++) {
        fprintf(f, "%d,%d,%d,%d,%d", ADDS, LOAD, each, warps, w);
        for (int k = 0; k < NOTES; k++) {
          std::vector<double> v;
          for (int i = 16; i < TURNS; i++) v.push_back((int)(h[((size_t)w * TURNS + i) * NOTES + k] - h[((size_t)(warps - 1) * TURNS + i) * NOTES]));
          fprintf(f, ",%.0f", stat_of(v).med);
        }
        fprintf(f, "\n");
      }
    }
}
int main(int argc, char** argv) {
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/past.csv").c_str(), "w");
  fprintf(f, "adds,load,tbs,warps,warp");
  for (int k = 0; k < NOTES; k++) fprintf(f, ",note%d", k);
  fprintf(f, "\n");
  unsigned* out;
  CK(cudaMalloc(&out, 8 << 20));
  measure<0, 0>(f, out);
  measure<1, 0>(f, out);
  measure<8, 0>(f, out);
  measure<0, 1>(f, out);
  measure<1, 1>(f, out);
  fclose(f);
  return 0;
}
