// Products as stages of one persistent kernel: a grid barrier between them, or semaphores of tiles.
#pragma once
#include <cooperative_groups.h>
#include "suite.cuh"
namespace cg = cooperative_groups;

template <typename T>
struct Layers { int n; GemmArgs<T> g[8]; Sync y[8]; };
template <class G, bool SEM>
__global__ void __launch_bounds__(G::NT, G::MINB) mlp_persist(const __grid_constant__ Layers<typename G::T> L) {
  extern __shared__ __align__(16) char smem[];
  for (int l = 0; l < L.n; l++) {
    int c = L.g[l].N / G::BN, rows = (L.g[l].M + G::BM - 1) / G::BM;
    for (int t = blockIdx.x; t < rows * c; t += gridDim.x) {
      G::template tile<2>(smem, L.g[l], t / c, t % c, 0, t / c, L.y[l]);
      __syncthreads();
    }
    if (!SEM && l + 1 < L.n) cg::this_grid().sync();
  }
}
