// How far each SM is from L2: the latency of hits, line by line; and what that means to TBs of products that do all the same.
//   distance DIR   writes DIR/distance.csv (an SM a line: latency of its own copies of lines, mean and quantiles, of lines
//                  that the SM has just read), DIR/distance_lines.csv (some of the lines, by SM), DIR/distance_tbs.csv (start
//                  and end of every TB of some instances)
#include <string>
#include "suite.cuh"
static cudaStream_t S;
static const int LINES = 4096;
__device__ __forceinline__ unsigned past_l1(const unsigned* p) { unsigned v; asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__global__ void k_read(const unsigned* p, unsigned sm, unsigned* out, unsigned zero) {
  if (smid() != sm || threadIdx.x) return;
  unsigned s = 0;
  for (int pass = 0; pass < 3; pass++)
    for (int i = 0; i < LINES; i++) {
      unsigned t = tick();
      s = past_l1(p + (size_t)i * 32 + s);
      asm volatile("xor.b32 %0,%0,%1;" : "+r"(s) : "r"(zero) : "memory");
      out[i] = tick() - t + s;
    }
}
template <class G>
static void product(FILE* f, const char* name, int m, int n, int k, int times) {
  using T = typename G::T;
  GemmArgs<T> g{made<T>((size_t)m * k, 1.f), made<T>((size_t)k * n, .05f), made<T>((size_t)m * n, 0.f), m, n, k, k, n, n, 0, 0, 0, 0};
  CK(cudaFuncSetAttribute(gemm_k<G, 2>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)G::SMEM));
  dim3 grid(n / G::BN, (m + G::BM - 1) / G::BM, 1);
  size_t tbs = (size_t)grid.x * grid.y;
  TbRec* d;
  CK(cudaMalloc(&d, tbs * sizeof(TbRec)));
  for (int i = -4; i < times; i++) {
    Sync y;
    y.trace = d;
    launch_ex(gemm_k<G, 2>, grid, dim3(G::NT), (size_t)G::SMEM, S, false, g, y);
    CK(cudaDeviceSynchronize());
    if (i < 0) continue;
    std::vector<TbRec> h(tbs);
    CK(cudaMemcpy(h.data(), d, tbs * sizeof(TbRec), cudaMemcpyDeviceToHost));
    unsigned long long begin = ~0ull;
    for (auto& r : h) begin = std::min(begin, r.t0);
    for (auto& r : h) fprintf(f, "%s,m=%d;n=%d;k=%d,%d,%d,%u,%llu,%llu\n", name, m, n, k, i, r.tb, r.sm, r.t0 - begin, r.t1 - begin);
  }
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  CK(cudaStreamCreateWithFlags(&S, cudaStreamNonBlocking));
  unsigned *buf, *out;
  CK(cudaMalloc(&buf, LINES * 128));
  CK(cudaMalloc(&out, LINES * 4));
  CK(cudaMemset(buf, 0, LINES * 128));
  CK(cudaFuncSetAttribute(k_read, cudaFuncAttributeMaxDynamicSharedMemorySize, 120000));
  FILE* f = fopen((dir + "/distance.csv").c_str(), "w");
  FILE* l = fopen((dir + "/distance_lines.csv").c_str(), "w");
  fprintf(f, "round,sm,mean,p10,p50,p90,max\n");
  std::vector<unsigned> h(LINES);
  for (int round = 0; round < 3; round++)
    for (unsigned sm = 0; sm < 132; sm++) {
      k_read<<<132, 32, 120000, S>>>(buf, sm, out, 0);
      CK(cudaDeviceSynchronize());
      CK(cudaMemcpy(h.data(), out, LINES * 4, cudaMemcpyDeviceToHost));
      if (round == 2) {
        fprintf(l, "%u", sm);
        for (int i = 0; i < 512; i++) fprintf(l, ",%u", h[i * 8 + i % 8]);
        fprintf(l, "\n");
      }
      double mean = 0;
      for (unsigned x : h) mean += x / (double)LINES;
      std::sort(h.begin(), h.end());
      fprintf(f, "%d,%u,%.2f,%u,%u,%u,%u\n", round, sm, mean, h[LINES / 10], h[LINES / 2], h[9 * LINES / 10], h[LINES - 1]);
    }
  fclose(f);
  fclose(l);
  FILE* t = fopen((dir + "/distance_tbs.csv").c_str(), "w");
  fprintf(t, "kernel,shape,instance,tb,sm,start_ns,end_ns\n");
  product<H128w8>(t, "hgemm128", 512, 8192, 2048, 12);
  product<H128w8>(t, "hgemm128", 128, 132 * 128, 2048, 12);
  product<H64>(t, "hgemm64", 64, 132 * 64, 2048, 12);
  product<H64>(t, "hgemm64", 512, 8192, 2048, 12);
  fclose(t);
  return 0;
}
