// What a launch with clusters, barriers and register hand-over costs.
//   clusters DIR   writes DIR/clusters_launch.csv, DIR/clusters_sync.csv
// clusters_launch: period of one kernel in a graph of 64 in a row, ns, and in cycles of the SM's highest clock. body: empty;
// maps: three tensor maps as parameters, prefetched; barriers: the maps and 16 transaction barriers initialised, a fence, then a
// barrier of the TB and of its cluster; gemm: the same, and registers handed from one warp group to the two others; load: gemm,
// and a tile of 64 rows is loaded and waited for; store: load, and a tile is written. skew_ns: between the first and the last
// start of the TBs of a cluster, by a timer of 32 ns steps.
// clusters_sync: cycles of a hand-over, median.
#include "hopper.cuh"
extern __shared__ __align__(1024) char tiles[];

struct Maps { CUtensorMap a, b, c; };
struct Start { unsigned sm; unsigned long long ns; unsigned lived, begun; };

template <int BODY>
__global__ void __launch_bounds__(384, 1) k_body(const __grid_constant__ Maps maps, Start* starts) {
  const unsigned t0 = tick();
  const unsigned long long g = starts ? gtime() : 0;
  if (BODY >= 1 && threadIdx.x == 0) { tma_prefetch_map(&maps.a); tma_prefetch_map(&maps.b); tma_prefetch_map(&maps.c); }
  if (BODY >= 2) {
    __shared__ uint64_t bars[16];
    if (threadIdx.x == 0) { for (int i = 0; i < 16; i++) bar_init(&bars[i], 1); bar_fence(); }
    __syncthreads();
    if (cluster_size() > 1) { cluster_arrive_relaxed(); cluster_wait(); }
    if (BODY >= 3) {
      if (threadIdx.x < 128) {
        registers_down<40>();
        if (BODY >= 4 && warp_of_tb() == 0 && elected()) { bar_expect(&bars[0], 64 * 128); tma_load(tiles, &maps.a, &bars[0], 0, blockIdx.x % 64 * 64); }
      } else {
        registers_up<232>();
        if (BODY >= 4) bar_wait(&bars[0], 0);
        if (BODY >= 5) {
          proxy_fence();
          named_barrier(1, 256);
          if (warp_of_tb() == 4 && elected()) { tma_store(&maps.c, tiles, 0, blockIdx.x * 64); tma_commit(); tma_wait_read<0>(); }
        }
      }
    }
  }
  if (starts && threadIdx.x == 0) starts[blockIdx.x] = Start{smid(), g, tick() - t0, t0};
}

enum { LOCAL, REMOTE, RELEASED, CLUSTER, RELAXED, TB, NAMED, SETMAX };
// warp 0 of the first TB hands over, warp 4 of the receiving TB hands back; cycles of a turn of two hand-overs
template <int WHAT>
__global__ void __launch_bounds__(384, 1) k_sync(int turns, unsigned* out) {
  __shared__ uint64_t there, back;
  const int rank = cluster_size() > 1 ? cluster_rank() : 0, size = cluster_size(), far = size - 1;
  if (threadIdx.x == 0) { bar_init(&there, 1); bar_init(&back, 1); bar_fence(); }
  __syncthreads();
  if (size > 1) { cluster_arrive(); cluster_wait(); }
  unsigned t = tick();
  if (WHAT <= RELEASED) {
    if (rank == 0 && threadIdx.x == 0)
      for (int i = 0; i < turns; i++) {
        if (WHAT == LOCAL) bar_arrive(&there); else if (WHAT == REMOTE) bar_arrive_at(&there, far); else bar_release_at(&there, far);
        bar_wait(&back, i & 1);
      }
    if (rank == (WHAT == LOCAL ? 0 : far) && threadIdx.x == 128)
      for (int i = 0; i < turns; i++) {
        bar_wait(&there, i & 1);
        if (WHAT == LOCAL) bar_arrive(&back); else if (WHAT == REMOTE) bar_arrive_at(&back, 0); else bar_release_at(&back, 0);
      }
    __syncwarp();
  }
  for (int i = 0; i < turns; i++) {
    if (WHAT == CLUSTER) { cluster_arrive(); cluster_wait(); }
    if (WHAT == RELAXED) { cluster_arrive_relaxed(); cluster_wait(); }
    if (WHAT == TB) __syncthreads();
    if (WHAT == NAMED && threadIdx.x >= 128) named_barrier(1, 256);
  }
  if (WHAT == SETMAX) {
    if (threadIdx.x < 128) registers_down<40>(); else registers_up<232>();
  }
  t = tick() - t;
  __syncwarp();
  if (size > 1) { cluster_arrive(); cluster_wait(); }
  if (rank == 0 && threadIdx.x == (WHAT == NAMED || WHAT == SETMAX ? 128 : 0)) out[blockIdx.x / size] = t;
}

