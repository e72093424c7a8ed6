// What a load past L1 takes by who touched its line before, line by line: pairs of a writing and a reading SM, and all SMs at once.
//   fresh2 DIR   writes DIR/fresh2.csv
#include "common.cuh"
static FILE* OUT;
__device__ __forceinline__ unsigned ld(const unsigned* p) { unsigned v; asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
#define LINES 256
#define USE asm volatile("xor.b32 %0,%0,%1;" : "+r"(s) : "r"(z) : "memory");
// line i: 128 B pieces in a row for the first half, then every 33rd of them
__device__ __forceinline__ size_t place(int i) { return i < 128 ? i * 32 : (size_t)4096 + (size_t)(i - 128) * 33 * 32; }
__global__ void k_write(unsigned* p, unsigned sm, int part) {  // part: words of a line
  if (smid() != sm) return;
  for (int i = 0; i < LINES; i++)
    if ((int)threadIdx.x < part) __stcg(p + place(i) + threadIdx.x, 0u);
}
__global__ void k_atomic(unsigned* p, unsigned sm, unsigned* out, unsigned z) {
  if (smid() != sm || threadIdx.x) return;
  unsigned s = 0;
  for (int i = 0; i < LINES; i++) {
    unsigned t = tick();
    s = atomicAdd(p + place(i) + s, 0u); USE
    out[i] = tick() - t + s;
  }
}
__global__ void k_read(const unsigned* p, unsigned sm, unsigned* out, unsigned z) {
  if (smid() != sm || threadIdx.x) return;
  unsigned s = 0;
  for (int i = 0; i < LINES; i++) {
    unsigned t = tick();
    s = ld(p + place(i) + s); USE
    out[i] = tick() - t + s;
  }
}
// all SMs, a warp each, at one time
__global__ void k_all(const unsigned* p, unsigned* out, unsigned* ctr, unsigned z) {
  unsigned s = 0;
  if (threadIdx.x) return;
  atomicAdd(ctr, 1);
  while (*(volatile unsigned*)ctr < gridDim.x) {}
  for (int i = 0; i < LINES; i++) {
    unsigned t = tick();
    s = ld(p + place(i) + s); USE
    out[smid() * LINES + i] = tick() - t + s;
  }
}
static unsigned *buf, *dev, *ctr;
static std::vector<unsigned> get(size_t n) {
  CK(cudaDeviceSynchronize());
  std::vector<unsigned> h(n);
  CK(cudaMemcpy(h.data(), dev, n * 4, cudaMemcpyDeviceToHost));
  return h;
}
static void put(const char* what, int w, int r, const std::vector<unsigned>& h, size_t from = 0) {
  fprintf(OUT, "%s,%d,%d", what, w, r);
  for (int i = 0; i < LINES; i++) fprintf(OUT, ",%u", h[from + i]);
  fprintf(OUT, "\n");
}
int main(int argc, char** argv) {
  OUT = fopen((std::string(argc > 1 ? argv[1] : ".") + "/fresh2.csv").c_str(), "w");
  CK(cudaMalloc(&buf, 64 << 20));
  CK(cudaMalloc(&dev, 4 << 20));
  CK(cudaMalloc(&ctr, 4096));
  CK(cudaMemset(buf, 0, 64 << 20));
  for (const void* f : {(const void*)k_write, (const void*)k_read, (const void*)k_atomic}) CK(cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, 120000));
  const int G = 132, sms[] = {0, 1, 2, 4, 16, 33, 50, 66, 83, 100, 120, 131};
  for (int s : sms)
    for (int k = 0; k < 2; k++) { k_atomic<<<G, 32, 120000>>>(buf, s, dev, 0); put(k ? "atomic2" : "atomic", s, s, get(LINES)); }
  for (int w : sms)
    for (int r : sms) {
      k_write<<<G, 32, 120000>>>(buf, w, 32);
      k_read<<<G, 32, 120000>>>(buf, r, dev, 0); put("written", w, r, get(LINES));
      k_read<<<G, 32, 120000>>>(buf, r, dev, 0); put("again", w, r, get(LINES));
      k_read<<<G, 32, 120000>>>(buf, sms[(r * 5 + w) % 12], dev, 0); put("other", w, sms[(r * 5 + w) % 12], get(LINES));
      k_write<<<G, 32, 120000>>>(buf, w, 8);
      k_read<<<G, 32, 120000>>>(buf, r, dev, 0); put("written sector", w, r, get(LINES));
    }
  // written, and read by nobody but one SM that wrote it itself
  for (int k = 0; k < 3; k++) {
    for (int w : {0, 66, 131}) {
      k_write<<<G, 32, 120000>>>(buf, w, 32);
      CK(cudaMemset(ctr, 0, 4));
      k_all<<<132, 32>>>(buf, dev, ctr, 0);
      auto h = get(132 * LINES);
      for (int s = 0; s < 132; s++) put("all", w, s, h, (size_t)s * LINES);
      CK(cudaMemset(ctr, 0, 4));
      k_all<<<132, 32>>>(buf, dev, ctr, 0);
      h = get(132 * LINES);
      for (int s = 0; s < 132; s++) put("all again", w, s, h, (size_t)s * LINES);
    }
  }
  fclose(OUT);
  return 0;
}
