// How the SM clock of an H200 follows the load, microsecond by microsecond.
//   clock DIR   writes DIR/clock.csv: case, kind, from_us, to_us, MHz (mean over SMs), least, most (over SMs)
//   clock DIR long   writes DIR/clock_long.csv: the same of products back to back, until the power limit of the board tells
// One warp an SM notes global time and cycle counter about once a microsecond while another kernel runs beside it; time 0
// is when that kernel was let go. Matrix products note both at the start and the end of each TB instead (`kind` tb).
#include "suite.cuh"

struct Sample { unsigned long long t, c; };
enum { ROOM = 8192 };

__global__ void k_watch(Sample* out, unsigned* count, unsigned* here, const unsigned* stop, unsigned ns) {
  if (threadIdx.x) return;
  unsigned sm = smid(), n = 0;
  red_release(here, 1);
  while (n < ROOM) {
    Sample s{gtime(), (unsigned long long)clock64()};
    out[sm * ROOM + n++] = s;
    if (ld_volatile(stop)) break;
    __nanosleep(ns);
  }
  count[sm] = n;
}
__global__ void k_mark(unsigned long long* at) { *at = gtime(); }
__global__ void k_set(unsigned* p) { *p = 1; __threadfence(); }

// `bursts` bursts of `ns` each, `gap` ns apart, on a common time line that begins at *zero + 20 us
template <typename F>
__device__ void bursts(unsigned* used, unsigned long long* zero, int n, unsigned ns, unsigned gap, F work) {
  if (threadIdx.x == 0) used[smid()] = 1;
  unsigned long long z = *(volatile unsigned long long*)zero + 20000;
  for (int b = 0; b < n; b++) {
    unsigned long long from = z + (unsigned long long)b * (ns + gap), to = from + ns;
    while (gtime() < from) __nanosleep(100);
    while (gtime() < to) work();
  }
}
__global__ void k_mma(unsigned* used, unsigned long long* zero, int n, unsigned ns, unsigned gap, float* out, unsigned mask, int rest) {
  unsigned a[4], b[2];
  for (int i = 0; i < 4; i++) a[i] = ((77u * (threadIdx.x * 7 + i + 1) * 2654435761u) & 0x83ff83ffu | 0x3a003a00u) & mask;
  for (int i = 0; i < 2; i++) b[i] = ((77u * (threadIdx.x * 11 + i + 5) * 2246822519u) & 0x83ff83ffu | 0x38003800u) & mask;
  float d[4][4] = {};
  unsigned x = threadIdx.x;
  bursts(used, zero, n, ns, gap, [&] {
#pragma unroll
    for (int u = 0; u < 8; u++)
#pragma unroll
      for (int j = 0; j < 4; j++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                     : "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int r = 0; r < rest; r++) asm volatile("mad.lo.u32 %0,%0,%0,%0;" : "+r"(x));  // a dependent chain: tensor cores rest
  });
  float s = (float)x;
  for (int j = 0; j < 4; j++) for (int q = 0; q < 4; q++) s += d[j][q];
  if (s == 12345.678f) out[threadIdx.x] = s;
}
__global__ void k_ffma(unsigned* used, unsigned long long* zero, int n, unsigned ns, unsigned gap, float* out) {
  float a[8], x[4], y[4];
  for (int i = 0; i < 8; i++) a[i] = threadIdx.x * 0.37f + i * 1.7f;
  for (int i = 0; i < 4; i++) {
    x[i] = 1e-3f * (float)((threadIdx.x * 7919 + i * 104729 + 13) % 2003) - 1.f;
    y[i] = 1e-3f * (float)((threadIdx.x * 6007 + i * 15485863 + 7) % 1999) - 1.f;
  }
  bursts(used, zero, n, ns, gap, [&] {
#pragma unroll
    for (int u = 0; u < 16; u++)
#pragma unroll
      for (int i = 0; i < 8; i++) asm volatile("fma.rn.f32 %0,%1,%2,%0;" : "+f"(a[i]) : "f"(x[(i + u) & 3]), "f"(y[(i / 2 + u / 4) & 3]));
  });
  float s = 0;
  for (int i = 0; i < 8; i++) s += a[i];
  if (s == 12345.678f) out[threadIdx.x] = s;
}
__global__ void k_dfma(unsigned* used, unsigned long long* zero, int n, unsigned ns, unsigned gap, float* out) {
  double a[8];
  for (int i = 0; i < 8; i++) a[i] = threadIdx.x * 0.37 + i * 1.7;
  double b = 0.9999, c = 0.377 + threadIdx.x * 1e-3;
  bursts(used, zero, n, ns, gap, [&] {
#pragma unroll
    for (int u = 0; u < 4; u++)
#pragma unroll
      for (int i = 0; i < 8; i++) asm volatile("fma.rn.f64 %0,%0,%1,%2;" : "+d"(a[i]) : "d"(b), "d"(c));
  });
  double s = 0;
  for (int i = 0; i < 8; i++) s += a[i];
  if (s == 12345.678) out[threadIdx.x] = (float)s;
}
__global__ void k_dram(unsigned* used, unsigned long long* zero, int n, unsigned ns, unsigned gap, float* out, const float4* in, size_t wrap) {
  float s = 0;
  size_t at = (blockIdx.x * (size_t)blockDim.x + threadIdx.x);
  bursts(used, zero, n, ns, gap, [&] {
    float4 v[4];
#pragma unroll
    for (int u = 0; u < 4; u++) {
      v[u] = __ldcg(in + at % wrap);
      at += (size_t)gridDim.x * blockDim.x;
    }
#pragma unroll
    for (int u = 0; u < 4; u++) s += v[u].x;
  });
  if (s == 12345.678f) out[threadIdx.x] = s;
}
// one thread, dependent loads that hit L2: latency in ns and in cycles of its own SM
__global__ void k_chase(Sample* out, unsigned* count, unsigned* here, const unsigned* stop, const unsigned* ring) {
  red_release(here, 1);
  unsigned i = 0, n = 0;
  while (n < ROOM) {
    out[n++] = Sample{gtime(), (unsigned long long)clock64()};
    if (ld_volatile(stop)) break;
    for (int k = 0; k < 16; k++) asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(i) : "l"(ring + i));
  }
  count[0] = n + (i == ~0u);
}
struct Span { unsigned sm; unsigned pad; unsigned long long t0, c0, t1, c1; };
template <class G>
__global__ void __launch_bounds__(G::NT, G::MINB) k_gemm(GemmArgs<typename G::T> g, Span* spans) {
  extern __shared__ __align__(16) char smem[];
  Sync y;
  unsigned long long t0 = gtime(), c0 = clock64();
  G::template tile<-1>(smem, g, blockIdx.y, blockIdx.x, 0, blockIdx.y, y);
  __syncthreads();
  if (threadIdx.x == 0) spans[blockIdx.y * gridDim.x + blockIdx.x] = Span{smid(), 0, t0, c0, gtime(), (unsigned long long)clock64()};
}
__global__ void k_half(__half* p, size_t n, float scale) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    unsigned h = (unsigned)i * 2654435761u;
    h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
    p[i] = __float2half_rn(((float)h * (2.f / 4294967296.f) - 1.f) * scale);
  }
}
__global__ void k_unit(float* p, size_t n) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    unsigned h = (unsigned)i * 2654435761u;
    h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
    p[i] = (float)h * (2.f / 4294967296.f) - 1.f;
  }
}