int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  char *buf; Start* starts; unsigned* out;
  CK(cudaMalloc(&buf, 512 << 20)); CK(cudaMalloc(&starts, sizeof(Start) * 8192)); CK(cudaMalloc(&out, 4096));
  CK(cudaMemset(buf, 0, 512 << 20));
  Maps m{tensor_map(buf, 1 << 21, 64, 64), tensor_map(buf, 1 << 21, 64, 64), tensor_map(buf + (256 << 20), 1 << 21, 64, 64)};
  cudaStream_t s;
  CK(cudaStreamCreate(&s));
  cudaEvent_t e0, e1;
  CK(cudaEventCreate(&e0)); CK(cudaEventCreate(&e1));
  FILE* f = fopen((dir + "/clusters_launch.csv").c_str(), "w");
  fprintf(f, "body,cluster,tbs,smem,edge,period_ns,cycles,lived,skew_ns\n");
  const char* names[] = {"empty", "maps", "barriers", "gemm", "load", "store"};
  void (*bodies[])(Maps, Start*) = {k_body<0>, k_body<1>, k_body<2>, k_body<3>, k_body<4>, k_body<5>};
  for (int body = 0; body < 6; body++)
    for (int cluster : {1, 2, 4, 8})
      for (int tbs : {8, 64, 128, 264, 1056})
        for (int smem : {1024, 210 * 1024})
          for (int graph : {1, 0}) {
            if (!graph && tbs != 128) continue;
            auto burst = [&](cudaStream_t st) { for (int i = 0; i < 64; i++) launch(bodies[body], tbs, 384, std::max(smem, body >= 4 ? 16384 : 0), cluster, st, m, (Start*)nullptr); };
            cudaGraphExec_t x = nullptr;
            if (graph) {
              cudaGraph_t g;
              CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
              burst(s);
              CK(cudaStreamEndCapture(s, &g));
              CK(cudaGraphInstantiate(&x, g, 0));
            }
            std::vector<double> t;
            for (int rep = 0; rep < 8; rep++) {
              k_gate<<<1, 1, 0, s>>>(graph ? 60000 : 600000);
              CK(cudaEventRecord(e0, s));
              if (graph) CK(cudaGraphLaunch(x, s)); else burst(s);
              CK(cudaEventRecord(e1, s));
              CK(cudaStreamSynchronize(s));
              float ms;
              CK(cudaEventElapsedTime(&ms, e0, e1));
              if (rep > 1) t.push_back(ms * 1e6 / 64);
            }
            // SM clock: from two TBs on one SM of the last launches
            launch(bodies[body], tbs, 384, std::max(smem, body >= 4 ? 16384 : 0), cluster, s, m, starts);
            CK(cudaStreamSynchronize(s));
            std::vector<Start> h(tbs);
            CK(cudaMemcpy(h.data(), starts, sizeof(Start) * tbs, cudaMemcpyDeviceToHost));
            std::vector<double> lived, skew;
            for (auto& q : h) lived.push_back(q.lived);
            for (int c = 0; c < tbs / cluster; c++) {
              unsigned long long lo = ~0ull, hi = 0;
              for (int r = 0; r < cluster; r++) { lo = std::min(lo, h[c * cluster + r].ns); hi = std::max(hi, h[c * cluster + r].ns); }
              skew.push_back((double)(hi - lo));
            }
            int khz = 0;
            CK(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
            fprintf(f, "%s,%d,%d,%d,%s,%.1f,%.0f,%.0f,%.0f\n", names[body], cluster, tbs, smem, graph ? "graph" : "stream", stat_of(t).med, stat_of(t).med * khz / 1e6, stat_of(lived).med, stat_of(skew).med);
            fflush(f);
            if (x) CK(cudaGraphExecDestroy(x));
          }
  fclose(f);

  f = fopen((dir + "/clusters_sync.csv").c_str(), "w");
  fprintf(f, "what,cluster,tbs,cycles\n");
  auto sync = [&](const char* name, void (*k)(int, unsigned*), int cluster, int tbs, double parts) {
    double total[2];
    for (int v = 0; v < 2; v++) {
      std::vector<double> t;
      for (int rep = 0; rep < 5; rep++) {
        launch(k, tbs, 384, 4096, cluster, s, v ? 128 : 32, out);
        CK(cudaStreamSynchronize(s));
        std::vector<unsigned> h(tbs / cluster);
        CK(cudaMemcpy(h.data(), out, 4 * h.size(), cudaMemcpyDeviceToHost));
        if (rep) for (auto q : h) t.push_back(q);
      }
      total[v] = stat_of(t).med;
    }
    fprintf(f, "%s,%d,%d,%.1f\n", name, cluster, tbs, parts > 0 ? (total[1] - total[0]) / 96 / parts : total[1]);
  };
  for (int tbs : {8, 128}) {
    sync("mbarrier", k_sync<LOCAL>, 1, tbs, 2);
    for (int c : {2, 4, 8}) sync("mbarrier of another TB", k_sync<REMOTE>, c, tbs, 2);
    for (int c : {2, 4, 8}) sync("mbarrier of another TB with release", k_sync<RELEASED>, c, tbs, 2);
    for (int c : {1, 2, 4, 8}) sync("relaxed cluster barrier", k_sync<RELAXED>, c, tbs, 1);
    for (int c : {1, 2, 4, 8}) sync("cluster barrier", k_sync<CLUSTER>, c, tbs, 1);
    sync("TB barrier", k_sync<TB>, 1, tbs, 1);
    sync("barrier of 256 threads", k_sync<NAMED>, 1, tbs, 1);
    sync("setmaxnreg up", k_sync<SETMAX>, 1, tbs, 0);
  }
  fclose(f);
  printf("done\n");
  return 0;
}
