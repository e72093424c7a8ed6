// When a store joins one before it on its way from L1 to L2: warps store a word of each of some sectors, then the next words of the
// same sectors; counted is what L2 gets.
//   merge DIR   launches each case once, for a profiler (ncu --profile-from-start off --cache-control none --clock-control none
//               --metrics lts__t_sectors_srcunit_tex_op_write.sum), and writes DIR/merge_cases.csv, the cases in that order
#include <cuda_profiler_api.h>
#include "common.cuh"
struct Case {
  int lanes;  // neighbouring lanes that write to one sector
  int sec;    // sectors of a line
  int warps;  // that do so at once
  int rows;   // runs of a warp, one behind the other
};
// RUN stores to the same sectors with GAP dependent additions (4 cycles each) and MID stores of four whole lines between two of them;
// before the first, PRE of those
template <int RUN, int GAP, int PRE, int MID>
__global__ void __launch_bounds__(1024) k_merge(char* p, Case c, int n, unsigned* cyc, float one) {
  const int w = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int group = lane / c.lanes, word = lane % c.lanes;
  const size_t lines = 32 / c.lanes / c.sec, step = 128 * lines, mine = step * c.rows * n;
  char* at = p + mine * w + group / c.sec * 128 + group % c.sec * 32 + 4 * RUN * word;
  char* q = p + ((size_t)32 << 20) + (size_t)w * (PRE + RUN * MID + 1) * 512 * n * c.rows + lane * 16;
  float x = one;
  unsigned issued = 0, done = 0;
  for (int i = 0; i < n; i++) {
    __syncthreads();
    if (w < c.warps) {
      unsigned t0 = tick();
      for (int r = 0; r < c.rows; r++) {
#pragma unroll
        for (int k = 0; k < PRE; k++) asm volatile("st.global.v4.f32 [%0], {%1,%1,%1,%1};" ::"l"(q + k * 512), "f"(x) : "memory");
#pragma unroll
        for (int j = 0; j < RUN; j++) {
          asm volatile("st.global.f32 [%0], %1;" ::"l"(at + 4 * j), "f"(x) : "memory");
          if (j + 1 < RUN) {
#pragma unroll
            for (int k = 0; k < MID; k++) asm volatile("st.global.v4.f32 [%0], {%1,%1,%1,%1};" ::"l"(q + (PRE + j * MID + k) * 512), "f"(x) : "memory");
#pragma unroll
            for (int k = 0; k < GAP; k++) asm volatile("add.f32 %0, %0, %1;" : "+f"(x) : "f"(one) : "memory");
          }
        }
        at += step;
        q += 512 * (PRE + RUN * MID);
      }
      unsigned t1 = tick();
      __threadfence();
      unsigned t2 = tick();
      issued += t1 - t0;
      done += t2 - t0;
    }
    for (unsigned t = tick(); tick() - t < 4000;) {}
  }
  if (lane == 0) { cyc[2 * w] = issued; cyc[2 * w + 1] = done; }
}
static FILE* OUT;
static char* P;
static unsigned* CYC;
template <int RUN, int GAP, int PRE, int MID>
static void one(Case c) {
  const int n = 16;
  k_merge<RUN, GAP, PRE, MID><<<1, 1024>>>(P, c, n, CYC, 1.f);
  CK(cudaDeviceSynchronize());
  std::vector<unsigned> h(64);
  CK(cudaMemcpy(h.data(), CYC, 256, cudaMemcpyDeviceToHost));
  double issued = 0, done = 0;
  for (int w = 0; w < c.warps; w++) { issued = std::max(issued, h[2 * w] / (double)n); done = std::max(done, h[2 * w + 1] / (double)n); }
  fprintf(OUT, "%d,%d,%d,%d,%d,%d,%d,%d,%d,%.0f,%.0f\n", c.lanes, c.sec, c.warps, c.rows, RUN, GAP, PRE, MID, n, issued, done);
}
template <int RUN, int GAP>
static void products() {
  for (int warps : {1, 2, 3, 4, 5, 6, 8, 12, 16, 32})
    for (int rows : {1, 2, 4, 16}) one<RUN, GAP, 0, 0>({2, 4, warps, rows});
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  CK(cudaMalloc(&P, (size_t)512 << 20)); CK(cudaMemset(P, 0, (size_t)512 << 20)); CK(cudaMalloc(&CYC, 256));
  OUT = fopen((dir + "/merge_cases.csv").c_str(), "w");
  fprintf(OUT, "lanes_a_sector,sectors_a_line,warps,rows,run,additions,wide_before,wide_between,times,issued,done\n");
  CK(cudaProfilerStart());
  Case a{2, 4, 1, 1};
  one<2, 0, 0, 0>(a); one<2, 1, 0, 0>(a); one<2, 2, 0, 0>(a); one<2, 3, 0, 0>(a); one<2, 4, 0, 0>(a); one<2, 6, 0, 0>(a); one<2, 8, 0, 0>(a);
  one<4, 0, 0, 0>(a); one<4, 1, 0, 0>(a); one<4, 2, 0, 0>(a); one<4, 4, 0, 0>(a); one<4, 8, 0, 0>(a);
  one<2, 0, 1, 0>(a); one<2, 0, 2, 0>(a); one<2, 0, 4, 0>(a); one<2, 0, 8, 0>(a); one<2, 0, 16, 0>(a);
  one<2, 4, 1, 0>(a); one<2, 4, 2, 0>(a); one<2, 4, 4, 0>(a); one<2, 4, 8, 0>(a); one<2, 4, 16, 0>(a);
  one<2, 16, 1, 0>(a); one<2, 16, 2, 0>(a); one<2, 16, 4, 0>(a); one<2, 16, 8, 0>(a); one<2, 16, 16, 0>(a); one<2, 32, 16, 0>(a); one<2, 64, 16, 0>(a);
  one<2, 0, 0, 1>(a); one<2, 0, 0, 2>(a); one<2, 0, 0, 3>(a); one<2, 0, 0, 4>(a); one<2, 0, 0, 5>(a); one<2, 0, 0, 6>(a); one<2, 0, 0, 8>(a);
  one<2, 0, 8, 1>(a); one<2, 0, 8, 2>(a); one<2, 0, 8, 3>(a); one<2, 0, 8, 4>(a); one<2, 0, 8, 5>(a); one<2, 0, 8, 6>(a); one<2, 0, 8, 8>(a); one<2, 0, 8, 12>(a);
  one<2, 0, 16, 1>(a); one<2, 0, 16, 2>(a); one<2, 0, 16, 4>(a); one<2, 0, 16, 6>(a); one<2, 0, 16, 8>(a);
  for (int lanes : {1, 2, 4})
    for (int sec : {1, 2, 4})
      for (int warps : {1, 2, 4, 8}) {
        Case b{lanes, sec, warps, 4};
        one<2, 0, 0, 0>(b);
        if (lanes < 4) one<4, 0, 0, 0>(b);
      }
  products<4, 0>(); products<4, 1>(); products<4, 2>(); products<4, 4>(); products<2, 0>(); products<2, 4>();
  CK(cudaProfilerStop());
  fclose(OUT);
  return 0;
}
