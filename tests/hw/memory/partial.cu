// What L2 reads from DRAM because of stores that leave bytes of a sector out: the straight transpose of several sizes.
//   partial DIR   writes DIR/partial.csv: what, rows, cols and elements between output rows, or sectors, how many of them
//   from one to the next and words written of each; one launch a line, in the order in which a profiler counts them
//   (between profiler start and stop)
#include <cuda_profiler_api.h>
#include <string>
#include "common.cuh"
// the measured kernel, with output rows `pitch` elements apart
__global__ void k_transpose(const float* in, float* out, int rows, int cols, int pitch) {
  int c = blockIdx.x * 32 + threadIdx.x, r0 = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
  for (int k = 0; k < 32; k += 8) {
    int r = r0 + k;
    if (r < rows && c < cols) out[(size_t)c * pitch + r] = in[(size_t)r * cols + c];
  }
}
// `parts` of 8 words of each of `sectors` sectors are written, `step` sectors from one to the next, nothing is read
__global__ void k_words(float* out, int sectors, int step, int parts) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, s = i / parts, w = i % parts;
  if (s < sectors) out[(size_t)s * step * 8 + w] = 1.f;
}
int main(int argc, char** argv) {
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/partial.csv").c_str(), "w");
  fprintf(f, "what,rows,cols,pitch\n");
  const size_t pool = (size_t)1 << 28;
  float *in, *out;
  CK(cudaMalloc(&in, pool * 4)); CK(cudaMemset(in, 0, pool * 4)); CK(cudaMalloc(&out, pool * 4)); CK(cudaMemset(out, 0, pool * 4));
  auto one = [&](int rows, int cols, int pitch) {
    CK(cudaProfilerStart());
    k_transpose<<<dim3((cols + 31) / 32, (rows + 31) / 32), dim3(32, 8)>>>(in, out, rows, cols, pitch);
    CK(cudaDeviceSynchronize());
    CK(cudaProfilerStop());
    fprintf(f, "transpose,%d,%d,%d\n", rows, cols, pitch);
  };
  for (int cols : {512, 1024, 2048, 3000, 3072, 6000}) { one(1000, cols, 1000); one(1024, cols, 1024); one(1000, cols, 1024); one(1024, cols, 1032); }
  for (int n : {2048, 3072, 4096, 6144, 8192}) { one(n, n, n); one(n, n, n + 8); one(n, n, n + 32); }
  auto words = [&](int sectors, int step, int parts) {
    CK(cudaProfilerStart());
    k_words<<<(sectors * parts + 255) / 256, 256>>>(out, sectors, step, parts);
    CK(cudaDeviceSynchronize());
    CK(cudaProfilerStop());
    fprintf(f, "words,%d,%d,%d\n", sectors, step, parts);
  };
  for (int sectors : {1 << 16, 1 << 20, 1 << 23}) for (int step : {1, 2, 4}) for (int parts : {1, 4, 7, 8}) if ((size_t)sectors * step * 8 <= pool) words(sectors, step, parts);
  fclose(f);
}
