// What an H200 draws while one thing happens over and over: board power, SM clock and rates of steady kernels.
//   power DIR [seconds [PART]]   (cases with PART in their name) writes DIR/power.csv (one row a kernel) and DIR/power_series.csv (a sample every 50 ms)
// Power is the driver's energy counter over time; each kernel runs for `seconds` and the first third is left out.
#include <dlfcn.h>
#include <atomic>
#include <thread>
#include "suite.cuh"

// ---- the few calls of the management library that are needed, loaded at run time
typedef struct nvmlDevice_st* Dev;
static int (*nv_init)();
static int (*nv_handle)(const char*, Dev*);
static int (*nv_energy)(Dev, unsigned long long*);
static int (*nv_power)(Dev, unsigned*);
static int (*nv_clock)(Dev, unsigned, unsigned*);
static int (*nv_temp)(Dev, unsigned, unsigned*);
static int (*nv_why)(Dev, unsigned long long*);
static Dev DEV;
template <typename F> static void get(void* lib, F& f, const char* name) {
  f = (F)dlsym(lib, name);
  if (!f) { fprintf(stderr, "no %s\n", name); exit(1); }
}
static void nv_open() {
  void* lib = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (!lib) { fprintf(stderr, "%s\n", dlerror()); exit(1); }
  get(lib, nv_init, "nvmlInit_v2");
  get(lib, nv_handle, "nvmlDeviceGetHandleByPciBusId_v2");
  get(lib, nv_energy, "nvmlDeviceGetTotalEnergyConsumption");
  get(lib, nv_power, "nvmlDeviceGetPowerUsage");
  get(lib, nv_clock, "nvmlDeviceGetClockInfo");
  get(lib, nv_temp, "nvmlDeviceGetTemperature");
  get(lib, nv_why, "nvmlDeviceGetCurrentClocksThrottleReasons");
  char bus[32];
  CK(cudaDeviceGetPCIBusId(bus, 32, 0));
  if (nv_init() || nv_handle(bus, &DEV)) { fprintf(stderr, "no management library\n"); exit(1); }
}

