// What SMs of a cluster (CPC) of three TPCs and of two get of what their GPC gets.
//   cpc DIR   writes DIR/cpc_steps.csv: cycles a K step of the tensor GEMM on every SM, with parts left out; and DIR/cpc_copies.csv:
//             bytes a cycle of an SM of copies (cp.async) that hit in L2, by rows, padding and which TPCs of a GPC copy (by rank: 036 a
//             cluster of three, 25 of two, where SMs are numbered so)
#include "gpcs.cuh"
#define main steps_main
#include "steps.cu"
#undef main
static unsigned* CTR;
struct Rec { unsigned sm, on; long long cycles; };
static Rec* REC;
// a step: 8 KB in rows of ROW bytes, PAD bytes between two of them in shared memory; three steps are under way. Of a TB's 32 KB.
template <int ROW, int PAD>
__global__ void __launch_bounds__(128, 6) k_bring(const char* p, int share, int steps, const unsigned char* on, unsigned* c, Rec* rec) {
  extern __shared__ __align__(16) char smem[];
  __shared__ unsigned go;
  const unsigned me = smid();
  if (threadIdx.x == 0) { atomicAdd(c, 1u); poll(c, gridDim.x); go = on[me]; }
  __syncthreads();
  const char* q = p + (size_t)(share == 0 ? blockIdx.x : blockIdx.x % share) * 32768;
  const unsigned s0 = (unsigned)__cvta_generic_to_shared(smem);
  __syncthreads();
  long long t = clock64();
  if (go) {
    for (int i = 0; i < steps; i++) {
      const char* from = q + (i & 3) * 8192;
      const unsigned to = s0 + (i % 3) * (8192 / ROW * (ROW + PAD));
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int at = (j * 128 + threadIdx.x) * 16;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + at / ROW * (ROW + PAD) + at % ROW), "l"(from + at) : "memory");
      }
      asm volatile("cp.async.commit_group;" ::: "memory");
      asm volatile("cp.async.wait_group 2;" ::: "memory");
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
  }
  __syncthreads();
  long long e = clock64();
  if (threadIdx.x == 0) rec[blockIdx.x] = Rec{me, go, e - t};
}
static char* BUF;
static unsigned char* ON;
template <int ROW, int PAD>
static void copies(FILE* f, int share, int each) {
  auto k = k_bring<ROW, PAD>;
  const int smem = std::max(each == 6 ? 36000 : 74000, 3 * (8192 / ROW * (ROW + PAD))), steps = 400;
  const auto tpcs = tpcs_of_gpcs();
  const auto small = in_small_clusters();
  CK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 220000));
  for (const char* set : {"all", "0", "036", "25", "036147", "01234567"}) {
    std::vector<unsigned char> who(256, set[0] == 'a');
    if (set[0] != 'a') for (const char* r = set; *r; r++) { int t = tpcs[4][*r - '0']; who[2 * t] = who[2 * t + 1] = 1; }
    CK(cudaMemcpy(ON, who.data(), 256, cudaMemcpyHostToDevice));
    std::vector<double> three, two;
    for (int run = -1; run < 3; run++) {
      CK(cudaMemset(CTR, 0, 64));
      k<<<132 * each, 128, smem>>>(BUF, share, steps, ON, CTR, REC);
      CK(cudaDeviceSynchronize());
      std::vector<Rec> h(132 * each);
      CK(cudaMemcpy(h.data(), REC, sizeof(Rec) * h.size(), cudaMemcpyDeviceToHost));
      if (run >= 0) for (auto& x : h) if (x.on) (small[x.sm] ? two : three).push_back(8192. * steps * each / x.cycles);
    }
    fprintf(f, "%d,%d,%d,%s,%d,", ROW, PAD, share, set, each);
    if (three.size()) fprintf(f, "%.1f", stat_of(three).med);
    fprintf(f, ",");
    if (two.size()) fprintf(f, "%.1f", stat_of(two).med);
    fprintf(f, "\n");
  }
  fflush(f);
}
// Which SMs are in small clusters differs from card to card: those are told by their steps, 0.85 of the median or less.
template <class G, int F>
static void by_sm(FILE* f, const char* what, const __half* M, int each) {
  const int K = 8192, tbs = each * 132, KT = K / G::BK;
  GemmArgs<__half> g{M, M + (1 << 24), nullptr, G::BM, G::BN * 8, K, K, G::BN * 8, 0, 0, 0, 0, 0};
  unsigned long long* begun;
  CK(cudaMalloc(&begun, 24 * tbs));
  CK(cudaFuncSetAttribute(k_step<G, F, true>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)G::SMEM));
  std::map<int, std::vector<double>> on;
  for (int run = -1; run < 4; run++) {
    k_step<G, F, true><<<dim3(tbs), G::NT, G::SMEM>>>(g, CYC, (float*)CYC, 132, begun);
    CK(cudaDeviceSynchronize());
    if (run < 0) continue;
    std::vector<unsigned long long> all(tbs), b(3 * tbs);
    CK(cudaMemcpy(all.data(), CYC, 8 * tbs, cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(b.data(), begun, 24 * tbs, cudaMemcpyDeviceToHost));
    for (int i = 0; i < tbs; i++) on[(int)b[3 * i + 2]].push_back((double)all[i] / KT);
  }
  std::vector<double> sms, fast, rest;
  for (auto& o : on) sms.push_back(stat_of(o.second).med);
  for (double v : sms) (v <= .85 * stat_of(sms).med ? fast : rest).push_back(v);
  fprintf(f, "%s,%d,%.0f,%zu,", what, each, stat_of(rest).med, fast.size());
  if (fast.size()) fprintf(f, "%.0f", stat_of(fast).med);
  fprintf(f, "\n");
  fflush(f);
  CK(cudaFree(begun));
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  __half* M;
  CK(cudaMalloc(&M, (size_t)256 << 20)); CK(cudaMemset(M, 0, (size_t)256 << 20)); CK(cudaMalloc(&CYC, 1 << 20));
  CK(cudaMalloc(&CTR, 4096)); CK(cudaMalloc(&REC, sizeof(Rec) * 1024)); CK(cudaMalloc(&ON, 256));
  CK(cudaMalloc(&BUF, (size_t)32 << 20)); CK(cudaMemset(BUF, 0, (size_t)32 << 20));
  FILE* f = fopen((dir + "/cpc_steps.csv").c_str(), "w");
  fprintf(f, "what,each,most_sms,fast_sms,fast\n");
  typedef HG<64, 64, 32, 32, 32, 3, 6> S;
  typedef HG<128, 128, 32, 64, 32, 3, 2> W;
  for (int each : {1, 3, 6}) {
    by_sm<S, 31>(f, "64x64x32 4 warps all", M, each);
    by_sm<S, 25>(f, "64x64x32 4 warps copies wait barrier", M, each);
    by_sm<S, 30>(f, "64x64x32 4 warps no copies", M, each);
  }
  for (int each : {1, 2}) {
    by_sm<W, 31>(f, "128x128x32 8 warps all", M, each);
    by_sm<W, 25>(f, "128x128x32 8 warps copies wait barrier", M, each);
  }
  fclose(f);
  f = fopen((dir + "/cpc_copies.csv").c_str(), "w");
  fprintf(f, "row,pad,share,active,each,three_tpcs,two_tpcs\n");
  for (int share : {0, 8})
    for (int each : {3, 6}) {
      copies<64, 16>(f, share, each);
      copies<128, 16>(f, share, each);
      copies<256, 16>(f, share, each);
      copies<64, 32>(f, share, each);
      copies<128, 0>(f, share, each);
    }
  fclose(f);
  return 0;
}
