// Chains of dependent kernels in fifteen modes, and when the TBs of each kernel and its gate ran: of five instances of
// each mode, the last of those that are timed together.
//   modes DIR [quick|late]   writes DIR/modes.csv (a line a mode, `all`, and one a kernel and instance) and DIR/modes_tb.csv;
//                            late: late triggers and what to compare them with, of other chains
#include "persist.cuh"

static int NSM;
static cudaStream_t S0, S1;
static unsigned* CTR;  // counters
static const size_t CTR_BYTES = 1 << 20;
static FILE *CSV, *TRC;
static bool QUICK = false, LATE = false;

__global__ void k_wait_started(const unsigned* p, unsigned need, unsigned long long* rec) {
  unsigned long long t = gtime();
  poll(p, need);
  if (rec) { rec[0] = t; rec[1] = gtime(); }
}
static unsigned long long* GATES;

struct Stage {
  std::string name;
  std::function<void(cudaStream_t, bool, const Sync&, bool)> go;  // stream, PDL edge, switches, spread
  int tbs = 0, occ = 0;
  int rows = 0, cols = 0;      // counters: tile rows, tile columns of the output
  int wait_mode_tile = 0;      // how this stage waits under the tile policy (1 row, 2 tile)
  int need_row = 0;            // posts per row counter of the producer
  int wait_k = 1;
};
template <typename K>
static int occupancy(K k, int nt, size_t smem) {
  int o = 0;
  if (smem > 48 * 1024) CK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)smem));
  CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&o, k, nt, smem));
  return o;
}
template <class G>
static Stage gemm_stage(const char* nm, GemmArgs<typename G::T> g, int Z, int wmt, int need_row, int wait_k) {
  if (g.N % G::BN || g.K % G::BK) { fprintf(stderr, "bad GEMM size %d %d\n", g.N, g.K); exit(1); }
  Stage s;
  dim3 grid(g.N / G::BN, (g.M + G::BM - 1) / G::BM, Z);
  s.name = nm;
  s.tbs = grid.x * grid.y * grid.z;
  s.occ = occupancy(gemm_k<G, 2>, G::NT, G::SMEM);
  // spread: enough shared memory that no more TBs of this kernel than an even share fit on one SM
  int share = std::min(s.occ, (s.tbs + NSM - 1) / NSM);
  size_t pad = std::max<size_t>(G::SMEM, (size_t)(227 * 1024 / (share + 1) / 1024 + 1) * 1024);
  if (share == s.occ) pad = G::SMEM;
  CK(cudaFuncSetAttribute(gemm_k<G, 2>, cudaFuncAttributeMaxDynamicSharedMemorySize, 226 * 1024));
  s.rows = grid.y * Z;
  s.cols = grid.x;
  s.wait_mode_tile = wmt;
  s.need_row = need_row;
  s.wait_k = wait_k;
  s.go = [=](cudaStream_t st, bool pdl, const Sync& sy, bool spread) {
    launch_ex(gemm_k<G, 2>, grid, dim3(G::NT), spread ? pad : (size_t)G::SMEM, st, pdl, g, sy);
  };
  return s;
}
template <typename T, int BM, int BN>
static Stage gru_stage(CellArgs<T> a, int need_row) {
  Stage s;
  dim3 grid(a.H / BN, (a.B + BM - 1) / BM);
  s.name = "cell";
  s.tbs = grid.x * grid.y;
  s.occ = occupancy(gru_k<T, BM, BN, 2>, 256, 0);
  s.rows = grid.y;
  s.cols = grid.x;
  s.wait_mode_tile = 2;
  s.need_row = need_row;
  s.go = [=](cudaStream_t st, bool pdl, const Sync& sy, bool) { launch_ex(gru_k<T, BM, BN, 2>, grid, dim3(256), 0, st, pdl, a, sy); };
  return s;
}
template <int R>
static Stage softmax_stage(SmArgs a, int rows, int need_row) {
  Stage s;
  int grid = rows / R;
  s.name = "softmax";
  s.tbs = grid;
  s.occ = occupancy(softmax_k<R, 2>, 256, 0);
  s.rows = rows / a.rows_per_tile;
  s.cols = 1;
  s.wait_mode_tile = 1;
  s.need_row = need_row;
  s.go = [=](cudaStream_t st, bool pdl, const Sync& sy, bool) { launch_ex(softmax_k<R, 2>, dim3(grid), dim3(256), 0, st, pdl, a, sy); };
  return s;
}

