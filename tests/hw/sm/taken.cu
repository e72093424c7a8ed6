// When the registers that name a copy's place (cp.async) have been read, so that they may be written again, and what a load from
// shared memory behind copies of its own warp waits: `warps` warps issue so many copies each, all at once, on an SM of its own.
//   taken DIR   writes DIR/taken.csv: cycles from the first copy's issue on, by warp (median of 24)
#include "common.cuh"

enum { COPIES = 8, TURNS = 26 };
// rows of ROW bytes, PAD bytes apart in shared memory; LOAD: an ldmatrix behind the copies in place of the wait for their registers
template <int N, int ROW, int PAD, int LOAD>
__global__ void __launch_bounds__(256) k_taken(unsigned* out, const char* far, const int* off, unsigned flip, int warps) {
  extern __shared__ __align__(128) char smem[];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, lanes = ROW / 16, row = lane / lanes, col = lane % lanes;
  const unsigned base = (unsigned)__cvta_generic_to_shared(smem);
  const char* from[N + 1];
  unsigned into[N + 1];
  for (int i = 0; i < N; i++) {
    from[i] = far + off[warp * COPIES + i] + row * 4096 + col * 16;
    into[i] = base + 8192 + off[64 + warp * COPIES + i] + row * (ROW + PAD) + col * 16;
  }
  for (int i = threadIdx.x; i < 2048; i += 256) ((unsigned*)smem)[i] = i;
  unsigned sum = 0;
#pragma unroll 1
  for (int turn = 0; turn < TURNS; turn++) {
    __syncthreads();
    if (threadIdx.x == 0) ((unsigned*)smem)[1024] = tick() + 800;
    __syncthreads();
    const unsigned begin = ((volatile unsigned*)smem)[1024];
    unsigned t1 = 0;
    if (warp < warps) {
      while ((int)(tick() - begin) < 0) {}
#pragma unroll
      for (int i = 0; i < N; i++) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(into[i]), "l"(from[i]) : "memory");
      if (LOAD == 2) asm volatile("cp.async.commit_group;" ::: "memory");
      if (LOAD) {
        unsigned a, b, c, d;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(base + lane * 16));
        t1 = tick_behind(a);
        sum += a + b + c + d;
      }
    }
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("xor.b32 %0, %0, %1;" : "+r"(into[i]) : "r"(flip));  // written where they were
    if (!LOAD) {
      unsigned all = 0;
      for (int i = 0; i < N; i++) all |= into[i];
      t1 = tick_behind(all);
    }
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
    if (lane == 0) out[warp * TURNS + turn] = t1 - begin;
  }
  out[8 * TURNS + threadIdx.x] = sum;
}

static FILE* CSV;
static unsigned* OUT;
static char* FAR;
static int* OFF;
template <int N, int ROW, int PAD, int LOAD>
static void one() {
  CK(cudaFuncSetAttribute(k_taken<N, ROW, PAD, LOAD>, cudaFuncAttributeMaxDynamicSharedMemorySize, 139264));
  for (int warps : {1, 2, 4, 8}) {
    for (int i = 0; i < 2; i++) k_taken<N, ROW, PAD, LOAD><<<1, 256, 139264>>>(OUT, FAR, OFF, 65536, warps);
    CK(cudaDeviceSynchronize());
    std::vector<unsigned> h(8 * TURNS);
    CK(cudaMemcpy(h.data(), OUT, h.size() * 4, cudaMemcpyDeviceToHost));
    for (int w = 0; w < warps; w++) {
      std::vector<double> t(h.begin() + w * TURNS + 2, h.begin() + (w + 1) * TURNS);
      Stat q = stat_of(t);
      fprintf(CSV, "%d,%d,%d,%s,%d,%d,%.0f,%.0f,%.0f\n", ROW, PAD, N, LOAD == 2 ? "ldmatrix behind a commit" : LOAD ? "ldmatrix" : "registers", warps, w, q.med, q.mn, q.mx);
    }
  }
}
template <int ROW, int PAD>
static void all() {
  one<0, ROW, PAD, 0>(); one<1, ROW, PAD, 0>(); one<2, ROW, PAD, 0>(); one<3, ROW, PAD, 0>(); one<4, ROW, PAD, 0>(); one<6, ROW, PAD, 0>(); one<8, ROW, PAD, 0>();
  one<1, ROW, PAD, 1>(); one<2, ROW, PAD, 1>(); one<4, ROW, PAD, 1>(); one<8, ROW, PAD, 1>();
  one<1, ROW, PAD, 2>(); one<2, ROW, PAD, 2>(); one<4, ROW, PAD, 2>(); one<8, ROW, PAD, 2>();
}
int main(int argc, char** argv) {
  CSV = fopen((std::string(argc > 1 ? argv[1] : ".") + "/taken.csv").c_str(), "w");
  fprintf(CSV, "row,pad,copies,until,warps,warp,cycles,least,most\n");
  CK(cudaMalloc(&OUT, 8192));
  CK(cudaMalloc(&FAR, 8 << 20));
  CK(cudaMemset(FAR, 0, 8 << 20));
  std::vector<int> off(16 * COPIES);
  for (int i = 0; i < 64; i++) {
    off[i] = (i * 37 % 64) * 384 + i % 4 * 131072;
    off[64 + i] = i * 1024;
  }
  CK(cudaMalloc(&OFF, off.size() * 4));
  CK(cudaMemcpy(OFF, off.data(), off.size() * 4, cudaMemcpyHostToDevice));
  all<64, 0>(); all<64, 16>(); all<256, 16>();
  fclose(CSV);
  return 0;
}
