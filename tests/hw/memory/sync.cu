// How many loads of products join as their TBs go on: whole products of 4 to 128 steps, as they are.
//   sync DIR   writes DIR/sync.csv: kernel, TBs down and across and steps, the second of two launches each, in the order in
//   which a profiler counts them (between profiler start and stop)
#include <cuda_profiler_api.h>
#include "products.cuh"
template <class G>
static void run(FILE* f, const char* name, int down, int across, int steps) {
  for (int i = 0; i < 2; i++) {
    if (i) CK(cudaProfilerStart());
    launch_product<G, -1>(down, across, steps);
    CK(cudaDeviceSynchronize());
  }
  CK(cudaProfilerStop());
  fprintf(f, "%s,%d,%d,%d\n", name, down, across, steps);
}
int main(int argc, char** argv) {
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/sync.csv").c_str(), "w");
  fprintf(f, "kernel,down,across,steps\n");
  numbers<__half>();
  numbers<float>();
  for (int steps : {4, 8, 16, 32, 64, 128}) {
    run<H64>(f, "hgemm_64x64x32", 6, 16, steps);
    run<H64>(f, "hgemm_64x64x32", 11, 12, steps);
    run<H64>(f, "hgemm_64x64x32", 1, 132, steps);
    run<H128w8>(f, "hgemm_128x128x32_8warps", 11, 12, steps);
    run<H128w8>(f, "hgemm_128x128x32_8warps", 4, 32, steps);
    run<H128w4>(f, "hgemm_128x128x32_4warps", 11, 12, steps);
    run<H128w8>(f, "hgemm_128x128x32_8warps", 8, 32, steps);
    run<H128w4>(f, "hgemm_128x128x32_4warps", 8, 32, steps);
    run<H64>(f, "hgemm_64x64x32", 16, 25, steps);
    run<S64>(f, "sgemm_64x64x16", 11, 12, steps);
    run<S128>(f, "sgemm_128x128x8", 11, 12, steps);
  }
  fclose(f);
}
