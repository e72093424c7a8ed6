// Which lines lie in one slice of L2: two of them, read by all SMs, take twice as long as two of others.
#pragma once
#include "common.cuh"
static __device__ void all_there(unsigned* count, unsigned goal) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1u);
    while (*(volatile unsigned*)count < goal) {}
  }
  __syncthreads();
}
// sum[i * others + r]: cycles of all SMs' loads of line i and of line other[r], by turns. `two` is 2: addresses that are
// known to be the same would be loaded once.
static __global__ void __launch_bounds__(128) k_pairs(const char* p, const int* line, int n, const int* other, int others, int two, unsigned* sum, unsigned* count) {
  extern __shared__ char smem[];
  const char* q = p + (threadIdx.x & 7) * 4;
  unsigned goal = 0, acc = 0;
  const int w = threadIdx.x >> 5;
  for (int i = 0; i < n; i++)
    for (int r = 0; r < others; r++) {
      const char* a = q + (size_t)line[i] * 128;
      const long long pitch = ((long long)other[r] - line[i]) * 128;
      all_there(count, goal += gridDim.x);
      unsigned t0 = tick();
#pragma unroll
      for (int j = 0; j < 8; j++) {
        unsigned v[4];
#pragma unroll
        for (int k = 0; k < 4; k++) asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(v[k]) : "l"(a + (j * 4 + k + w) % two * pitch) : "memory");
#pragma unroll
        for (int k = 0; k < 4; k++) acc += v[k];
      }
      if (acc == 12345u) sum[0] = 1;
      __syncthreads();
      if (threadIdx.x == 0) atomicAdd(&sum[i * others + r], tick() - t0);
    }
}
struct Slices {
  enum { BATCH = 512, MOST = 128 };
  const char* p;
  unsigned *sum, *count;
  int *line, *other;
  double cut;              // cycles between those of two lines of one slice and of two
  std::vector<int> first;  // a line of each slice that was found
  explicit Slices(const char* memory) : p(memory) {
    CK(cudaMalloc(&sum, BATCH * MOST * 4)); CK(cudaMalloc(&count, 4)); CK(cudaMalloc(&line, BATCH * 4)); CK(cudaMalloc(&other, MOST * 4));
    CK(cudaFuncSetAttribute(k_pairs, cudaFuncAttributeMaxDynamicSharedMemorySize, 120000));
    std::vector<int> near;
    for (int l = 8; l < 200; l += 2) near.push_back(l);
    ask({1}, {0});
    const double one = ask({1}, {0})[0];  // lines 0 and 1 lie in one
    auto t = ask(near, {0});
    std::sort(t.begin(), t.end());
    cut = (one + t[t.size() / 2]) / 2;
    for (int l = 0; l < 8192; l += 2)
      if (of({l})[0] < 0 && first.size() < MOST) first.push_back(l);
  }
  std::vector<double> ask(const std::vector<int>& lines, const std::vector<int>& others) {
    CK(cudaMemcpy(line, lines.data(), lines.size() * 4, cudaMemcpyHostToDevice));
    CK(cudaMemcpy(other, others.data(), others.size() * 4, cudaMemcpyHostToDevice));
    for (int rep = 0; rep < 2; rep++) {  // first they come from DRAM
      CK(cudaMemset(sum, 0, BATCH * MOST * 4)); CK(cudaMemset(count, 0, 4));
      k_pairs<<<132, 128, 120000>>>(p, line, (int)lines.size(), other, (int)others.size(), 2, sum, count);
      CK(cudaDeviceSynchronize());
    }
    std::vector<unsigned> h(lines.size() * others.size());
    CK(cudaMemcpy(h.data(), sum, h.size() * 4, cudaMemcpyDeviceToHost));
    return std::vector<double>(h.begin(), h.end());
  }
  // a number for each line's slice; -1: none, or more than one, that was found so far
  std::vector<int> of(const std::vector<int>& lines) {
    std::vector<int> out;
    for (size_t from = 0; from < lines.size(); from += BATCH) {
      std::vector<int> some(lines.begin() + from, lines.begin() + std::min(lines.size(), from + BATCH));
      auto t = first.empty() ? std::vector<double>() : ask(some, first);
      for (size_t i = 0; i < some.size(); i++) {
        int n = 0, at = -1;
        for (size_t r = 0; r < first.size(); r++)
          if (t[i * first.size() + r] > cut) n++, at = (int)r;
        out.push_back(n == 1 ? at : -1);
      }
    }
    return out;
  }
};
