// In which order an SM serves warps that want the same unit: thread blocks (TBs) of one warp a sub-core, as many as
// fit, begin together and do the same work; what each took, by its age on its SM.
//   order DIR   writes DIR/order.csv
#include "suite.cuh"
static unsigned* CTR;
struct Rec { unsigned sm, pad; unsigned long long t0, t1; long long cycles; };
static Rec* REC;
static __half* BUF;
static const int ROWS = 1024;  // of 2 KiB, a warp's own

enum { FFMA, FFMA_CHAIN, MUFU, LDS, LDG, LDG_L1, STG, STG_ROWS, SOFT, HMMA, FFMA_LOADS, FFMA_LDS, LDSM_HMMA, KINDS };
static const char* NAME[] = {"ffma", "ffma chain", "mufu", "lds", "ldg", "ldg l1", "stg", "stg 8 rows", "softmax row", "hmma", "ffma and ldg", "ffma and lds", "ldmatrix and hmma"};

// all TBs of the grid have started
__device__ void meet(unsigned* c, unsigned all) {
  __syncthreads();
  if (threadIdx.x == 0) { atomicAdd(c, 1u); poll(c, all); }
  __syncthreads();
}
template <int KIND>
__global__ void __launch_bounds__(128) k_work(int turns, unsigned* c, unsigned all, Rec* rec, __half* buf, float seed) {
  __shared__ float sh[1024];
  const int lane = threadIdx.x & 31, w = threadIdx.x >> 5;
  for (int i = threadIdx.x; i < 1024; i += 128) sh[i] = seed * i;
  float a[8];
  for (int i = 0; i < 8; i++) a[i] = seed + i + lane;
  __half2* row = (__half2*)(buf + ((size_t)blockIdx.x * 4 + w) % ROWS * 1024 * 4);
  unsigned long long g0 = gtime();
  meet(c, all);
  long long t = clock64();
  for (int n = 0; n < turns; n++) {
    if constexpr (KIND == FFMA || KIND == FFMA_LOADS) {
      if constexpr (KIND == FFMA_LOADS) {
        float2 v = __half22float2(__ldcg(row + n % 64 * 32 + lane));
        a[0] += v.x; a[1] += v.y;
      }
#pragma unroll
      for (int j = 0; j < 16; j++)
#pragma unroll
        for (int i = 0; i < 8; i++) asm volatile("fma.rn.f32 %0,%0,%1,%0;" : "+f"(a[i]) : "f"(seed));
    }
    if constexpr (KIND == FFMA_CHAIN)
#pragma unroll
      for (int j = 0; j < 64; j++) asm volatile("fma.rn.f32 %0,%0,%1,%0;" : "+f"(a[0]) : "f"(seed));
    if constexpr (KIND == MUFU)
#pragma unroll
      for (int j = 0; j < 32; j++) asm volatile("ex2.approx.ftz.f32 %0,%0;" : "+f"(a[j & 7]));
    if constexpr (KIND == LDS || KIND == FFMA_LDS) {
#pragma unroll
      for (int j = 0; j < 8; j++) {
        float v;
        asm volatile("ld.shared.f32 %0,[%1];" : "=f"(v) : "r"((unsigned)__cvta_generic_to_shared(sh + (lane + j * 32 + n) % 1024)));
        a[j] += v;
      }
      if constexpr (KIND == FFMA_LDS)
#pragma unroll
        for (int j = 0; j < 32; j++) asm volatile("fma.rn.f32 %0,%0,%1,%0;" : "+f"(a[j & 7]) : "f"(seed));
    }
    if constexpr (KIND == LDG || KIND == LDG_L1)
#pragma unroll
      for (int j = 0; j < 8; j++) {
        __half2 v = KIND == LDG ? __ldcg(row + (n * 8 + j) % 64 * 32 + lane) : __ldca(row + (n * 8 + j) % 8 * 32 + lane);
        a[j] += __half22float2(v).x;
      }
    if constexpr (KIND == STG)
#pragma unroll
      for (int j = 0; j < 8; j++) __stcg(row + (n * 8 + j) % 64 * 32 + lane, __floats2half2_rn(a[0], a[1]));
    if constexpr (KIND == STG_ROWS)
#pragma unroll
      for (int j = 0; j < 8; j++) row[(size_t)(lane >> 2) * 256 + ((n * 8 + j) % 64) * 4 + (lane & 3)] = __floats2half2_rn(a[0], a[1]);
    if constexpr (KIND == SOFT) {
      float m = a[2], s = 0;
#pragma unroll 1
      for (int p = 0; p < 2; p++) {
        __half2 x[16];
#pragma unroll
        for (int j = 0; j < 16; j++) x[j] = __ldcg(row + (j * 32 + lane));
#pragma unroll
        for (int j = 0; j < 16; j++) {
          float2 v = __half22float2(x[j]);
          s += __expf((v.x - m) * seed) + __expf((v.y - m) * seed);
        }
        for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
      }
      a[2] = s * 1e-9f;
    }
    if constexpr (KIND == HMMA || KIND == LDSM_HMMA) {
      unsigned f[4] = {1, 2, 3, 4};
      if constexpr (KIND == LDSM_HMMA)
#pragma unroll
        for (int j = 0; j < 4; j++)
          asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3]) : "r"((unsigned)__cvta_generic_to_shared(sh) + (lane & 15) * 80 + (lane >> 4) * 16 + j * 32));
