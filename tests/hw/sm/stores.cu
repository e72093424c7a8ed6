// What a store costs by how many lines, sectors and bytes it touches, from one SM and from many.
//   stores DIR   writes DIR/stores.csv: bytes a lane, lanes a sector, sectors a line, TBs, cycles a warp instruction and SM, ns a line for the chip
#include "suite.cuh"
static unsigned long long* CYC;
static FILE* OUT;
// a warp's 32 lanes: `per` lanes (4 B each) side by side in a sector (per 8: full), `sec` sectors side by side in a line, lines `stride` apart
__global__ void __launch_bounds__(1024) k_store(float* p, int per, int sec, size_t stride, size_t wrap, int n, unsigned long long* cyc) {
  const int lane = threadIdx.x & 31, w = threadIdx.x >> 5;
  const int s = lane / per, line = s / sec;
  size_t at = ((size_t)(blockIdx.x * 32 + w) * 977 * stride * (32 / per / sec) + (size_t)line * stride + (s % sec) * 32 + (lane % per) * 4) % wrap;
  const size_t step = stride * (32 / per / sec);
  unsigned long long t0 = clock64();
  for (int i = 0; i < n; i++) {
    __stcg((float*)((char*)p + at), (float)i);
    at += step;
    if (at >= wrap) at -= wrap;
  }
  __threadfence();
  __syncthreads();
  unsigned long long t1 = clock64();
  if (threadIdx.x == 0) cyc[blockIdx.x] = t1 - t0;
}
int main(int argc, char** argv) {
  OUT = fopen((std::string(argc > 1 ? argv[1] : ".") + "/stores.csv").c_str(), "w");
  fprintf(OUT, "lanes_a_sector,sectors_a_line,stride_B,tbs,threads,cycles_a_store,lines_a_store,us\n");
  float* p;
  CK(cudaMalloc(&p, (size_t)64 << 20));
  CK(cudaMemset(p, 0, (size_t)64 << 20));
  CK(cudaMalloc(&CYC, 65536));
  for (int tbs : {1, 2, 8, 33, 132, 264})
    for (int per : {1, 2, 4, 8})
      for (int sec : {1, 2, 4})
        for (size_t stride : {(size_t)128, (size_t)4096}) {
          size_t wrap = (size_t)16 << 20;
          int n = 256;
          cudaEvent_t a, b;
          CK(cudaEventCreate(&a)); CK(cudaEventCreate(&b));
          for (int i = 0; i < 3; i++) { CK(cudaEventRecord(a)); k_store<<<tbs, 1024>>>(p, per, sec, stride, wrap, n, CYC); CK(cudaEventRecord(b)); }
          CK(cudaDeviceSynchronize());
          float ms;
          CK(cudaEventElapsedTime(&ms, a, b));
          std::vector<unsigned long long> c(tbs);
          CK(cudaMemcpy(c.data(), CYC, 8 * tbs, cudaMemcpyDeviceToHost));
          std::sort(c.begin(), c.end());
          fprintf(OUT, "%d,%d,%zu,%d,1024,%.2f,%d,%.2f\n", per, sec, stride, tbs, (double)c[tbs / 2] / (n * 32), 32 / per / sec, ms * 1e3);
          CK(cudaEventDestroy(a)); CK(cudaEventDestroy(b));
        }
  fclose(OUT);
}
