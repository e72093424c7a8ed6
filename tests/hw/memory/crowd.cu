// Whether a load still joins that of another SM of its GPC when other requests come between the two.
//   crowd DIR   writes DIR/crowd.csv: what follows, one launch a line, in the order in which a profiler counts
//   them (between profiler start and stop)
// SM 0 reads a line, SM 1 the same `later` cycles behind it; in between `crowd` SMs read `each` lines apiece that
// nobody else reads, all at once (0: other warps of SM 0 do).
#include <cuda_profiler_api.h>
#include <string>
#include "common.cuh"
constexpr int LINES = 32, APART = 12000, WARPS = 8;  // lines of a launch, all of one 4 KiB; cycles between two of them
__global__ void __launch_bounds__(32 * WARPS) k_crowd(const unsigned* p, const unsigned* q, int crowd, int each, int later, int early, unsigned long long* go, unsigned* out) {
  extern __shared__ char smem[];
  const int sm = smid(), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool reads = sm < 2 && warp == 0;
  const int me = sm >= 2 && sm - 2 < crowd ? sm - 2 : crowd == 0 && sm == 0 && warp ? 0 : -1;
  if (!reads && me < 0) return;
  const int from = crowd ? warp : warp - 1, warps = crowd ? WARPS : WARPS - 1;
  unsigned base = meet(go, sm == 0 && warp == 0) + 4096 + (me >= 0 ? early : sm * later), sum = 0;
  for (int i = 0; i < LINES; i++) {
    while ((int)(tick() - base - i * APART) < 0) {}
    if (reads) {
      unsigned t = tick(), v;
      asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(v) : "l"(p + i * 32 + lane) : "memory");
      if (v) out[2] = v;
      sum += tick() - t;
    } else {
      unsigned x = 0;  // a lane reads a line of its own
      for (int j = from * 32 + lane; j < each; j += 32 * warps) {
        unsigned v;
        asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(v) : "l"(q + ((size_t)(i * (crowd + !crowd) + me) * each + j) * 32) : "memory");
        x |= v;
      }
      if (x) out[3] = x;
    }
  }
  if (reads && lane == 0) out[sm] = sum / LINES;
}
int main(int argc, char** argv) {
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/crowd.csv").c_str(), "w");
  fprintf(f, "kept,crowd,each,later,first_cycles,second_cycles\n");
  unsigned *p, *out;
  unsigned long long* go;
  CK(cudaMalloc(&p, 128 << 20)); CK(cudaMemset(p, 0, 128 << 20)); CK(cudaMalloc(&out, 64)); CK(cudaMalloc(&go, 8));
  CK(cudaFuncSetAttribute(k_crowd, cudaFuncAttributeMaxDynamicSharedMemorySize, 200000));
  auto one = [&](int kept, int crowd, int each, int later, int early) {
    for (int turn = 0; turn <= kept; turn++) {  // kept: what is read is in L2, as a launch before has read it
      CK(cudaMemset(go, 0, 8)); CK(cudaMemset(out, 0, 64));
      if (turn == kept) CK(cudaProfilerStart());
      k_crowd<<<132, 32 * WARPS, 200000>>>(p + 1024, p + (16 << 18), crowd, each, later, early, go, out);
      CK(cudaDeviceSynchronize());
      if (turn == kept) CK(cudaProfilerStop());
    }
    unsigned h[2];
    CK(cudaMemcpy(h, out, 8, cudaMemcpyDeviceToHost));
    fprintf(f, "%d,%d,%d,%d,%u,%u\n", kept, crowd, each, later, h[0], h[1]);
  };
  const int kept = argc > 2 ? atoi(argv[2]) : 0;
  // behind DRAM a second load joins for some 400 cycles: time for many to come between
  const int later = kept ? 60 : 300, early = kept ? 10 : 60;
  for (int l : {0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 120}) one(kept, 0, 0, kept ? l : 5 * l, early);
  for (int crowd : {0, 1, 8, 32, 128})
    for (int each : {2, 4, 8, 16, 32, 64, 128, 224}) one(kept, crowd, each, later, early);
  fclose(f);
}
