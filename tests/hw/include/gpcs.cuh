// Which SMs lie in one GPC and in one of its clusters (CPCs), and how their cycle counters differ.
#pragma once
#include "common.cuh"
__global__ void k_sm_of(unsigned* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = smid();
}
// A number for each SM's GPC: TBs of a cluster lie in one. SMs that no cluster was seen to join to others keep their own number.
static inline std::vector<int> gpcs_of_sms() {
  std::vector<int> gpc(132);
  for (int i = 0; i < 132; i++) gpc[i] = i;
  unsigned* at;
  CK(cudaMalloc(&at, 4096 * 4));
  CK(cudaFuncSetAttribute(k_sm_of, cudaFuncAttributeMaxDynamicSharedMemorySize, 200000));
  CK(cudaFuncSetAttribute(k_sm_of, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  for (int size : {2, 4, 8, 16, 12, 6, 10, 14})
    for (int rep = 0; rep < 8; rep++) {
      cudaLaunchConfig_t c = {};
      c.gridDim = dim3(size * 40); c.blockDim = dim3(32); c.dynamicSmemBytes = 200000;
      cudaLaunchAttribute a[1];
      a[0].id = cudaLaunchAttributeClusterDimension;
      a[0].val.clusterDim.x = size; a[0].val.clusterDim.y = a[0].val.clusterDim.z = 1;
      c.attrs = a; c.numAttrs = 1;
      if (cudaLaunchKernelEx(&c, k_sm_of, at) != cudaSuccess) { cudaGetLastError(); continue; }
      std::vector<unsigned> h(size * 40);
      CK(cudaMemcpy(h.data(), at, h.size() * 4, cudaMemcpyDeviceToHost));
      for (size_t i = 0; i < h.size(); i++) {
        int x = gpc[h[i]], y = gpc[h[i / size * size]];
        for (int& g : gpc) if (g == x) g = y;
      }
    }
  CK(cudaFree(at));
  return gpc;
}
__global__ void k_offsets(unsigned long long* go, unsigned* out) {
  unsigned c = meet(go, blockIdx.x == 0);
  if (threadIdx.x == 0) out[smid()] = c;
}
// What each SM's cycle counter is ahead of that of SM 0, which counts for SMs of a GPC only: others drift apart.
static inline std::vector<double> ahead_of_sm0() {
  unsigned long long* go; unsigned* off;
  CK(cudaMalloc(&go, 8)); CK(cudaMalloc(&off, 132 * 4));
  CK(cudaFuncSetAttribute(k_offsets, cudaFuncAttributeMaxDynamicSharedMemorySize, 200000));
  std::vector<double> d(132, 0);
  for (int r = 0; r < 16; r++) {
    std::vector<unsigned> h(132);
    CK(cudaMemset(go, 0, 8));
    k_offsets<<<132, 32, 200000>>>(go, off);
    CK(cudaMemcpy(h.data(), off, 132 * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 132; i++) d[i] += (int)(h[i] - h[0]) / 16.;
  }
  CK(cudaFree(go)); CK(cudaFree(off));
  return d;
}
// TPCs of each GPC by rank, as an H200 numbers SMs (TPC t has SMs 2 t and 2 t + 1); those of one rank modulo three make a cluster
// (CPC), so that a GPC of eight TPCs has two clusters of three and one of two
static inline std::vector<std::vector<int>> tpcs_of_gpcs() {
  std::vector<std::vector<int>> tpcs(8);
  for (int t = 0; t < 66; t++) tpcs[t < 32 ? t % 8 : t < 60 ? 1 + (t - 32) % 7 : t < 62 ? t - 54 : 0].push_back(t);
  return tpcs;
}
// SMs of clusters of two TPCs
static inline std::vector<char> in_small_clusters() {
  std::vector<char> small(132, 0);
  for (auto& g : tpcs_of_gpcs()) if (g.size() == 8) for (int r : {2, 5}) small[2 * g[r]] = small[2 * g[r] + 1] = 1;
  return small;
}
