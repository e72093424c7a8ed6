// How far apart the warps of a TB go on behind a barrier: each reads the cycle counter right behind it, in a loop whose turns hold
// nothing else, arithmetic, loads from shared memory, or these and mma; alone on the SM, or beside a second TB that does the same.
//   skew DIR   writes DIR/skew.csv: by work, warps and TBs an SM, of each warp cycles behind the TB's first: mean, standard deviation of
//              its turns, 10th and 90th per cent; SM 0's first TB, turns 16 to 255
#include "common.cuh"
#define TURNS 256
enum { NOTHING, FFMA, LOADS, MMA, WORKS };
static const char* NAMES[WORKS] = {"nothing", "ffma", "ldmatrix", "ldmatrix_mma"};
template <int WORK>
__global__ void __launch_bounds__(512) k_skew(unsigned* at, float* sink) {
  extern __shared__ float4 shared[];
  const int w = threadIdx.x >> 5, lane = threadIdx.x & 31;
  unsigned base = (unsigned)__cvta_generic_to_shared(shared) + w * 1024 + (lane % 16) * 64 + lane / 16 * 16;
  float c[4] = {0, 0, 0, 0}, x = lane;
  unsigned a[4] = {1, 2, 3, 4};
  __shared__ unsigned times[16][TURNS];
  __syncthreads();
  for (int i = 0; i < TURNS; i++) {
    if (WORK == FFMA)
#pragma unroll
      for (int k = 0; k < 64; k++) x = fmaf(x, 1.0001f, 0.5f);
    if (WORK == LOADS || WORK == MMA)
#pragma unroll
      for (int k = 0; k < 4; k++) {
        unsigned d[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(base + k * 128));
        for (int j = 0; j < 4; j++) a[j] ^= d[j];
      }
    if (WORK == MMA)
#pragma unroll
      for (int k = 0; k < 16; k++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[1]), "r"(a[2]));
    asm volatile("bar.sync 0;" ::: "memory");
    unsigned t = tick();
    if (lane == 0) times[w][i] = t;
  }
  __syncthreads();
  if (blockIdx.x == 0)
    for (int i = lane; i < TURNS; i += 32) at[w * TURNS + i] = times[w][i];
  if (x + c[0] + (float)a[0] == 1.234e30f) *sink = x;
}
template <int WORK>
static void measure(FILE* f, unsigned* at, float* sink) {
  CK(cudaFuncSetAttribute(k_skew<WORK>, cudaFuncAttributeMaxDynamicSharedMemorySize, 180 << 10));
  for (int each : {1, 2})
    for (int warps : {2, 4, 8, 16}) {
      std::vector<unsigned> h(16 * TURNS);
      for (int rep = 0; rep < 2; rep++) {
        k_skew<WORK><<<132 * each, warps * 32, each == 1 ? 180 << 10 : 80 << 10>>>(at, sink);
        CK(cudaDeviceSynchronize());
      }
      CK(cudaMemcpy(h.data(), at, h.size() * 4, cudaMemcpyDeviceToHost));
      std::vector<std::vector<double>> of(warps);
      std::vector<double> turn, span;
      unsigned last = 0;
      for (int i = 16; i < TURNS; i++) {
        unsigned first = ~0u, end = 0;
        for (int w = 0; w < warps; w++) { first = std::min(first, h[w * TURNS + i]); end = std::max(end, h[w * TURNS + i]); }
        for (int w = 0; w < warps; w++) of[w].push_back(h[w * TURNS + i] - first);
        if (last) turn.push_back(first - last);
        span.push_back(end - first);
        last = first;
      }
      for (int w = 0; w < warps; w++) {
        double mean = 0, var = 0;
        for (double v : of[w]) mean += v / of[w].size();
        for (double v : of[w]) var += (v - mean) * (v - mean) / of[w].size();
        fprintf(f, "%s,%d,%d,%d,%.1f,%.1f,%.0f,%.0f,%.0f,%.0f\n", NAMES[WORK], each, warps, w, mean, sqrt(var), pct(of[w], .1), pct(of[w], .9), stat_of(span).med, stat_of(turn).med);
      }
    }
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  unsigned* at; float* sink;
  CK(cudaMalloc(&at, 1 << 16)); CK(cudaMalloc(&sink, 64));
  FILE* f = fopen((dir + "/skew.csv").c_str(), "w");
  fprintf(f, "work,tbs,warps,warp,mean,std,p10,p90,span,turn\n");
  measure<NOTHING>(f, at, sink);
  measure<FFMA>(f, at, sink);
  measure<LOADS>(f, at, sink);
  measure<MMA>(f, at, sink);
  fclose(f);
}
