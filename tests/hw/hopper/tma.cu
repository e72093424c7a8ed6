// Tensor tiles between global and shared memory: latency, rate of an SM and of all, rows outside, multicast, stores, streams.
//   tma DIR   writes DIR/tma_latency.csv, DIR/tma_rate.csv, DIR/tma_store.csv, DIR/tma_stream.csv
// A tile is `rows` rows of 128 B, `pitch` B apart. tma_latency: cycles from issue until the barrier's test succeeds; cold_map: the
// descriptor is new to the SM; asked: it was prefetched 2,000 cycles before; median and minimum of warm ones; issue: cycles that
// the instruction itself takes. tma_rate: cycles a tile with `depth` tiles in flight; `valid` rows lie inside the tensor.
// tma_store: cycles until shared memory may be reused (`read`), until all is written (`done`), and a tile with four in flight.
// tma_stream: all SMs read a region of `mib` MiB again and again, the TBs of a cluster the same tiles, a share each with multicast.
#include "hopper.cuh"

constexpr int SMEM = 200 * 1024, ROW = 128;
extern __shared__ __align__(1024) char tiles[];
static FILE* out_file(const std::string& dir, const char* name, const char* head) {
  FILE* f = fopen((dir + "/" + name).c_str(), "w");
  if (!f) { perror(name); exit(1); }
  fprintf(f, "%s\n", head);
  return f;
}

struct Latency { unsigned cold, asked, issue, warm[32]; };
__global__ void __launch_bounds__(128) k_latency(const __grid_constant__ CUtensorMap map, const __grid_constant__ CUtensorMap second, int rows, Latency* out) {
  __shared__ uint64_t bar;
  if (warp_of_tb() || !elected()) return;
  bar_init(&bar, 1);
  bar_fence();
  Latency l;
  int phase = 0;
  auto once = [&](const CUtensorMap* m, int y, unsigned* issue) {
    bar_expect(&bar, rows * ROW);
    unsigned t = tick();
    tma_load(tiles, m, &bar, 0, y);
    unsigned u = tick();
    if (issue) *issue = u - t;
    bar_wait(&bar, phase);
    phase ^= 1;
    return tick() - t;
  };
  l.cold = once(&map, 0, nullptr);
  tma_prefetch_map(&second);
  unsigned t = tick();
  while (tick() - t < 2000) {}
  l.asked = once(&second, rows, nullptr);
  for (int i = 0; i < 32; i++) l.warm[i] = once(&map, (i + 1 + blockIdx.x) * rows, &l.issue);
  out[blockIdx.x] = l;
}

// One thread keeps `depth` tiles in flight. `share`: TBs of the cluster, each loads rows / share of a tile to all.
struct Rate { unsigned cycles, sm; unsigned long long begin, end; };
template <bool SHARED>
__global__ void __launch_bounds__(384, 1) k_rate(const __grid_constant__ CUtensorMap map, int rows, int fixed, int depth, int count, int stride, int wrap, int shared, Rate* out) {
  const int share = SHARED ? shared : 1;
  __shared__ uint64_t full[32], empty[32];
  const int rank = share > 1 ? cluster_rank() : 0, cluster = blockIdx.x / share;
  if (threadIdx.x == 0) {
    for (int i = 0; i < depth; i++) { bar_init(&full[i], 1); bar_init(&empty[i], share); }
    bar_fence();
  }
  __syncthreads();
  if (share > 1) { cluster_arrive(); cluster_wait(); }
  if (warp_of_tb() == 0 && elected()) {
    const int part = rows / share;
    unsigned long long g = gtime();
    unsigned t = tick();
    int y = (int)((long long)cluster * stride % wrap) * rows;
    // slot and parity of the next load, and of the next wait
    int slot = 0, parity = 0, seen = 0, phase = 0;
    const uint16_t all = (uint16_t)((1 << share) - 1);
    auto load = [&](bool again) {
      if (SHARED && again) bar_wait(&empty[slot], parity ^ 1);
      bar_expect(&full[slot], rows * ROW);
      char* to = tiles + slot * rows * ROW + rank * part * ROW;
      if (SHARED) tma_load_to(to, &map, &full[slot], 0, (fixed < 0 ? y : fixed) + rank * part, all);
      else tma_load(to, &map, &full[slot], 0, fixed < 0 ? y : fixed);
      y += rows;
      if (y >= wrap * rows) y = 0;
      if (++slot == depth) { slot = 0; parity ^= 1; }
    };
    for (int i = 0; i < depth && i < count; i++) load(false);
    for (int i = 0; i < count; i++) {
      bar_wait(&full[seen], phase);
      if (SHARED) for (int r = 0; r < share; r++) bar_arrive_at(&empty[seen], r);
      if (++seen == depth) { seen = 0; phase ^= 1; }
      if (i + depth < count) load(true);
    }
    unsigned e = tick();
    out[blockIdx.x] = Rate{e - t, smid(), g, gtime()};
  }
  __syncthreads();
  if (share > 1) { cluster_arrive(); cluster_wait(); }
}

