// What a K step of the products takes as they are, nothing noted in it (`plain`: kernels.cu's code; `chains`: that of the chains' plain
// kernels): where an SM has one to four TBs and all others none, and where all SMs have as many.
//   lone DIR   writes DIR/lone.csv: ns a step, from two kernels of unequal depth, by events (median, least and most of 15)
#include "products.cuh"
static int* GO;
__global__ void k_hold(volatile int* go) {
  while (!*go) __nanosleep(2000);
}
template <class G, int MODE>
static float run(cudaStream_t s, int each, bool all, int steps) {
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a)); CK(cudaEventCreate(&b));
  CK(cudaEventRecord(a, s));
  launch_product<G, MODE>(all ? 11 * each : each, all ? 12 : 1, steps, s);
  CK(cudaEventRecord(b, s));
  CK(cudaStreamSynchronize(s));
  float ms;
  CK(cudaEventElapsedTime(&ms, a, b));
  CK(cudaEventDestroy(a)); CK(cudaEventDestroy(b));
  return ms * 1e6f;
}
template <class G, int MODE>
static void product(FILE* f, const char* name, int most) {
  numbers<typename G::T>();  // before SMs are held
  CK(cudaFuncSetAttribute(k_hold, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024));
  cudaStream_t held, s;
  CK(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  for (bool all : {false, true})
    for (int each = 1; each <= most; each++) {
      if (!all) {
        CK(cudaMemset(GO, 0, 4));
        CK(cudaDeviceSynchronize());
        k_hold<<<131, 32, 227 * 1024, held>>>(GO);
      }
      std::vector<double> t;
      for (int i = 0; i < 17; i++) {
        double few = run<G, MODE>(s, each, all, 64), many = run<G, MODE>(s, each, all, 576);
        if (i > 1) t.push_back((many - few) / 512);
      }
      CK(cudaMemsetAsync(GO, 1, 4, s));
      CK(cudaDeviceSynchronize());
      Stat q = stat_of(t);
      fprintf(f, "%s,%s,%d,%s,%.1f,%.1f,%.1f\n", name, MODE < 0 ? "plain" : "chains", each, all ? "all" : "one", q.med, q.mn, q.mx);
    }
}
template <int MODE>
static void products(FILE* f) {
  product<H128w8, MODE>(f, "hgemm_128x128x32_8warps", 2);
  product<H128w4, MODE>(f, "hgemm_128x128x32_4warps", 2);
  product<H64, MODE>(f, "hgemm_64x64x32", 4);
  product<S128, MODE>(f, "sgemm_128x128x8", 2);
  product<S64, MODE>(f, "sgemm_64x64x16", 4);
  product<S32, MODE>(f, "sgemm_32x32x32", 4);
}
int main(int argc, char** argv) {
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/lone.csv").c_str(), "w");
  fprintf(f, "kernel,code,each,sms,ns,least,most\n");
  CK(cudaMalloc(&GO, 4));
  products<-1>(f);
  products<2>(f);
  fclose(f);
  return 0;
}
