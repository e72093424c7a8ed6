// A GEMM as libraries write it for Hopper, with clock stamps: one warp group loads tiles (multicast in the cluster), two multiply.
//   pipeline ROWS.csv DIR   writes DIR/pipeline.csv
// ROWS.csv names shapes: id,m,n,k,tile_m,tile_n,mode,stages,cluster_m,cluster_n,tbs,n_fast. fp16, both operands contiguous in k.
// mode 0: a warp group computes a whole tile, the two take turns; 1: they share a tile's rows; 2: they share its columns.
// Columns added: period_us in a graph of 30 launches, mhz, and medians over TBs of cycles from the TB's start: ready (barriers are
// initialised), met (the cluster has met), issued (the first load), full (the first tile is there), step (a k-step in the main
// loop of the first tile), main (its end), converted (the results are in shared memory), read (the store has read them), lived
// (the TB ends).
#include "hopper.cuh"

enum { SMEM = 227 * 1024 };
extern __shared__ __align__(1024) char tiles[];
struct Args { CUtensorMap a, b, c; };
struct Shape { int m, n, k, stages, cm, cn, mt, nt, n_fast; };
struct Note { unsigned ready, met, issued, full, main, converted, read, lived, sm; };

template <int TM, int TN, int MODE>
__global__ void __launch_bounds__(384, 1) k_gemm(const __grid_constant__ Args g, Shape p, Note* notes) {
  constexpr int MT = (MODE == 1 ? TM / 2 : TM) / 64, NT = MODE == 2 ? TN / 2 : TN, REGS = NT / 2;
  __shared__ uint64_t full[16], empty[16];
  const unsigned t0 = tick();
  const int cluster = p.cm * p.cn, rank = cluster > 1 ? cluster_rank() : 0, rm = rank % p.cm, rn = rank / p.cm;
  const int S = p.stages, steps = (p.k + 63) / 64, stage_bytes = (TM + TN) * 128;
  if (threadIdx.x == 0) {
    tma_prefetch_map(&g.a); tma_prefetch_map(&g.b); tma_prefetch_map(&g.c);
    for (int i = 0; i < S; i++) { bar_init(&full[i], 2); bar_init(&empty[i], (p.cm + p.cn - 1) * (MODE ? 2 : 1)); }
    bar_fence();
  }
  __syncthreads();
  Note note = {};
  note.ready = tick() - t0;
  if (cluster > 1) { cluster_arrive_relaxed(); cluster_wait(); }
  note.met = tick() - t0;
  const int cms = (p.mt + p.cm - 1) / p.cm, cns = (p.nt + p.cn - 1) / p.cn, all = cms * cns, clusters = gridDim.x / cluster;
  if (threadIdx.x < 128) {
    registers_down<40>();
    // a warp loads A, another B
    const int what = warp_of_tb();
    if (what < 2 && elected()) {
      int slot = 0, parity = 1, filled = 0;
      const CUtensorMap* map = what ? &g.b : &g.a;
      const int rows = what ? TN / p.cm : TM / p.cn, part = (what ? rm : rn) * rows, shared = what ? p.cm : p.cn;
      const uint16_t who = what ? (uint16_t)(((1 << p.cm) - 1) << rn * p.cm) : (uint16_t)(((1 << cluster) - 1) / ((1 << p.cm) - 1) << rm);
      for (int u = blockIdx.x / cluster; u < all; u += clusters) {
        const int mi = (p.n_fast ? u / cns : u % cms) * p.cm + rm, ni = (p.n_fast ? u % cns : u / cms) * p.cn + rn;
        const int y = (what ? ni * TN : mi * TM) + part;
        for (int s = 0; s < steps; s++) {
          bar_wait(&empty[slot], parity);
          bar_expect(&full[slot], (what ? TN : TM) * 128);
          char* to = tiles + slot * stage_bytes + (what ? TM * 128 : 0) + part * 128;
          if (shared > 1) tma_load_to(to, map, &full[slot], s * 64, y, who);
          else tma_load(to, map, &full[slot], s * 64, y);
          if (!filled) note.issued = tick() - t0;
          filled++;
          if (++slot == S) { slot = 0; parity ^= 1; }
        }
      }
      // other TBs may still arrive here
      for (int s = 0; cluster > 1 && s < S && s < filled; s++) { bar_wait(&empty[slot], parity); if (++slot == S) { slot = 0; parity ^= 1; } }
      if (!what) notes[blockIdx.x * 3] = note;
    }
    __syncwarp();
  } else {
    registers_up<232>();
    const int wg = threadIdx.x / 128 - 1, lane = threadIdx.x & 31, warp = threadIdx.x / 32 & 3;
    float d[MT][REGS];
    const int first = MODE ? 0 : wg * steps, turn = MODE ? 0 : wg;
    int slot = first % S, phase = first / S & 1, before = 0, seen = 0;
    char* stage_out = tiles + S * stage_bytes + (MODE ? 0 : wg * TM * TN * 2);
    auto release = [&](int slot) {
      const int t = threadIdx.x & 127;  // a thread arrives at one TB of its row or column in the cluster
      if (t < p.cm) { if (cluster > 1) bar_arrive_at(&empty[slot], rn * p.cm + t); else bar_arrive(&empty[slot]); }
      else if (t < p.cm + p.cn && t - p.cm != rn) bar_arrive_at(&empty[slot], (t - p.cm) * p.cm + rm);
    };
    for (int u = blockIdx.x / cluster + turn * clusters; u < all; u += clusters * (MODE ? 1 : 2)) {
      const int mi = (p.n_fast ? u / cns : u % cms) * p.cm + rm, ni = (p.n_fast ? u % cns : u / cms) * p.cn + rn;
#pragma unroll
      for (int a = 0; a < MT; a++)
#pragma unroll
        for (int r = 0; r < REGS; r++) d[a][r] = 0;
      for (int s = 0; s < steps; s++) {
        bar_wait(&full[slot], phase);
        if (s == 0 && !seen) note.full = tick() - t0;
        const uint32_t at = shared_address(tiles + slot * stage_bytes);
        const uint64_t a = wg_matrix(at + (MODE == 1 ? wg * (TM / 2) * 128 : 0)), b = wg_matrix(at + TM * 128 + (MODE == 2 ? wg * NT * 128 : 0));
        wg_fence();
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
          for (int m = 0; m < MT; m++) Wgmma<FP16, NT>::ss(d[m], a + m * 512 + 2 * q, b + 2 * q);
        wg_commit();
        if (s) { wg_wait<1>(); release(before); }
        before = slot;
        if (++slot == S) { slot = 0; phase ^= 1; }
      }
      wg_wait<0>();
      release(before);
      if (!seen) note.main = tick() - t0;
      // C is contiguous in m: tiles of BN rows of 64 elements, written by transposing stores of 8 x 8 elements
      if (seen) { if ((threadIdx.x & 127) == 0) tma_wait_read<0>(); named_barrier(1 + wg, 128); }
      constexpr int BN = MODE == 2 ? NT : TN;
      char* to = stage_out + (MODE == 2 ? wg * TM * NT * 2 : 0);
#pragma unroll
      for (int m = 0; m < MT; m++) {
        const int chunk = (MODE == 1 ? wg * MT : 0) + m;
#pragma unroll
        for (int j = 0; j < NT / 8; j += 2) {
          uint32_t q[4];
#pragma unroll
          for (int e = 0; e < 4; e++) { __half2 h = j + e / 2 < NT / 8 ? __floats2half2_rn(d[m][4 * (j + e / 2) + 2 * (e & 1)], d[m][4 * (j + e / 2) + 2 * (e & 1) + 1]) : __half2(); q[e] = *(uint32_t*)&h; }
          const int n = 8 * (j + (NT == 8 ? 0 : lane / 16)) + lane % 8;
          const uint32_t at = shared_address(to + chunk * BN * 128 + n * 128 + ((warp * 32 + (lane / 8 & 1) * 16) ^ (n & 7) << 4));
          if (NT == 8) asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(at), "r"(q[0]), "r"(q[1]) : "memory");
          else asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(q[0]), "r"(q[1]), "r"(q[2]), "r"(q[3]) : "memory");
        }
      }
      proxy_fence();
      named_barrier(1 + wg, 128);
      if (!seen) note.converted = tick() - t0;
      if ((threadIdx.x & 127) == 0) {
        for (int m = 0; m < MT; m++) {
          const int chunk = (MODE == 1 ? wg * MT : 0) + m;
          tma_store(&g.c, to + chunk * BN * 128, mi * TM + chunk * 64, ni * TN + (MODE == 2 ? wg * NT : 0));
        }
        tma_commit();
        if (!seen) { tma_wait_read<0>(); note.read = tick() - t0; }
      }
      if (!MODE) { slot += steps; phase ^= slot / S & 1; slot %= S; }
      seen = 1;
    }
    if ((threadIdx.x & 127) == 0) {
      tma_wait_read<0>();
      note.lived = tick() - t0;
      note.sm = smid();
      notes[blockIdx.x * 3 + 1 + wg] = note;
    }
    __syncwarp();
  }
}