// Cycles of each of 32 in a row by one thread: tests of a barrier that has completed, arrivals, tiles of one row; and of a turn of the
// three: what one warp that loads can do at most.
struct Unit { unsigned test, arrive, load, turn; };
__global__ void __launch_bounds__(384, 1) k_unit(const __grid_constant__ CUtensorMap map, Unit* out) {
  __shared__ uint64_t done, full[32];
  if (warp_of_tb() || !elected()) return;
  bar_init(&done, 1);
  for (int i = 0; i < 32; i++) bar_init(&full[i], 2);
  bar_fence();
  bar_arrive(&done);
  Unit u;
  for (int again = 0; again < 2; again++) {
    unsigned t = tick();
#pragma unroll
    for (int i = 0; i < 32; i++) bar_wait(&done, 0);
    u.test = tick() - t;
    t = tick();
#pragma unroll
    for (int i = 0; i < 32; i++) bar_expect(&full[i], ROW);
    u.arrive = tick() - t;
    t = tick();
#pragma unroll
    for (int i = 0; i < 32; i++) tma_load(tiles + i * ROW, &map, &full[i], 0, i);
    u.load = tick() - t;
    for (int i = 0; i < 32; i++) { bar_arrive(&full[i]); }
    for (int i = 0; i < 32; i++) { bar_wait(&full[i], again & 1); }
  }
  unsigned t = tick();
#pragma unroll
  for (int i = 0; i < 32; i++) {
    bar_wait(&done, 0);
    bar_expect(&full[i], ROW);
    tma_load(tiles + i * ROW, &map, &full[i], 0, i);
  }
  u.turn = tick() - t;
  for (int i = 0; i < 32; i++) { bar_arrive(&full[i]); bar_wait(&full[i], 0); }
  out[0] = u;
}

struct Store { unsigned read, done, rate; };
__global__ void __launch_bounds__(128) k_store(const __grid_constant__ CUtensorMap map, int rows, int count, Store* out) {
  if (warp_of_tb() || !elected()) return;
  Store s;
  for (int again = 0; again < 3; again++) {
    unsigned t = tick();
    tma_store(&map, tiles, 0, blockIdx.x * rows);
    tma_commit();
    tma_wait_read<0>();
    s.read = tick() - t;
    tma_wait<0>();
    s.done = tick() - t;
  }
  unsigned t = tick();
  for (int i = 0; i < count; i++) {
    tma_store(&map, tiles + (i & 3) * rows * ROW, 0, (blockIdx.x + i * gridDim.x) * rows);
    tma_commit();
    tma_wait_read<3>();
  }
  tma_wait_read<0>();
  s.rate = (tick() - t) / count;
  tma_wait<0>();
  out[blockIdx.x] = s;
}

template <class T> static std::vector<T> fetch(const void* p, int n) {
  CK(cudaDeviceSynchronize());
  std::vector<T> h(n);
  CK(cudaMemcpy(h.data(), p, sizeof(T) * n, cudaMemcpyDeviceToHost));
  return h;
}

