// What a slice of L2 takes for loads of lines that were asked for a short while before, by another GPC.
//   again DIR   writes DIR/again.csv: cycles between two loads that one slice serves, by SMs (each of another GPC), how many loads each has
//               under way, how many lines it walks along (each in an order of its own, so that no two loads of one SM
//               that are under way are of one line), the sectors of a load and of every `second` one, and `order`: `shared`, all SMs the same lines; `own`, each
//               others; `parts`, the same lines, but each SM reads other sectors of them; `step`, all SMs the same lines in one order
#include "gpcs.cuh"
#include "slices.cuh"
// Warps take one load after the other by turns: turn i of warp w is number i * warps + w of the SM's walk along `lines` (a power of two)
template <int DEEP>
__global__ void __launch_bounds__(1024) k_again(const char* p, const int* list, int lines, int sectors, int second, int order, int turns, const unsigned char* rank, unsigned* out, unsigned* go, int wait_for) {
  extern __shared__ unsigned at[];
  const int me = rank[smid()], warps = blockDim.x >> 5;
  if (me == 255) return;
  const int lane = threadIdx.x & 31, w = threadIdx.x >> 5, mask = lines - 1;
  for (int i = threadIdx.x; i < lines; i += blockDim.x) at[i] = list[(order == 1 ? me * lines : 0) + (order == 3 ? i : (i * (2 * me + 1) * 11 + me * 37) & mask)] * 128;
  const char* q = p + (order == 2 ? me * sectors % 4 : 0) * 32;
  const char* each[2] = {q + lane % (8 * sectors) * 4, q + lane % (8 * second) * 4};
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(go, 1u);
    while (*(volatile unsigned*)go < wait_for) {}
  }
  __syncthreads();
  unsigned sum = 0, t0 = 0;
  int x = w;
  for (int i = 0; i < turns + 4; i++) {
    if (i == 4) { __syncthreads(); t0 = tick(); }
    unsigned v[DEEP];
#pragma unroll
    for (int k = 0; k < DEEP; k++) {
      asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(v[k]) : "l"(each[k & 1] + at[x & mask]) : "memory");
      x += warps;
    }
#pragma unroll
    for (int k = 0; k < DEEP; k++) sum += v[k];
  }
  if (sum == 12345u) out[1 << 16] = sum;
  __syncthreads();
  if (threadIdx.x == 0) out[smid()] = tick() - t0;
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  char* p; unsigned *out, *go; int* list; unsigned char* rank;
  const size_t room = 64 << 20;
  CK(cudaMalloc(&p, room)); CK(cudaMemset(p, 1, room));
  CK(cudaMalloc(&out, 1 << 20)); CK(cudaMalloc(&go, 4)); CK(cudaMalloc(&list, 1 << 16)); CK(cudaMalloc(&rank, 132));
  CK(cudaFuncSetAttribute(k_again<2>, cudaFuncAttributeMaxDynamicSharedMemorySize, 120000));
  CK(cudaFuncSetAttribute(k_again<4>, cudaFuncAttributeMaxDynamicSharedMemorySize, 120000));
  auto mean = [&](int n) {
    std::vector<unsigned> h(132);
    CK(cudaMemcpy(h.data(), out, 132 * 4, cudaMemcpyDeviceToHost));
    double t = 0;
    for (unsigned x : h) t += x;
    return t / n;
  };
  Slices slices(p);
  std::vector<int> found, all;
  for (int line = 0; line < (int)(room / 128); line += 2) all.push_back(line);
  slices.first.resize(1);
  const auto of = slices.of(all);
  for (size_t i = 0; i < all.size() && found.size() < 8 * 1024; i++)
    if (of[i] == 0) for (int k = 0; k < 2; k++) found.push_back(all[i] + k);
  fprintf(stderr, "%zu lines of one slice, the last %d\n", found.size(), found.back());
  CK(cudaMemcpy(list, found.data(), found.size() * 4, cudaMemcpyHostToDevice));
  auto gpc = gpcs_of_sms();
  std::vector<int> ids(gpc);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  while (ids.size() > 8) {  // SMs that no cluster was seen to join to others keep their own number
    int least = 0;
    auto size = [&](int i) { return std::count(gpc.begin(), gpc.end(), ids[i]); };
    for (size_t i = 1; i < ids.size(); i++) least = size(i) < size(least) ? i : least;
    ids.erase(ids.begin() + least);
  }
  FILE* f = fopen((dir + "/again.csv").c_str(), "w");
  fprintf(f, "sms,under_way,lines,sectors,second,order,cycles_per_load\n");
  const char* names[] = {"shared", "own", "parts", "step"};
  auto row = [&](int gpcs, int warps, int deep, int lines, int sectors, int second, int order) {
    if ((size_t)(order == 1 ? gpcs * lines : lines) > found.size()) return;
    std::vector<unsigned char> h(132, 255);
    for (int g = 0, i = 0; g < gpcs; g++) {
      for (i = 0; gpc[i] != ids[g]; i++) {}
      h[i] = g;
    }
    CK(cudaMemcpy(rank, h.data(), 132, cudaMemcpyHostToDevice));
    const int turns = 256;
    double t = 0;
    for (int r = 0; r < 5; r++) {
      CK(cudaMemset(go, 0, 4)); CK(cudaMemset(out, 0, 132 * 4));
      (deep == 2 ? k_again<2> : k_again<4>)<<<132, warps * 32, 120000>>>(p, list, lines, sectors, second, order, turns, rank, out, go, gpcs);
      CK(cudaDeviceSynchronize());
      if (r) t += mean(gpcs) / 4;
    }
    fprintf(f, "%d,%d,%d,%d,%d,%s,%.3f\n", gpcs, warps * deep, lines, sectors, second, names[order], t / (turns * (double)deep * warps * gpcs));
  };
  for (int order = 0; order < 4; order++)
    for (int lines : {128, 256, 512})
      for (int sectors : {1, 2, 3, 4})
        for (int second : {1, 2, 3, 4}) {
          if (second < sectors || (order == 2 && (sectors != second || sectors > 2)) || (lines != 256 && sectors != second)) continue;
          for (int gpcs : {4, 8}) for (int deep : {2, 4}) row(gpcs, 32, deep, lines, sectors, second, order);
        }
  fclose(f);
  return 0;
}
