// What a load past L1 takes by who touched its line before: written by another kernel, read since by this SM,
// read since by another one; by loads at once, warps and TBs.
//   fresh DIR   writes DIR/fresh.csv: what, state, loads, warps, tbs, cycles (a turn, mean over warps)
#include "common.cuh"
static FILE* OUT;
__global__ void k_write(uint4* p, size_t n) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) __stcg(p + i, make_uint4(0, 0, 0, 0));
}
__device__ __forceinline__ unsigned ld16(const char* p) {
  unsigned short v;
  asm volatile("ld.global.cg.u16 %0,[%1];" : "=h"(v) : "l"(p));
  return v;
}
// each warp walks `turns` pieces of its own; a turn loads 64 B of each of L arrays, S: then one more, which waits for those, then a store
template <int L, int S>
__global__ void k_walk(const char* base, size_t apart, char* out, int turns, int rotate, unsigned long long* cyc) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  const int tb = (blockIdx.x + rotate) % gridDim.x;
  const size_t mine = (size_t)(tb * warps + warp) * turns * 128 + lane * 2;
  size_t at = mine;
  unsigned long long t0 = clock64();
  for (int i = 0; i < turns; i++) {
    unsigned v[L], s = 0;
#pragma unroll
    for (int l = 0; l < L; l++) v[l] = ld16(base + at + l * apart);
#pragma unroll
    for (int l = 0; l < L; l++) s |= v[l];
    if (S & 1) s = ld16(base + at + L * apart + s);
    if (S & 2) *(unsigned short*)(out + at + s) = (unsigned short)i;
    at += 128 + s;
  }
  unsigned long long t1 = clock64();
  if (lane == 0) cyc[blockIdx.x * warps + warp] = t1 - t0;
}
template <int L, int S>
static void walk(const char* what, char* buf, char* out, unsigned long long* cyc) {
  const int turns = 64;
  for (int tbs : {1, 16, 64})
    for (int warps : {1, 8}) {
      size_t apart = (size_t)tbs * warps * turns * 128;
      std::vector<double> got[4];
      for (int r = 0; r < 5; r++) {
        k_write<<<264, 256>>>((uint4*)buf, (L + (S & 1)) * apart / 16);
        const char* states[] = {"written", "read", "read elsewhere", "read twice"};
        for (int k = 0; k < 4; k++) {
          k_walk<L, S><<<tbs, warps * 32>>>(buf, apart, out, turns, k == 2 ? tbs / 2 : k == 3 ? tbs / 2 : 0, cyc);
          CK(cudaDeviceSynchronize());
          std::vector<unsigned long long> c(tbs * warps);
          CK(cudaMemcpy(c.data(), cyc, c.size() * 8, cudaMemcpyDeviceToHost));
          double sum = 0;
          for (auto x : c) sum += x;
          if (r) got[k].push_back(sum / c.size() / turns);
          if (r == 4) {
            std::sort(got[k].begin(), got[k].end());
            fprintf(OUT, "%s,%s,%d,%d,%d,%.2f\n", what, states[k], L, warps, tbs, got[k][2]);
          }
        }
      }
    }
}
int main(int argc, char** argv) {
  OUT = fopen((std::string(argc > 1 ? argv[1] : ".") + "/fresh.csv").c_str(), "w");
  fprintf(OUT, "what,state,loads,warps,tbs,cycles\n");
  char *buf, *out;
  unsigned long long* cyc;
  CK(cudaMalloc(&buf, (size_t)64 << 20));
  CK(cudaMalloc(&out, (size_t)64 << 20));
  CK(cudaMalloc(&cyc, 1 << 20));
  walk<1, 0>("load", buf, out, cyc);
  walk<3, 0>("load", buf, out, cyc);
  walk<6, 0>("load", buf, out, cyc);
  walk<1, 2>("load store", buf, out, cyc);
  walk<6, 1>("load load", buf, out, cyc);
  walk<6, 3>("load load store", buf, out, cyc);
  fclose(OUT);
  return 0;
}
