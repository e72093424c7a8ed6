// What a store takes that writes the sectors of the store before it, a run of `run` stores of neighbouring words of the same
// sectors, from one SM and from many.
//   joins DIR        writes DIR/joins.csv: words a run, sectors a line, TBs, cycles a warp instruction and SM
//   joins DIR once   launches each case of joined.csv once, for a profiler (ncu --profile-from-start off --cache-control none
//                    --clock-control none --metrics l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum,
//                    lts__t_sectors_srcunit_tex_op_write.sum,sm__cycles_active.max), and writes DIR/joined_cases.csv, the cases in
//                    that order: lanes a sector, stores a run, sectors a line, TBs, threads, stores a warp
#include <cuda_profiler_api.h>
#include "suite.cuh"
// `lanes` neighbouring lanes write to one sector, words `run` apart, so that a run writes whole sectors if lanes * run = 8
__global__ void __launch_bounds__(1024) k_join(float* p, int lanes, int run, int sec, int n, unsigned long long* cyc) {
  const int w = threadIdx.x >> 5, group = (threadIdx.x & 31) / lanes, word = (threadIdx.x & 31) % lanes, line = group / sec;
  const size_t wrap = (size_t)16 << 20, step = (size_t)128 * (32 / lanes / sec);
  size_t at = ((size_t)(blockIdx.x * 32 + w) * 977 * step + (size_t)line * 128 + (group % sec) * 32 + 4 * run * word) % wrap;
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
static void once(const char* dir, float* p, unsigned long long* d) {
  FILE* out = fopen((std::string(dir) + "/joined_cases.csv").c_str(), "w");
  fprintf(out, "lanes_a_sector,stores_a_run,sectors_a_line,tbs,threads,stores_a_warp\n");
  CK(cudaProfilerStart());
  for (int n : {64, 512})
    for (int nt : {64, 128, 256, 512, 1024})
      for (int tbs : {1, 132, 264})
        for (int lanes : {1, 2})
          for (int sec : {1, 4})
            for (int run : {1, 2, 4}) {
              if ((long long)nt * tbs > 132 * 1024) continue;
              fprintf(out, "%d,%d,%d,%d,%d,%d\n", lanes, run, sec, tbs, nt, n);
              k_join<<<tbs, nt>>>(p, lanes, run, sec, n, d);
              CK(cudaDeviceSynchronize());
            }
  CK(cudaProfilerStop());
  fclose(out);
}
int main(int argc, char** argv) {
  float* p; unsigned long long* d;
  CK(cudaMalloc(&p, (size_t)64 << 20)); CK(cudaMemset(p, 0, (size_t)64 << 20)); CK(cudaMalloc(&d, 65536));
  if (argc > 2) { once(argv[1], p, d); return 0; }
  FILE* out = fopen((std::string(argc > 1 ? argv[1] : ".") + "/joins.csv").c_str(), "w");
  fprintf(out, "stores_a_run,sectors_a_line,tbs,threads,cycles_a_store\n");
  for (int nt : {128, 256, 1024})
    for (int tbs : {1, 8, 132})
      for (int sec : {1, 2, 4})
        for (int run : {1, 2, 4, 8}) {
          const int n = 512;
          std::vector<double> v;
          for (int i = 0; i < 5; i++) {
            k_join<<<tbs, nt>>>(p, 1, run, sec, n, d);
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
