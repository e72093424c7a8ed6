// What a load/store unit queues of stores, and whom it serves first where many SMs store more than the network takes.
//   backlog DIR   writes DIR/backlog.csv: cycles from the first warp's begin until each warp has issued its i-th store (one SM, or
//                 all); DIR/backlog_tbs.csv:
//                 TBs of 4 warps that begin together and store a tile each: when each has issued all, and when L2 has acknowledged all
#include "suite.cuh"
static unsigned *AT, *CTR;
static float* BUF;
__device__ __forceinline__ void put(float* p, float v) { asm volatile("st.global.cg.f32 [%0], %1;" ::"l"(p), "f"(v) : "memory"); }
// lanes: `per` side by side in a sector, every sector in a line of its own; each store other lines of 16 MB, in turn
__device__ __forceinline__ float* place(float* p, int per, unsigned who, int i) {
  const int lane = threadIdx.x & 31, lines = 32 / per;
  return p + ((size_t)(who * 64 + i) * lines + lane / per) * 32 % (4u << 20) + lane % per;
}
#define N 48
__global__ void __launch_bounds__(1024) k_issue(float* p, int per, int warps, unsigned* at, unsigned* ctr) {
  const int w = threadIdx.x >> 5;
  unsigned t[N], t0 = 0;
  for (int rep = 0; rep < 3; rep++) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) { atomicAdd(ctr, 1); while (*(volatile unsigned*)ctr < gridDim.x * (rep + 1)) {} }
    __syncthreads();
    t0 = tick();
    if (w < warps) {
#pragma unroll
      for (int i = 0; i < N; i++) { put(place(p, per, blockIdx.x * 32 + w, i), 1.f); t[i] = tick(); }
    }
  }
  if (blockIdx.x == 0 && (threadIdx.x & 31) == 0) {
    at[w * (N + 1)] = t0;
    if (w < warps)
      for (int i = 0; i < N; i++) at[w * (N + 1) + 1 + i] = t[i];
  }
}
// TBs of 128 threads, `each` an SM; a warp stores 16 times 8 pieces of 16 B
__global__ void __launch_bounds__(128) k_tile(float* p, int per, unsigned* at, unsigned* ctr) {
  __shared__ unsigned begin;
  for (int rep = 0; rep < 3; rep++) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) { atomicAdd(ctr, 1); while (*(volatile unsigned*)ctr < gridDim.x * (rep + 1)) {} begin = tick(); }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; i++) put(place(p, per, blockIdx.x * 4 + (threadIdx.x >> 5), i), 1.f);
    __syncthreads();
    unsigned issued = tick();
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && rep == 2) {
      unsigned* a = at + blockIdx.x * 4;
      a[0] = smid(); a[1] = begin; a[2] = issued; a[3] = tick();
    }
  }
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  CK(cudaMalloc(&AT, 1 << 20)); CK(cudaMalloc(&CTR, 64)); CK(cudaMalloc(&BUF, 64 << 20)); CK(cudaMemset(BUF, 0, 64 << 20));
  FILE* f = fopen((dir + "/backlog.csv").c_str(), "w");
  fprintf(f, "tbs,lanes_a_sector,warps,warp");
  for (int i = 0; i < N; i++) fprintf(f, ",s%d", i);
  fprintf(f, "\n");
  for (int tbs : {1, 132})
    for (int per : {1, 4, 8})
      for (int warps : {1, 4, 16}) {
        CK(cudaMemset(CTR, 0, 64));
        CK(cudaFuncSetAttribute(k_issue, cudaFuncAttributeMaxDynamicSharedMemorySize, 120000));
        k_issue<<<tbs, 512, 120000>>>(BUF, per, warps, AT, CTR);
        CK(cudaDeviceSynchronize());
        std::vector<unsigned> h(16 * (N + 1));
        CK(cudaMemcpy(h.data(), AT, h.size() * 4, cudaMemcpyDeviceToHost));
        unsigned t0 = ~0u;
        for (int w = 0; w < warps; w++) t0 = std::min(t0, h[w * (N + 1)]);
        for (int w = 0; w < warps; w++) {
          fprintf(f, "%d,%d,%d,%d", tbs, per, warps, w);
          for (int i = 1; i <= N; i++) fprintf(f, ",%u", h[w * (N + 1) + i] - t0);
          fprintf(f, "\n");
        }
      }
  fclose(f);
  f = fopen((dir + "/backlog_tbs.csv").c_str(), "w");
  fprintf(f, "tbs,lanes_a_sector,tb,sm,begin,issued,done\n");
  for (int tbs : {6, 132 * 6})
    for (int per : {4, 8}) {
      CK(cudaMemset(CTR, 0, 64));
      CK(cudaFuncSetAttribute(k_tile, cudaFuncAttributeMaxDynamicSharedMemorySize, 36000));
      k_tile<<<tbs, 128, 36000>>>(BUF, per, AT, CTR);
      CK(cudaDeviceSynchronize());
      std::vector<unsigned> h(tbs * 4);
      CK(cudaMemcpy(h.data(), AT, h.size() * 4, cudaMemcpyDeviceToHost));
      for (int b = 0; b < tbs; b++) fprintf(f, "%d,%d,%d,%u,%u,%u,%u\n", tbs, per, b, h[4 * b], h[4 * b + 1], h[4 * b + 2], h[4 * b + 3]);
    }
  fclose(f);
  return 0;
}
