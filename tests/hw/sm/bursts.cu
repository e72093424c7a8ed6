// Which warp of a sub-core tensor cores serve: TBs that share an SM issue bursts of mma with something to wait for between two.
//   bursts DIR   writes DIR/bursts.csv: what is waited for, its length, whether a barrier of the TB comes first, warps a TB and
//   sub-core, TBs, mma a burst, a TB's age; cycles a round (while all TBs are there and on the whole);
//   of a burst, while all TBs are there: cycles from when it could begin to its first mma, and from that to its last one
#include <string>
#include "common.cuh"
enum { ALU, LDSM, LDS };
enum { ROUNDS = 512, MMA = 32 };
struct Burst { unsigned ready, first, last; };

// on SM 0 only; every warp notes its bursts
template <int KIND, bool BAR>
__global__ void k(int n, unsigned zero, Burst* out, unsigned* begun, unsigned* tbs) {
  if (smid()) return;
  extern __shared__ __align__(128) unsigned smem[];
  __shared__ unsigned me;
  for (int i = threadIdx.x; i < 4096; i += blockDim.x) smem[i] = 0;
  if (threadIdx.x == 0) me = atomicAdd(tbs, 1u);
  __syncthreads();
  const int lane = threadIdx.x & 31, w = threadIdx.x >> 5;
  Burst* log = out + ((size_t)me * 32 + w) * ROUNDS;
  unsigned base = (unsigned)__cvta_generic_to_shared(smem) + lane * 16, a[4] = {}, b[2] = {0x3c003c00u, 0x3c003c00u}, x = 0;
  float d[8][4] = {};
  if (threadIdx.x == 0) begun[me] = tick();
#pragma unroll 1
  for (int r = 0; r < ROUNDS; r++) {
    if (BAR) __syncthreads();
    Burst t;
    if (KIND == ALU) {
#pragma unroll 1
      for (int i = 0; i < n; i++) asm volatile("mad.lo.u32 %0,%0,%0,%1;\n\tmad.lo.u32 %0,%0,%0,%1;\n\tmad.lo.u32 %0,%0,%0,%1;\n\tmad.lo.u32 %0,%0,%0,%1;" : "+r"(x) : "r"(zero));
      a[0] = x;
    }
    if (KIND == LDS) {
#pragma unroll 1
      for (int i = 0; i < n; i++) asm volatile("ld.shared.u32 %0,[%1];" : "=r"(x) : "r"(base + x));
      a[0] = x;
    }
    if (KIND == LDSM) {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(base));
    }
    if (KIND == LDSM) t.ready = tick();  // its operands may still be on their way
    else { unsigned at; asm volatile("add.u32 %0,%1,%2;" : "=r"(at) : "r"(a[0]), "r"(zero) : "memory"); t.ready = tick() + (at & zero); }
#pragma unroll
    for (int i = 0; i < MMA; i++) {
      float* c = d[i & 7];
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                   : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]) : "memory");
      if (i == 0) t.first = tick();
    }
    t.last = tick();
    if (lane == 0) log[r] = t;
  }
  float s = 0;
  for (int i = 0; i < 8; i++) for (int q = 0; q < 4; q++) s += d[i][q];
  if (s == 12345.f) begun[100] = 1;
}

static FILE* F;
static Burst* OUT;
static unsigned *BEGUN, *TBS;
template <int KIND, bool BAR>
static void run(const char* what, int n, int warps, int each) {
  CK(cudaFuncSetAttribute(k<KIND, BAR>, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
  std::vector<Burst> h((size_t)each * 32 * ROUNDS);
  std::vector<unsigned> begun(each);
  for (int run = 0; run < 2; run++) {
    CK(cudaMemset(TBS, 0, 4));
    k<KIND, BAR><<<132 * each, warps * 128, (each == 1 ? 150 : each == 2 ? 90 : 60) << 10>>>(n, 0, OUT, BEGUN, TBS);
    CK(cudaDeviceSynchronize());
  }
  CK(cudaMemcpy(h.data(), OUT, h.size() * sizeof(Burst), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(begun.data(), BEGUN, 4 * each, cudaMemcpyDeviceToHost));
  std::vector<int> order(each);
  for (int i = 0; i < each; i++) order[i] = i;
  std::sort(order.begin(), order.end(), [&](int x, int y) { return (int)(begun[x] - begun[y]) < 0; });
  auto at = [&](int tb, int w) { return &h[((size_t)tb * 32 + w) * ROUNDS]; };
  unsigned end = ~0u, zero = begun[order[0]];  // when the first of them has ended
  for (int tb : order) for (int w = 0; w < warps * 4; w++) end = std::min(end, at(tb, w)[ROUNDS - 1].last - zero);
  for (int age = 0; age < each; age++) {
    std::vector<double> wait, burst;
    unsigned whole = 0;
    int rounds = 0;
    for (int w = 0; w < warps * 4; w++) {
      Burst* b = at(order[age], w);
      whole = std::max(whole, b[ROUNDS - 1].last - begun[order[age]]);
      for (int r = 0; r < ROUNDS && b[r].last - zero <= end; r++) {
        rounds += w == 0;
        wait.push_back(b[r].first - b[r].ready);
        burst.push_back(b[r].last - b[r].first);
      }
    }
    fprintf(F, "%s,%d,%d,%d,%d,%d,%d,%.1f,%.1f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f\n", what, n, BAR, warps, each, MMA, age, (double)end / rounds, (double)whole / ROUNDS,
            pct(wait, .1), pct(wait, .5), pct(wait, .9), pct(burst, .1), pct(burst, .5), pct(burst, .9));
  }
}
int main(int argc, char** argv) {
  F = fopen((std::string(argc > 1 ? argv[1] : ".") + "/bursts.csv").c_str(), "w");
  fprintf(F, "what,length,barrier,warps,tbs,mma,age,round,whole,wait_p10,wait,wait_p90,burst_p10,burst,burst_p90\n");
  CK(cudaMalloc(&OUT, sizeof(Burst) * 4 * 32 * ROUNDS)); CK(cudaMalloc(&BEGUN, 4096)); CK(cudaMalloc(&TBS, 4));
  for (int warps : {1, 2})
    for (int each : {1, 2, 3}) {
      for (int n : {1, 4, 8, 16, 32}) { run<ALU, false>("alu", n, warps, each); run<ALU, true>("alu", n, warps, each); }
      for (int n : {1, 2, 4, 8}) { run<LDS, false>("lds", n, warps, each); run<LDS, true>("lds", n, warps, each); }
      run<LDSM, false>("ldmatrix", 1, warps, each); run<LDSM, true>("ldmatrix", 1, warps, each);
    }
  return 0;
}
