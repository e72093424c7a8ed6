// Where the time of one K step of the tensor GEMM goes: one TB, with parts of the step left out, and the parts alone.
//   steps DIR   writes DIR/steps.csv: what, threads, cycles a step (or an instruction); and DIR/shared_steps.csv: steps of TBs that
//               share an SM, by their age, in a TB's first quarter and on the whole
//   steps DIR profile   writes DIR/step_traffic.csv: what and TBs an SM, one launch on all SMs a line, in the order in which a
//               profiler counts them (between profiler start and stop)
#include <cuda_profiler_api.h>
#include "steps.cuh"
static FILE* OUT;
static int KK = 4096;
static unsigned long long* CYC;
static void row(const char* what, int threads, int tbs, double cycles) {
  fprintf(OUT, "%s,%d,%d,%.3f\n", what, threads, tbs, cycles);
  printf("%-44s %5d threads %4d TBs %10.3f cycles\n", what, threads, tbs, cycles);
  fflush(stdout);
}
template <class G, int F>
static void step(const char* what, const __half* M, int tbs) {
  const int K = KK;
  GemmArgs<__half> g{M, M + (1 << 24), nullptr, G::BM, G::BN * 8, K, K, G::BN * 8, 0, 0, 0, 0, 0};
  CK(cudaFuncSetAttribute(k_step<G, F, false>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)G::SMEM));
  for (int i = 0; i < 3; i++) k_step<G, F, false><<<dim3(tbs), G::NT, G::SMEM>>>(g, CYC, (float*)CYC, 0, nullptr);
  CK(cudaDeviceSynchronize());
  std::vector<unsigned long long> all(tbs);
  CK(cudaMemcpy(all.data(), CYC, 8 * tbs, cudaMemcpyDeviceToHost));
  std::sort(all.begin(), all.end());
  row(what, G::NT, tbs, (double)all[tbs / 2] / (K / G::BK));
}
// `each` TBs on each SM, the second of two launches between profiler start and stop
template <class G, int F>
static void profiled(FILE* f, const std::string& what, const __half* M, int each) {
  const int K = 8192, tbs = each * 132;
  GemmArgs<__half> g{M, M + (1 << 24), nullptr, G::BM, G::BN * 8, K, K, G::BN * 8, 0, 0, 0, 0, 0};
  CK(cudaFuncSetAttribute(k_step<G, F, false>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)G::SMEM));
  for (int run = 0; run < 2; run++) {
    if (run) CK(cudaProfilerStart());
    k_step<G, F, false><<<dim3(tbs), G::NT, G::SMEM>>>(g, CYC, (float*)CYC, 0, nullptr);
    CK(cudaDeviceSynchronize());
  }
  CK(cudaProfilerStop());
  fprintf(f, "%s,%d\n", what.c_str(), each);
}
template <class G>
static void traffic(FILE* f, const std::string& n, const __half* M, int least) {
  for (int each = least; each < least + 2; each++) {
    profiled<G, 25>(f, n + " copies wait barrier", M, each);
    profiled<G, 17>(f, n + " copies wait", M, each);
    profiled<G, 27>(f, n + " no mma", M, each);
    profiled<G, 23>(f, n + " no barrier", M, each);
    profiled<G, 29>(f, n + " no ldmatrix", M, each);
    profiled<G, 31>(f, n + " all", M, each);
  }
}
// `each` TBs on each of the first `sms` SMs
template <class G, int F>
static void sharing(FILE* f, const char* what, const __half* M, int each, int sms) {
  const int K = 8192, tbs = each * 132, KT = K / G::BK;
  GemmArgs<__half> g{M, M + (1 << 24), nullptr, G::BM, G::BN * 8, K, K, G::BN * 8, 0, 0, 0, 0, 0};
  unsigned long long* begun;
  CK(cudaMalloc(&begun, 24 * tbs));
  CK(cudaFuncSetAttribute(k_step<G, F, true>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)G::SMEM));
  std::map<int, std::vector<double>> first, whole;
  for (int run = -1; run < 2; run++) {
    CK(cudaMemset(CYC, 0, 8 * tbs));
    k_step<G, F, true><<<dim3(tbs), G::NT, G::SMEM>>>(g, CYC, (float*)CYC, sms, begun);
    CK(cudaDeviceSynchronize());
    if (run < 0) continue;
    std::vector<unsigned long long> all(tbs), b(3 * tbs);
    CK(cudaMemcpy(all.data(), CYC, 8 * tbs, cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(b.data(), begun, 24 * tbs, cudaMemcpyDeviceToHost));
    std::map<unsigned long long, std::vector<int>> on;
    for (int i = 0; i < tbs; i++) if (all[i]) on[b[3 * i + 2]].push_back(i);
    for (auto& o : on) {
      if ((int)o.second.size() != each) continue;
      std::sort(o.second.begin(), o.second.end(), [&](int x, int y) { return b[3 * x] < b[3 * y]; });
      for (int a = 0; a < each; a++) {
        first[a].push_back((double)b[3 * o.second[a] + 1] / (KT / 4));
        whole[a].push_back((double)all[o.second[a]] / KT);
      }
    }
  }
  for (auto& a : first)
    fprintf(f, "%s,%d,%d,%d,%d,%zu,%.1f,%.1f,%.1f,%.1f\n", what, G::NT, each, sms, a.first, a.second.size(), pct(a.second, .5), pct(a.second, .1), pct(a.second, .9), pct(whole[a.first], .5));
  CK(cudaFree(begun));
}
template <class G>
static void sharings(FILE* f, const std::string& n, const __half* M, int most) {
  for (int each = 1; each <= most; each++)
    for (int sms : {1, 8, 132}) {
      sharing<G, 31>(f, (n + " all").c_str(), M, each, sms);
      sharing<G, 30>(f, (n + " no copies").c_str(), M, each, sms);
      sharing<G, 6>(f, (n + " ldmatrix mma").c_str(), M, each, sms);
      sharing<G, 12>(f, (n + " mma barrier").c_str(), M, each, sms);
      sharing<G, 10>(f, (n + " ldmatrix barrier").c_str(), M, each, sms);
      sharing<G, 25>(f, (n + " copies wait barrier").c_str(), M, each, sms);
      sharing<G, 29>(f, (n + " no ldmatrix").c_str(), M, each, sms);
      sharing<G, 27>(f, (n + " no mma").c_str(), M, each, sms);
      sharing<G, 23>(f, (n + " no barrier").c_str(), M, each, sms);
    }
}
template <class G>
static void steps(const std::string& n, const __half* M, int tbs) {
  step<G, 31>((n + " all").c_str(), M, tbs);
  step<G, 30>((n + " no copies").c_str(), M, tbs);
  step<G, 14>((n + " no copies no wait").c_str(), M, tbs);
  step<G, 6>((n + " ldmatrix mma").c_str(), M, tbs);
  step<G, 4>((n + " mma").c_str(), M, tbs);
  step<G, 12>((n + " mma barrier").c_str(), M, tbs);
  step<G, 2>((n + " ldmatrix").c_str(), M, tbs);
  step<G, 10>((n + " ldmatrix barrier").c_str(), M, tbs);
  step<G, 17>((n + " copies wait").c_str(), M, tbs);
  step<G, 25>((n + " copies wait barrier").c_str(), M, tbs);
  step<G, 29>((n + " no ldmatrix").c_str(), M, tbs);
  step<G, 27>((n + " no mma").c_str(), M, tbs);
  step<G, 23>((n + " no barrier").c_str(), M, tbs);
  step<G, 15>((n + " no wait").c_str(), M, tbs);
}
// ---- parts alone
template <int KIND>
__global__ void k_part(int n, unsigned long long* cyc, float* out) {
  __shared__ __align__(16) __half t[64 * 72];
  for (int i = threadIdx.x; i < 64 * 72; i += blockDim.x) t[i] = __float2half_rn(0.f);
  __syncthreads();
  const int lane = threadIdx.x & 31;
  unsigned base = (unsigned)__cvta_generic_to_shared(t), ad = base + 2 * ((lane & 15) * 72 + (lane >> 4) * 8);
  unsigned r[8][4];
  for (int i = 0; i < 8; i++) for (int q = 0; q < 4; q++) r[i][q] = 0x30003001u * (i + 1) + threadIdx.x + q;
  float d[16][4] = {};
  __syncthreads();
  unsigned long long t0 = clock64();
  for (int k = 0; k < n; k++) {
    if (KIND == 0) {  // dependent ldmatrix: the address needs the last result (zeros)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(r[0][0]), "=r"(r[0][1]), "=r"(r[0][2]), "=r"(r[0][3]) : "r"(ad));
      ad += r[0][0];
    }
    if (KIND == 1)
#pragma unroll
      for (int i = 0; i < 8; i++) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(r[i][0]), "=r"(r[i][1]), "=r"(r[i][2]), "=r"(r[i][3]) : "r"(ad + 32 * (i & 3)));
    if (KIND == 2)
#pragma unroll
      for (int i = 0; i < 8; i++) asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(r[i][0]), "=r"(r[i][1]), "=r"(r[i][2]), "=r"(r[i][3]) : "r"(ad + 32 * (i & 3)));
    if (KIND == 3)  // one accumulator
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]) : "r"(r[0][0]), "r"(r[0][1]), "r"(r[0][2]), "r"(r[0][3]), "r"(r[1][0]), "r"(r[1][1]));
    if (KIND == 4)  // 16 accumulators, A and B of a 64 x 32 tile
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                       : "+f"(d[i * 4 + j][0]), "+f"(d[i * 4 + j][1]), "+f"(d[i * 4 + j][2]), "+f"(d[i * 4 + j][3]) : "r"(r[i][0]), "r"(r[i][1]), "r"(r[i][2]), "r"(r[i][3]), "r"(r[4 + j][0]), "r"(r[4 + j][1]));
    if (KIND == 5)  // 16 accumulators, the same A and B