// ---- kernels: `n` rounds of one thing; results are kept alive by a store that never happens
__global__ void k_spin(long long n, float* out) {
  long long t0 = clock64();
  while (clock64() - t0 < n * 64) {}
  if (n < 0) out[0] = 1;
}
__global__ void k_sleep(long long n, float* out) {
  for (long long i = 0; i < n; i++) __nanosleep(1000);
  if (n < 0) out[0] = 1;
}
#define EIGHT(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
__global__ void k_ffma(long long n, float* out, float b, float c) {
  float a[8];
#define I(i) a[i] = threadIdx.x * 0.37f + i * 1.7f + b;
  EIGHT(I)
#undef I
  for (long long k = 0; k < n; k++) {
#pragma unroll
    for (int u = 0; u < 16; u++) {
#define I(i) asm volatile("fma.rn.f32 %0,%0,%1,%2;" : "+f"(a[i]) : "f"(b), "f"(c));
      EIGHT(I)
#undef I
    }
  }
  float s = 0;
  for (int i = 0; i < 8; i++) s += a[i];
  if (s == 12345.678f) out[threadIdx.x] = s;
}
// as in a matrix product: operands differ from one instruction to the next, sums keep growing
__global__ void k_ffma_random(long long n, float* out, float b) {
  float a[8], x[4], y[4];
#define I(i) a[i] = threadIdx.x * 0.37f + i * 1.7f + b;
  EIGHT(I)
#undef I
  for (int i = 0; i < 4; i++) {
    x[i] = 1e-3f * (float)((threadIdx.x * 7919 + i * 104729 + 13) % 2003) - 1.f;
    y[i] = 1e-3f * (float)((threadIdx.x * 6007 + i * 15485863 + 7) % 1999) - 1.f;
  }
  for (long long k = 0; k < n; k++) {
#pragma unroll
    for (int u = 0; u < 16; u++) {
#define I(i) asm volatile("fma.rn.f32 %0,%1,%2,%0;" : "+f"(a[i]) : "f"(x[(i + u) & 3]), "f"(y[(i / 2 + u / 4) & 3]));
      EIGHT(I)
#undef I
    }
  }
  float s = 0;
  for (int i = 0; i < 8; i++) s += a[i];
  if (s == 12345.678f) out[threadIdx.x] = s;
}
__global__ void k_fadd(long long n, float* out, float b) {
  float a[8], x[4];
#define I(i) a[i] = threadIdx.x * 0.37f + i * 1.7f + b;
  EIGHT(I)
#undef I
  for (int i = 0; i < 4; i++) x[i] = 1e-3f * (float)((threadIdx.x * 7919 + i * 104729 + 13) % 2003) - 1.f;
  for (long long k = 0; k < n; k++) {
#pragma unroll
    for (int u = 0; u < 16; u++) {
#define I(i) asm volatile("add.rn.f32 %0,%0,%1;" : "+f"(a[i]) : "f"(x[(i + u) & 3]));
      EIGHT(I)
#undef I
    }
  }
  float s = 0;
  for (int i = 0; i < 8; i++) s += a[i];
  if (s == 12345.678f) out[threadIdx.x] = s;
}
__global__ void k_iadd(long long n, float* out, unsigned b, unsigned c) {
  unsigned a[8];
#define I(i) a[i] = threadIdx.x * 2654435761u + i * 40503u + b;
  EIGHT(I)
#undef I
  for (long long k = 0; k < n; k++) {
#pragma unroll
    for (int u = 0; u < 16; u++) {
#define I(i) asm volatile("{.reg .u32 t; add.u32 t,%0,%1; xor.b32 %0,t,%2;}" : "+r"(a[i]) : "r"(b), "r"(c));
      EIGHT(I)
#undef I
    }
  }
  unsigned s = 0;
  for (int i = 0; i < 8; i++) s ^= a[i];
  if (s == 12345678u) out[threadIdx.x] = s;
}
__global__ void k_imad(long long n, float* out, unsigned b, unsigned c) {
  unsigned a[8];
#define I(i) a[i] = threadIdx.x * 2654435761u + i * 40503u + b;
  EIGHT(I)
#undef I
  for (long long k = 0; k < n; k++) {
#pragma unroll
    for (int u = 0; u < 16; u++) {
#define I(i) asm volatile("mad.lo.u32 %0,%0,%1,%2;" : "+r"(a[i]) : "r"(b), "r"(c));
      EIGHT(I)
#undef I
    }
  }
  unsigned s = 0;
  for (int i = 0; i < 8; i++) s ^= a[i];
  if (s == 12345678u) out[threadIdx.x] = s;
}
__global__ void k_hfma2(long long n, float* out, unsigned b, unsigned c) {
  unsigned a[8];
#define I(i) a[i] = 0x3c003800u + threadIdx.x * 17 + i;
  EIGHT(I)
#undef I
  for (long long k = 0; k < n; k++) {
#pragma unroll
    for (int u = 0; u < 16; u++) {
#define I(i) asm volatile("fma.rn.f16x2 %0,%0,%1,%2;" : "+r"(a[i]) : "r"(b), "r"(c));
      EIGHT(I)
#undef I
    }
  }
  unsigned s = 0;
  for (int i = 0; i < 8; i++) s ^= a[i];
  if (s == 12345678u) out[threadIdx.x] = s;
}
__global__ void k_dfma(long long n, float* out, double b, double c) {
  double a[8];
#define I(i) a[i] = threadIdx.x * 0.37 + i * 1.7 + b;
  EIGHT(I)
#undef I
  for (long long k = 0; k < n; k++) {
#pragma unroll
    for (int u = 0; u < 4; u++) {
#define I(i) asm volatile("fma.rn.f64 %0,%0,%1,%2;" : "+d"(a[i]) : "d"(b), "d"(c));
      EIGHT(I)
#undef I
    }
  }
  double s = 0;
  for (int i = 0; i < 8; i++) s += a[i];
  if (s == 12345.678) out[threadIdx.x] = (float)s;
}
__global__ void k_mufu(long long n, float* out) {
  float a[8];
#define I(i) a[i] = threadIdx.x * 0.037f + i * 0.17f;
  EIGHT(I)
#undef I
  for (long long k = 0; k < n; k++) {
#pragma unroll
    for (int u = 0; u < 4; u++) {
#define I(i) asm volatile("tanh.approx.f32 %0,%0;" : "+f"(a[i]));
      EIGHT(I)
#undef I
    }
  }
  float s = 0;
  for (int i = 0; i < 8; i++) s += a[i];
  if (s == 12345.678f) out[threadIdx.x] = s;
}
__global__ void k_mma(long long n, float* out, unsigned seed, unsigned mask) {
  unsigned a[4], b[2];
  // random halves between 0.5 and 2 of either sign, or zeros (mask 0)
  for (int i = 0; i < 4; i++) a[i] = ((seed * (threadIdx.x * 7 + i + 1) * 2654435761u) & 0x83ff83ffu | 0x3a003a00u) & mask;
  for (int i = 0; i < 2; i++) b[i] = ((seed * (threadIdx.x * 11 + i + 5) * 2246822519u) & 0x83ff83ffu | 0x38003800u) & mask;
  float d[4][4] = {};
  for (long long k = 0; k < n; k++) {
#pragma unroll
    for (int u = 0; u < 4; u++)
#pragma unroll
      for (int j = 0; j < 4; j++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                     : "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  float s = 0;
  for (int j = 0; j < 4; j++) for (int q = 0; q < 4; q++) s += d[j][q];
  if (s == 12345.678f) out[threadIdx.x] = s;
}
__global__ void k_shared(long long n, float* out) {
  __shared__ float4 t[1024];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) t[i] = make_float4(i * 0.3f, i * 0.7f, i * 1.1f, i * 1.3f);
  __syncthreads();
  float s = 0;
  unsigned base = (unsigned)__cvta_generic_to_shared(t);
  for (long long k = 0; k < n; k++) {
#pragma unroll
    for (int u = 0; u < 8; u++) {
      float4 v;
      asm volatile("ld.volatile.shared.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(base + ((threadIdx.x + u * 32 + (unsigned)k * 32) & 1023) * 16));
      s += v.x;
    }
  }
  if (s == 12345.678f) out[threadIdx.x] = s;
}
__global__ void k_saxpy(float a, const float4* x, float4* y, size_t n) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    float4 u = x[i], v = y[i];
    v.x = fmaf(a, u.x, v.x); v.y = fmaf(a, u.y, v.y); v.z = fmaf(a, u.z, v.z); v.w = fmaf(a, u.w, v.w);
    y[i] = v;
  }
}
// each TB walks its own `bytes` (16 B a lane, `n` times); CG: past L1
template <bool CG>
__global__ void k_read(long long n, float* out, const float4* in, size_t per_tb, size_t wrap) {
  float s = 0;
  size_t base = ((size_t)blockIdx.x * per_tb) % wrap;
  for (long long k = 0; k < n; k++) {
    const float4* p = in + (base + (CG ? (size_t)(k * 7919) * per_tb : 0)) % wrap;
    for (size_t i = threadIdx.x; i < per_tb; i += blockDim.x * 4) {
      float4 v[4];
#pragma unroll
      for (int u = 0; u < 4; u++) {
        const float4* q = p + i + u * blockDim.x;
        if (CG) asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(v[u].x), "=f"(v[u].y), "=f"(v[u].z), "=f"(v[u].w) : "l"(q));
        else asm volatile("ld.global.ca.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(v[u].x), "=f"(v[u].y), "=f"(v[u].z), "=f"(v[u].w) : "l"(q));
      }
#pragma unroll
      for (int u = 0; u < 4; u++) s += v[u].x;
    }
  }
  if (s == 12345.678f) out[threadIdx.x] = s;
}
__global__ void k_write(long long n, float4* to, size_t per_tb, size_t wrap) {
  size_t base = ((size_t)blockIdx.x * per_tb) % wrap;
  for (long long k = 0; k < n; k++) {
    float4* p = to + (base + (size_t)(k * 7919) * per_tb) % wrap;
    for (size_t i = threadIdx.x; i < per_tb; i += blockDim.x)
      __stcg(p + i, make_float4(i * 0.31f, k * 0.7f, 1.1f * threadIdx.x, 2.3f));
  }
}
__global__ void k_fill(float4* p, size_t n) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    unsigned h = (unsigned)i * 2654435761u;
    p[i] = make_float4(h * 1e-9f, (h ^ 0x55u) * 2e-9f, (h >> 3) * 3e-9f, (h >> 5) * 5e-9f);
  }
}
__device__ float unit(size_t i) {
  unsigned h = (unsigned)i * 2654435761u;
  h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
  return (float)h * (2.f / 4294967296.f) - 1.f;
}
__global__ void k_half(__half* p, size_t n) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) p[i] = __float2half_rn(unit(i));
}
__global__ void k_unit(float* p, size_t n) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) p[i] = unit(i);
}
template <class G>
__global__ void __launch_bounds__(G::NT, G::MINB) k_gemm(GemmArgs<typename G::T> g) {
  extern __shared__ __align__(16) char smem[];
  Sync y;
  G::template tile<-1>(smem, g, blockIdx.y, blockIdx.x, 0, blockIdx.y, y);
}

