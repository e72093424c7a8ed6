// For how long a load joins that of another SM that asked for the same line before it, on their way to L2.
//   window DIR   writes DIR/window.csv: what follows, one launch a line, in the order in which a profiler
//   counts them (between profiler start and stop); latencies are means over the lines that a launch reads
#include <cuda_profiler_api.h>
#include <string>
#include "common.cuh"
constexpr int LINES = 32, APART = 6000;  // lines of a launch, all of one 4 KiB; cycles between two of them
// SM `first` reads line after line, SM `second` each of them `later` cycles behind it (negative: before it)
__global__ void __launch_bounds__(32) k_window(const unsigned* p, int first, int second, int later, unsigned long long* go, unsigned* out) {
  extern __shared__ char smem[];
  int me = smid();
  if (me != first && me != second) return;
  unsigned base = meet(go, me == first) + 4096 + (me == second ? later : 0), sum = 0;
  for (int i = 0; i < LINES; i++) {
    while ((int)(tick() - base - i * APART) < 0) {}
    unsigned t = tick(), v;
    asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(v) : "l"(p + i * 32 + threadIdx.x) : "memory");
    if (v) out[2] = v;  // never: but it has to be looked at before the clock is
    sum += tick() - t;
  }
  if (threadIdx.x == 0) out[me == second] = sum / LINES;
}
// the first `count` SMs of `mates` read line after line, each `apart` cycles behind the one before it
__global__ void __launch_bounds__(32) k_many(const unsigned* p, Mates mates, int count, int apart, unsigned long long* go, unsigned* out) {
  extern __shared__ char smem[];
  int me = -1;
  for (int i = 0; i < count; i++) me = mates.sm[i] == (int)smid() ? i : me;
  if (me < 0) return;
  unsigned base = meet(go, me == 0) + 4096 + me * apart;
  for (int i = 0; i < LINES; i++) {
    while ((int)(tick() - base - i * APART) < 0) {}
    unsigned v;
    asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(v) : "l"(p + i * 32 + threadIdx.x) : "memory");
    if (v) out[2] = v;
  }
}
int main(int argc, char** argv) {
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/window.csv").c_str(), "w");
  fprintf(f, "block,first,second,later,first_cycles,second_cycles\n");
  unsigned *p, *out;
  unsigned long long* go;
  CK(cudaMalloc(&p, 64 << 20)); CK(cudaMemset(p, 0, 64 << 20)); CK(cudaMalloc(&out, 64)); CK(cudaMalloc(&go, 8));
  CK(cudaFuncSetAttribute(k_many, cudaFuncAttributeMaxDynamicSharedMemorySize, 200000));
  CK(cudaFuncSetAttribute(k_window, cudaFuncAttributeMaxDynamicSharedMemorySize, 200000));
  auto one = [&](int block, int a, int b, int later) {
    CK(cudaMemset(go, 0, 8)); CK(cudaMemset(out, 0, 64));
    CK(cudaProfilerStart());
    k_window<<<132, 32, 200000>>>(p + block * 1024, a, b, later, go, out);
    CK(cudaDeviceSynchronize());
    CK(cudaProfilerStop());
    unsigned h[2];
    CK(cudaMemcpy(h, out, 8, cudaMemcpyDeviceToHost));
    fprintf(f, "%d,%d,%d,%d,%u,%u\n", block, a, b, later, h[0], h[1]);
  };
  // which SMs join others at all; then, of two that do, how late; blocks of both halves of L2 are among eight
  for (int block = 0; block < 8; block++) one(block, 0, -1, 0);
  for (int a : {0, 64}) for (int b = 0; b < 132; b++) if (a != b) one(a / 8, a, b, 0);
  for (int block = 0; block < 8; block++) for (int d = -140; d <= 140; d += 10) one(block, 0, 16, d);
  for (int block = 0; block < 8; block++) for (int d = 150; d <= 900; d += 50) one(block, 0, 16, d);
  // those of SM 0's GPC, as the launches above tell
  Mates mates = gpc_of_sm0();
  for (int apart : {0, 4, 30})
    for (int count = 1; count <= 16; count++) {
      CK(cudaMemset(go, 0, 8));
      CK(cudaProfilerStart());
      k_many<<<132, 32, 200000>>>(p + 1024, mates, count, apart, go, out);
      CK(cudaDeviceSynchronize());
      CK(cudaProfilerStop());
      fprintf(f, "1,0,%d,%d,0,0\n", -count, apart);
    }
  fclose(f);
}