// ---------------------------------------------------------------- persistent versions
template <class G, bool SEM>
__global__ void __launch_bounds__(G::NT, G::MINB) attn_persist(GemmArgs<__half> g1, SmArgs sm, GemmArgs<__half> g2, int Z, Sync y1, Sync y2, Sync y3) {
  extern __shared__ __align__(16) char smem[];
  int c1 = g1.N / G::BN, c2 = g2.N / G::BN, rows = g1.M / G::BM;
  for (int t = blockIdx.x; t < Z * rows * c1; t += gridDim.x) {
    int r = t / c1;
    G::template tile<2>(smem, g1, r % rows, t % c1, r / rows, r, y1);
    __syncthreads();
  }
  if (!SEM) cg::this_grid().sync();
  for (int t = blockIdx.x; t < Z * g1.M / 16; t += gridDim.x) {
    softmax_rows<16, 2>(sm, t, y2);
    __syncthreads();
  }
  if (!SEM) cg::this_grid().sync();
  for (int t = blockIdx.x; t < Z * rows * c2; t += gridDim.x) {
    int r = t / c2;
    G::template tile<2>(smem, g2, r % rows, t % c2, r / rows, r, y3);
    __syncthreads();
  }
}
// all steps in one kernel; base counters of step s: gemm at ctr + s*per, cell at ctr + s*per + gcnt
template <class G, bool SEM>
__global__ void __launch_bounds__(G::NT, G::MINB) gru_persist(GemmArgs<typename G::T> g, CellArgs<typename G::T> a, int steps, unsigned* ctr, int gcnt, int ccnt) {
  using T = typename G::T;
  extern __shared__ __align__(16) char smem[];
  int c1 = g.N / G::BN, c2 = a.H / G::BN, rows = (g.M + G::BM - 1) / G::BM;
  size_t hs = (size_t)a.B * a.H;
  for (int s = 0; s < steps; s++) {
    Sync y1, y2;
    if (SEM) {
      unsigned* base = ctr + (size_t)s * (gcnt + ccnt);
      y1.post = base; y1.post_mode = 2; y1.post_stride = c1;
      if (s) { y1.wait = base - ccnt; y1.wait_mode = 2; y1.wait_stride = c2; y1.wait_k = G::BN; y1.need = 1; }
      y2.wait = base; y2.wait_mode = 2; y2.wait_stride = c1; y2.need = 1;
      y2.post = base + gcnt; y2.post_mode = 2; y2.post_stride = c2;
    }
    GemmArgs<T> gs = g;
    gs.A = g.A + s * hs;
    for (int t = blockIdx.x; t < rows * c1; t += gridDim.x) {
      G::template tile<2>(smem, gs, t / c1, t % c1, 0, t / c1, y1);
      __syncthreads();
    }
    if (!SEM) cg::this_grid().sync();
    CellArgs<T> as = a;
    as.X = a.X + (size_t)s * 3 * hs;
    as.hp = a.hp + s * hs;
    as.ho = a.ho + s * hs;
    for (int t = blockIdx.x; t < rows * c2; t += gridDim.x) {
      gru_tile<T, G::BM, G::BN, 2>(as, t / c2, t % c2, y2);
      __syncthreads();
    }
    if (!SEM) cg::this_grid().sync();
  }
}
template <typename... KA, typename... A>
static void coop(void (*k)(KA...), int tbs, int nt, size_t smem, cudaStream_t s, A... a) {
  cudaLaunchConfig_t c = {};
  c.gridDim = dim3(tbs);
  c.blockDim = dim3(nt);
  c.dynamicSmemBytes = smem;
  c.stream = s;
  cudaLaunchAttribute at[1];
  at[0].id = cudaLaunchAttributeCooperative;
  at[0].val.cooperative = 1;
  c.attrs = at;
  c.numAttrs = 1;
  CK(cudaLaunchKernelEx(&c, k, KA(a)...));
}

// ---------------------------------------------------------------- a chain and its modes
struct Chain {
  std::string name, dtype, tile, params;
  std::vector<Stage> st;
  std::function<void(cudaStream_t)> persist[2];  // 0 grid.sync, 1 semaphores
  int persist_tbs = 0;
  std::function<void()> poison, reference;
  const void *out = nullptr, *ref = nullptr;
  size_t out_elems = 0, out_bytes = 0;
  double tol = 0;
  bool trace = false;
  size_t trace_stages = 64;
};
enum Mode { STREAM, STREAM_SEM, GRAPH, PDL, PDL_LATE, GRAPH_PDL, PDL_SEM_ROW, PDL_SEM_TILE, PDL_SEM_TILE_SPREAD, PDL_SEM_TILE_LATE, GRAPH_PDL_SEM_TILE, TWO_STREAM_SEM_ROW, TWO_STREAM_SEM_TILE, PERSIST_GRIDSYNC, PERSIST_SEM_TILE, NMODES };
static const char* MODE_NAME[] = {"1_stream", "1c_stream_with_sem_code_active", "2_graph", "3_pdl", "3l_pdl_late_trigger", "3g_graph_pdl", "4r_pdl_sem_row", "4t_pdl_sem_tile", "4ts_pdl_sem_tile_spread", "4tl_pdl_sem_tile_late_trigger", "4g_graph_pdl_sem_tile",
                                  "4sr_two_stream_sem_row", "4st_two_stream_sem_tile", "5_persistent_gridsync", "5s_persistent_sem_tile"};

