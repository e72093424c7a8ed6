// How much the latency of a load that hits in L2 varies, by what other SMs read at the same time.
//   jitter DIR   writes DIR/jitter.csv: one warp loads 64 lines in turn, one load at a time, each line some 400 times; `others` TBs, one
//                an SM, read `mb` MB of L2 meanwhile, four loads of 512 B a warp (8 of them) and then a pause. bytes: what each of them got
//                a cycle. Behind it cycles of a load less the median of its line, when nothing else runs: 1, 10, 50, 90 and 99 %
//                of all, and the standard deviation of what is left of each load when 1 % of the slowest are taken off
#include <string>
#include "common.cuh"
constexpr int LINES = 64, TURNS = 400;
struct Out { unsigned stop, pad[31]; };
__global__ void __launch_bounds__(256) k_jitter(const float4* p, size_t words, int pause, volatile Out* o, unsigned* took, unsigned long long* got) {
  extern __shared__ char smem[];
  if (blockIdx.x == 0) {
    if (threadIdx.x >= 32) return;
    // lines of another place than what the others read, 4 KiB apart, so of many slices
    const unsigned* q = (const unsigned*)(p + words);
    for (int turn = -20; turn < TURNS; turn++)
      for (int i = 0; i < LINES; i++) {
        unsigned t = tick(), v;
        asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(v) : "l"(q + i * 1024 + threadIdx.x) : "memory");
        if (v) took[LINES * TURNS] = v;  // never: but it has to be looked at before the clock is
        t = tick() - t;
        if (turn >= 0 && threadIdx.x == 0) took[turn * LINES + i] = t;
      }
    __threadfence();
    if (threadIdx.x == 0) o->stop = 1;
    return;
  }
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  size_t at = ((size_t)blockIdx.x * 8 + warp) * 7919 * 32 % words;
  unsigned n = 0;
  const unsigned begin = tick();
  float s = 0;
  while (!o->stop) {
    float4 v[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
      asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(v[k].x), "=f"(v[k].y), "=f"(v[k].z), "=f"(v[k].w) : "l"(p + at + lane) : "memory");
      at = at + 132 * 8 * 32;
      at = at >= words ? at - words : at;
    }
    s += v[0].x + v[1].x + v[2].x + v[3].x;
    n += 4;
    const unsigned t = tick();
    while (pause && tick() - t < (unsigned)pause) {}
  }
  if (s == 12345.f) took[0] = 1;
  const unsigned cycles = tick() - begin;
  if (lane == 0) { atomicAdd(&got[0], (unsigned long long)n * 512); if (warp == 0) atomicAdd(&got[1], (unsigned long long)cycles); }
}
int main(int argc, char** argv) {
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/jitter.csv").c_str(), "w");
  fprintf(f, "others,mb,pause,bytes,p1,p10,median,p90,p99,std\n");
  float4* p; unsigned* took; unsigned long long* got; Out* o;
  CK(cudaMalloc(&p, 96 << 20)); CK(cudaMemset(p, 0, 96 << 20)); CK(cudaMalloc(&took, (LINES * TURNS + 1) * 4)); CK(cudaMalloc(&got, 16)); CK(cudaMalloc(&o, sizeof(Out)));
  CK(cudaFuncSetAttribute(k_jitter, cudaFuncAttributeMaxDynamicSharedMemorySize, 200000));
  std::vector<double> line(LINES);
  auto one = [&](int others, int mb, int pause) {
    CK(cudaMemset(got, 0, 16)); CK(cudaMemset(o, 0, sizeof(Out)));
    k_jitter<<<others + 1, 256, 200000>>>(p, (size_t)mb << 16, pause, o, took, got);
    CK(cudaDeviceSynchronize());
    std::vector<unsigned> h(LINES * TURNS);
    unsigned long long g[2];
    CK(cudaMemcpy(h.data(), took, h.size() * 4, cudaMemcpyDeviceToHost)); CK(cudaMemcpy(g, got, 16, cudaMemcpyDeviceToHost));
    if (!others)
      for (int i = 0; i < LINES; i++) {
        std::vector<double> of;
        for (int t = 0; t < TURNS; t++) of.push_back(h[t * LINES + i]);
        line[i] = stat_of(of).med;
      }
    std::vector<double> d;
    for (int i = 0; i < LINES * TURNS; i++) d.push_back(h[i] - line[i % LINES]);
    std::sort(d.begin(), d.end());
    const size_t n = d.size(), m = n * 99 / 100;
    double sum = 0, square = 0;
    for (size_t i = 0; i < m; i++) sum += d[i], square += d[i] * d[i];
    fprintf(f, "%d,%d,%d,%.1f,%.0f,%.0f,%.0f,%.0f,%.0f,%.1f\n", others, mb, pause, others ? (double)g[0] / g[1] : 0, d[n / 100], d[n / 10], d[n / 2], d[n * 9 / 10], d[m],
            sqrt(square / m - sum / m * (sum / m)));
    fflush(f);
  };
  for (int run = 0; run < 2; run++) {
    one(0, 8, 0);
    for (int others : {1, 15, 131})
      for (int pause : {8000, 4000, 2000, 1000, 500, 250, 0}) one(others, 8, pause);
  }
  fclose(f);
  return 0;
}
