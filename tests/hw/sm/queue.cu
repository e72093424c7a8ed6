// How many loads from shared memory an SM queues: 16 warps of one SM begin together and issue `loads` each; cycles from
// the first one's begin until a warp has issued its last, and until its results are there.
//   queue DIR   writes DIR/queue.csv
#include "common.cuh"

template <int KIND, int K>  // 0 LDS.32, 1 LDS.128, 2 ldmatrix.x4, all without conflicts; K loads
__global__ void __launch_bounds__(512) k_queue(unsigned* at, unsigned* sink, int warps) {
  extern __shared__ __align__(16) unsigned smem[];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  for (int i = threadIdx.x; i < 8192; i += blockDim.x) smem[i] = i;
  unsigned sum = 0, t0 = 0, t1 = 0, t2 = 0;
  unsigned base = (unsigned)__cvta_generic_to_shared(smem) + lane * (KIND ? 16 : 4);
#pragma unroll 1
  for (int rep = 0; rep < 4; rep++) {  // the code is fetched in the first
    __syncthreads();
    if (warp < warps) {
      unsigned a[K], b, c, d;
      asm volatile("mov.u32 %0, %%clock;" : "=r"(t0)::"memory");
#pragma unroll
      for (int i = 0; i < K; i++) {
        if (KIND == 0) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a[i]) : "r"(base + i * 128));
        if (KIND == 1) asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a[i]), "=r"(b), "=r"(c), "=r"(d) : "r"(base + i * 512));
        if (KIND == 2) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a[i]), "=r"(b), "=r"(c), "=r"(d) : "r"(base + i * 512));
      }
      asm volatile("mov.u32 %0, %%clock;" : "=r"(t1)::"memory");
#pragma unroll
      for (int i = 0; i < K; i++) sum += a[i];
      asm volatile("mov.u32 %0, %%clock;" : "=r"(t2) : "r"(sum) : "memory");
    }
    __syncthreads();
  }
  if (lane == 0) { at[warp * 3] = t0; at[warp * 3 + 1] = t1; at[warp * 3 + 2] = t2; }
  sink[threadIdx.x] = sum;
}

static FILE* CSV;
static unsigned *AT, *SINK;
template <int KIND, int K>
static void one() {
  const char* names[] = {"lds32", "lds128", "ldmatrix4"};
  for (int warps : {1, 4, 8, 16}) {
    k_queue<KIND, K><<<1, 512, 32768>>>(AT, SINK, warps);
    CK(cudaDeviceSynchronize());
    std::vector<unsigned> h(48);
    CK(cudaMemcpy(h.data(), AT, h.size() * 4, cudaMemcpyDeviceToHost));
    unsigned t0 = ~0u, issued = 0, back = 0;
    for (int w = 0; w < warps; w++) t0 = std::min(t0, h[w * 3]);
    for (int w = 0; w < warps; w++) { issued = std::max(issued, h[w * 3 + 1] - t0); back = std::max(back, h[w * 3 + 2] - t0); }
    fprintf(CSV, "%s,%d,%d,%u,%u\n", names[KIND], warps, K, issued, back);
    printf("%s warps %2d loads %2d: issued %u back %u\n", names[KIND], warps, K, issued, back);
  }
}
template <int KIND>
static void all() { one<KIND, 1>(); one<KIND, 2>(); one<KIND, 3>(); one<KIND, 4>(); one<KIND, 5>(); one<KIND, 6>(); one<KIND, 8>(); one<KIND, 10>(); one<KIND, 12>(); one<KIND, 16>(); one<KIND, 20>(); one<KIND, 24>(); }

int main(int argc, char** argv) {
  CSV = fopen((std::string(argc > 1 ? argv[1] : ".") + "/queue.csv").c_str(), "w");
  fprintf(CSV, "kind,warps,loads,issued_cycles,back_cycles\n");
  CK(cudaMalloc(&AT, 4096));
  CK(cudaMalloc(&SINK, 4096));
  all<0>(); all<1>(); all<2>();
  fclose(CSV);
  return 0;
}
