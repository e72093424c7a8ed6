// What L2 still has of what all SMs have read, once other lines have been written: to be run under a profiler that counts
// bytes read from DRAM by the last kernel of each case, with caches left as they are.
//   keep DIR   writes DIR/keep.csv: groups of SMs that read all, MB read (2^20 B), MB written in between; a case a line, in the profiler's order
#include <cuda_profiler_api.h>
#include <string>
#include "common.cuh"
// each of `copies` groups of SMs reads all of it, in order; SMs of all GPCs are in each
__global__ void __launch_bounds__(512) k_read(const float4* p, size_t n, int copies, float* out) {
  size_t per = gridDim.x / copies, first = blockIdx.x / copies * blockDim.x + threadIdx.x;
  float s = 0;
  for (size_t i = first; i < n; i += per * blockDim.x) { float4 v = ldcg4(p + i); s += v.x + v.w; }
  if (s == 1.2345e30f) *out = s;
}
__global__ void __launch_bounds__(512) k_write(float4* p, size_t n) {
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) p[i] = make_float4(1, 2, 3, 4);
}
int main(int argc, char** argv) {
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/keep.csv").c_str(), "w");
  fprintf(f, "copies,read,written\n");
  float4 *a, *b, *c;
  float* out;
  CK(cudaMalloc(&a, 256ull << 20)); CK(cudaMalloc(&b, 256ull << 20)); CK(cudaMalloc(&c, 256ull << 20)); CK(cudaMalloc(&out, 4));
  CK(cudaMemset(a, 0, 256ull << 20)); CK(cudaMemset(b, 0, 256ull << 20)); CK(cudaMemset(c, 0, 256ull << 20));
  auto one = [&](int copies, int read, int written) {
    k_read<<<132, 512>>>(c, (size_t)192 << 16, 4, out);  // nothing of a or b is left, and nothing that is was written
    k_read<<<132, 512>>>(c + ((size_t)128 << 16), (size_t)128 << 16, 1, out);
    k_read<<<132, 512>>>(a, (size_t)read << 16, copies, out);
    if (written) k_write<<<132, 512>>>(b, (size_t)written << 16);
    CK(cudaDeviceSynchronize());
    CK(cudaProfilerStart());
    k_read<<<132, 512>>>(a, (size_t)read << 16, copies, out);
    CK(cudaDeviceSynchronize());
    CK(cudaProfilerStop());
    fprintf(f, "%d,%d,%d\n", copies, read, written);
  };
  for (int read : {16, 20, 24, 26, 28, 29, 30, 31, 32, 34, 36, 40, 48}) one(12, read, 0);
  for (int read : {32, 40, 44, 48, 52, 56, 60, 64}) one(1, read, 0);
  for (int read : {8, 16, 24}) for (int written : {4, 8, 12, 16, 20, 24, 28, 32, 40}) one(12, read, written);
  for (int read : {16, 32}) for (int written : {8, 16, 24, 32, 40, 48}) one(1, read, written);
  fclose(f);
}