int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  const size_t bytes = 256ull << 20;
  char *buf, *other; void* res;
  CK(cudaMalloc(&buf, bytes)); CK(cudaMalloc(&other, bytes)); CK(cudaMalloc(&res, 1 << 20));
  CK(cudaMemset(buf, 0, bytes));
  auto map_of = [&](int pitch, int box) { return tensor_map(buf, bytes / pitch, pitch / 2, box); };
  const int boxes[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};

  FILE* f = out_file(dir, "tma_latency.csv", "rows,pitch,sms,cold_map,asked,issue,median,min");
  for (int pitch : {128, 8192})
    for (int rows : boxes)
      for (int sms : {1, 132}) {
        std::vector<double> cold, asked, issue, warm;
        for (int rep = 0; rep < 4; rep++) {
          launch(k_latency, sms, 128, 64 * 1024, 1, 0, map_of(pitch, rows), tensor_map(buf, bytes / pitch, pitch / 2, rows), rows, (Latency*)res);
          auto h = fetch<Latency>(res, sms);
          if (rep) for (auto& l : h) { cold.push_back(l.cold); asked.push_back(l.asked); issue.push_back(l.issue); for (int i = 4; i < 32; i++) warm.push_back(l.warm[i]); }
        }
        fprintf(f, "%d,%d,%d,%.0f,%.0f,%.0f,%.0f,%.0f\n", rows, pitch, sms, stat_of(cold).med, stat_of(asked).med, stat_of(issue).med, stat_of(warm).med, stat_of(warm).mn);
      }
  fclose(f);

  auto rate = [&](const CUtensorMap& m, int sms, int rows, int fixed, int depth, int count, int stride, int wrap, int share) {
    launch(share > 1 ? k_rate<true> : k_rate<false>, sms, 384, SMEM, share, 0, m, rows, fixed, depth, count, stride, wrap, share, (Rate*)res);
    return fetch<Rate>(res, sms);
  };
  f = out_file(dir, "tma_rate.csv", "rows,valid,pitch,sms,share,depth,cycles");
  auto rated = [&](int pitch, int rows, int valid, int sms, int share, int depth) {
    double c[2];
    // a tile that is partly outside is the tensor's last; wrap keeps the region inside L2
    const int fixed = valid < rows ? (int)(bytes / pitch) - valid : -1;
    for (int v = 0; v < 2; v++) {
      std::vector<double> t;
      int wrap = std::max(64, (24 << 20) / (rows * ROW));
      if ((long long)wrap * rows > (long long)(bytes / pitch)) wrap = (int)(bytes / pitch) / rows;
      CUtensorMap m = map_of(pitch, rows / share);
      for (int rep = 0; rep < 4; rep++)
        for (auto& r : rate(m, sms, rows, fixed, depth, v ? 320 : 64, 37, wrap, share)) if (rep) t.push_back(r.cycles);
      c[v] = stat_of(t).med;
    }
    fprintf(f, "%d,%d,%d,%d,%d,%d,%.1f\n", rows, valid, pitch, sms, share, depth, (c[1] - c[0]) / 256);
    fflush(f);
  };
  for (int pitch : {128, 8192})
    for (int sms : {1, 132})
      for (int rows : {8, 16, 32, 64, 128, 256})
        for (int depth : {1, 2, 4, 8, 16})
          if (depth * rows * ROW <= SMEM) rated(pitch, rows, rows, sms, 1, depth);
  for (int rows : {64, 128})
    for (int valid : {8, 16, 32, 48, 63, 120})
      if (valid < rows) for (int depth : {1, 4}) rated(8192, rows, valid, 1, 1, depth);
  for (int share : {2, 4, 8})
    for (int rows : {8, 64, 128})
      for (int valid : {1, 4, 32, 64})
        if (valid < rows && rows / share >= 1) for (int depth : {1, 4, 8}) for (int sms : {share, 120}) rated(8192, rows, valid, sms, share, depth);
  for (int share : {2, 4, 8})
    for (int rows : {16, 32, 64, 128})
      for (int sms : {share, 128})
        for (int depth : {1, 4, 8})
          if (depth * rows * ROW <= SMEM && rows / share >= 4) rated(8192, rows, rows, sms, share, depth);
  fclose(f);

  f = out_file(dir, "tma_unit.csv", "what,cycles");
  for (int rep = 0; rep < 2; rep++) {
    launch(k_unit, 1, 384, 16384, 1, 0, map_of(8192, 1), (Unit*)res);
    Unit u = fetch<Unit>(res, 1)[0];
    if (rep) fprintf(f, "test,%.1f\narrive,%.1f\nload,%.1f\nturn,%.1f\n", u.test / 32., u.arrive / 32., u.load / 32., u.turn / 32.);
  }
  fclose(f);

  f = out_file(dir, "tma_store.csv", "rows,pitch,sms,read,done,cycles");
  for (int pitch : {128, 8192})
    for (int rows : {8, 16, 32, 64, 128})
      for (int sms : {1, 132}) {
        std::vector<double> a, b, c;
        for (int rep = 0; rep < 4; rep++) {
          launch(k_store, sms, 128, SMEM, 1, 0, map_of(pitch, rows), rows, 16, (Store*)res);
          if (rep) for (auto& s : fetch<Store>(res, sms)) { a.push_back(s.read); b.push_back(s.done); c.push_back(s.rate); } else fetch<Store>(res, sms);
        }
        fprintf(f, "%d,%d,%d,%.0f,%.0f,%.0f\n", rows, pitch, sms, stat_of(a).med, stat_of(b).med, stat_of(c).med);
      }
  fclose(f);

  f = out_file(dir, "tma_stream.csv", "mib,rows,share,depth,pass,bytes_a_cycle,gb_s");
  for (int mib : {8, 16, 24, 32, 40, 48, 56, 64, 96, 200})
    for (int rows : {64, 128})
      for (int share : {1, 2, 4})
        for (int depth : {4, 8}) {
          if (depth * rows * ROW > SMEM) continue;
          CUtensorMap m = map_of(128, rows / share);
          const int all = (int)(((long long)mib << 20) / (rows * ROW)), clusters = 132 / share, each = all / clusters;
          for (int pass = 0; pass < 4; pass++) {
            if (pass == 0) CK(cudaMemset(other, 1, bytes));
            auto h = rate(m, clusters * share, rows, -1, depth, each, each, all, share);
            std::vector<double> c;
            unsigned long long lo = ~0ull, hi = 0;
            for (auto& r : h) { c.push_back(r.cycles); lo = std::min(lo, r.begin); hi = std::max(hi, r.end); }
            fprintf(f, "%d,%d,%d,%d,%d,%.1f,%.0f\n", mib, rows, share, depth, pass, (double)each * rows * ROW / stat_of(c).med * clusters, (double)each * rows * ROW * clusters / (hi - lo));
          }
        }
  fclose(f);
  printf("done\n");
  return 0;
}