// ---- one case: launch until the time is over, sample meanwhile
struct Case { std::string name, unit; double per_launch; std::function<void()> launch; };
static void run(FILE* f, FILE* series, const Case& c, double seconds) {
  std::atomic<bool> stop{false};
  struct Sample { double t; unsigned mw, sm, mem, temp; unsigned long long why, mj; };
  std::vector<Sample> all;
  auto now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  double t0 = now();
  std::thread watch([&] {
    while (!stop) {
      Sample s{};
      s.t = now() - t0;
      nv_power(DEV, &s.mw); nv_clock(DEV, 1, &s.sm); nv_clock(DEV, 2, &s.mem); nv_temp(DEV, 0, &s.temp);
      nv_why(DEV, &s.why); nv_energy(DEV, &s.mj);
      s.t = now() - t0;
      all.push_back(s);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  // rate by events in the steady part
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a)); CK(cudaEventCreate(&b));
  long launches = 0, steady = 0;
  bool begun = false;
  while (now() - t0 < seconds) {
    if (!begun && now() - t0 > seconds / 3) { CK(cudaEventRecord(a)); begun = true; }
    for (int i = 0; i < 4; i++) { if (c.launch) { c.launch(); launches++; steady += begun; } }
    if (c.launch) CK(cudaEventRecord(b));
    if (!c.launch) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    else CK(cudaEventSynchronize(b));
  }
  CK(cudaDeviceSynchronize());
  stop = true;
  watch.join();
  float ms = 0;
  if (c.launch) CK(cudaEventElapsedTime(&ms, a, b));
  // energy between the first and the last sample of the steady part
  size_t first = 0;
  while (first + 1 < all.size() && all[first].t < seconds / 3) first++;
  size_t last = all.size() - 1;
  while (last > first && all[last].t > seconds - 0.02) last--;
  double w = (all[last].mj - all[first].mj) / 1e3 / (all[last].t - all[first].t), sm = 0, temp = 0, inst = 0;
  unsigned long long why = 0;
  for (size_t i = first; i <= last; i++) { sm += all[i].sm; temp += all[i].temp; why |= all[i].why; inst += all[i].mw / 1e3; }
  size_t n = last - first + 1;
  double rate = c.launch && ms > 0 ? c.per_launch * steady / (ms / 1e3) : 0;
  fprintf(f, "%s,%.3f,%.2f,%.2f,%.1f,%.1f,%llx,%.6g,%s,%ld\n", c.name.c_str(), all[last].t - all[first].t, w, inst / n, sm / n, temp / n, why, rate, c.unit.c_str(), steady);
  fflush(f);
  printf("%-24s %8.2f W (%.2f) sm %.1f MHz %.1f C why %llx rate %.4g %s/s\n", c.name.c_str(), w, inst / n, sm / n, temp / n, why, rate, c.unit.c_str());
  fflush(stdout);
  for (auto& s : all) fprintf(series, "%s,%.3f,%.3f,%u,%u,%u,%llx,%llu\n", c.name.c_str(), s.t, s.mw / 1e3, s.sm, s.mem, s.temp, s.why, s.mj);
  CK(cudaEventDestroy(a)); CK(cudaEventDestroy(b));
}
template <class G, typename T>
static Case gemm(const char* name, T* A, T* B, T* C, int m, int n, int k) {
  GemmArgs<T> g{A, B, C, m, n, k, k, n, n, 0, 0, 0, 0};
  CK(cudaFuncSetAttribute(k_gemm<G>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)G::SMEM));
  return {name, "FMA", (double)m * n * k, [=] { k_gemm<G><<<dim3(n / G::BN, m / G::BM), G::NT, G::SMEM>>>(g); }};
}

