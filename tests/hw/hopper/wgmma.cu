// Warp-group multiplies: cycles of m64 x n with k of 32 B, by type, n, source of A, warp groups and how they are waited for.
//   wgmma DIR   writes DIR/wgmma.csv
// `step` multiplies are committed as a group; after each group the warp group waits until at most `left` groups are outstanding
// (left 9: only at the end). `chains`: independent accumulators, used in turn by the multiplies of a step. cycles: of a step, from
// the difference of runs of 64 and 16 steps; first: a lone step, issue to completion; issue: cycles until the step's instructions
// had issued.
#include "hopper.cuh"

struct Out { unsigned total, first, issue; };

template <int KIND, int N, bool RS, int CHAINS, int LEFT, int STEP>
__global__ void __launch_bounds__(384, 1) k_multiply(int steps, int groups, Out* out, float* sink) {
  extern __shared__ __align__(1024) char tiles[];
  if ((int)threadIdx.x >= groups * 128) return;
  const int wg = threadIdx.x / 128;
  for (int i = threadIdx.x; i < 48 * 1024 / 4; i += groups * 128) ((float*)tiles)[i] = 0;
  proxy_fence();
  named_barrier(1, groups * 128);
  typedef Wgmma<KIND, N> W;
  float d[CHAINS][W::regs];
  for (int c = 0; c < CHAINS; c++) for (int i = 0; i < W::regs; i++) d[c][i] = 0;
  const uint64_t a = wg_matrix(shared_address(tiles) + wg * 8192), b = wg_matrix(shared_address(tiles) + 16384);
  uint32_t r[4] = {0, 0, 0, 0};
  unsigned t0 = 0, t1 = 0, t2 = 0;
  // a lone step; the second time counts, as the first fetches instructions
  for (int again = 0; again < 3; again++) {
    named_barrier(1, groups * 128);
    t0 = tick();
    wg_fence();
#pragma unroll
    for (int i = 0; i < STEP; i += CHAINS)
#pragma unroll
      for (int c = 0; c < CHAINS; c++) {
        if (RS) W::rs(d[c], r, b); else W::ss(d[c], a + 2 * (i & 3), b + 2 * (i & 3));
      }
    wg_commit();
    t1 = tick();
    wg_wait<0>();
    t2 = tick();
  }
  named_barrier(1, groups * 128);
  unsigned s0 = tick();
  for (int s = 0; s < steps; s++) {
    wg_fence();
#pragma unroll
    for (int i = 0; i < STEP; i += CHAINS)
#pragma unroll
      for (int c = 0; c < CHAINS; c++) {
        if (RS) W::rs(d[c], r, b); else W::ss(d[c], a + 2 * (i & 3), b + 2 * (i & 3));
      }
    wg_commit();
    if (LEFT == 0) wg_wait<0>();
    if (LEFT == 1) wg_wait<1>();
  }
  wg_wait<0>();
  unsigned s1 = tick();
  float x = 0;
  for (int c = 0; c < CHAINS; c++) for (int i = 0; i < W::regs; i++) x += d[c][i];
  if (x == 12345.f) sink[0] = x;
  if (threadIdx.x % 128 == 0) out[blockIdx.x * 3 + wg] = Out{s1 - s0, t2 - t0, t1 - t0};
}

static FILE* f;
static Out* OUTS;
static float* SINK;

template <int KIND, int N, bool RS, int CHAINS, int LEFT, int STEP>
static void row(const char* kind, int sms, int groups) {
  double total[2] = {}, first = 0, issue = 0;
  for (int v = 0; v < 2; v++) {
    std::vector<double> t, fi, is;
    for (int rep = 0; rep < 5; rep++) {
      launch(k_multiply<KIND, N, RS, CHAINS, LEFT, STEP>, sms, 384, 64 * 1024, 1, 0, v ? 64 : 16, groups, OUTS, SINK);
      CK(cudaDeviceSynchronize());
      std::vector<Out> h(3 * sms);
      CK(cudaMemcpy(h.data(), OUTS, sizeof(Out) * h.size(), cudaMemcpyDeviceToHost));
      if (rep) for (int b = 0; b < sms; b++) for (int g = 0; g < groups; g++) { t.push_back(h[3 * b + g].total); fi.push_back(h[3 * b + g].first); is.push_back(h[3 * b + g].issue); }
    }
    total[v] = stat_of(t).med; first = stat_of(fi).med; issue = stat_of(is).med;
  }
  fprintf(f, "%s,%d,%s,%d,%d,%d,%d,%d,%.2f,%.0f,%.0f\n", kind, N, RS ? "registers" : "shared", sms, groups, CHAINS, LEFT, STEP, (total[1] - total[0]) / 48, first, issue);
}

template <int KIND, int N, bool RS, int CHAINS, int LEFT>
static void one(const char* kind) {
  for (int groups = 1; groups <= 3; groups++) {
    if constexpr (CHAINS == 1) row<KIND, N, RS, CHAINS, LEFT, 1>(kind, 1, groups);
    row<KIND, N, RS, CHAINS, LEFT, 2>(kind, 1, groups);
    row<KIND, N, RS, CHAINS, LEFT, 4>(kind, 1, groups);
    row<KIND, N, RS, CHAINS, LEFT, 4>(kind, 132, groups);
    row<KIND, N, RS, CHAINS, LEFT, 8>(kind, 1, groups);
  }
  fflush(f);
}

template <int KIND, int N>
static void shape(const char* kind) {
  one<KIND, N, false, 1, 9>(kind); one<KIND, N, false, 1, 0>(kind); one<KIND, N, false, 1, 1>(kind);
  if constexpr (N <= 128) one<KIND, N, true, 1, 0>(kind);
  if constexpr (N <= 64) { one<KIND, N, false, 2, 0>(kind); one<KIND, N, false, 2, 1>(kind); }
}

int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  CK(cudaMalloc(&OUTS, sizeof(Out) * 3 * 132)); CK(cudaMalloc(&SINK, 64));
  f = fopen((dir + "/wgmma.csv").c_str(), "w");
  if (!f) { perror(dir.c_str()); return 1; }
  fprintf(f, "type,n,a_from,sms,warp_groups,chains,left,step,cycles,first,issue\n");
  shape<FP16, 8>("fp16"); shape<FP16, 16>("fp16"); shape<FP16, 24>("fp16"); shape<FP16, 32>("fp16"); shape<FP16, 48>("fp16"); shape<FP16, 64>("fp16");
  shape<FP16, 96>("fp16"); shape<FP16, 128>("fp16"); shape<FP16, 160>("fp16"); shape<FP16, 192>("fp16"); shape<FP16, 256>("fp16");
  shape<TF32, 8>("tf32"); shape<TF32, 32>("tf32"); shape<TF32, 64>("tf32"); shape<TF32, 128>("tf32"); shape<TF32, 256>("tf32");
  shape<E4M3, 8>("e4m3"); shape<E4M3, 64>("e4m3"); shape<E4M3, 128>("e4m3"); shape<E4M3, 256>("e4m3");
  fclose(f);
  printf("done\n");
  return 0;
}
