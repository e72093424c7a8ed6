// Loads from shared memory while the unit works at copies of another warp: `many` ldmatrix of each of some warps, begun when ten (or
// forty, of four warps) copies wait in the unit.
//   entry DIR   writes DIR/entry.csv: cycles until the last result is there, and until the copies of warp 0 have ended
#include "common.cuh"
enum { TURNS = 26 };
template <int MANY, int ROW, int PAD, int N>
__global__ void __launch_bounds__(512) k_entry(unsigned* out, const char* far, int fillers, int testers, int late) {
  extern __shared__ __align__(128) char smem[];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, lanes = ROW / 16, row = lane / lanes, col = lane % lanes;
  const unsigned base = (unsigned)__cvta_generic_to_shared(smem);
  for (int i = threadIdx.x; i < 2048; i += 512) ((unsigned*)smem)[i] = i;
  unsigned sum = 0;
#pragma unroll 1
  for (int turn = 0; turn < TURNS; turn++) {
    __syncthreads();
    if (threadIdx.x == 0) ((unsigned*)smem)[1024] = tick() + 800;
    __syncthreads();
    const unsigned begin = ((volatile unsigned*)smem)[1024];
    unsigned t1 = begin;
    if (warp < fillers) {
      while ((int)(tick() - begin) < 0) {}
#pragma unroll
      for (int i = 0; i < N; i++)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(base + 8192 + (warp * N + i) * 1024 + row * (ROW + PAD) + col * 16), "l"(far + ((warp * N + i) * 32 + row) * 1024 + col * 16) : "memory");
      asm volatile("cp.async.commit_group;" ::: "memory");
      asm volatile("cp.async.wait_group 0;" ::: "memory");
      asm volatile("mov.u32 %0, %%clock;" : "=r"(t1)::"memory");
    } else if (warp >= 8 && warp < 8 + testers) {
      while ((int)(tick() - begin - late) < 0) {}
      unsigned a[MANY + 1], b, c, d, all = 0;
#pragma unroll
      for (int i = 0; i < MANY; i++)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a[i]), "=r"(b), "=r"(c), "=r"(d) : "r"(base + lane * 16 + i * 512));
      for (int i = 0; i < MANY; i++) all |= a[i];
      t1 = tick_behind(all);
      sum += all;
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    if (lane == 0) out[warp * TURNS + turn] = t1 - begin;
  }
  out[16 * TURNS + threadIdx.x] = sum;
}
static FILE* CSV;
static unsigned* OUT;
static char* FAR;
template <int MANY, int ROW, int PAD, int N>
static void one() {
  CK(cudaFuncSetAttribute(k_entry<MANY, ROW, PAD, N>, cudaFuncAttributeMaxDynamicSharedMemorySize, 131072));
  for (int fillers : {0, 1, 4})
    for (int testers : {1, 4, 8}) {
      for (int i = 0; i < 2; i++) k_entry<MANY, ROW, PAD, N><<<1, 512, 131072>>>(OUT, FAR, fillers, testers, 80);
      CK(cudaDeviceSynchronize());
      std::vector<unsigned> h(16 * TURNS);
      CK(cudaMemcpy(h.data(), OUT, h.size() * 4, cudaMemcpyDeviceToHost));
      double most = 0, ended = 0;
      for (int w = 0; w < 16; w++) {
        std::vector<double> t(h.begin() + w * TURNS + 2, h.begin() + (w + 1) * TURNS);
        double m = stat_of(t).med;
        if (w < fillers) ended = std::max(ended, m);
        if (w >= 8 && w < 8 + testers) most = std::max(most, m);
      }
      fprintf(CSV, "%d,%d,%d,%d,%d,%d,%.0f,%.0f\n", ROW, PAD, fillers, N, testers, MANY, most, ended);
    }
}
template <int ROW, int PAD>
static void all() { one<0, ROW, PAD, 10>(); one<1, ROW, PAD, 10>(); one<2, ROW, PAD, 10>(); one<4, ROW, PAD, 10>(); one<8, ROW, PAD, 10>(); one<16, ROW, PAD, 10>(); }
int main(int argc, char** argv) {
  CSV = fopen((std::string(argc > 1 ? argv[1] : ".") + "/entry.csv").c_str(), "w");
  fprintf(CSV, "row,pad,copying_warps,copies,warps,loads,cycles,copied\n");
  CK(cudaMalloc(&OUT, 16384));
  CK(cudaMalloc(&FAR, 8 << 20));
  CK(cudaMemset(FAR, 0, 8 << 20));
  all<64, 0>(); all<64, 16>(); all<16, 0>();
  fclose(CSV);
  return 0;
}