int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  double sec = argc > 2 ? atof(argv[2]) : 4.5;
  nv_open();
  cudaDeviceProp p;
  CK(cudaGetDeviceProperties(&p, 0));
  int sms = p.multiProcessorCount;
  size_t big = (size_t)4 << 30;
  float4 *M, *N;
  float* out;
  CK(cudaMalloc(&M, big)); CK(cudaMalloc(&N, big)); CK(cudaMalloc(&out, 1 << 20));
  k_fill<<<sms * 8, 256>>>(M, big / 16);
  k_fill<<<sms * 8, 256>>>(N, big / 16);
  CK(cudaDeviceSynchronize());
  std::vector<Case> cases;
  int full = sms * 2;  // two TBs of 1,024 threads fill an SM
  double warps = (double)full * 32;
  cases.push_back({"idle", "none", 0, nullptr});
  cases.push_back({"sleep_full", "none", 0, [=] { k_sleep<<<full, 1024>>>(4000, out); }});
  cases.push_back({"spin_1warp_sm", "warp_inst", 0, [=] { k_spin<<<sms, 32>>>(400000, out); }});
  cases.push_back({"spin_full", "warp_inst", 0, [=] { k_spin<<<full, 1024>>>(400000, out); }});
  long long r = 40000;
  auto inst = [&](const char* name, double each, std::function<void()> go) { cases.push_back({name, "warp_inst", warps * each * r, go}); };
  inst("ffma", 128, [=] { k_ffma<<<full, 1024>>>(r, out, 0.9999f, 0.377f); });
  inst("ffma_random", 128, [=] { k_ffma_random<<<full, 1024>>>(r, out, 0.9999f); });
  inst("fadd", 128, [=] { k_fadd<<<full, 1024>>>(r, out, 0.9999f); });
  inst("iadd_xor", 256, [=] { k_iadd<<<full, 1024>>>(r, out, 0x9e3779b9u, 0x7f4a7c15u); });
  inst("imad", 128, [=] { k_imad<<<full, 1024>>>(r, out, 0x9e3779b9u, 0x7f4a7c15u); });
  inst("hfma2", 128, [=] { k_hfma2<<<full, 1024>>>(r, out, 0x3bff3bfeu, 0x2e662e67u); });
  inst("dfma", 32, [=] { k_dfma<<<full, 1024>>>(r, out, 0.9999, 0.377); });
  inst("mufu_tanh", 32, [=] { k_mufu<<<full, 1024>>>(r / 4, out); });
  cases.back().per_launch /= 4;
  auto mma = [&](const char* name, unsigned mask, int tbs, int threads) {
    cases.push_back({name, "warp_inst", (double)tbs * threads / 32 * 16 * r, [=] { k_mma<<<tbs, threads>>>(r, out, 77u, mask); }});
  };
  mma("mma_random", ~0u, sms, 256);
  mma("mma_zero", 0u, sms, 256);
  mma("mma_half_chip", ~0u, sms / 2, 256);
  cases.push_back({"shared_read", "B", (double)sms * 1024 * 16 * 8 * r, [=] { k_shared<<<sms, 1024>>>(r, out); }});
  // 16 KiB a TB: stays in L1; 128 KiB a TB walked past L1 in 24 MiB: L2; in 4 GiB: DRAM
  size_t l1 = 16384 / 16, part = 131072 / 16;
  cases.push_back({"l1_read", "B", (double)full * 16384 * 4000, [=] { k_read<false><<<full, 1024>>>(4000, out, M, l1 * 4, l1 * 4); }});
  cases.back().per_launch = (double)full * 65536 * 4000;
  cases.push_back({"l2_read", "B", (double)full * 131072 * 200, [=] { k_read<true><<<full, 1024>>>(200, out, M, part, part * 192); }});
  cases.push_back({"dram_read", "B", (double)full * 131072 * 200, [=] { k_read<true><<<full, 1024>>>(200, out, M, part, big / 16); }});
  cases.push_back({"dram_write", "B", (double)full * 131072 * 200, [=] { k_write<<<full, 1024>>>(200, N, part, big / 16); }});
  cases.push_back({"l2_write", "B", (double)full * 131072 * 200, [=] { k_write<<<full, 1024>>>(200, N, part, part * 128); }});
  cases.push_back({"saxpy_dram", "B", 12.0 * (double)(big / 4), [=] { k_saxpy<<<sms * 16, 512>>>(1e-6f, M, N, big / 16); }});
  cases.push_back({"saxpy_l2", "B", 12.0 * (double)(1 << 21) * 16, [=] { for (int i = 0; i < 16; i++) k_saxpy<<<sms * 4, 512>>>(1e-6f, M, N, (1 << 21) / 4); }});
  __half *HA = (__half*)M, *HB = (__half*)N, *HC = (__half*)(M + (big >> 5));
  float *SA = (float*)M, *SB = (float*)N, *SC = (float*)(M + (big >> 5));
  k_half<<<sms * 8, 256>>>(HA, 1 << 24);
  k_half<<<sms * 8, 256>>>(HB, 1 << 24);
  k_unit<<<sms * 8, 256>>>(SA + (1 << 24), 1 << 24);
  k_unit<<<sms * 8, 256>>>(SB + (1 << 24), 1 << 24);
  CK(cudaDeviceSynchronize());
  cases.push_back(gemm<H128w8>("hgemm_128x128_8w", HA, HB, HC, 4096, 4096, 4096));
  cases.push_back(gemm<H128w4>("hgemm_128x128_4w", HA, HB, HC, 4096, 4096, 4096));
  cases.push_back(gemm<H64>("hgemm_64x64", HA, HB, HC, 4096, 4096, 4096));
  cases.push_back(gemm<S128>("sgemm_128x128", SA + (1 << 24), SB + (1 << 24), SC, 4096, 4096, 4096));
  cases.push_back(gemm<S64>("sgemm_64x64", SA + (1 << 24), SB + (1 << 24), SC, 4096, 4096, 4096));
  cases.push_back(gemm<S32>("sgemm_32x32", SA + (1 << 24), SB + (1 << 24), SC, 4096, 4096, 4096));
  // as in the chains, of operands that L2 has no room for
  __half *LA = (__half*)(M + (big >> 6)), *LB = (__half*)(N + (big >> 6));
  k_half<<<sms * 8, 256>>>(LA, 1 << 27);
  k_half<<<sms * 8, 256>>>(LB, 1 << 27);
  CK(cudaDeviceSynchronize());
  cases.push_back(gemm<H128w8>("hgemm_8w_3072_8192_2048", LA, LB, HC, 3072, 8192, 2048));
  cases.push_back(gemm<H128w8>("hgemm_8w_3072_2048_8192", LA, LB, HC, 3072, 2048, 8192));
  cases.push_back(gemm<H128w8>("hgemm_8w_1024_6144_12288", LA, LB, HC, 1024, 6144, 12288));
  cases.push_back(gemm<H128w8>("hgemm_8w_1024_2048_2048", LA, LB, HC, 1024, 2048, 2048));
  cases.push_back(gemm<H128w8>("hgemm_8w_2176_2048_2048", LA, LB, HC, 2176, 2048, 2048));
  cases.push_back(gemm<H128w8>("hgemm_8w_2304_4096_4096", LA, LB, HC, 2304, 4096, 4096));
  cases.push_back(gemm<H64>("hgemm_64_512_16384_4096", LA, LB, HC, 512, 16384, 4096));
  cases.push_back(gemm<H64>("hgemm_64_512_4096_16384", LA, LB, HC, 512, 4096, 16384));
  cases.push_back({"idle_after", "none", 0, nullptr});
  FILE* f = fopen((dir + "/power.csv").c_str(), "w");
  FILE* s = fopen((dir + "/power_series.csv").c_str(), "w");
  fprintf(f, "kernel,seconds,power_W,power_reported_W,sm_clock_MHz,temperature_C,clock_limits_hex,rate_per_s,unit,launches\n");
  fprintf(s, "kernel,t_s,power_W,sm_clock_MHz,mem_clock_MHz,temperature_C,clock_limits_hex,energy_mJ\n");
  for (auto& c : cases)
    if (argc < 4 || c.name.find(argv[3]) != std::string::npos) run(f, s, c, sec);
  fclose(f); fclose(s);
  return 0;
}