#pragma unroll
      for (int i = 0; i < 16; i++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                     : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3]) : "r"(r[0][0]), "r"(r[0][1]), "r"(r[0][2]), "r"(r[0][3]), "r"(r[1][0]), "r"(r[1][1]));
    if (KIND == 6) __syncthreads();
    if (KIND == 7) {  // 6 ldmatrix, then what they feed: 16 mma; the next round's ldmatrix may start at once
#pragma unroll
      for (int i = 0; i < 6; i++) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(r[i][0]), "=r"(r[i][1]), "=r"(r[i][2]), "=r"(r[i][3]) : "r"(ad + 32 * (i & 3)));
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                       : "+f"(d[i * 4 + j][0]), "+f"(d[i * 4 + j][1]), "+f"(d[i * 4 + j][2]), "+f"(d[i * 4 + j][3]) : "r"(r[i][0]), "r"(r[i][1]), "r"(r[i][2]), "r"(r[i][3]), "r"(r[4 + j / 2][(j & 1) * 2]), "r"(r[4 + j / 2][(j & 1) * 2 + 1]));
    }
    if (KIND == 8)  // 4 accumulators in turn
#pragma unroll
      for (int i = 0; i < 4; i++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                     : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3]) : "r"(r[0][0]), "r"(r[0][1]), "r"(r[0][2]), "r"(r[0][3]), "r"(r[1][0]), "r"(r[1][1]));
    if (KIND == 9)  // 2 accumulators in turn
