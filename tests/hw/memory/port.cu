// What a GPC takes of L2's replies while its SMs' clock is slowed by their tensor cores, and of lines that several of its SMs copy at the
// same time.
//   port DIR   writes DIR/port.csv: wanted bytes a cycle of an SM (median of the SMs of GPCs of 16 and of 18, mean, p10, p90 of the chip)
//   and the SMs' clock meanwhile (MHz)
#include "gpcs.cuh"
enum { NONE, TPC, CPC, GPC_, ALL };
static const char* SHARED[] = {"none", "tpc", "cpc", "gpc", "all"};
static unsigned *CTR, *PLACE, *SLOT;
struct Rec { unsigned sm, pad; long long cycles; unsigned long long ns; };
static Rec* REC;
// warps 0 to 3 copy 8 KB a step in rows of ROW bytes, PAD bytes between two of them in shared memory, three steps under way, of a place of
// 32 KB that is that of their SM's group; others multiply until they are done
template <int ROW, int PAD>
__global__ void __launch_bounds__(256, 4) k_port(const char* p, int steps, unsigned* c, const unsigned* place, unsigned* slot, Rec* rec, float* out) {
  extern __shared__ __align__(1024) char smem[];
  __shared__ volatile unsigned done;
  __shared__ unsigned mine;
  if (threadIdx.x == 0) {
    done = 0;
    mine = atomicAdd(&slot[smid()], 1u);
    atomicAdd(c, 1u);
    while (*(volatile unsigned*)c < gridDim.x) {}
  }
  __syncthreads();
  if (threadIdx.x >= 128) {
    unsigned a[4], b[2];
    for (int i = 0; i < 4; i++) a[i] = ((77u * (threadIdx.x * 7 + i + 1) * 2654435761u) & 0x83ff83ffu) | 0x3a003a00u;
    for (int i = 0; i < 2; i++) b[i] = ((77u * (threadIdx.x * 11 + i + 5) * 2246822519u) & 0x83ff83ffu) | 0x38003800u;
    float d[8][4] = {};
    while (!done)
#pragma unroll
      for (int u = 0; u < 8; u++)
#pragma unroll
        for (int j = 0; j < 8; j++)
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                       : "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    float s = 0;
    for (int j = 0; j < 8; j++) for (int q = 0; q < 4; q++) s += d[j][q];
    if (s == 12345.678f) out[threadIdx.x] = s;
    return;
  }
  const char* q = p + ((size_t)place[smid()] * 4 + mine) * 32768;
  const unsigned s0 = (unsigned)__cvta_generic_to_shared(smem);
  // as long again before the measurement, so that the clock has come to what it stays at
  unsigned long long n0 = 0;
  long long t = 0;
  for (int i = 0; i < 2 * steps; i += 3) {
    if (i == steps) { n0 = gtime(); t = clock64(); }
#pragma unroll
    for (int s = 0; s < 3; s++) {
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int at = (j * 128 + threadIdx.x) * 16;
        int from = ((i + s) & 3) * 8192 + at;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(s0 + s * (8192 / ROW * (ROW + PAD)) + at / ROW * (ROW + PAD) + at % ROW), "l"(q + from) : "memory");
      }
      asm volatile("cp.async.commit_group;\n cp.async.wait_group 2;" ::: "memory");
    }
  }
  long long e = clock64();
  unsigned long long n1 = gtime();
  asm volatile("cp.async.wait_all;" ::: "memory");
  if (threadIdx.x == 0) { rec[blockIdx.x] = Rec{smid(), 0, e - t, n1 - n0}; done = 1; }
}
static char* BUF;
static std::vector<std::vector<unsigned>> PLACES;
static std::map<int, int> SIZE;
static std::vector<int> GPC;
template <int ROW, int PAD>
static void port(FILE* f, int shared, int mma) {
  auto k = k_port<ROW, PAD>;
  CK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 220000));
  CK(cudaMemcpy(PLACE, PLACES[shared].data(), 132 * 4, cudaMemcpyHostToDevice));
  for (int each : {1, 2, 3, 4}) {
    const int smem = std::max(216000 / each / 1024 * 1024 - 1024, 3 * (8192 / ROW * (ROW + PAD))), steps = 600;
    std::vector<double> g16, g18, all, mhz;
    for (int run = -1; run < 3; run++) {
      CK(cudaMemset(CTR, 0, 64)); CK(cudaMemset(SLOT, 0, 132 * 4));
      k<<<132 * each, mma ? 256 : 128, smem>>>(BUF, steps, CTR, PLACE, SLOT, REC, (float*)(CTR + 64));
      CK(cudaDeviceSynchronize());
      std::vector<Rec> h(132 * each);
      CK(cudaMemcpy(h.data(), REC, sizeof(Rec) * h.size(), cudaMemcpyDeviceToHost));
      if (run >= 0) for (auto& x : h) {
        double b = 8192. * steps * each / x.cycles;
        all.push_back(b); mhz.push_back(1e3 * x.cycles / x.ns);
        (SIZE[GPC[x.sm]] > 16 ? g18 : g16).push_back(b);
      }
    }
    double mean = 0;
    for (double b : all) mean += b / all.size();
    fprintf(f, "%d,%d,%s,%d,%d,%.1f,%.1f,%.1f,%.1f,%.1f,%.0f\n", ROW, PAD, SHARED[shared], mma, each, stat_of(g16).med, g18.size() ? stat_of(g18).med : 0., mean, pct(all, .1), pct(all, .9), stat_of(mhz).med);
  }
  fflush(f);
}
int main(int argc, char** argv) {
  CK(cudaMalloc(&CTR, 4096)); CK(cudaMalloc(&PLACE, 132 * 4)); CK(cudaMalloc(&SLOT, 132 * 4)); CK(cudaMalloc(&REC, sizeof(Rec) * 1024));
  CK(cudaMalloc(&BUF, (size_t)32 << 20)); CK(cudaMemset(BUF, 0, (size_t)32 << 20));
  GPC = gpcs_of_sms();
  for (int g : GPC) SIZE[g]++;
  PLACES.assign(5, std::vector<unsigned>(132));
  auto tpcs = tpcs_of_gpcs();
  for (int g = 0; g < 8; g++)
    for (int r = 0; r < (int)tpcs[g].size(); r++)
      for (int i = 0; i < 2; i++) {
        int sm = 2 * tpcs[g][r] + i;
        PLACES[NONE][sm] = sm; PLACES[TPC][sm] = tpcs[g][r]; PLACES[CPC][sm] = g * 3 + r % 3; PLACES[GPC_][sm] = g; PLACES[ALL][sm] = 0;
      }
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/port.csv").c_str(), "w");
  fprintf(f, "row,pad,shared,mma,each,sm_of_16,sm_of_18,mean,p10,p90,mhz\n");
  for (int mma : {0, 1}) {
    for (int shared = 0; shared < 5; shared++) {
      port<128, 0>(f, shared, mma);
      port<64, 16>(f, shared, mma);
    }
    port<128, 16>(f, NONE, mma);
    port<64, 32>(f, NONE, mma);
  }
  fclose(f);
  return 0;
}
