// What L1 still has of rows that one thread block (TB) has read before: to be run under a profiler that counts hits of loads.
//   keep1 DIR   writes DIR/keep_l1.csv: rows, lines of each, bytes from one to the next; a launch a line, in the profiler's
//   order. Each reads all twice, 16 B a lane, of which half hits at once: three quarters hit if L1 keeps all, half if nothing.
//   keep1 DIR turns   writes DIR/keep_turns.csv: `tbs` on each SM read a row of 8 KiB each, and again, `turns` times, and store as
//   much behind it (`stored`); cycles from the first start on an SM until its first and its last TB have their first row, mean of
//   all SMs, caches empty. For a profiler, which counts sectors that come from L2, a launch a line, in its order.
#include <cuda_profiler_api.h>
#include <string>
#include "common.cuh"
__global__ void __launch_bounds__(256) k_rows(const float4* p, int rows, int lines, size_t pitch, float* out) {
  float s = 0;
  const int w = threadIdx.x / 32, lane = threadIdx.x % 32, each = rows * lines / 4;  // a warp reads four lines at once
  for (int pass = 0; pass < 2; pass++) {
    for (int i = w; i < each; i += 8) {
      int row = i / (lines / 4), part = i % (lines / 4);
      float4 v = __ldca(p + row * pitch / 16 + part * 32 + lane);
      s += v.x + v.w;
    }
    __syncthreads();
  }
  if (s == 1.2345e30f) *out = s;
}
__global__ void __launch_bounds__(256) k_turns(const float* in, float* out, int turns, int stored, unsigned* at) {
  float s = 0, v[8];
  unsigned start = tick();
  for (int i = 0; i < turns; i++) {
    size_t row = ((size_t)i * gridDim.x + blockIdx.x) * 2048 + threadIdx.x;
    for (int pass = 0; pass < 2; pass++) {
#pragma unroll
      for (int j = 0; j < 8; j++) v[j] = __ldca(in + row + 256 * j);
#pragma unroll
      for (int j = 0; j < 8; j++) s += v[j];
      __syncthreads();
      if (!i && !pass && !threadIdx.x) { __stcg(at + 3 * blockIdx.x, smid()); __stcg(at + 3 * blockIdx.x + 1, start); __stcg(at + 3 * blockIdx.x + 2, tick()); }
    }
    if (stored) {
#pragma unroll
      for (int j = 0; j < 8; j++) out[row + 256 * j] = s;
    }
  }
  if (s == 1.2345e30f) *out = s;
}
static void turns(const std::string& dir) {
  FILE* f = fopen((dir + "/keep_turns.csv").c_str(), "w");
  fprintf(f, "tbs,turns,stored,first,last\n");
  char *a, *other;
  unsigned* at;
  const size_t aligned = (size_t)1 << 32;
  CK(cudaMalloc(&a, 2 * aligned)); CK(cudaMalloc(&other, 256 << 20)); CK(cudaMalloc(&at, 1 << 16));
  a = (char*)(((size_t)a + aligned - 1) & ~(aligned - 1));
  float *in = (float*)a, *out = (float*)(a + (1 << 30));
  CK(cudaFuncSetAttribute(k_turns, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxL1));
  k_turns<<<132, 256>>>(in, out, 1, 0, at);  // its code is there
  for (int stored : {0, 1})
    for (int tbs : {1, 2, 3, 4, 6, 8}) {
      CK(cudaMemset(other, tbs, 256 << 20));  // nothing of `in` is left in L2
      CK(cudaDeviceSynchronize());
      CK(cudaProfilerStart());
      k_turns<<<132 * tbs, 256>>>(in, out, 96 / tbs, stored, at);
      CK(cudaDeviceSynchronize());
      CK(cudaProfilerStop());
      std::vector<unsigned> h(3 * 132 * tbs);
      CK(cudaMemcpy(h.data(), at, h.size() * 4, cudaMemcpyDeviceToHost));
      std::map<unsigned, std::vector<unsigned>> begun, got;
      for (size_t i = 0; i < h.size(); i += 3) { begun[h[i]].push_back(h[i + 1]); got[h[i]].push_back(h[i + 2]); }
      double first = 0, last = 0;
      for (auto& sm : got) {
        unsigned start = *std::min_element(begun[sm.first].begin(), begun[sm.first].end());
        first += *std::min_element(sm.second.begin(), sm.second.end()) - start;
        last += *std::max_element(sm.second.begin(), sm.second.end()) - start;
      }
      fprintf(f, "%d,%d,%d,%.0f,%.0f\n", tbs, 96 / tbs, stored, first / got.size(), last / got.size());
    }
  fclose(f);
}
int main(int argc, char** argv) {
  if (argc > 2 && !strcmp(argv[2], "turns")) { turns(argv[1]); return 0; }
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/keep_l1.csv").c_str(), "w");
  fprintf(f, "rows,lines,pitch\n");
  float4* a;
  float* out;
  CK(cudaMalloc(&a, 256ull << 20)); CK(cudaMalloc(&out, 4));
  CK(cudaMemset(a, 0, 256ull << 20));
  CK(cudaFuncSetAttribute(k_rows, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxL1));
  auto one = [&](int rows, int lines, size_t pitch) {
    CK(cudaDeviceSynchronize());
    CK(cudaProfilerStart());
    k_rows<<<1, 256>>>(a, rows, lines, pitch, out);
    CK(cudaDeviceSynchronize());
    CK(cudaProfilerStop());
    fprintf(f, "%d,%d,%zu\n", rows, lines, pitch);
  };
  for (int lines : {256, 512, 1024, 1536, 1792, 1920, 1984, 2048, 2176, 2560, 3072}) one(1, lines, 0);  // side by side
  for (size_t pitch : {(size_t)8192, (size_t)1 << 17, (size_t)1 << 18, (size_t)1 << 20, (size_t)1056 << 10, (size_t)1064 << 10, (size_t)528 << 10})
    for (int rows : {4, 8, 12, 16, 20, 24, 28, 32}) one(rows, 64, pitch);  // rows of 8 KiB
  fclose(f);
}