#pragma unroll
      for (int j = 0; j < 8; j++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                     : "+f"(a[(j & 1) * 4]), "+f"(a[(j & 1) * 4 + 1]), "+f"(a[(j & 1) * 4 + 2]), "+f"(a[(j & 1) * 4 + 3])
                     : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "r"(f[0]), "r"(f[1]));
    }
  }
  __syncthreads();
  long long e = clock64();
  float s = 0;
  for (int i = 0; i < 8; i++) s += a[i];
  if (s == 12345.678f) sh[0] = s;
  if (threadIdx.x == 0) rec[blockIdx.x] = Rec{smid(), (unsigned)(sh[0] == 1e30f), g0, gtime(), e - t};
}
template <int KIND>
static void one(FILE* f, int turns) {
  for (int each : {1, 2, 4, 8, 16}) {
    // shared memory leaves room for so many
    size_t pad = each == 16 ? 0 : (size_t)(226 / (each + 1) + 1 - 5) * 1024;  // beside 4 KiB of its own and 1 KiB that the system keeps
    CK(cudaFuncSetAttribute(k_work<KIND>, cudaFuncAttributeMaxDynamicSharedMemorySize, 220 * 1024));
    int fit = 0;
    CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, k_work<KIND>, 128, pad));
    if (fit < each) continue;
    std::vector<std::vector<double>> by(each);
    int used = 0;
    for (int r = 0; r < 4; r++) {
      CK(cudaMemset(CTR, 0, 64));
      k_work<KIND><<<132 * each, 128, pad>>>(turns, CTR, 132 * each, REC, BUF, 1.0f);
      CK(cudaDeviceSynchronize());
      if (!r) continue;
      std::vector<Rec> h(132 * each);
      CK(cudaMemcpy(h.data(), REC, sizeof(Rec) * h.size(), cudaMemcpyDeviceToHost));
      std::map<unsigned, std::vector<double>> sm;
      for (auto& x : h) sm[x.sm].push_back((double)x.cycles);  // by TB, thus by age
      used = 0;
      for (auto& kv : sm) if ((int)kv.second.size() == each) { used++; for (int i = 0; i < each; i++) by[i].push_back(kv.second[i]); }
    }
    for (int i = 0; i < each; i++) { Stat s = stat_of(by[i]); fprintf(f, "%s,%d,%d,%d,%.0f,%.0f,%.0f\n", NAME[KIND], each, i, used, s.med, s.mn, s.mx); }
    printf("%-20s x%-2d", NAME[KIND], each);
    for (int i = 0; i < each; i++) printf(" %.0f", stat_of(by[i]).med);
    printf("\n"); fflush(stdout);
  }
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  CK(cudaMalloc(&CTR, 4096));
  CK(cudaMalloc(&REC, sizeof(Rec) * 4096));
  CK(cudaMalloc(&BUF, (size_t)ROWS * 1024 * 4 * 2 + (1 << 20)));
  CK(cudaMemset(BUF, 0, (size_t)ROWS * 1024 * 4 * 2 + (1 << 20)));
  FILE* f = fopen((dir + "/order.csv").c_str(), "w");
  fprintf(f, "kind,tbs_an_sm,age,sms,cycles_median,cycles_min,cycles_max\n");
  one<FFMA>(f, 200);
  one<FFMA_CHAIN>(f, 200);
  one<MUFU>(f, 200);
  one<LDS>(f, 500);
  one<LDG>(f, 100);
  one<LDG_L1>(f, 200);
  one<STG>(f, 100);
  one<STG_ROWS>(f, 100);
  one<SOFT>(f, 20);
  one<HMMA>(f, 200);
  one<FFMA_LOADS>(f, 100);
  one<FFMA_LDS>(f, 200);
  one<LDSM_HMMA>(f, 200);
  fclose(f);
  printf("done\n");
  return 0;
}