static std::vector<Sync> make_sync(const Chain& c, bool tile_policy) {
  std::vector<Sync> v(c.st.size());
  unsigned* p = CTR + 1024;  // the first 1024 hold the started counts
  for (size_t i = 0; i + 1 < c.st.size(); i++) {
    const Stage &a = c.st[i], &b = c.st[i + 1];
    int wm = tile_policy ? b.wait_mode_tile : 1;
    v[i].post = p;
    v[i].post_mode = wm;
    v[i].post_stride = a.cols;
    v[i + 1].wait = p;
    v[i + 1].wait_mode = wm;
    v[i + 1].wait_stride = a.cols;
    v[i + 1].need = wm == 1 ? b.need_row : 1;
    v[i + 1].wait_k = b.wait_k;
    p += a.rows * a.cols;
  }
  if ((size_t)(p - CTR) * 4 > CTR_BYTES) { fprintf(stderr, "counters too many\n"); exit(1); }
  for (size_t i = 0; i < c.st.size(); i++) v[i].kernel = (int)i;
  return v;
}
static cudaEvent_t EVF, EVJ;
static void run_mode(const Chain& c, Mode m, TbRec* trace, const std::vector<Sync>& base) {
  std::vector<Sync> sy = base;
  if (trace) {
    size_t off = 0;
    for (size_t i = 0; i < c.st.size() && i < c.trace_stages; i++) { sy[i].trace = trace + off; off += c.st[i].tbs; }
  }
  auto plain = [&](size_t i) { Sync q; q.trace = sy[i].trace; q.kernel = (int)i; return q; };
  switch (m) {
    case STREAM: case GRAPH:
      for (size_t i = 0; i < c.st.size(); i++) c.st[i].go(S0, false, plain(i), false);
      break;
    case STREAM_SEM:
      for (size_t i = 0; i < c.st.size(); i++) c.st[i].go(S0, false, sy[i], false);
      break;
    case PDL: case GRAPH_PDL: case PDL_LATE:
      for (size_t i = 0; i < c.st.size(); i++) {
        Sync q = plain(i);
        q.pdl = m == PDL_LATE ? 6 : 3;
        c.st[i].go(S0, i > 0, q, false);
      }
      break;
    case PDL_SEM_ROW: case PDL_SEM_TILE: case GRAPH_PDL_SEM_TILE: case PDL_SEM_TILE_SPREAD: case PDL_SEM_TILE_LATE:
      for (size_t i = 0; i < c.st.size(); i++) {
        Sync q = sy[i];
        q.pdl = m == PDL_SEM_TILE_LATE ? 4 : 1;
        c.st[i].go(S0, i > 0, q, m == PDL_SEM_TILE_SPREAD && i > 0);
      }
      break;
    case TWO_STREAM_SEM_ROW: case TWO_STREAM_SEM_TILE:
      CK(cudaEventRecord(EVF, S0));
      CK(cudaStreamWaitEvent(S1, EVF, 0));
      for (size_t i = 0; i < c.st.size(); i++) {
        cudaStream_t s = (i & 1) ? S1 : S0;
        if (i) k_wait_started<<<1, 1, 0, s>>>(CTR + i - 1, c.st[i - 1].tbs, trace ? GATES + 2 * i : nullptr);
        Sync q = sy[i];
        q.started = CTR + i;
        c.st[i].go(s, false, q, false);
      }
      CK(cudaEventRecord(EVJ, S1));
      CK(cudaStreamWaitEvent(S0, EVJ, 0));
      break;
    case PERSIST_GRIDSYNC: c.persist[0](S0); break;
    case PERSIST_SEM_TILE: c.persist[1](S0); break;
    default: break;
  }
}
static void run_chain(Chain& c) {
  CK(cudaDeviceSynchronize());
  void* gold;
  CK(cudaMalloc(&gold, c.out_bytes));
  double base_med = 0, graph_med = 0;
  std::string tbs, occ, waves;
  char b[64];
  std::vector<size_t> shown = {0, 1};
  if (c.st.size() == 3) shown.push_back(2);
  for (size_t i : shown) {
    snprintf(b, 64, "%s%d", i ? "/" : "", c.st[i].tbs); tbs += b;
    snprintf(b, 64, "%s%d", i ? "/" : "", c.st[i].occ); occ += b;
    snprintf(b, 64, "%s%.2f", i ? "/" : "", c.st[i].tbs / (double)(c.st[i].occ * NSM)); waves += b;
  }
  printf("== %s %s %s %s tbs %s waves %s\n", c.name.c_str(), c.dtype.c_str(), c.tile.c_str(), c.params.c_str(), tbs.c_str(), waves.c_str());
  for (int m = 0; m < NMODES; m++) {
    if (LATE && m != STREAM && m != PDL && m != PDL_LATE && m != PDL_SEM_TILE_LATE) continue;
    bool tile_policy = m != PDL_SEM_ROW && m != TWO_STREAM_SEM_ROW;
    if ((m == PERSIST_GRIDSYNC || m == PERSIST_SEM_TILE) && !c.persist[0]) continue;
    std::vector<Sync> sy = make_sync(c, tile_policy);
    cudaGraph_t g = nullptr;
    cudaGraphExec_t ge = nullptr;
    bool graph = m == GRAPH || m == GRAPH_PDL || m == GRAPH_PDL_SEM_TILE;
    if (graph) {
      CK(cudaStreamBeginCapture(S0, cudaStreamCaptureModeThreadLocal));
      run_mode(c, (Mode)m, nullptr, sy);
      CK(cudaStreamEndCapture(S0, &g));
      CK(cudaGraphInstantiate(&ge, g, 0));
    }
    auto once = [&] { if (graph) CK(cudaGraphLaunch(ge, S0)); else run_mode(c, (Mode)m, nullptr, sy); };
    // timing
    int launches = graph ? 1 + (int)c.st.size() / 4 : (m >= PERSIST_GRIDSYNC ? 1 : (int)c.st.size() * ((m == TWO_STREAM_SEM_ROW || m == TWO_STREAM_SEM_TILE) ? 2 : 1));
    int per = std::max(2, std::min(16, 300 / (launches + 4)));
    int want = QUICK ? 4 : 32;
    std::vector<double> v;
    std::vector<cudaEvent_t> ea(per), eb(per);
    for (int i = 0; i < per; i++) { CK(cudaEventCreate(&ea[i])); CK(cudaEventCreate(&eb[i])); }
    bool firstb = true;
    while ((int)v.size() < want) {
      k_gate<<<1, 1, 0, S0>>>((unsigned long long)(200 + per * (launches * 4 + 40)) * 1000ull);
      for (int i = 0; i < per; i++) {
        CK(cudaMemsetAsync(CTR, 0, CTR_BYTES, S0));
        CK(cudaEventRecord(ea[i], S0));
        once();
        CK(cudaEventRecord(eb[i], S0));
      }
      CK(cudaDeviceSynchronize());
      for (int i = firstb ? 1 : 0; i < per; i++) {
        float ms;
        CK(cudaEventElapsedTime(&ms, ea[i], eb[i]));
        v.push_back(ms * 1e3);
      }
      firstb = false;
    }
    for (int i = 0; i < per; i++) { cudaEventDestroy(ea[i]); cudaEventDestroy(eb[i]); }
    
    Stat s = stat_of(v);
    if (m == STREAM) base_med = s.med;
    printf("   %-30s %10.2f us [%.2f .. %.2f]  x%.3f\n", MODE_NAME[m], s.med, s.mn, s.mx, base_med / s.med);
    fprintf(CSV, "%s,%s,%s,%s,%s,all,%.3f\n", c.name.c_str(), c.dtype.c_str(), c.tile.c_str(), c.params.c_str(), MODE_NAME[m], s.med);
    if (m < PERSIST_GRIDSYNC) {
      size_t n = 0;
      for (size_t i = 0; i < c.st.size(); i++) n += c.st[i].tbs;
      TbRec* d;
      CK(cudaMalloc(&d, n * sizeof(TbRec)));
      cudaGraph_t g2 = nullptr;
      cudaGraphExec_t ge2 = nullptr;
      if (graph) {
        CK(cudaStreamBeginCapture(S0, cudaStreamCaptureModeThreadLocal));
        run_mode(c, (Mode)m, d, sy);
        CK(cudaStreamEndCapture(S0, &g2));
        CK(cudaGraphInstantiate(&ge2, g2, 0));
      }
      for (int rep = 0; rep < 5; rep++) {
        CK(cudaMemset(d, 0, n * sizeof(TbRec)));
        CK(cudaMemset(GATES, 0, 4096));
        CK(cudaDeviceSynchronize());
        std::vector<cudaEvent_t> ea(per), eb(per);
        for (int i = 0; i < per; i++) { CK(cudaEventCreate(&ea[i])); CK(cudaEventCreate(&eb[i])); }
        k_gate<<<1, 1, 0, S0>>>((unsigned long long)(200 + per * (launches * 4 + 40)) * 1000ull);
        for (int i = 0; i < per; i++) {
          CK(cudaMemsetAsync(CTR, 0, CTR_BYTES, S0));
          CK(cudaEventRecord(ea[i], S0));
          if (graph) CK(cudaGraphLaunch(i + 1 < per ? ge : ge2, S0)); else run_mode(c, (Mode)m, i + 1 < per ? nullptr : d, sy);
          CK(cudaEventRecord(eb[i], S0));
        }
        CK(cudaDeviceSynchronize());
        float ms;
        CK(cudaEventElapsedTime(&ms, ea[per - 1], eb[per - 1]));
        for (int i = 0; i < per; i++) { cudaEventDestroy(ea[i]); cudaEventDestroy(eb[i]); }
        std::vector<TbRec> h(n);
        std::vector<unsigned long long> gt(512);
        CK(cudaMemcpy(h.data(), d, n * sizeof(TbRec), cudaMemcpyDeviceToHost));
        CK(cudaMemcpy(gt.data(), GATES, 4096, cudaMemcpyDeviceToHost));
        unsigned long long t0 = ~0ull;
        for (auto& r : h) t0 = std::min(t0, r.t0);
        size_t off = 0;
        for (size_t k = 0; k < c.st.size(); k++) {
          unsigned long long fs = ~0ull, ls = 0, fe = ~0ull, le = 0, fw = ~0ull, lw = 0;
          std::map<unsigned, int> sm;
          for (int t = 0; t < c.st[k].tbs; t++) {
            auto& r = h[off + t];
            fs = std::min(fs, r.t0); ls = std::max(ls, r.t0); fe = std::min(fe, r.t1); le = std::max(le, r.t1);
            if (r.w0) { fw = std::min(fw, r.w0); lw = std::max(lw, r.w0); }
            sm[r.sm]++;
          }
          int mx = 0;
          for (auto& q : sm) mx = std::max(mx, q.second);
          off += c.st[k].tbs;
          fprintf(CSV, "%s,%s,%s,%s,%s,%d,%.3f,%zu,%d,%llu,%llu,%llu,%llu,%lld,%lld,%zu,%d,%lld,%lld\n", c.name.c_str(), c.dtype.c_str(), c.tile.c_str(), c.params.c_str(), MODE_NAME[m], rep, ms * 1e3, k, c.st[k].tbs, fs - t0, ls - t0, fe - t0, le - t0,
                  lw ? (long long)(fw - t0) : -1, lw ? (long long)(lw - t0) : -1, sm.size(), mx, gt[2 * k + 1] ? (long long)(gt[2 * k] - t0) : -1, gt[2 * k + 1] ? (long long)(gt[2 * k + 1] - t0) : -1);
        }
        if (c.trace && rep == 4)
          for (auto& r : h)
            fprintf(TRC, "%s,%s,%s,%s,%s,%d,%d,%u,%llu,%lld,%lld,%llu\n", c.name.c_str(), c.dtype.c_str(), c.tile.c_str(), c.params.c_str(), MODE_NAME[m], r.kernel, r.tb, r.sm, r.t0 - t0, r.w0 ? (long long)(r.w0 - t0) : -1ll, r.w1 ? (long long)(r.w1 - t0) : -1ll, r.t1 - t0);
      }
      CK(cudaFree(d));
      if (graph) { CK(cudaGraphExecDestroy(ge2)); CK(cudaGraphDestroy(g2)); }
    }
    if (graph) { CK(cudaGraphExecDestroy(ge)); CK(cudaGraphDestroy(g)); }
    (void)graph_med;
  }
  CK(cudaFree(gold));
}

