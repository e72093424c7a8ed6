// What all SMs get of copies (cp.async) and of loads that hit in L2, by how many TBs an SM has, so by how much is under way, and by where
// a TB's lines lie: side by side, or each somewhere in what it reads.
//   flood DIR   writes DIR/flood.csv: wanted bytes a cycle of an SM (median of the SMs of GPCs of 16 and of 18), mean of the chip
#include "gpcs.cuh"
enum { COPY, LOAD };
static unsigned* CTR;
struct Rec { unsigned sm; long long cycles; };
static Rec* REC;
__device__ __forceinline__ unsigned mixed(unsigned x) { return (x * 37u + 11u) & 255u; }  // of 256 lines, each once
// a step: 8 KB in rows of ROW bytes, PAD bytes between two of them in shared memory; three steps are under way. Of a TB's 32 KB.
template <int KIND, int ROW, int PAD, bool APART>
__global__ void __launch_bounds__(128, 6) k_flood(const char* p, int steps, unsigned* c, Rec* rec, unsigned* out) {
  extern __shared__ __align__(16) char smem[];
  if (threadIdx.x == 0) { atomicAdd(c, 1u);
    while (*(volatile unsigned*)c < gridDim.x) {}
  }
  __syncthreads();
  const char* q = p + (size_t)blockIdx.x * 32768;
  const unsigned s0 = (unsigned)__cvta_generic_to_shared(smem);
  uint4 v[12];
  for (int j = 0; j < 12; j++) v[j] = make_uint4(0, 0, 0, 0);
  __syncthreads();
  long long t = clock64();
  for (int i = 0; i < steps; i += 3)
#pragma unroll
    for (int s = 0; s < 3; s++) {
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int at = (j * 128 + threadIdx.x) * 16;
        int from = ((i + s) & 3) * 8192 + at;
        if (APART) from = mixed(from >> 7) * 128 + (from & 127);
        if (KIND == COPY)
          asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(s0 + s * (8192 / ROW * (ROW + PAD)) + at / ROW * (ROW + PAD) + at % ROW), "l"(q + from) : "memory");
        else {
          if (v[s * 4 + j].x == 12345u) out[threadIdx.x] = v[s * 4 + j].y;  // of three steps before: waits for it
          asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v[s * 4 + j].x), "=r"(v[s * 4 + j].y), "=r"(v[s * 4 + j].z), "=r"(v[s * 4 + j].w) : "l"(q + from) : "memory");
        }
      }
      if (KIND == COPY) asm volatile("cp.async.commit_group;\n cp.async.wait_group 2;" ::: "memory");
    }
  asm volatile("cp.async.wait_all;" ::: "memory");
  for (int j = 0; j < 12; j++) if (v[j].x == 12345u) out[threadIdx.x] = v[j].y;
  __syncthreads();
  long long e = clock64();
  if (threadIdx.x == 0) rec[blockIdx.x] = Rec{smid(), e - t};
}
static char* BUF;
static std::map<int, int> SIZE;  // SMs of each GPC
static std::vector<int> GPC;
template <int KIND, int ROW, int PAD, bool APART>
static void flood(FILE* f, int sms = 132) {
  auto k = k_flood<KIND, ROW, PAD, APART>;
  CK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 220000));
  for (int each : {1, 2, 3, 4, 6}) {
    const int smem = std::max(220000 / each / 1024 * 1024 - 1024, 3 * (8192 / ROW * (ROW + PAD))), steps = 600;
    std::vector<double> g16, g18, all;
    for (int run = -1; run < 3; run++) {
      CK(cudaMemset(CTR, 0, 64));
      k<<<132 * each, 128, smem>>>(BUF, steps, CTR, REC, CTR + 64);
      CK(cudaDeviceSynchronize());
      std::vector<Rec> h(132 * each);
      CK(cudaMemcpy(h.data(), REC, sizeof(Rec) * h.size(), cudaMemcpyDeviceToHost));
      if (run >= 0) for (auto& x : h) {
        double b = 8192. * steps * each / x.cycles;
        all.push_back(b);
        (SIZE[GPC[x.sm]] > 16 ? g18 : g16).push_back(b);
      }
    }
    double mean = 0;
    for (double b : all) mean += b / all.size();
    fprintf(f, "%s,%d,%d,%d,%d,%.1f,%.1f,%.1f,%.1f,%.1f\n", KIND == COPY ? "copies" : "loads", ROW, PAD, (int)APART, each, stat_of(g16).med, g18.size() ? stat_of(g18).med : 0., mean, pct(all, .1), pct(all, .9));
  }
  fflush(f);
}
int main(int argc, char** argv) {
  CK(cudaMalloc(&CTR, 4096)); CK(cudaMalloc(&REC, sizeof(Rec) * 1024));
  CK(cudaMalloc(&BUF, (size_t)32 << 20)); CK(cudaMemset(BUF, 0, (size_t)32 << 20));
  GPC = gpcs_of_sms();
  for (int g : GPC) SIZE[g]++;
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/flood.csv").c_str(), "w");
  fprintf(f, "what,row,pad,apart,each,sm_of_16,sm_of_18,mean,p10,p90\n");
  flood<COPY, 128, 0, false>(f);
  flood<COPY, 128, 0, true>(f);
  flood<COPY, 128, 16, false>(f);
  flood<COPY, 128, 16, true>(f);
  flood<COPY, 128, 32, false>(f);
  flood<COPY, 64, 0, false>(f);
  flood<COPY, 64, 16, false>(f);
  flood<COPY, 64, 16, true>(f);
  flood<COPY, 64, 32, false>(f);
  flood<LOAD, 128, 0, false>(f);
  flood<LOAD, 128, 0, true>(f);
  fclose(f);
  return 0;
}
