// What passes through the queue in which a sub-core keeps what it asks of the load/store unit and of shared memory: one warp
// queues ten loads or copies, another one of the same sub-core or of the next then does something, and waits for it.
//   through DIR   writes DIR/through.csv: cycles that it takes, median, least and most of 24
#include "common.cuh"

__constant__ unsigned TABLE[64];
enum { NOTHING, LDS32, COPIES, COPIES8, LDSM32, STS32, LDG32, FILLERS };
enum { ADD, LDC, BAR, LDS, MUFU, S2R, SHFL, LDSM, STS, COMMIT, LDG, TESTS };
static const char *FILLER[] = {"nothing", "lds of 32 wavefronts", "copies of 32 lines", "copies of 8 lines", "ldmatrix of 32 wavefronts", "sts of 32 wavefronts", "ldg of 32 lines"};
static const char *TEST[] = {"add", "ldc", "bar", "lds", "mufu", "s2r", "shfl", "ldmatrix", "sts", "commit", "ldg"};

template <int FILL, int WHAT>
__global__ void __launch_bounds__(256) k_through(unsigned* out, const char* far, int distance, unsigned zero) {
  extern __shared__ __align__(128) char smem[];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const unsigned base = (unsigned)__cvta_generic_to_shared(smem);
  ((unsigned*)smem)[threadIdx.x] = threadIdx.x;
  unsigned sum = 0;
#pragma unroll 1
  for (int rep = 0; rep < 26; rep++) {
    __syncthreads();
    const unsigned begin = tick() + 600;
    __syncthreads();
    if (warp == 0) {
      while ((int)(tick() - begin) < 0) {}
      unsigned a[10], b, c, d;
#pragma unroll
      for (int i = 0; i < 10; i++) {
        a[i] = 0;
        if (FILL == LDS32) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a[i]) : "r"(base + lane * 128 + i * 4096));
        if (FILL == COPIES)
          asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(base + lane * 16 + i * 512), "l"(far + lane * 128 + i * 4096 + zero));
        if (FILL == COPIES8)
          asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(base + lane * 16 + i * 512), "l"(far + lane / 4 * 128 + lane % 4 * 16 + i * 1024 + zero));
        if (FILL == STS32) asm volatile("st.shared.u32 [%0], %1;" ::"r"(base + lane * 128 + i * 4096), "r"(begin) : "memory");
        if (FILL == LDG32) asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(a[i]) : "l"(far + lane * 128 + i * 4096 + zero));
        if (FILL == LDSM32)
          asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a[i]), "=r"(b), "=r"(c), "=r"(d) : "r"(base + lane * 128 + i * 4096));
      }
      for (int i = 0; i < 10; i++) sum += a[i];
      asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
    } else if (warp == distance) {
      while ((int)(tick() - begin - 64) < 0) {}
      unsigned r = 1, b, c, d, t0 = tick();
      if (WHAT == ADD) asm volatile("add.u32 %0, %1, 1;" : "=r"(r) : "r"(t0));
      if (WHAT == LDC) asm volatile("ld.const.u32 %0, [%1];" : "=r"(r) : "l"((const char*)__cvta_generic_to_constant(TABLE) + (zero + rep % 2) * 4));
      if (WHAT == BAR) asm volatile("barrier.sync 1, 32;" ::: "memory");
      if (WHAT == LDS) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(base + lane * 4 + zero));
      if (WHAT == MUFU) asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=r"(r) : "r"(t0));
      if (WHAT == S2R) asm volatile("mov.u32 %0, %%smid;" : "=r"(r));
      if (WHAT == SHFL) asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, 0xffffffff;" : "=r"(r) : "r"(t0));
      if (WHAT == LDSM) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r), "=r"(b), "=r"(c), "=r"(d) : "r"(base + lane * 16 + zero));
      if (WHAT == STS) asm volatile("st.shared.u32 [%0], %1;" ::"r"(base + 40960 + lane * 4), "r"(t0) : "memory");
      if (WHAT == COMMIT) asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
      if (WHAT == LDG) asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(r) : "l"(far + 65536 + lane * 4 + zero));
      const unsigned t1 = tick_behind(r);
      if (lane == 0) out[rep] = t1 - t0;
      sum += r;
    }
  }
  out[64 + threadIdx.x] = sum;
}

static FILE* CSV;
static unsigned* OUT;
static char* FAR;
template <int FILL, int WHAT>
static void one() {
  for (int distance : {4, 5}) {
    k_through<FILL, WHAT><<<1, 256, 49152>>>(OUT, FAR, distance, 0);
    CK(cudaDeviceSynchronize());
    std::vector<unsigned> h(26);
    CK(cudaMemcpy(h.data(), OUT, h.size() * 4, cudaMemcpyDeviceToHost));
    std::vector<double> t(h.begin() + 2, h.end());
    Stat q = stat_of(t);
    fprintf(CSV, "%s,%s,%s,%.0f,%.0f,%.0f\n", FILLER[FILL], TEST[WHAT], distance == 4 ? "same" : "next", q.med, q.mn, q.mx);
  }
}
template <int FILL>
static void all() {
  one<FILL, ADD>(); one<FILL, LDC>(); one<FILL, BAR>(); one<FILL, LDS>(); one<FILL, MUFU>(); one<FILL, S2R>();
  one<FILL, SHFL>(); one<FILL, LDSM>(); one<FILL, STS>(); one<FILL, COMMIT>(); one<FILL, LDG>();
}
int main(int argc, char** argv) {
  CSV = fopen((std::string(argc > 1 ? argv[1] : ".") + "/through.csv").c_str(), "w");
  fprintf(CSV, "queued,then,sub_core,cycles,least,most\n");
  CK(cudaMalloc(&OUT, 4096));
  CK(cudaMalloc(&FAR, 1 << 20));
  CK(cudaMemset(FAR, 0, 1 << 20));
  all<NOTHING>(); all<LDS32>(); all<COPIES>(); all<COPIES8>(); all<LDSM32>(); all<STS32>(); all<LDG32>();
  fclose(CSV);
  return 0;
}
