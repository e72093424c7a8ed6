// When each warp of a tensor product does what within a step: one SM, one or two TBs on it.
//   inside DIR   writes DIR/inside.csv: cycles from the barrier on, median of 32 steps: copies issued, ldmatrix issued, the first mma, the last
#define STEP_ONLY if (smid() != 0) return
#define STEP_NOTES unsigned at[8]
#define STEP_NOTE(place) asm volatile("mov.u32 %0, %%clock;" : "=r"(at[place])::"memory")
#define STEP_NOTED                                                                                        \
  if (kt >= 64 && kt < 96 && lane == 0)                                                                   \
    for (int q = 0; q < 8; q++) ((unsigned*)begun)[(((size_t)blockIdx.x * (NT / 32) + w) * 32 + kt - 64) * 8 + q] = at[q]
#include "steps.cuh"
template <class G>
static void inside(FILE* f, const char* name, const __half* M, int each) {
  const int K = 4096, W = G::NT / 32;
  GemmArgs<__half> g{M, M + (1 << 24), nullptr, G::BM, G::BN * 8, K, K, G::BN * 8, 0, 0, 0, 0, 0};
  unsigned* note;
  unsigned long long* cyc;
  const int tbs = 132 * each;
  CK(cudaMalloc(&cyc, tbs * 8));
  CK(cudaMalloc(&note, (size_t)tbs * W * 32 * 8 * 4));
  CK(cudaFuncSetAttribute(k_step<G, 31, false>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)G::SMEM));
  for (int i = 0; i < 3; i++) {
    CK(cudaMemset(note, 0, (size_t)tbs * W * 32 * 8 * 4));
    k_step<G, 31, false><<<tbs, G::NT, G::SMEM>>>(g, cyc, (float*)cyc, 0, (unsigned long long*)note);
  }
  CK(cudaDeviceSynchronize());
  std::vector<unsigned> h((size_t)tbs * W * 32 * 8);
  CK(cudaMemcpy(h.data(), note, h.size() * 4, cudaMemcpyDeviceToHost));
  int age = 0;
  for (int t = 0; t < tbs; t++) {
    const unsigned* p = &h[(size_t)t * W * 256];
    if (!p[0]) continue;
    for (int w = 0; w < W; w++) {
      fprintf(f, "%s,%d,%d,%d", name, each, age, w);
      std::vector<double> step;
      for (int k = 0; k < 31; k++) step.push_back((unsigned)(p[(w * 32 + k + 1) * 8] - p[(w * 32 + k) * 8]));
      fprintf(f, ",%.0f", stat_of(step).med);
      for (int q = 0; q < 8; q++) {
        std::vector<double> v;
        for (int k = 0; k < 32; k++) v.push_back((int)(p[(w * 32 + k) * 8 + q] - p[k * 8]));
        fprintf(f, ",%.0f", stat_of(v).med);
      }
      fprintf(f, "\n");
    }
    age++;
  }
  CK(cudaFree(note));
  CK(cudaFree(cyc));
}
int main(int argc, char** argv) {
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/inside.csv").c_str(), "w");
  fprintf(f, "kernel,each,age,warp,step,barrier,copied,loaded,first,half,loaded2,first2,last\n");
  __half* M = made<__half>((size_t)64 << 20, .5f);
  for (int each : {1, 2}) {
    inside<H128w8>(f, "128x128x32 8 warps", M, each);
    inside<H128w4>(f, "128x128x32 4 warps", M, each);
    inside<H64>(f, "64x64x32 4 warps", M, each);
  }
  fclose(f);
  return 0;
}