template <typename T>
static T* dalloc(size_t n, float amp, unsigned seed) {
  T* p;
  CK(cudaMalloc(&p, n * sizeof(T)));
  if (amp > 0) init_rand<T><<<1024, 256>>>(p, n, amp, seed);
  return p;
}
static const char* dt(float*) { return "fp32"; }
static const char* dt(__half*) { return "fp16"; }
template <class G>
static std::string tname() { return std::to_string(G::BM) + "x" + std::to_string(G::BN) + "x" + std::to_string(G::BK) + "_" + std::to_string(G::NT) + "thr"; }

// X [tok, w0] -> [tok, w1] -> ... : one GEMM a layer, relu between
template <class G>
static void mlp(const char* name, std::vector<int> w, int tok, bool trace) {
  using T = typename G::T;
  static unsigned seed = 1;
  seed += 7;
  int n = (int)w.size() - 1;
  std::vector<T*> act(n + 1), ref(n + 1), W(n);
  for (int l = 0; l <= n; l++) act[l] = dalloc<T>((size_t)tok * w[l], l ? 0.f : 1.f, seed);
  ref[0] = act[0];
  for (int l = 1; l <= n; l++) ref[l] = dalloc<T>((size_t)tok * w[l], 0.f, 0);
  for (int l = 0; l < n; l++) W[l] = dalloc<T>((size_t)w[l] * w[l + 1], (l ? 2.4f : 1.7f) / sqrtf((float)w[l]), seed + 1 + l);
  Chain c;
  c.name = name;
  c.dtype = dt((T*)0);
  c.tile = tname<G>();
  c.params = "widths=";
  for (int l = 0; l <= n && l < 4; l++) c.params += (l ? "-" : "") + std::to_string(w[l]);
  c.params += ";layers=" + std::to_string(n) + ";tokens=" + std::to_string(tok);
  std::vector<GemmArgs<T>> ga, gr;
  int mx = 0;
  for (int l = 0; l < n; l++) {
    ga.push_back(GemmArgs<T>{act[l], W[l], act[l + 1], tok, w[l + 1], w[l], w[l], w[l + 1], w[l + 1], 0, 0, 0, l + 1 < n});
    gr.push_back(GemmArgs<T>{ref[l], W[l], ref[l + 1], tok, w[l + 1], w[l], w[l], w[l + 1], w[l + 1], 0, 0, 0, l + 1 < n});
    c.st.push_back(gemm_stage<G>("gemm", ga[l], 1, 2, w[l] / G::BN, G::BN));
    c.st.back().name += std::to_string(l + 1);
    mx = std::max(mx, c.st.back().tbs);
  }
  int po = std::min(occupancy(mlp_persist<G, false>, G::NT, G::SMEM), occupancy(mlp_persist<G, true>, G::NT, G::SMEM));
  c.persist_tbs = std::min(po * NSM, mx);
  int pt = c.persist_tbs;
  std::vector<Sync> sy = make_sync(c, true);
  Layers<T> L0, L1;
  L0.n = L1.n = n;
  for (int l = 0; l < n; l++) { L0.g[l] = L1.g[l] = ga[l]; L0.y[l] = Sync(); L1.y[l] = sy[l]; }
  c.persist[0] = [=](cudaStream_t s) { coop(mlp_persist<G, false>, pt, G::NT, G::SMEM, s, L0); };
  c.persist[1] = [=](cudaStream_t s) { coop(mlp_persist<G, true>, pt, G::NT, G::SMEM, s, L1); };
  c.poison = [=] { for (int l = 1; l <= n; l++) CK(cudaMemset(act[l], 0xff, sizeof(T) * tok * w[l])); };
  c.reference = [=] { for (int l = 0; l < n; l++) ref_gemm(gr[l], 1); };
  c.out = act[n]; c.ref = ref[n]; c.out_elems = (size_t)tok * w[n]; c.out_bytes = c.out_elems * sizeof(T);
  c.tol = sizeof(T) == 4 ? 1e-4 : 4e-3;
  c.trace = trace;
  run_chain(c);
  for (T* p : act) CK(cudaFree(p));
  for (int l = 1; l <= n; l++) CK(cudaFree(ref[l]));
  for (T* p : W) CK(cudaFree(p));
}