#pragma unroll
      for (int i = 0; i < 2; i++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                     : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3]) : "r"(r[0][0]), "r"(r[0][1]), "r"(r[0][2]), "r"(r[0][3]), "r"(r[1][0]), "r"(r[1][1]));
  }
  unsigned long long t1 = clock64();
  float s = 0;
  for (int i = 0; i < 8; i++) for (int q = 0; q < 4; q++) s += __uint_as_float(r[i][q]);
  for (int i = 0; i < 16; i++) for (int q = 0; q < 4; q++) s += d[i][q];
  if (s == 12345.678f) out[threadIdx.x] = s;
  if (threadIdx.x == 0) *cyc = t1 - t0;
}
template <int KIND>
static void part(const char* what, double per) {
  for (int nt : {32, 128, 256, 512, 1024}) {
    const int n = 4000;
    if (KIND != 1 && KIND != 2 && KIND != 0 && KIND != 6 && KIND != 5 && KIND != 3 && nt == 1024) continue;
    for (int i = 0; i < 2; i++) k_part<KIND><<<1, nt>>>(n, CYC, (float*)CYC);
    CK(cudaDeviceSynchronize());
    unsigned long long c;
    CK(cudaMemcpy(&c, CYC, 8, cudaMemcpyDeviceToHost));
    row(what, nt, 1, (double)c / n / per);
  }
}
__global__ void k_rand(__half* p, size_t n) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) p[i] = __float2half_rn(((unsigned)(i * 2654435761u) >> 8) * 1e-7f - 0.8f);
}
int main(int argc, char** argv) {
  const std::string dir = argc > 1 ? argv[1] : ".";
  CK(cudaMalloc(&CYC, 65536));
  __half* M;
  CK(cudaMalloc(&M, (size_t)512 << 20));
  k_rand<<<1024, 256>>>(M, (size_t)256 << 20);
  if (argc > 2 && !strcmp(argv[2], "profile")) {
    FILE* f = fopen((dir + "/step_traffic.csv").c_str(), "w");
    fprintf(f, "what,each\n");
    traffic<H128w8>(f, "128x128x32 8 warps", M, 1);
    traffic<H128w4>(f, "128x128x32 4 warps", M, 1);
    traffic<H64>(f, "64x64x32 4 warps", M, 2);
    fclose(f);
    return 0;
  }
  OUT = fopen((dir + "/steps.csv").c_str(), "w");
  fprintf(OUT, "what,threads,tbs,cycles\n");
  for (int k : {4096}) {
   for (int per : {0, 1, 2}) {
    KK = k;
    std::string n = " K " + std::to_string(k);
    int many = per == 0 ? 1 : per == 1 ? 132 : 264, six = per == 2 ? 792 : many;
    steps<H128w8>("128x128x32 8 warps" + n, M, many);
    steps<H128w4>("128x128x32 4 warps" + n, M, many);
    steps<H64>("64x64x32 4 warps" + n, M, six);
   }
  }
  fclose(OUT);
  FILE* f = fopen((dir + "/shared_steps.csv").c_str(), "w");
  fprintf(f, "what,threads,each,sms,age,tbs,cycles,p10,p90,whole\n");
  sharings<H128w8>(f, "128x128x32 8 warps", M, 2);
  sharings<H128w4>(f, "128x128x32 4 warps", M, 2);
  sharings<H64>(f, "64x64x32 4 warps", M, 3);
  fclose(f);
  return 0;
}
