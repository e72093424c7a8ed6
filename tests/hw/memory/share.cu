// What a GPC takes of L2's replies to lines that several of its SMs copy, by which SMs share (of a TPC, of a cluster, of several clusters).
//   share DIR        writes DIR/share.csv: wanted bytes a cycle of an SM (median of the SMs of GPCs of 16 and of 18, mean, p10, p90 of the chip)
//   share DIR once   the same by one run of each, for a profiler
#include "gpcs.cuh"
static unsigned *CTR, *PLACE, *SLOT;
struct Rec { unsigned sm, pad; long long cycles; };
static Rec* REC;
// 128 threads copy 8 KB a step in rows of ROW bytes, each in a line of its own, PAD bytes between two of them in shared memory, three steps
// under way, of a place of 32 KB of rows that is that of their SM's group
template <int ROW, int PAD>
__global__ void __launch_bounds__(128) k_share(const char* p, int steps, unsigned* c, const unsigned* place, unsigned* slot, Rec* rec) {
  extern __shared__ __align__(1024) char smem[];
  __shared__ unsigned mine;
  if (threadIdx.x == 0) {
    mine = atomicAdd(&slot[smid()], 1u);
    atomicAdd(c, 1u);
    while (*(volatile unsigned*)c < gridDim.x) {}
  }
  __syncthreads();
  const char* q = p + ((size_t)place[smid()] * 4 + mine) * (32768 / ROW * 128);
  const unsigned s0 = (unsigned)__cvta_generic_to_shared(smem);
  long long t = 0;
  for (int i = 0; i < 2 * steps; i += 3) {
    if (i == steps) t = clock64();
#pragma unroll
    for (int s = 0; s < 3; s++) {
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int at = (j * 128 + threadIdx.x) * 16, from = ((i + s) & 3) * 8192 + at;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(s0 + s * (8192 / ROW * (ROW + PAD)) + at / ROW * (ROW + PAD) + at % ROW),
                     "l"(q + from / ROW * 128 + from % ROW) : "memory");
      }
      asm volatile("cp.async.commit_group;\n cp.async.wait_group 2;" ::: "memory");
    }
  }
  long long e = clock64();
  asm volatile("cp.async.wait_all;" ::: "memory");
  if (threadIdx.x == 0) rec[blockIdx.x] = Rec{smid(), 0, e - t};
}
static bool ONCE = false;
static char* BUF;
static std::vector<int> GPC;
static std::map<int, int> SIZE;
using Groups = std::vector<std::vector<int>>;  // SMs that copy the same
template <int ROW, int PAD>
static void share(FILE* f, const char* name, const Groups& groups, int each) {
  auto k = k_share<ROW, PAD>;
  CK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 220000));
  std::vector<unsigned> place(132);
  for (size_t g = 0; g < groups.size(); g++) for (int sm : groups[g]) place[sm] = (unsigned)g;
  CK(cudaMemcpy(PLACE, place.data(), 132 * 4, cudaMemcpyHostToDevice));
  const int smem = std::max(216000 / each / 1024 * 1024 - 1024, 3 * (8192 / ROW * (ROW + PAD))), steps = 600;
  std::vector<double> g16, g18, all;
  for (int run = ONCE ? 0 : -1; run < (ONCE ? 1 : 3); run++) {
    CK(cudaMemset(CTR, 0, 64)); CK(cudaMemset(SLOT, 0, 132 * 4));
    k<<<132 * each, 128, smem>>>(BUF, steps, CTR, PLACE, SLOT, REC);
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
  fprintf(f, "%d,%d,%s,%d,%.1f,%.1f,%.1f,%.1f,%.1f\n", ROW, PAD, name, each, stat_of(g16).med, g18.size() ? stat_of(g18).med : 0., mean, pct(all, .1), pct(all, .9));
  fflush(f);
}
int main(int argc, char** argv) {
  ONCE = argc > 2;
  CK(cudaMalloc(&CTR, 4096)); CK(cudaMalloc(&PLACE, 132 * 4)); CK(cudaMalloc(&SLOT, 132 * 4)); CK(cudaMalloc(&REC, sizeof(Rec) * 1024));
  CK(cudaMalloc(&BUF, (size_t)64 << 20)); CK(cudaMemset(BUF, 0, (size_t)64 << 20));
  GPC = gpcs_of_sms();
  for (int g : GPC) SIZE[g]++;
  auto tpcs = tpcs_of_gpcs();
  // by rank of TPCs, of which those equal modulo three are a cluster; `apart`: first SMs and second SMs of the TPCs each for themselves. What
  // is left over of a GPC shares within its TPC.
  auto by = [&](std::vector<std::vector<int>> ranks, bool apart) {
    Groups made;
    for (auto& t : tpcs) {
      std::vector<char> used(t.size(), 0);
      for (auto& group : ranks) {
        if (*std::max_element(group.begin(), group.end()) >= (int)t.size()) continue;
        std::vector<int> sms;
        for (int i = 0; i < 2; i++) {
          for (int r : group) { sms.push_back(2 * t[r] + i); used[r] = 1; }
          if (apart) { made.push_back(sms); sms.clear(); }
        }
        if (!apart) made.push_back(sms);
      }
      for (size_t r = 0; r < t.size(); r++) if (!used[r]) made.push_back({2 * t[r], 2 * t[r] + 1});
    }
    return made;
  };
  Groups none;
  for (int i = 0; i < 132; i++) none.push_back({i});
  const std::vector<std::pair<const char*, Groups>> kinds = {
      {"none", none}, {"tpc", by({}, false)}, {"2 of a cluster", by({{0, 3}, {1, 4}, {2, 5}}, true)}, {"2 of two", by({{0, 1}, {2, 3}, {4, 5}, {6, 7}}, true)},
      {"3 of a cluster", by({{0, 3, 6}, {1, 4, 7}}, true)}, {"3 of three", by({{0, 1, 2}, {3, 4, 5}}, true)},
      {"4 of a cluster", by({{0, 3}, {1, 4}, {2, 5}}, false)}, {"4 of two", by({{0, 1}, {2, 3}, {4, 5}, {6, 7}}, false)}};
  FILE* f = fopen((std::string(argv[1]) + "/share.csv").c_str(), "w");
  fprintf(f, "row,pad,shared,each,sm_of_16,sm_of_18,mean,p10,p90\n");
  for (auto& [name, groups] : kinds)
    for (int each : {1, 2, 4}) {
      share<128, 0>(f, name, groups, each);
      share<64, 0>(f, name, groups, each);
      share<64, 16>(f, name, groups, each);
      share<128, 16>(f, name, groups, each);
    }
  fclose(f);
  return 0;
}
