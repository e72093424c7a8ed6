// How much the K steps of an fp32 product vary where each SM has one TB, or one SM alone has any, and of which of its parts: the
// loop of parts.cu with parts left out, all operands in L2.
//   vary DIR   writes DIR/vary.csv: of TBs after their first eighth of steps, cycles a step: mean, standard deviation of the TBs'
//              means, and of what 1, 4, 16 and 32 steps of one TB take beyond their mean over all TBs
static __constant__ unsigned* vary_at;
#define AT_STEP(step) \
  if (threadIdx.x == 0) vary_at[(size_t)blockIdx.x * KT + (step)] = tick()
#define main parts
#include "parts.cu"
#undef main
static FILE* F_OUT;
template <class G, int TM, int TN>
static void vary(const char* name, float* M, unsigned* at) {
  const int ld = 4096, KT = 4096 / G::BK, from = KT / 8;
  auto one = [&](auto flags, const char* what) {
    constexpr int F = decltype(flags)::value;
    auto* k = k_sg<G, TM, TN, F>;
    const int pad = 116 << 10;  // one TB an SM
    CK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, pad));
    for (int tbs : {1, 132})
      for (int run = 0; run < 3; run++) {
        k<<<tbs, G::NT, pad>>>(M, M + ((size_t)32 << 20), ld, KT, CYC, (float*)CYC);
        CK(cudaDeviceSynchronize());
        if (!run) continue;
        std::vector<unsigned> h((size_t)tbs * KT);
        CK(cudaMemcpy(h.data(), at, h.size() * 4, cudaMemcpyDeviceToHost));
        double mean = 0, means = 0;
        auto step = [&](int b, int i, int n) { return (double)(h[(size_t)b * KT + i + n] - h[(size_t)b * KT + i]); };
        for (int b = 0; b < tbs; b++) mean += step(b, from, KT - 1 - from) / (KT - 1 - from) / tbs;
        for (int b = 0; b < tbs; b++) { double d = step(b, from, KT - 1 - from) / (KT - 1 - from) - mean; means += d * d / tbs; }
        fprintf(F_OUT, "%s,%s,%d,%d,%.1f,%.2f", name, what, tbs, run - 1, mean, sqrt(means));
        for (int n : {1, 4, 16, 32}) {
          double var = 0;
          long count = 0;
          for (int b = 0; b < tbs; b++)
            for (int i = from; i + n < KT; i++, count++) { double d = step(b, i, n) - n * mean; var += d * d; }
          fprintf(F_OUT, ",%.1f", sqrt(var / count));
        }
        fprintf(F_OUT, "\n");
      }
  };
  one(std::integral_constant<int, 31>(), "all");
  one(std::integral_constant<int, 30>(), "no global loads");
  one(std::integral_constant<int, 29>(), "no sts");
  one(std::integral_constant<int, 28>(), "barriers lds ffma");
  one(std::integral_constant<int, 24>(), "lds ffma");
  one(std::integral_constant<int, 20>(), "barriers ffma");
  one(std::integral_constant<int, 21>(), "global loads barriers ffma");
  one(std::integral_constant<int, 22>(), "sts barriers ffma");
  one(std::integral_constant<int, 12>(), "barriers lds");
  one(std::integral_constant<int, 8>(), "lds");
  one(std::integral_constant<int, 6>(), "sts barriers");
  one(std::integral_constant<int, 5>(), "global loads barriers");
  one(std::integral_constant<int, 4>(), "barriers");
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  float* M = operands();
  unsigned* at;
  CK(cudaMalloc(&at, (size_t)132 * 512 * 4));
  CK(cudaMemcpyToSymbol(vary_at, &at, sizeof at));
  F_OUT = fopen((dir + "/vary.csv").c_str(), "w");
  fprintf(F_OUT, "kernel,what,tbs,run,step,means,of1,of4,of16,of32\n");
  vary<S64, 4, 4>("64x64x16", M, at);
  vary<S128, 8, 8>("128x128x8", M, at);
  vary<S32, 2, 2>("32x32x32", M, at);
  fclose(F_OUT);
  return 0;
}