static int SMS;
static Sample* SAMPLES;
static unsigned *COUNT, *HERE, *STOP, *USED;
static unsigned long long* ZERO;
static cudaStream_t SA, SB;
static FILE* F;

// cycles of an SM at time t, between two samples
static double cycles_at(const Sample* s, unsigned n, double t) {
  unsigned lo = 0, hi = n - 1;
  while (hi - lo > 1) { unsigned mid = (lo + hi) / 2; ((double)s[mid].t <= t ? lo : hi) = mid; }
  return s[lo].c + (t - s[lo].t) * (double)(s[hi].c - s[lo].c) / (double)(s[hi].t - s[lo].t);
}
static void watch(const char* name, int span_us, unsigned every, const std::function<void()>& launch) {
  CK(cudaMemset(USED, 0, 4 * SMS)); CK(cudaMemset(STOP, 0, 4)); CK(cudaMemset(HERE, 0, 4)); CK(cudaMemset(COUNT, 0, 4 * SMS));
  CK(cudaDeviceSynchronize());
  k_watch<<<SMS, 32, 0, SA>>>(SAMPLES, COUNT, HERE, STOP, every);
  unsigned there = 0;
  while (there < (unsigned)SMS) {
    CK(cudaMemcpyAsync(&there, HERE, 4, cudaMemcpyDeviceToHost, SB));
    CK(cudaStreamSynchronize(SB));
  }
  k_gate<<<1, 1, 0, SB>>>(60000);
  k_mark<<<1, 1, 0, SB>>>(ZERO);
  launch();
  k_gate<<<1, 1, 0, SB>>>(60000);
  k_set<<<1, 1, 0, SB>>>(STOP);
  CK(cudaDeviceSynchronize());
  std::vector<Sample> s((size_t)SMS * ROOM);
  std::vector<unsigned> n(SMS), used(SMS);
  unsigned long long zero;
  CK(cudaMemcpy(s.data(), SAMPLES, s.size() * sizeof(Sample), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(n.data(), COUNT, 4 * SMS, cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(used.data(), USED, 4 * SMS, cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(&zero, ZERO, 8, cudaMemcpyDeviceToHost));
  zero += 20000;  // bursts begin here
  std::vector<double> edges;
  double fine = span_us > 1000 ? 50 : 2;
  for (double t = -20; t < span_us; t += t < 60 * fine / 2 ? fine : fine * 10) edges.push_back(t);
  double all[2] = {0, 0};
  for (size_t e = 0; e + 1 < edges.size(); e++)
    for (int who = 1; who >= 0; who--) {
      double sum = 0, least = 1e9, most = 0;
      int m = 0;
      for (int i = 0; i < SMS; i++) {
        if ((int)used[i] != who || n[i] < 8) continue;
        const Sample* p = &s[(size_t)i * ROOM];
        double a = zero + edges[e] * 1e3, b = zero + edges[e + 1] * 1e3;
        if (a < p[0].t || b > p[n[i] - 1].t) continue;
        double mhz = (cycles_at(p, n[i], b) - cycles_at(p, n[i], a)) / (b - a) * 1e3;
        sum += mhz; least = std::min(least, mhz); most = std::max(most, mhz); m++;
      }
      if (!m) continue;
      fprintf(F, "%s,%s,%g,%g,%.1f,%.1f,%.1f\n", name, who ? "busy" : "other", edges[e], edges[e + 1], sum / m, least, most);
      if (edges[e] >= 20 && edges[e] < 50) all[who] += sum / m / 15;
    }
  int busy = 0;
  for (int i = 0; i < SMS; i++) busy += used[i];
  printf("%-28s %3d SMs busy: 20 to 50 us: %.0f MHz, others %.0f\n", name, busy, all[1], all[0]);
  fflush(stdout);
}
template <class G>
static void product(const char* name, typename G::T* A, typename G::T* B, typename G::T* C, int m, int n, int k, int times) {
  GemmArgs<typename G::T> g{A, B, C, m, n, k, k, n, n, 0, 0, 0, 0};
  int tbs = m / G::BM * (n / G::BN);
  Span* spans;
  CK(cudaMalloc(&spans, sizeof(Span) * tbs * times));
  CK(cudaFuncSetAttribute(k_gemm<G>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)G::SMEM));
  std::vector<Span> s((size_t)tbs * times);
  for (int warm = 0; warm < 2; warm++) {
    CK(cudaDeviceSynchronize());
    struct timespec pause = {0, 20000000};
    nanosleep(&pause, nullptr);
    k_gate<<<1, 1, 0, SB>>>(60000);
    for (int i = 0; i < times; i++) k_gemm<G><<<dim3(n / G::BN, m / G::BM), G::NT, G::SMEM, SB>>>(g, spans + (size_t)i * tbs);
    CK(cudaDeviceSynchronize());
  }
  CK(cudaMemcpy(s.data(), spans, s.size() * sizeof(Span), cudaMemcpyDeviceToHost));
  CK(cudaFree(spans));
  unsigned long long zero = ~0ull, last = 0;
  for (auto& x : s) { zero = std::min(zero, x.t0); last = std::max(last, x.t1); }
  double width = (last - zero) / 12.0, mean = 0;
  for (int bin = 0; bin < 12; bin++) {
    double a = zero + bin * width, b = a + width, weight = 0, sum = 0, least = 1e9, most = 0;
    for (auto& x : s) {
      double w = std::min(b, (double)x.t1) - std::max(a, (double)x.t0), mhz = (double)(x.c1 - x.c0) / (x.t1 - x.t0) * 1e3;
      if (w <= 0) continue;
      weight += w; sum += w * mhz; least = std::min(least, mhz); most = std::max(most, mhz);
    }
    if (weight > 0) fprintf(F, "%s,tb,%.1f,%.1f,%.1f,%.1f,%.1f\n", name, (a - zero) / 1e3, (b - zero) / 1e3, sum / weight, least, most);
    mean += weight > 0 ? sum / weight / 12 : 0;
  }
  printf("%-28s %d TBs %.1f us a launch: mean %.0f MHz\n", name, tbs, (last - zero) / 1e3 / times, mean);
  fflush(stdout);
}

int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  cudaDeviceProp p;
  CK(cudaGetDeviceProperties(&p, 0));
  SMS = p.multiProcessorCount;
  CK(cudaMalloc(&SAMPLES, sizeof(Sample) * (size_t)SMS * ROOM));
  for (unsigned** q : {&COUNT, &HERE, &STOP, &USED}) CK(cudaMalloc(q, 4 * SMS));
  CK(cudaMalloc(&ZERO, 8));
  CK(cudaStreamCreateWithFlags(&SA, cudaStreamNonBlocking)); CK(cudaStreamCreateWithFlags(&SB, cudaStreamNonBlocking));
  float* out;
  size_t big = (size_t)2 << 30;
  float4* M;
  CK(cudaMalloc(&out, 1 << 20)); CK(cudaMalloc(&M, big));
  F = fopen((dir + (argc > 2 ? "/clock_long.csv" : "/clock.csv")).c_str(), "w");
  fprintf(F, "case,kind,from_us,to_us,MHz,least,most\n");
  k_gate<<<1, 1, 0, SB>>>(300000000);  // wake the clocks up
  CK(cudaDeviceSynchronize());
  auto mma = [&](const char* name, int tbs, int threads, unsigned mask, int rest, int n, unsigned ns, unsigned gap, unsigned every = 700) {
    watch(name, (int)(n * (ns + gap) / 1000 + 40), every, [=] { k_mma<<<tbs, threads, 0, SB>>>(USED, ZERO, n, ns, gap, out, mask, rest); });
  };
  __half *HA = (__half*)M, *HB = HA + (1 << 26), *HC = HB + (1 << 27) + (1 << 26);
  char name[64];
  if (argc > 2) {  // long: products back to back, up to half a second, until the board's power limit tells
    k_half<<<SMS * 8, 256>>>(HA, 1 << 28, 1.f);
    CK(cudaDeviceSynchronize());
    struct Case { const char* tile; int m, n, k; };
    for (int times : {1, 20, 200, 1000})
      for (Case c : {Case{"128_8w", 2048, 4096, 4096}, {"128_8w", 1024, 4096, 1024}, {"128_8w", 3072, 8192, 2048}, {"128_8w", 3072, 2048, 8192},
                     {"128_8w", 1024, 6144, 12288}, {"64", 512, 16384, 4096}, {"64", 512, 4096, 16384}, {"64", 2048, 4096, 4096}}) {
        snprintf(name, 64, "hgemm_%s_%d_%d_%d_x%d", c.tile, c.m, c.n, c.k, times);
        (c.tile[0] == '1' ? product<H128w8> : product<H64>)(name, HA, HB, HC, c.m, c.n, c.k, times);
      }
    fclose(F);
    return 0;
  }
  for (int tbs : {1, 2, 3, 4, 6, 8, 12, 16, 24, 33, 48, 66, 99, 132}) {
    snprintf(name, 64, "mma_%d", tbs); mma(name, tbs, 256, ~0u, 0, 1, 200000, 0);
  }
  for (int tbs : {1, 8, 66, 132}) { snprintf(name, 64, "mma_zero_%d", tbs); mma(name, tbs, 256, 0u, 0, 1, 200000, 0); }
  for (int threads : {32, 64, 128}) { snprintf(name, 64, "mma_132_%dthreads", threads); mma(name, 132, threads, ~0u, 0, 1, 200000, 0); }
  for (int rest : {50, 200, 800, 3000}) { snprintf(name, 64, "mma_132_rest%d", rest); mma(name, 132, 256, ~0u, rest, 1, 200000, 0); }
  mma("mma_132_bursts20", 132, 256, ~0u, 0, 6, 20000, 20000);
  mma("mma_132_bursts5", 132, 256, ~0u, 0, 12, 5000, 15000);
  mma("mma_132_20ms", 132, 256, ~0u, 0, 1, 20000000, 0, 20000);
  mma("mma_zero_132_20ms", 132, 256, 0u, 0, 1, 20000000, 0, 20000);
  watch("ffma_132", 240, 700, [=] { k_ffma<<<132, 1024, 0, SB>>>(USED, ZERO, 1, 200000, 0, out); });
  watch("dfma_132", 240, 700, [=] { k_dfma<<<132, 1024, 0, SB>>>(USED, ZERO, 1, 200000, 0, out); });
  watch("dram_132", 240, 700, [=] { k_dram<<<132, 1024, 0, SB>>>(USED, ZERO, 1, 200000, 0, out, M, big / 16); });
  // L2 latency while tensor cores are busy elsewhere
  {
    unsigned* ring = (unsigned*)M;
    std::vector<unsigned> h(1 << 18);
    for (unsigned i = 0; i < h.size(); i++) h[i] = (i + 32 * 331) % (1 << 18) / 32 * 32;
    CK(cudaMemcpy(ring, h.data(), h.size() * 4, cudaMemcpyHostToDevice));
    CK(cudaMemset(STOP, 0, 4)); CK(cudaMemset(HERE, 0, 4));
    CK(cudaFuncSetAttribute(k_chase, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
    CK(cudaFuncSetAttribute(k_mma, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
    k_chase<<<1, 1, 200 << 10, SA>>>(SAMPLES, COUNT, HERE, STOP, ring);
    k_gate<<<1, 1, 0, SB>>>(150000);
    k_mark<<<1, 1, 0, SB>>>(ZERO);
    k_mma<<<131, 256, 200 << 10, SB>>>(USED, ZERO, 1, 300000, 0, out, ~0u, 0);
    k_gate<<<1, 1, 0, SB>>>(100000);
    k_set<<<1, 1, 0, SB>>>(STOP);
    CK(cudaDeviceSynchronize());
    std::vector<Sample> s(ROOM);
    unsigned n; unsigned long long zero;
    CK(cudaMemcpy(s.data(), SAMPLES, ROOM * sizeof(Sample), cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(&n, COUNT, 4, cudaMemcpyDeviceToHost)); CK(cudaMemcpy(&zero, ZERO, 8, cudaMemcpyDeviceToHost));
    zero += 20000;
    for (double a : {-80., 40., 140., 320.}) {
      double from = zero + a * 1e3, to = from + 70e3;
      unsigned i = 0, j = 0;
      while (i + 1 < n && s[i].t < from) i++;
      for (j = i; j + 1 < n && s[j].t < to;) j++;
      if (j <= i) continue;
      double ns = (double)(s[j].t - s[i].t) / (j - i), cycles = (double)(s[j].c - s[i].c) / (j - i);
      printf("chase from %.0f us: 16 loads %.2f ns %.2f cycles: %.1f MHz\n", a, ns, cycles, cycles / ns * 1e3);
      fprintf(F, "l2_chase_16_loads,ns,%g,%g,%.2f,%.2f,%.2f\n", a, a + 70, cycles / ns * 1e3, ns, cycles);
    }
  }
  HC = HB + (1 << 26);
  float *FA = (float*)M, *FB = FA + (1 << 26), *FC = FB + (1 << 26);
  k_half<<<SMS * 8, 256>>>(HA, 1 << 27, 1.f);
  CK(cudaDeviceSynchronize());
  product<H128w8>("hgemm_128_8w_1tb", HA, HB, HC, 128, 128, 4096, 1);
  product<H128w8>("hgemm_128_8w_4tb", HA, HB, HC, 128, 512, 4096, 1);
  product<H128w8>("hgemm_128_8w_16tb", HA, HB, HC, 128, 2048, 4096, 1);
  product<H128w8>("hgemm_128_8w_64tb", HA, HB, HC, 256, 4096, 4096, 1);
  product<H128w8>("hgemm_128_8w_128tb", HA, HB, HC, 512, 4096, 4096, 1);
  product<H128w8>("hgemm_128_8w_256tb", HA, HB, HC, 1024, 4096, 4096, 1);
  product<H128w8>("hgemm_128_8w_512tb", HA, HB, HC, 2048, 4096, 4096, 1);
  product<H128w8>("hgemm_128_8w_x20", HA, HB, HC, 2048, 4096, 4096, 20);
  product<H128w8>("hgemm_128_8w_x200", HA, HB, HC, 2048, 4096, 4096, 200);
  product<H128w4>("hgemm_128_4w_512tb", HA, HB, HC, 2048, 4096, 4096, 1);
  product<H64>("hgemm_64_2048tb", HA, HB, HC, 2048, 4096, 4096, 1);
  k_half<<<SMS * 8, 256>>>(HA, 1 << 27, 0.f);
  CK(cudaDeviceSynchronize());
  product<H128w8>("hgemm_128_8w_512tb_zero", HA, HB, HC, 2048, 4096, 4096, 1);
  product<H128w8>("hgemm_128_8w_x20_zero", HA, HB, HC, 2048, 4096, 4096, 20);
  k_unit<<<SMS * 8, 256>>>(FA, 1 << 27);
  CK(cudaDeviceSynchronize());
  product<S128>("sgemm_128_512tb", FA, FB, FC, 2048, 4096, 2048, 1);
  fclose(F);
  return 0;
}
