// How many requests of an SM may be under way: one TB asks for lines that nobody has asked for as fast as it may and waits for none,
// beside SMs that do nothing, or that read DRAM as fast as they may, so that what it asks for comes late.
//   flight DIR   writes DIR/flight.csv: by kind, what others do, warps that ask, cycles from one op of a warp to its next at least, and
//                requests an op: cycles until all have come, and until every eighth op has been issued; medians of five runs
#include "common.cuh"
__device__ __forceinline__ void copy16(unsigned to, const void* p) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(p) : "memory"); }
__device__ __forceinline__ unsigned load4(const void* p) { unsigned v; asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
// copies of a sector of 32 and of 16 lines, of two sectors of 8, of four lines in a row; loads of a sector of 32 lines, of 8
enum { SECTORS, PAIRS, ROWS, LINES, LOADS, WIDE, KINDS };
static const char* NAMES[KINDS] = {"copy_32x1", "copy_16x1", "copy_8x2", "copy_4x4", "load_32x1", "load_8x1"};
static const int REQUESTS[KINDS] = {32, 16, 8, 4, 32, 8};
#define OPS 48
template <int KIND>
__global__ void __launch_bounds__(512) k_flight(const char* cold, const char* busy, size_t busy_bytes, int warps, int pace, volatile unsigned* flag, unsigned* at, unsigned* sink) {
  extern __shared__ char shared[];
  if (blockIdx.x) {
    if (busy_bytes == 0) return;
    unsigned s = 0;
    size_t pos = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * 16, step = (size_t)gridDim.x * blockDim.x * 16;
    while (*flag == 0) {
#pragma unroll
      for (int i = 0; i < 8; i++) {
        uint4 v; asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(busy + pos) : "memory");
        s += v.x ^ v.w;
        pos += step;
        pos = pos >= busy_bytes ? pos - busy_bytes : pos;
      }
    }
    if (s == 0x12345) *sink = s;
    return;
  }
  unsigned begin = tick();
  while (tick() - begin < 100000) {}
  __syncthreads();
  const int w = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const char* from = cold + (size_t)w * OPS * 4096;  // an op has 4 KiB of its own
  if (KIND == SECTORS || KIND == LOADS) from += lane * 128;
  if (KIND == PAIRS) from += (lane / 2) * 256 + (lane % 2) * 16;
  if (KIND == ROWS) from += (lane / 4) * 512 + (lane % 4) * 16;
  if (KIND == WIDE) from += (lane / 4) * 512 + (lane % 4) * 4;
  if (KIND == LINES) from += lane * 16;
  unsigned to = (unsigned)__cvta_generic_to_shared(shared) + threadIdx.x * 16, s = 0;
  unsigned t[OPS];
  constexpr int HELD = KIND == LOADS || KIND == WIDE ? OPS : 1;
  unsigned v[HELD] = {};
  __syncthreads();
  unsigned t0 = tick();
  if (w < warps) {
#pragma unroll
    for (int i = 0; i < OPS; i++) {
      while (pace && tick() - t0 < (unsigned)(i * pace)) {}
      if (HELD > 1) v[i % HELD] = load4(from + i * 4096);
      else copy16(to, from + i * 4096);
      t[i] = tick();
    }
  }
  if (HELD == 1) asm volatile("cp.async.wait_all;" ::: "memory");
  if (w < warps)
#pragma unroll
    for (int i = 0; i < HELD; i++) s += v[i];
  __syncthreads();
  unsigned end = tick();
  if (lane == 0 && w < warps)
    for (int i = 0; i < OPS; i++) at[w * OPS + i] = t[i] - t0;
  if (s == 0x12345) *sink = s;
  if (threadIdx.x == 0) { at[32 * OPS] = end - t0; *flag = 1; }
}
template <int KIND>
static void measure(FILE* f, const char* cold, const char* busy, unsigned* flag, unsigned* at) {
  CK(cudaFuncSetAttribute(k_flight<KIND>, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
  const size_t SETS[] = {0, (size_t)2 << 30};
  const char* BESIDE[] = {"none", "dram"};
  static size_t next = 0;
  std::vector<unsigned> h(32 * OPS + 1);
  for (int b = 0; b < 2; b++)
    for (int warps : {4, 8, 16}) for (int pace : {0, 160}) {
      std::vector<std::vector<double>> runs;
      for (int rep = 0; rep < 6; rep++) {
        next += 8 << 20;
        if (next > ((size_t)3 << 30)) next = 0;
        CK(cudaMemset(flag, 0, 4));
        k_flight<KIND><<<132, 512, 200 << 10>>>(cold + next, busy, SETS[b], warps, pace, flag, at, at + 4096);
        CK(cudaDeviceSynchronize());
        CK(cudaMemcpy(h.data(), at, h.size() * 4, cudaMemcpyDeviceToHost));
        std::vector<double> t(h.begin(), h.begin() + warps * OPS);
        std::sort(t.begin(), t.end());
        t.push_back(h[32 * OPS]);
        if (rep) runs.push_back(t);
      }
      fprintf(f, "%s,%s,%d,%d,%d", NAMES[KIND], BESIDE[b], warps, pace, REQUESTS[KIND]);
      std::vector<double> end;
      for (auto& r : runs) end.push_back(r.back());
      fprintf(f, ",%.0f,", stat_of(end).med);
      for (int i = 7; i < warps * OPS; i += 8) {
        std::vector<double> one;
        for (auto& r : runs) one.push_back(r[i]);
        fprintf(f, i == 7 ? "%.0f" : " %.0f", stat_of(one).med);
      }
      fprintf(f, "\n");
    }
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  char *cold, *busy; unsigned *flag, *at;
  CK(cudaMalloc(&cold, (size_t)4 << 30)); CK(cudaMalloc(&busy, (size_t)2 << 30)); CK(cudaMalloc(&flag, 64)); CK(cudaMalloc(&at, 1 << 16));
  CK(cudaMemset(cold, 0, (size_t)4 << 30)); CK(cudaMemset(busy, 0, (size_t)2 << 30));
  FILE* f = fopen((dir + "/flight.csv").c_str(), "w");
  fprintf(f, "kind,beside,warps,pace,requests_an_op,end,issued\n");
  measure<SECTORS>(f, cold, busy, flag, at);
  measure<PAIRS>(f, cold, busy, flag, at);
  measure<ROWS>(f, cold, busy, flag, at);
  measure<LINES>(f, cold, busy, flag, at);
  measure<LOADS>(f, cold, busy, flag, at);
  measure<WIDE>(f, cold, busy, flag, at);
  fclose(f);
}