template <class G>
static void gru(int H, int B, int steps, bool trace) {
  using T = typename G::T;
  static unsigned seed = 1001;
  seed += 7;
  size_t hs = (size_t)B * H;
  T *hb = dalloc<T>(hs * (steps + 1), 0.5f, seed), *hr = dalloc<T>(hs * (steps + 1), 0.5f, seed);  // h_0 .. h_steps
  T *X = dalloc<T>(hs * 3 * steps, 1.f, seed + 1), *W = dalloc<T>((size_t)H * 3 * H, 1.7f / sqrtf(H), seed + 2);
  T *Gb = dalloc<T>(hs * 3, 0, 0), *Gr = dalloc<T>(hs * 3, 0, 0);
  Chain c;
  c.name = "gru";
  c.dtype = dt((T*)0);
  c.tile = tname<G>();
  c.params = "hidden=" + std::to_string(H) + ";batch=" + std::to_string(B) + ";steps=" + std::to_string(steps);
  auto ga = [=](T* h, T* g, int s) { return GemmArgs<T>{h + s * hs, W, g, B, 3 * H, H, H, 3 * H, 3 * H, 0, 0, 0, 0}; };
  auto ca = [=](T* h, T* g, int s) { return CellArgs<T>{g, X + s * 3 * hs, h + s * hs, h + (s + 1) * hs, B, H}; };
  for (int s = 0; s < steps; s++) {
    c.st.push_back(gemm_stage<G>("gemm", ga(hb, Gb, s), 1, 2, H / G::BN, G::BN));
    c.st.push_back(gru_stage<T, G::BM, G::BN>(ca(hb, Gb, s), 3 * H / G::BN));
  }
  int po = std::min(occupancy(gru_persist<G, false>, G::NT, G::SMEM), occupancy(gru_persist<G, true>, G::NT, G::SMEM));
  c.persist_tbs = std::min(po * NSM, c.st[0].tbs);
  int pt = c.persist_tbs, gc = c.st[0].rows * c.st[0].cols, cc = c.st[1].rows * c.st[1].cols;
  GemmArgs<T> g0 = ga(hb, Gb, 0);
  CellArgs<T> c0 = ca(hb, Gb, 0);
  unsigned* ctr = CTR + 1024;
  c.persist[0] = [=](cudaStream_t s) { coop(gru_persist<G, false>, pt, G::NT, G::SMEM, s, g0, c0, steps, ctr, gc, cc); };
  c.persist[1] = [=](cudaStream_t s) { coop(gru_persist<G, true>, pt, G::NT, G::SMEM, s, g0, c0, steps, ctr, gc, cc); };
  c.poison = [=] { CK(cudaMemset(Gb, 0xff, sizeof(T) * hs * 3)); CK(cudaMemset(hb + hs, 0xff, sizeof(T) * hs * steps)); };
  c.reference = [=] {
    for (int s = 0; s < steps; s++) {
      ref_gemm(ga(hr, Gr, s), 1);
      ref_gru<T><<<(B * H + 255) / 256, 256>>>(ca(hr, Gr, s));
    }
  };
  c.out = hb + hs; c.ref = hr + hs; c.out_elems = hs * steps; c.out_bytes = c.out_elems * sizeof(T);
  c.tol = sizeof(T) == 4 ? 1e-4 : 1e-2;
  c.trace = trace;
  c.trace_stages = 12;
  run_chain(c);
  for (T* p : {hb, hr, X, W, Gb, Gr}) CK(cudaFree(p));
}

