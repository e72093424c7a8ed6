// What a store takes that writes the sectors of the store before it, a run of `run` stores of neighbouring words of the same
// sectors, from one SM and from many.
//   joins DIR   writes DIR/joins.csv: words a run, sectors a line, TBs, cycles a warp instruction and SM
#include "suite.cuh"
__global__ void __launch_bounds__(1024) k_join(float* p, int run, int sec, int n, unsigned long long* cyc) {
  const int lane = threadIdx.x & 31, w = threadIdx.x >> 5, line = lane / sec;
  const size_t wrap = (size_t)16 << 20, step = (size_t)128 * (32 / sec);
  size_t at = ((size_t)(blockIdx.x * 32 + w) * 977 * step + (size_t)line * 128 + (lane % sec) * 32) % wrap;
  unsigned long long t0 = clock64();
  for (int i = 0; i < n; i += run) {
    for (int j = 0; j < run; j++) __stcg((float*)((char*)p + at + 4 * j), (float)i);
    at += step;
    if (at >= wrap) at -= wrap;
  }
  __threadfence();
  __syncthreads();
  unsigned long long t1 = clock64();
  if (threadIdx.x == 0) cyc[blockIdx.x] = t1 - t0;
}
int main(int argc, char** argv) {
  FILE* out = fopen((std::string(argc > 1 ? argv[1] : ".") + "/joins.csv").c_str(), "w");
  fprintf(out, "stores_a_run,sectors_a_line,tbs,threads,cycles_a_store\n");
  float* p; unsigned long long* d;
  CK(cudaMalloc(&p, (size_t)64 << 20)); CK(cudaMemset(p, 0, (size_t)64 << 20)); CK(cudaMalloc(&d, 65536));
  for (int nt : {128, 256, 1024})
    for (int tbs : {1, 8, 132})
      for (int sec : {1, 2, 4})
        for (int run : {1, 2, 4, 8}) {
          const int n = 512;
          std::vector<double> v;
          for (int i = 0; i < 5; i++) {
            k_join<<<tbs, nt>>>(p, run, sec, n, d);
            CK(cudaDeviceSynchronize());
            std::vector<unsigned long long> c(tbs);
            CK(cudaMemcpy(c.data(), d, 8 * tbs, cudaMemcpyDeviceToHost));
            std::sort(c.begin(), c.end());
            v.push_back((double)c[tbs / 2] / (n * (nt / 32)));
          }
          fprintf(out, "%d,%d,%d,%d,%.2f\n", run, sec, tbs, nt, stat_of(v).med);
        }
  fclose(out);
}
