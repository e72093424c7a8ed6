// Which pieces of copies into shared memory (cp.async) join those of other SMs on their way to L2, by the padding of rows there.
//   pieces DIR   writes DIR/pieces.csv: what follows, one launch a line, in the order in which a profiler counts
//   them (between profiler start and stop)
#include <cuda_profiler_api.h>
#include <string>
#include "common.cuh"
constexpr int TURNS = 32, APART = 6000;  // copies of a launch; cycles between two of them
// the first `count` SMs of `mates` copy the same, each `apart` cycles behind the one before it: `row` B of each of the rows that
// a warp takes at once, with `pad` B between them in shared memory
__global__ void __launch_bounds__(32) k_copies(const char* p, Mates mates, int count, int apart, int row, int pad, size_t pitch, unsigned long long* go) {
  extern __shared__ __align__(128) char smem[];
  int me = -1;
  for (int i = 0; i < count; i++) me = mates.sm[i] == (int)smid() ? i : me;
  if (me < 0) return;
  unsigned s0 = (unsigned)__cvta_generic_to_shared(smem);
  unsigned base = meet(go, me == 0) + 4096 + me * apart;
  int lanes = row / 16, r = threadIdx.x / lanes, c = threadIdx.x % lanes;
  for (int i = 0; i < TURNS; i++) {
    while ((int)(tick() - base - i * APART) < 0) {}
    asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(s0 + r * (row + pad) + c * 16), "l"(p + (size_t)(i * (32 / lanes) + r) * pitch + c * 16) : "memory");
    asm volatile("cp.async.commit_group;\n cp.async.wait_group 0;" ::: "memory");
  }
}
int main(int argc, char** argv) {
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/pieces.csv").c_str(), "w");
  fprintf(f, "row,pad,sms,apart\n");
  char* p;
  unsigned long long* go;
  CK(cudaMalloc(&p, 64 << 20)); CK(cudaMemset(p, 0, 64 << 20)); CK(cudaMalloc(&go, 8));
  CK(cudaFuncSetAttribute(k_copies, cudaFuncAttributeMaxDynamicSharedMemorySize, 200000));
  // the SMs of SM 0's GPC, as window.cu tells
  Mates mates = gpc_of_sm0();
  for (int row : {64, 128, 256, 512})
    for (int pad : {0, 16, 32})
      for (int apart : {0, 30})
        for (int n : {1, 2, 3, 4, 5, 8, 16}) {
          CK(cudaMemset(go, 0, 8));
          CK(cudaProfilerStart());
          k_copies<<<132, 32, 200000>>>(p, mates, n, apart, row, pad, 4096, go);
          CK(cudaDeviceSynchronize());
          CK(cudaProfilerStop());
          fprintf(f, "%d,%d,%d,%d\n", row, pad, n, apart);
        }
  fclose(f);
}