template <class G>
static void attn(int Z, int S, bool trace) {
  using T = __half;
  const int D = 64;
  static unsigned seed = 5001;
  seed += 7;
  size_t qs = (size_t)S * D, ss = (size_t)S * S;
  T *Q = dalloc<T>(Z * qs, 1.f, seed), *Kt = dalloc<T>(Z * qs, 1.f, seed + 1), *V = dalloc<T>(Z * qs, 1.f, seed + 2);
  T *Sc = dalloc<T>(Z * ss, 0, 0), *P = dalloc<T>(Z * ss, 0, 0), *O = dalloc<T>(Z * qs, 0, 0), *Sr = dalloc<T>(Z * ss, 0, 0), *Pr = dalloc<T>(Z * ss, 0, 0), *Or = dalloc<T>(Z * qs, 0, 0);
  GemmArgs<T> g1{Q, Kt, Sc, S, S, D, D, S, S, (long long)qs, (long long)qs, (long long)ss, 0}, g2{P, V, O, S, D, S, S, D, D, (long long)ss, (long long)qs, (long long)qs, 0};
  SmArgs sm{Sc, P, S, 0.125f, G::BM};
  Chain c;
  c.name = "attention";
  c.dtype = "fp16";
  c.tile = tname<G>();
  c.params = "heads=" + std::to_string(Z) + ";seq=" + std::to_string(S) + ";d=64";
  c.st.push_back(gemm_stage<G>("qk", g1, Z, 0, 0, 0));
  c.st.push_back(softmax_stage<16>(sm, Z * S, S / G::BN));
  c.st.push_back(gemm_stage<G>("pv", g2, Z, 1, G::BM / 16, 0));
  int po = std::min(occupancy(attn_persist<G, false>, G::NT, G::SMEM), occupancy(attn_persist<G, true>, G::NT, G::SMEM));
  c.persist_tbs = std::min(po * NSM, c.st[0].tbs);
  int pt = c.persist_tbs;
  std::vector<Sync> sy = make_sync(c, true);
  Sync a = sy[0], b = sy[1], d = sy[2];
  c.persist[0] = [=](cudaStream_t s) { coop(attn_persist<G, false>, pt, G::NT, G::SMEM, s, g1, sm, g2, Z, Sync(), Sync(), Sync()); };
  c.persist[1] = [=](cudaStream_t s) { coop(attn_persist<G, true>, pt, G::NT, G::SMEM, s, g1, sm, g2, Z, a, b, d); };
  c.poison = [=] { CK(cudaMemset(Sc, 0xff, 2 * Z * ss)); CK(cudaMemset(P, 0xff, 2 * Z * ss)); CK(cudaMemset(O, 0xff, 2 * Z * qs)); };
  GemmArgs<T> r1 = g1, r2 = g2;
  r1.C = Sr; r2.A = Pr; r2.C = Or;
  c.reference = [=] { ref_gemm(r1, Z); ref_softmax<<<(Z * S + 127) / 128, 128>>>(Sr, Pr, Z * S, S, 0.125f); ref_gemm(r2, Z); };
  c.out = O; c.ref = Or; c.out_elems = Z * qs; c.out_bytes = c.out_elems * 2;
  c.tol = 5e-3;
  c.trace = trace;
  run_chain(c);
  for (T* p : {Q, Kt, V, Sc, P, O, Sr, Pr, Or}) CK(cudaFree(p));
}

