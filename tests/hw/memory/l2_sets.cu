// Cyclic reads of sets by the whole grid, to be run under a profiler that counts L2 sectors.
#include "common.cuh"
__global__ void __launch_bounds__(512) k_l2read(const float4* p, unsigned n, int iters, float* out) {
  unsigned st = gridDim.x * blockDim.x % n, pos = (blockIdx.x * blockDim.x + threadIdx.x) % n;
  float s = 0;
  for (int r = 0; r < iters; r++) {
    unsigned j0 = pos, j1 = j0 + st;
    if (j1 >= n) j1 -= n;
    unsigned j2 = j1 + st;
    if (j2 >= n) j2 -= n;
    unsigned j3 = j2 + st;
    if (j3 >= n) j3 -= n;
    pos = j3 + st;
    if (pos >= n) pos -= n;
    float4 a = ldcg4(p + j0), b = ldcg4(p + j1), c = ldcg4(p + j2), d = ldcg4(p + j3);
    s += a.x + b.y + c.z + d.w;
  }
  if (s == 1.2345e30f) *out = s;
}
int main() {
  float4* a; float* out;
  CK(cudaMalloc(&a, 256ull << 20)); CK(cudaMalloc(&out, 4));
  CK(cudaMemset(a, 0, 256ull << 20));
  for (int mb : {8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128}) k_l2read<<<132 * 4, 512>>>(a, (unsigned)((size_t)mb * 65536), 250, out);
  CK(cudaDeviceSynchronize());
}
