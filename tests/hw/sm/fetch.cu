// What a warp's first pass through straight-line code takes beyond its second, by the code's length, by what the SM ran
// before, and by SMs and warps at once; and what the first use of a kernel's parameters takes.
//   fetch DIR   writes DIR/fetch.csv: what, instructions, tbs, warps, before, launch, cycles of turn 0, 1, 2 (medians)
#include "common.cuh"
static FILE* OUT;
template <int N, int K>
__global__ void k_line(float a, float b, unsigned* out) {
  float x = a, y = a + 1, z = a + 2, w = a + 3;
  volatile unsigned c[4];
  c[0] = tick();
#pragma unroll 1
  for (int t = 0; t < 3; t++) {
#pragma unroll
    for (int i = 0; i < N / 4; i++) {
      asm volatile("fma.rn.f32 %0,%0,%1,%2;" : "+f"(x) : "f"(b), "f"(a));
      asm volatile("fma.rn.f32 %0,%0,%1,%2;" : "+f"(y) : "f"(b), "f"(a));
      asm volatile("fma.rn.f32 %0,%0,%1,%2;" : "+f"(z) : "f"(b), "f"(a));
      asm volatile("fma.rn.f32 %0,%0,%1,%2;" : "+f"(w) : "f"(b), "f"(a));
    }
    c[1 + t] = tick();
  }
  if (x + y + z + w == 12345.f) out[0] = K;
  if ((threadIdx.x & 31) == 0) {
    unsigned* o = out + 4 + ((size_t)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5)) * 3;
    for (int t = 0; t < 3; t++) o[t] = c[t + 1] - c[t];
  }
}
struct Par { unsigned v[256]; };
__global__ void k_par(const __grid_constant__ Par p, unsigned* out) {
  unsigned c[7], s = 0;
  c[0] = tick();
  asm volatile("xor.b32 %0,%0,%1;" : "+r"(s) : "r"(p.v[8]));
  c[1] = tick();
  asm volatile("xor.b32 %0,%0,%1;" : "+r"(s) : "r"(p.v[9]));
  c[2] = tick();
  asm volatile("xor.b32 %0,%0,%1;" : "+r"(s) : "r"(p.v[80]));
  c[3] = tick();
  asm volatile("xor.b32 %0,%0,%1;" : "+r"(s) : "r"(p.v[81]));
  c[4] = tick();
  asm volatile("xor.b32 %0,%0,%1;" : "+r"(s) : "r"(p.v[200]));
  c[5] = tick();
  if ((threadIdx.x & 31) == 0)
    for (int t = 0; t < 5; t++) out[4 + ((size_t)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5)) * 5 + t] = c[t + 1] - c[t] + (s == 77);
}
static unsigned* dev;
template <class F>
static void record(const char* what, int n, int tbs, int warps, const char* before, int values, F launch) {
  std::vector<std::vector<double>> got(3 * values);
  for (int r = 0; r < 6; r++)
    for (int l = 0; l < 3; l++) {
      launch(l);
      CK(cudaDeviceSynchronize());
      std::vector<unsigned> h(tbs * warps * values);
      CK(cudaMemcpy(h.data(), dev + 4, h.size() * 4, cudaMemcpyDeviceToHost));
      if (r)
        for (size_t i = 0; i < h.size(); i++) got[l * values + i % values].push_back(h[i]);
    }
  for (int l = 0; l < 3; l++) {
    fprintf(OUT, "%s,%d,%d,%d,%s,%d", what, n, tbs, warps, before, l);
    for (int v = 0; v < values; v++) fprintf(OUT, ",%.0f", stat_of(got[l * values + v]).med);
    fprintf(OUT, "\n");
  }
}
template <int N>
static void line() {
  for (int tbs : {1, 132})
    for (int warps : {1, 4, 8}) {
      record("line", N, tbs, warps, "itself", 3, [=](int) { k_line<N, 1><<<tbs, warps * 32>>>(1.f, 2.f, dev); });
      record("line", N, tbs, warps, "itself at once", 3, [=](int) { for (int i = 0; i < 3; i++) k_line<N, 1><<<tbs, warps * 32>>>(1.f, 2.f, dev); });
      record("line", N, tbs, warps, "another at once", 3, [=](int) { k_line<N, 1><<<tbs, warps * 32>>>(1.f, 2.f, dev); k_line<1024, 2><<<tbs, 32>>>(1.f, 2.f, dev); k_line<N, 1><<<tbs, warps * 32>>>(1.f, 2.f, dev); });
      record("line", N, tbs, warps, "a large one at once", 3, [=](int) { k_line<N, 1><<<tbs, warps * 32>>>(1.f, 2.f, dev); k_line<16384, 2><<<132, 32>>>(1.f, 2.f, dev); k_line<N, 1><<<tbs, warps * 32>>>(1.f, 2.f, dev); });
    }
}
int main(int argc, char** argv) {
  OUT = fopen((std::string(argc > 1 ? argv[1] : ".") + "/fetch.csv").c_str(), "w");
  fprintf(OUT, "what,instructions,tbs,warps,before,launch,turn0,turn1,turn2\n");
  CK(cudaMalloc(&dev, 1 << 20));
  line<16>();
  line<64>();
  line<128>();
  line<256>();
  line<512>();
  line<1024>();
  line<2048>();
  line<4096>();
  for (int tbs : {1, 132})
    for (int warps : {1, 8}) {
      Par p = {};
      record("parameters", 5, tbs, warps, "itself at once", 5, [=](int) { for (int i = 0; i < 3; i++) k_par<<<tbs, warps * 32>>>(p, dev); });
      record("parameters", 5, tbs, warps, "another at once", 5, [=](int) { k_par<<<tbs, warps * 32>>>(p, dev); k_line<1024, 2><<<tbs, 32>>>(1.f, 2.f, dev); k_par<<<tbs, warps * 32>>>(p, dev); });
    }
  fclose(OUT);
  return 0;
}
