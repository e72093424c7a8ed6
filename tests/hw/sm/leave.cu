// When the warps of a TB get to a barrier and when they go on behind it, in products (suite.cuh, and what is noted) with one TB on each SM, two,
// ..., and in loops of little else: each warp notes its SM's cycle counter in the instruction behind the barrier (`next`, which runs
// before the barrier is complete: past.cu) and when a load from shared memory behind that is there (`load`).
//   leave DIR   writes DIR/leave.csv: of each loop and number of TBs an SM, of each warp cycles behind its TB's first: mean over TBs and
//               steps, standard deviation between TBs (of their means) and within one (from step to step), 10th and 90th per cent; of the
//               TB the cycles from its first to its last warp (10, 50, 90 %) and of a step, and how often the warp four before it, which
//               has the same sub-core, goes first
#include <string>
static __constant__ unsigned* leave_out;
static __constant__ int leave_steps;
#define AT_STEP(step) \
  const unsigned leave_next = tick(), leave_time = leave_behind_load(); \
  if ((threadIdx.x & 31) == 0) leave_at(step, leave_next, leave_time)
#include "common.cuh"
// the counter when a load from shared memory is there, which follows the barrier
__device__ __forceinline__ unsigned leave_behind_load() {
  unsigned word;
  asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(word) : "r"(0) : "memory");
  return tick_behind(word);
}
__device__ __forceinline__ void leave_at(int step, unsigned next, unsigned time) {
  unsigned tb = blockIdx.y * gridDim.x + blockIdx.x, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  unsigned* p = leave_out + (((size_t)tb * warps + warp) * leave_steps + step) * 2;
  p[0] = next;
  p[1] = time;
}
#include "products.cuh"
constexpr int STEPS = 80, FROM = 16;
static FILE* OUT;
static unsigned* AT;
struct Moments {
  double n = 0, sum = 0, squares = 0;
  void add(double x) { n++; sum += x; squares += x * x; }
  double mean() const { return sum / n; }
  double variance() const { return std::max(0., squares / n - mean() * mean()); }
};
static void report(const char* kernel, int each, int warps, int what, const std::vector<unsigned>& h) {
  const int tbs = 132 * each;
  std::vector<std::vector<double>> all(warps);
  std::vector<Moments> between(warps), within(warps);  // within: variances of TBs
  std::vector<double> span, steps, older(warps);
  for (int tb = 0; tb < tbs; tb++) {
    auto at = [&](int w, int k) { return h[(((size_t)tb * warps + w) * STEPS + k) * 2 + what]; };
    std::vector<Moments> mine(warps);
    unsigned last = 0;
    for (int k = FROM; k < STEPS; k++) {
      int first = 0, end = 0;
      for (int w = 0; w < warps; w++) {
        first = std::min(first, (int)(at(w, k) - at(0, k)));
        end = std::max(end, (int)(at(w, k) - at(0, k)));
      }
      for (int w = 0; w < warps; w++) {
        double behind = (int)(at(w, k) - at(0, k)) - first;
        mine[w].add(behind);
        all[w].push_back(behind);
        if (w >= 4) older[w] += (int)(at(w, k) - at(w - 4, k)) > 0;
      }
      span.push_back(end - first);
      if (k > FROM) steps.push_back((int)(at(0, k) + first - last));
      last = at(0, k) + first;
    }
    for (int w = 0; w < warps; w++) { between[w].add(mine[w].mean()); within[w].add(mine[w].variance()); }
  }
  for (int w = 0; w < warps; w++)
    fprintf(OUT, "%s,%s,%d,%d,%d,%.1f,%.1f,%.1f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.2f\n", kernel, what ? "load" : "next", each, warps, w, between[w].mean(), sqrt(between[w].variance()),
            sqrt(within[w].mean()), pct(all[w], .1), pct(all[w], .9), pct(span, .1), pct(span, .5), pct(span, .9), stat_of(steps).med,
            w < 4 ? 0. : older[w] / all[w].size());
}
// a loop of nothing else: 0 a barrier, 1 arithmetic too, 2 the last warp comes 1,000 cycles later
template <int WORK>
__global__ void __launch_bounds__(512) k_turns(float* sink) {
  __shared__ float one[32];
  if (threadIdx.x < 32) one[threadIdx.x] = 1.f;
  float x = threadIdx.x;
  __syncthreads();
  for (int i = 0; i < STEPS; i++) {
    if (WORK == 1)
#pragma unroll
      for (int k = 0; k < 64; k++) x = fmaf(x, 1.0001f, 0.5f);
    if (WORK == 2 && threadIdx.x >> 5 == (blockDim.x >> 5) - 1)
      for (unsigned begin = tick(); tick() - begin < 1000;) {}
    __syncthreads();
    AT_STEP(i);
  }
  if (x == 1.234e30f) *sink = x;
}
template <int WORK>
static void turns(const char* name, int each, int warps) {
  CK(cudaFuncSetAttribute(k_turns<WORK>, cudaFuncAttributeMaxDynamicSharedMemorySize, 180 << 10));
  for (int run = 0; run < 3; run++) {
    k_turns<WORK><<<132 * each, warps * 32, (180 << 10) / each>>>((float*)AT + (12 << 20));
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());
  }
  std::vector<unsigned> h((size_t)132 * each * warps * STEPS * 2);
  CK(cudaMemcpy(h.data(), AT, h.size() * 4, cudaMemcpyDeviceToHost));
  for (int what : {0, 1}) report(name, each, warps, what, h);
}
template <class G>
static void product(const char* kernel, int each) {
  const int tbs = 132 * each, warps = G::NT / 32;
  for (int run = 0; run < 3; run++) {
    launch_product<G, -1>(1, tbs, STEPS);
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());
  }
  std::vector<unsigned> h((size_t)tbs * warps * STEPS * 2);
  CK(cudaMemcpy(h.data(), AT, h.size() * 4, cudaMemcpyDeviceToHost));
  for (int what : {0, 1}) report(kernel, each, warps, what, h);
}
int main(int argc, char** argv) {
  OUT = fopen((std::string(argc > 1 ? argv[1] : ".") + "/leave.csv").c_str(), "w");
  fprintf(OUT, "kernel,behind,tbs,warps,warp,mean,between,within,p10,p90,span_p10,span,span_p90,step,older_first\n");
  CK(cudaMalloc(&AT, 64 << 20)); CK(cudaMemcpyToSymbol(leave_out, &AT, sizeof AT));
  int steps = STEPS;
  CK(cudaMemcpyToSymbol(leave_steps, &steps, sizeof steps));
  for (int each : {1, 2})
    for (int warps : {4, 8, 16}) {
      turns<0>("nothing", each, warps);
      turns<1>("ffma", each, warps);
      turns<2>("late", each, warps);
    }
  for (int each : {1, 2}) {
    product<H128w8>("hgemm_128x128x32_8warps", each);
    product<H128w4>("hgemm_128x128x32_4warps", each);
    product<S128>("sgemm_128x128x8", each);
  }
  for (int each : {1, 2, 3, 4}) {
    product<H64>("hgemm_64x64x32", each);
    product<S64>("sgemm_64x64x16", each);
    product<S32>("sgemm_32x32x32", each);
  }
  fclose(OUT);
  return 0;
}