struct Row { int id, m, n, k, tm, tn, mode, stages, cm, cn, tbs, n_fast; };
typedef void (*Kernel)(Args, Shape, Note*);
struct Known { int tm, tn, mode; Kernel k; };
#define KNOWN(TM, TN, MODE) {TM, TN, MODE, k_gemm<TM, TN, MODE>}
static const Known known[] = {KNOWN(64, 8, 0), KNOWN(64, 16, 0), KNOWN(64, 32, 0), KNOWN(64, 64, 0), KNOWN(128, 8, 0), KNOWN(128, 16, 0), KNOWN(128, 32, 0), KNOWN(128, 64, 0), KNOWN(128, 96, 0), KNOWN(128, 128, 0), KNOWN(192, 8, 0), KNOWN(256, 8, 0), KNOWN(128, 192, 2), KNOWN(192, 128, 2), KNOWN(192, 192, 2), KNOWN(320, 128, 2), KNOWN(256, 128, 1)};

// mean SM clock between two marks
__global__ void k_mark(unsigned long long* p) {
  if (threadIdx.x == 0) { p[2 * smid()] = clock64(); p[2 * smid() + 1] = gtime(); }
}

int main(int argc, char** argv) {
  if (argc < 3) { fprintf(stderr, "usage: pipeline ROWS.csv DIR\n"); return 1; }
  FILE* in = fopen(argv[1], "r");
  if (!in) { perror(argv[1]); return 1; }
  FILE* f = fopen((std::string(argv[2]) + "/pipeline.csv").c_str(), "w");
  fprintf(f, "id,m,n,k,tile_m,tile_n,mode,stages,cluster_m,cluster_n,tbs,n_fast,period_us,mhz,ready,met,issued,full,step,main,converted,read,lived\n");
  char *a, *b, *c; Note* notes; unsigned long long* marks;
  const size_t bytes = 1ull << 30;
  CK(cudaMalloc(&a, bytes)); CK(cudaMalloc(&b, bytes)); CK(cudaMalloc(&c, bytes)); CK(cudaMalloc(&notes, sizeof(Note) * 3 * 8192)); CK(cudaMalloc(&marks, 8192));
  // random data, as the clock depends on it
  std::vector<__half> h(1 << 22);
  unsigned x = 1;
  for (auto& v : h) { float s = 0; for (int i = 0; i < 4; i++) { x = x * 1664525u + 1013904223u; s += (float)(x >> 8) / (1 << 24) - 0.5f; } v = __float2half(s * 1.7f); }
  for (char* p : {a, b}) for (size_t at = 0; at < bytes; at += h.size() * 2) CK(cudaMemcpy(p + at, h.data(), h.size() * 2, cudaMemcpyHostToDevice));
  cudaStream_t s;
  CK(cudaStreamCreate(&s));
  cudaEvent_t e0, e1;
  CK(cudaEventCreate(&e0)); CK(cudaEventCreate(&e1));
  char line[256];
  if (!fgets(line, sizeof line, in)) return 1;
  Row r;
  while (fscanf(in, "%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d\n", &r.id, &r.m, &r.n, &r.k, &r.tm, &r.tn, &r.mode, &r.stages, &r.cm, &r.cn, &r.tbs, &r.n_fast) == 12) {
    const Known* w = nullptr;
    for (auto& q : known) if (q.tm == r.tm && q.tn == r.tn && q.mode == r.mode) w = &q;
    size_t smem = (size_t)r.stages * (r.tm + r.tn) * 128 + (size_t)r.tm * r.tn * 2 * (r.mode ? 1 : 2);
    while (smem > SMEM - 1024) { r.stages--; smem = (size_t)r.stages * (r.tm + r.tn) * 128 + (size_t)r.tm * r.tn * 2 * (r.mode ? 1 : 2); }
    if (!w || r.tm % r.cn || r.tn % r.cm || r.tm / r.cn > 256 || r.stages < 2 || r.tbs > 8192) { fprintf(stderr, "row %d is left out\n", r.id); continue; }
    Args g{tensor_map(a, r.m, r.k, r.tm / r.cn), tensor_map(b, r.n, r.k, r.tn / r.cm), tensor_map(c, r.n, r.m, r.mode == 2 ? r.tn / 2 : r.tn)};
    Shape p{r.m, r.n, r.k, r.stages, r.cm, r.cn, (r.m + r.tm - 1) / r.tm, (r.n + r.tn - 1) / r.tn, r.n_fast};
    auto once = [&]() { launch(w->k, r.tbs, 384, smem, r.cm * r.cn, s, g, p, notes); };
    const int launches = 30;
    cudaGraph_t graph; cudaGraphExec_t exec;
    CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < launches; i++) once();
    CK(cudaStreamEndCapture(s, &graph));
    CK(cudaGraphInstantiate(&exec, graph, 0));
    std::vector<double> t, mhz;
    for (int rep = 0; rep < 8; rep++) {
      k_mark<<<132, 32, 0, s>>>(marks);
      k_gate<<<1, 1, 0, s>>>(60000);
      CK(cudaEventRecord(e0, s));
      CK(cudaGraphLaunch(exec, s));
      CK(cudaEventRecord(e1, s));
      k_mark<<<132, 32, 0, s>>>(marks + 512);
      CK(cudaStreamSynchronize(s));
      float ms;
      CK(cudaEventElapsedTime(&ms, e0, e1));
      std::vector<unsigned long long> q(1024);
      CK(cudaMemcpy(q.data(), marks, 8192, cudaMemcpyDeviceToHost));
      if (rep < 2) continue;
      t.push_back(ms * 1e3 / launches);
      std::vector<double> v;
      for (int i = 0; i < 132; i++) if (q[512 + 2 * i + 1] > q[2 * i + 1]) v.push_back((double)(q[512 + 2 * i] - q[2 * i]) / (q[512 + 2 * i + 1] - q[2 * i + 1]) * 1e3);
      mhz.push_back(stat_of(v).med);
    }
    std::vector<Note> n(3 * r.tbs);
    CK(cudaMemcpy(n.data(), notes, sizeof(Note) * n.size(), cudaMemcpyDeviceToHost));
    std::vector<double> ready, met, issued, full, step, main, converted, read, lived;
    const int steps = (r.k + 63) / 64;
    for (int i = 0; i < r.tbs; i++) {
      Note& q = n[3 * i + 1];
      if (!q.main) continue;
      ready.push_back(q.ready); met.push_back(q.met);
      issued.push_back(n[3 * i].issued); full.push_back(q.full); main.push_back(q.main); converted.push_back(q.converted); read.push_back(q.read); lived.push_back(q.lived);
      step.push_back((double)(q.main - q.full) / steps);
    }
    fprintf(f, "%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%.3f,%.0f,%.0f,%.0f,%.0f,%.0f,%.1f,%.0f,%.0f,%.0f,%.0f\n", r.id, r.m, r.n, r.k, r.tm, r.tn, r.mode, r.stages, r.cm, r.cn, r.tbs, r.n_fast, stat_of(t).med, stat_of(mhz).med, stat_of(ready).med, stat_of(met).med, stat_of(issued).med, stat_of(full).med, stat_of(step).med, stat_of(main).med, stat_of(converted).med, stat_of(read).med, stat_of(lived).med);
    fflush(f);
    CK(cudaGraphExecDestroy(exec)); CK(cudaGraphDestroy(graph));
    CK(cudaMemset(notes, 0, sizeof(Note) * 3 * r.tbs));
  }
  fclose(f);
  printf("done\n");
  return 0;
}
