// One product as a plain kernel and in the persistent kernels of the measured chains (grid barriers, semaphores), at
// several depths: what differs is a step of its main loop, as the compiler makes it there.
//   persist DIR   writes DIR/persist.csv: tile, m, n, k, tbs (of the persistent ones), kernel, us (median of 12, L2 warm,
//   between events), registers
//   persist DIR profile   launches some of them once behind a warm-up, for ncu --cache-control none --clock-control none
//   --profile-from-start off with --metrics sm__cycles_elapsed.max or --section SourceCounters --warp-sampling-interval 0
#include <algorithm>
#include <cuda_profiler_api.h>
#include "persist.cuh"

template <typename T>
static T* zeros(size_t n) {
  T* p;
  CK(cudaMalloc(&p, n * sizeof(T)));
  CK(cudaMemset(p, 0, n * sizeof(T)));
  return p;
}
template <class F>
static float median_us(F launch) {
  cudaEvent_t from, to;
  CK(cudaEventCreate(&from));
  CK(cudaEventCreate(&to));
  std::vector<float> us;
  for (int i = 0; i < 15; i++) {
    CK(cudaEventRecord(from));
    launch();
    CK(cudaEventRecord(to));
    CK(cudaDeviceSynchronize());
    float ms;
    CK(cudaEventElapsedTime(&ms, from, to));
    if (i > 2) us.push_back(ms * 1000);
  }
  std::sort(us.begin(), us.end());
  return us[us.size() / 2];
}
template <class F>
static int registers(F* kernel, size_t smem) {
  cudaFuncAttributes found;
  CK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)smem));
  CK(cudaFuncGetAttributes(&found, kernel));
  return found.numRegs;
}
template <class G>
static void product(FILE* csv, const char* tile, int m, int n, int k, int tbs) {
  using T = typename G::T;
  GemmArgs<T> g{zeros<T>((size_t)m * k), zeros<T>((size_t)k * n), zeros<T>((size_t)m * n), m, n, k, k, n, n, 0, 0, 0, 0};
  Layers<T> layers;
  layers.n = 1;
  layers.g[0] = g;
  layers.y[0] = Sync();
  auto plain = [=] { gemm_k<G, 2><<<dim3(n / G::BN, (m + G::BM - 1) / G::BM), G::NT, G::SMEM>>>(g, Sync()); };
  auto together = [=](const void* kernel) {
    Layers<T> copy = layers;
    void* args[] = {&copy};
    CK(cudaLaunchCooperativeKernel(kernel, dim3(tbs), dim3(G::NT), args, G::SMEM, 0));
  };
  auto grid = [=] { together((const void*)mlp_persist<G, false>); };
  auto semaphores = [=] { together((const void*)mlp_persist<G, true>); };
  int of_plain = registers(gemm_k<G, 2>, G::SMEM), of_grid = registers(mlp_persist<G, false>, G::SMEM), of_sem = registers(mlp_persist<G, true>, G::SMEM);
  if (csv) {
    fprintf(csv, "%s,%d,%d,%d,%d,plain,%.2f,%d\n", tile, m, n, k, tbs, median_us(plain), of_plain);
    fprintf(csv, "%s,%d,%d,%d,%d,grid,%.2f,%d\n", tile, m, n, k, tbs, median_us(grid), of_grid);
    fprintf(csv, "%s,%d,%d,%d,%d,semaphores,%.2f,%d\n", tile, m, n, k, tbs, median_us(semaphores), of_sem);
  } else {
    for (int i = 0; i < 2; i++) { plain(); grid(); semaphores(); }
    CK(cudaDeviceSynchronize());
    CK(cudaProfilerStart());
    plain();
    grid();
    semaphores();
    CK(cudaDeviceSynchronize());
    CK(cudaProfilerStop());
  }
  CK(cudaFree((void*)g.A));
  CK(cudaFree((void*)g.B));
  CK(cudaFree((void*)g.C));
}
int main(int argc, char** argv) {
  if (argc > 2) {
    for (int k : {1024, 2048}) {
      product<H128w8>(nullptr, "", 1024, 1024, k, 64);
      product<H128w8>(nullptr, "", 1024, 1024, k, 256);
      product<H128w8>(nullptr, "", 1024, 4096, k, 256);
      product<H64>(nullptr, "", 256, 1024, k, 64);
      product<H64>(nullptr, "", 256, 4096, k, 256);
      product<S64>(nullptr, "", 64, 4096, k, 64);
      product<S64>(nullptr, "", 256, 4096, k, 256);
    }
    return 0;
  }
  FILE* csv = fopen((std::string(argv[1]) + "/persist.csv").c_str(), "w");
  fprintf(csv, "tile,m,n,k,tbs,kernel,us,registers\n");
  for (int k : {1024, 2048, 4096}) {
    product<S64>(csv, "fp32 64x64x16", 64, 4096, k, 64);
    product<S64>(csv, "fp32 64x64x16", 64, 4096, k, 256);  // the first 64 of them work, two or more on an SM
    product<S64>(csv, "fp32 64x64x16", 256, 4096, k, 256);
    product<S128>(csv, "fp32 128x128x8", 128, 4096, k, 32);
    product<H128w8>(csv, "fp16 128x128x32", 128, 1024, k, 8);
    product<H128w8>(csv, "fp16 128x128x32", 1024, 1024, k, 64);
    product<H128w8>(csv, "fp16 128x128x32", 1024, 1024, k, 256);
    product<H128w8>(csv, "fp16 128x128x32", 1024, 4096, k, 256);
    product<H64>(csv, "fp16 64x64x32", 64, 1024, k, 16);
    product<H64>(csv, "fp16 64x64x32", 256, 4096, k, 256);
  }
  fclose(csv);
  return 0;
}
