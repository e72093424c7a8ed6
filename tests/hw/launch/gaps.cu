// What lies between two kernels, and between two TBs of a slot: by stores, TBs, functions, shared memory, streams.
//   gaps DIR   writes DIR/gaps.csv: what, edge, tbs, threads, value, unit
#include "common.cuh"
static FILE* OUT;
static cudaStream_t S0, S1;
static const double MHZ = 1980;
static void row(const char* what, const char* edge, int tbs, int threads, double v, const char* unit) {
  fprintf(OUT, "%s,%s,%d,%d,%.4f,%s\n", what, edge, tbs, threads, v, unit);
  printf("%-44s %-8s %5d TBs %5d threads %10.3f %s\n", what, edge, tbs, threads, v, unit);
  fflush(stdout);
}
struct Par {
  float* buf;
  int spin, stores;
  unsigned* rec;
  int pad[40];
};
// Spins `spin` cycles from its first instruction, then stores: V makes functions of their own.
template <int V>
__global__ void k_spin(const __grid_constant__ Par p) {
  extern __shared__ float sh[];
  long long c0 = clock64();
  while (clock64() - c0 < p.spin) {}
  float* at = p.buf + (size_t)blockIdx.x * blockDim.x * 64 + threadIdx.x;
  for (int i = 0; i < p.stores; i++) __stcg(at + (size_t)i * blockDim.x, (float)(i + V));
}
template <int V>
__global__ void k_fence(const __grid_constant__ Par p) {
  long long c0 = clock64();
  while (clock64() - c0 < p.spin) {}
  float* at = p.buf + (size_t)blockIdx.x * blockDim.x * 64 + threadIdx.x;
  for (int i = 0; i < p.stores; i++) __stcg(at + (size_t)i * blockDim.x, (float)(i + V));
  __threadfence();
}
__global__ void k_turn(const __grid_constant__ Par p, long long* rec) {
  extern __shared__ float sh[];
  long long c0 = clock64();
  if (threadIdx.x == 0) { rec[blockIdx.x * 2] = c0; rec[blockIdx.x * 2 + 1] = smid(); }
  __syncthreads();
  while (clock64() - c0 < p.spin) {}
  float* at = p.buf + (size_t)blockIdx.x * blockDim.x * 64 + threadIdx.x;
  for (int i = 0; i < p.stores; i++) __stcg(at + (size_t)i * blockDim.x, (float)i);
}
__global__ void k_turn_fence(const __grid_constant__ Par p, long long* rec) {
  extern __shared__ float sh[];
  long long c0 = clock64();
  if (threadIdx.x == 0) { rec[blockIdx.x * 2] = c0; rec[blockIdx.x * 2 + 1] = smid(); }
  __syncthreads();
  while (clock64() - c0 < p.spin) {}
  float* at = p.buf + (size_t)blockIdx.x * blockDim.x * 64 + threadIdx.x;
  for (int i = 0; i < p.stores; i++) __stcg(at + (size_t)i * blockDim.x, (float)i);
  __threadfence();
}
__global__ void k_started(unsigned* p, unsigned need) { while (ld_acquire(p) < need) {} }
__global__ void k_start_spin(const __grid_constant__ Par p, unsigned* started) {
  if (threadIdx.x == 0) atomicAdd(started, 1u);
  long long c0 = clock64();
  while (clock64() - c0 < p.spin) {}
}
template <class F>
static double timed(F f, int n, const char* edge) {  // us a turn of n equal turns
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a)); CK(cudaEventCreate(&b));
  cudaGraph_t g = nullptr; cudaGraphExec_t ge = nullptr;
  if (edge[0] == 'g') {
    CK(cudaStreamBeginCapture(S0, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < n; i++) f(i);
    CK(cudaStreamEndCapture(S0, &g)); CK(cudaGraphInstantiate(&ge, g, 0));
  }
  std::vector<double> v;
  for (int r = 0; r < 7; r++) {
    k_gate<<<1, 1, 0, S0>>>(400000 + 12000ull * n);
    CK(cudaEventRecord(a, S0));
    if (ge) CK(cudaGraphLaunch(ge, S0));
    else for (int i = 0; i < n; i++) f(i);
    CK(cudaEventRecord(b, S0));
    CK(cudaDeviceSynchronize());
    float ms; CK(cudaEventElapsedTime(&ms, a, b));
    if (r) v.push_back(ms * 1e3);
  }
  if (ge) { CK(cudaGraphExecDestroy(ge)); CK(cudaGraphDestroy(g)); }
  CK(cudaEventDestroy(a)); CK(cudaEventDestroy(b));
  return stat_of(v).med;
}
// period of a kernel less its body: difference of 60 and 20 turns, so that events cancel
template <class F>
static void gap(const char* what, const char* edge, int tbs, int threads, int spin, F f) {
  double d = (timed(f, 60, edge) - timed(f, 20, edge)) / 40 - spin / MHZ;
  row(what, edge, tbs, threads, d, "us");
}
int main(int argc, char** argv) {
  OUT = fopen((std::string(argc > 1 ? argv[1] : ".") + "/gaps.csv").c_str(), "w");
  fprintf(OUT, "what,edge,tbs,threads,value,unit\n");
  CK(cudaStreamCreateWithFlags(&S0, cudaStreamNonBlocking));
  int lo, hi; CK(cudaDeviceGetStreamPriorityRange(&lo, &hi));
  CK(cudaStreamCreateWithPriority(&S1, cudaStreamNonBlocking, lo));
  Par p{};
  CK(cudaMalloc(&p.buf, (size_t)512 << 20));
  CK(cudaMalloc(&p.rec, 1 << 20));
  CK(cudaMemset(p.rec, 0, 1 << 20));
  for (auto k : {k_spin<0>, k_spin<1>}) CK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024));
  const int SP = 6000;
  auto with = [&](int spin, int stores) { Par q = p; q.spin = spin; q.stores = stores; return q; };
  for (const char* e : {"stream", "graph"}) {
    for (int t : {1, 16, 64, 132, 264, 528, 1056}) gap("spin", e, t, 128, SP, [&](int) { k_spin<0><<<t, 128, 0, S0>>>(with(SP, 0)); });
    for (int n : {32, 256, 1024}) gap("spin", e, 132, n, SP, [&](int) { k_spin<0><<<132, n, 0, S0>>>(with(SP, 0)); });
    for (int t : {1, 64, 132, 264, 1056})
      for (int s : {1, 4, 16, 64}) gap(("stores " + std::to_string(s)).c_str(), e, t, 128, SP, [&](int) { k_spin<0><<<t, 128, 0, S0>>>(with(SP, s)); });
    for (int t : {1, 132})
      for (int s : {0, 1, 16}) gap(("fence and stores " + std::to_string(s)).c_str(), e, t, 128, SP, [&](int) { k_fence<0><<<t, 128, 0, S0>>>(with(SP, s)); });
    gap("two functions in turn", e, 132, 128, SP, [&](int i) { if (i & 1) k_spin<1><<<132, 128, 0, S0>>>(with(SP, 0)); else k_spin<0><<<132, 128, 0, S0>>>(with(SP, 0)); });
    gap("two functions in turn with stores 16", e, 132, 128, SP, [&](int i) { if (i & 1) k_spin<1><<<132, 128, 0, S0>>>(with(SP, 16)); else k_spin<0><<<132, 128, 0, S0>>>(with(SP, 16)); });
    for (int kb : {16, 29, 57, 100, 200}) {
      gap(("smem KB both " + std::to_string(kb)).c_str(), e, 132, 128, SP, [&](int) { k_spin<0><<<132, 128, kb * 1024, S0>>>(with(SP, 0)); });
      gap(("smem KB in turn with 0: " + std::to_string(kb)).c_str(), e, 132, 128, SP, [&](int i) { if (i & 1) k_spin<1><<<132, 128, kb * 1024, S0>>>(with(SP, 0)); else k_spin<0><<<132, 128, 0, S0>>>(with(SP, 0)); });
    }
  }
  // turnaround in a slot
  long long* rec; CK(cudaMalloc(&rec, 16 * 132 * 16));
  CK(cudaFuncSetAttribute(k_turn, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024));
  CK(cudaFuncSetAttribute(k_turn_fence, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024));
  for (int fence : {0, 1})
    for (int nt : {32, 128, 256, 1024})
      for (int s : {0, 1, 2, 4, 8, 16, 32, 64}) {
        if (fence && s != 0 && s != 1 && s != 16) continue;
        const int spin = 20000, g = 132 * 12;
        std::vector<double> v;
        std::vector<long long> h(2 * g);
        for (int r = 0; r < 3; r++) {
          if (fence) k_turn_fence<<<g, nt, 200 * 1024, S0>>>(with(spin, s), rec);
          else k_turn<<<g, nt, 200 * 1024, S0>>>(with(spin, s), rec);
          CK(cudaDeviceSynchronize());
          CK(cudaMemcpy(h.data(), rec, 16 * g, cudaMemcpyDeviceToHost));
          std::map<int, std::vector<long long>> by;
          for (int i = 0; i < g; i++) by[(int)h[2 * i + 1]].push_back(h[2 * i]);
          for (auto& kv : by) {
            std::sort(kv.second.begin(), kv.second.end());
            for (size_t i = 1; r && i < kv.second.size(); i++) v.push_back((double)(kv.second[i] - kv.second[i - 1] - spin));
          }
        }
        row((std::string(fence ? "turnaround with fence and stores " : "turnaround with stores ") + std::to_string(s)).c_str(), "slot", g, nt, stat_of(v).med, "cycles");
      }
  // two streams: fork, join
  cudaEvent_t f, j; CK(cudaEventCreateWithFlags(&f, cudaEventDisableTiming)); CK(cudaEventCreateWithFlags(&j, cudaEventDisableTiming));
  auto fork = [&] { CK(cudaEventRecord(f, S0)); CK(cudaStreamWaitEvent(S1, f, 0)); };
  auto join = [&] { CK(cudaEventRecord(j, S1)); CK(cudaStreamWaitEvent(S0, j, 0)); };
  unsigned* st = p.rec + 100000;
  auto once = [&](const char* what, double body, auto g) { row(what, "events", 132, 128, timed([&](int) { g(); }, 1, "stream") - body, "us"); };
  const double b = SP / MHZ;
  auto k0 = [&](cudaStream_t s) { k_spin<0><<<132, 128, 0, s>>>(with(SP, 0)); };
  once("nothing", 0, [&] {});
  once("one kernel", b, [&] { k0(S0); });
  once("two kernels", 2 * b, [&] { k0(S0); k0(S0); });
  once("fork and join with nothing between", 0, [&] { fork(); join(); });
  once("fork; kernel on first; join", b, [&] { fork(); k0(S0); join(); });
  once("fork; kernel on second; join", b, [&] { fork(); k0(S1); join(); });
  once("kernel on first; fork; kernel on second; join", 2 * b, [&] { k0(S0); fork(); k0(S1); join(); });
  auto gated = [&](int n) {
    return [&, n] {
      CK(cudaMemsetAsync(st, 0, 4096, S0));
      fork();
      for (int i = 0; i < n; i++) {
        cudaStream_t s = i & 1 ? S1 : S0;
        if (i) k_started<<<1, 1, 0, s>>>(st + i - 1, 132);
        k_start_spin<<<132, 128, 0, s>>>(with(SP, 0), st + i);
      }
      join();
    };
  };
  once("memset alone", 0, [&] { CK(cudaMemsetAsync(st, 0, 4096, S0)); });
  for (int n : {1, 2, 3, 4, 8, 20, 40}) once(("gated chain of " + std::to_string(n) + " whole").c_str(), 0, gated(n));
  fclose(OUT);
  return 0;
}