int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  QUICK = argc > 2 && !strcmp(argv[2], "quick");
  LATE = argc > 2 && !strcmp(argv[2], "late");
  cudaDeviceProp p;
  CK(cudaGetDeviceProperties(&p, 0));
  NSM = p.multiProcessorCount;
  int lo, hi;
  CK(cudaDeviceGetStreamPriorityRange(&lo, &hi));
  CK(cudaStreamCreateWithPriority(&S0, cudaStreamNonBlocking, hi));
  CK(cudaStreamCreateWithPriority(&S1, cudaStreamNonBlocking, lo));
  CK(cudaEventCreateWithFlags(&EVF, cudaEventDisableTiming));
  CK(cudaEventCreateWithFlags(&EVJ, cudaEventDisableTiming));
  CK(cudaMalloc(&CTR, CTR_BYTES));
  CK(cudaMalloc(&GATES, 4096));
  CSV = fopen((dir + "/modes.csv").c_str(), "w");
  TRC = fopen((dir + "/modes_tb.csv").c_str(), "w");
  fprintf(CSV, "chain,dtype,tile,params,mode,instance,event_us,stage,tbs,first_start_ns,last_start_ns,first_end_ns,last_end_ns,first_wait_end_ns,last_wait_end_ns,sms,most_tbs,gate_start_ns,gate_end_ns\n");
  fprintf(TRC, "chain,dtype,tile,params,mode,stage,tb,sm,start_ns,first_wait_end_ns,last_wait_end_ns,end_ns\n");
  if (LATE) {
    for (int tokens : {256, 512}) mlp<H64>("mlp", {1024, 4096, 1024}, tokens, true);
    for (int tokens : {256, 512}) mlp<H64>("mlp", {2048, 8192, 2048}, tokens, true);
    mlp<H128w8>("mlp", {1024, 4096, 1024}, 1024, true);
    for (int tokens : {512, 1024}) mlp<H128w8>("mlp", {2048, 8192, 2048}, tokens, true);
    mlp<H128w8>("mlp", {4096, 16384, 4096}, 128, true);
    for (int tokens : {64, 256}) mlp<S64>("mlp", {1024, 4096, 1024}, tokens, true);
    for (int keys : {512, 1024}) attn<H64>(16, keys, true);
    return 0;
  }
  mlp<H128w8>("square2", {4096, 4096, 4096}, 1024, false);
  attn<H64>(128, 128, true);
  attn<H64>(16, 1024, false);
  mlp<H128w8>("mlp", {2048, 8192, 2048}, 512, true);
  mlp<H128w8>("mlp", {1024, 4096, 1024}, 512, false);
  mlp<H128w8>("mlp", {2048, 8192, 2048}, 128, false);
  mlp<S64>("mlp", {1024, 4096, 1024}, 64, false);
  gru<H64>(512, 32, 20, true);
  mlp<H64>("mlp", {2048, 8192, 2048}, 512, true);
  mlp<H128w8>("square2", {4096, 4096, 4096}, 1024, false);
  fclose(CSV);
  fclose(TRC);
  CK(cudaDeviceSynchronize());
  printf("done\n");
  return 0;
}
