// What DRAM gives and how long a load from it takes while others use it.
//   load DIR   writes DIR/load_chunks.csv, DIR/load_mixes.csv, DIR/load_delays.csv
#include "common.cuh"
static const size_t POOL = 8ull << 30;
static char* P;
static unsigned* OUT;
__device__ __forceinline__ uint4 read16(const char* a) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(a) : "memory");
  return v;
}
__device__ __forceinline__ void write16(char* a, unsigned x) {
  asm volatile("st.global.v4.u32 [%0], {%1,%1,%1,%1};" ::"l"(a), "r"(x) : "memory");
}
__device__ __forceinline__ unsigned long long scatter(unsigned long long x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}
// ---- chunks of `bytes` at random places; each warp reads or writes 2 KB at a time: 4 x 512 B
template <bool WRITE>
__global__ void __launch_bounds__(512) k_chunks(char* p, size_t pool, unsigned shift, int rounds, unsigned* out) {
  unsigned lane = threadIdx.x & 31, acc = 0;
  unsigned long long warp = (blockIdx.x * 512ull + threadIdx.x) / 32;
  for (int i = 0; i < rounds; i++) {
    uint4 v[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      unsigned long long at = (warp * rounds + i) * 2048 + j * 512 + lane * 16;  // of the stream
      unsigned long long a = ((scatter(at >> shift) << shift) & (pool - 1)) + (at & ((1u << shift) - 1));
      if (WRITE) write16(p + a, i); else v[j] = read16(p + a);
    }
    if (!WRITE)
#pragma unroll
      for (int j = 0; j < 4; j++) acc ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  }
  if (acc == 0x12345) out[0] = acc;
}
// a warp's 2 KB: read, or written with x; what was read, mixed up
__device__ __forceinline__ unsigned piece(char* a, bool read, unsigned x) {
  unsigned acc = 0;
  if (read) {
    uint4 v[4];
#pragma unroll
    for (int j = 0; j < 4; j++) v[j] = read16(a + j * 512);
#pragma unroll
    for (int j = 0; j < 4; j++) acc ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  } else {
#pragma unroll
    for (int j = 0; j < 4; j++) write16(a + j * 512, x);
  }
  return acc;
}
// ---- of 8 turns of 2 KB of each warp `reads` are read, the others written, in order
__global__ void __launch_bounds__(512) k_mix(char* p, int reads, int turns, unsigned* out) {
  unsigned lane = threadIdx.x & 31, acc = 0;
  unsigned long long warp = (blockIdx.x * 512ull + threadIdx.x) / 32, warps = gridDim.x * 16ull;
  for (int i = 0; i < turns; i++) {
    char* a = p + (i * warps + warp) * 2048 + lane * 16;
    acc ^= piece(a, (int)((i + warp) % 8) < reads, i);
  }
  if (acc == 0x12345) out[0] = acc;
}
// ---- TB 0: one lane, one load after the other at random places, `seen` cycles each; `busy` SMs stream meanwhile,
// `how` 0 reading, 1 writing, 2 both; the other SM of TB 0's TPC stays idle
__global__ void __launch_bounds__(512) k_delays(char* p, size_t pool, int n, int busy, int how, size_t span, int mixed, volatile unsigned* state, unsigned* seen, unsigned long long* moved) {
  extern __shared__ char room[];
  const unsigned sm = smid();
  if (blockIdx.x == 0) {
    if (threadIdx.x) return;
    state[0] = sm + 1;
    __threadfence();
    unsigned t = tick();
    while (tick() - t < 100000) {}
    unsigned long long t0 = gtime();
    state[2] = 1;
    for (int i = 0; i < n; i++) {
      const char* a = p + pool + (scatter(i) << 7 & (pool - 1));
      unsigned b = tick(), v;
      asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(a) : "memory");
      unsigned x = v & 1;
      asm volatile("" ::"r"(x) : "memory");
      seen[i] = tick() + x - b;
    }
    state[1] = 1;
    moved[1] = gtime() - t0;
    return;
  }
  unsigned lane = threadIdx.x & 31, acc = 0;
  if (threadIdx.x == 0) {
    unsigned fg;
    while (!(fg = state[0])) {}
    bool on = (sm ^ 1) != fg - 1 && atomicAdd((unsigned*)state + 3, 1u) < (unsigned)busy;
    *(volatile int*)room = on;
  }
  __syncthreads();
  if (!*(volatile int*)room) return;
  unsigned long long counted = 0;
  for (unsigned long long i = 0;; i++) {
    unsigned started = state[2], ended = state[1];
    if (ended) break;
    unsigned long long at = ((i * 132 + blockIdx.x) * 16 + threadIdx.x / 32) * 2048 + lane * 16;
    char* a = p + (at & (span - 1));
    if (mixed) a = p + (scatter(at >> 11) << 11 & (span - 1)) + lane * 16;  // each 2 KB elsewhere
    acc ^= piece(a, how == 0 || (how == 2 && !(i & 1)), 0);
    if (started) counted += 2048;
  }
  if (lane == 0) atomicAdd(moved, counted);
  if (acc == 0x12345) seen[0] = acc;
}
template <class F>
static Stat timed(F f) {
  std::vector<double> us;
  cudaEvent_t e0, e1;
  CK(cudaEventCreate(&e0));
  CK(cudaEventCreate(&e1));
  for (int r = 0; r < 6; r++) {
    CK(cudaEventRecord(e0));
    f();
    CK(cudaEventRecord(e1));
    CK(cudaEventSynchronize(e1));
    CK(cudaGetLastError());
    float ms;
    CK(cudaEventElapsedTime(&ms, e0, e1));
    if (r) us.push_back(1e3 * ms);
  }
  return stat_of(us);
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  CK(cudaMalloc(&P, 2 * POOL));
  CK(cudaMalloc(&OUT, 1 << 20));
  CK(cudaMemset(P, 0, 2 * POOL));
  FILE* f = fopen((dir + "/load_chunks.csv").c_str(), "w");
  fprintf(f, "what,bytes,tbs,moved_mb,us,least,most,gbps\n");
  for (int write = 0; write < 2; write++)
    for (unsigned bytes = write ? 64 : 32; bytes <= 16384; bytes *= 2)
      for (int tbs : {132, 264, 528}) {
        int rounds = 8 * 132 * 32 / tbs * (bytes < 64 ? 1 : 4);
        double mb = tbs * 16.0 * rounds * 2048 / 1e6;
        Stat s = timed([&] {
          if (write) k_chunks<true><<<tbs, 512>>>(P, POOL, __builtin_ctz(bytes), rounds, OUT);
          else k_chunks<false><<<tbs, 512>>>(P, POOL, __builtin_ctz(bytes), rounds, OUT);
        });
        fprintf(f, "%s,%u,%d,%.1f,%.2f,%.2f,%.2f,%.1f\n", write ? "write" : "read", bytes, tbs, mb, s.med, s.mn, s.mx, mb / s.med * 1e3);
        printf("%s chunks %u tbs %d: %.0f GB/s [%.1f %.1f %.1f us]\n", write ? "write" : "read", bytes, tbs, mb / s.med * 1e3, s.med, s.mn, s.mx);
      }
  fclose(f);
  f = fopen((dir + "/load_mixes.csv").c_str(), "w");
  fprintf(f, "reads_of_8,tbs,moved_mb,us,least,most,gbps\n");
  for (int reads = 8; reads >= 0; reads--)
    for (int tbs : {264, 528}) {
      int turns = 64 * 528 / tbs;
      double mb = tbs * 16.0 * turns * 2048 / 1e6;
      Stat s = timed([&] { k_mix<<<tbs, 512>>>(P, reads, turns, OUT); });
      fprintf(f, "%d,%d,%.1f,%.2f,%.2f,%.2f,%.1f\n", reads, tbs, mb, s.med, s.mn, s.mx, mb / s.med * 1e3);
      printf("mix %d of 8 read, tbs %d: %.0f GB/s [%.1f %.1f %.1f us]\n", reads, tbs, mb / s.med * 1e3, s.med, s.mn, s.mx);
    }
  fclose(f);
  f = fopen((dir + "/load_delays.csv").c_str(), "w");
  fprintf(f, "how,span,mixed,busy,gbps,mean,p5,p25,p50,p75,p90,p99\n");
  const int n = 20000;
  unsigned *state, *seen;
  unsigned long long* moved;
  CK(cudaMalloc(&state, 64));
  CK(cudaMalloc(&seen, 4 * n));
  CK(cudaMalloc(&moved, 16));
  CK(cudaFuncSetAttribute(k_delays, cudaFuncAttributeMaxDynamicSharedMemorySize, 160 << 10));
  const char* names[] = {"read", "write", "copy"};
  for (int how = 0; how < 3; how++)
    for (int where = 0; where < 3; where++)
    for (int busy : {0, 2, 4, 8, 16, 24, 32, 40, 48, 64, 96, 130}) {
      size_t span = where == 1 ? 8ull << 20 : POOL;
      int mixed = where == 2;
      if (where && (busy < 8 || busy == 40)) continue;
      if (how && !busy) continue;
      k_chunks<true><<<528, 512>>>(P, POOL, 14, 32, OUT);  // 553 MB: all of L2 is dirty
      CK(cudaMemset(state, 0, 64));
      CK(cudaMemset(moved, 0, 16));
      k_delays<<<132, 512, 160 << 10>>>(P, POOL, n, busy, how, span, mixed, state, seen, moved);
      CK(cudaDeviceSynchronize());
      std::vector<unsigned> c(n);
      unsigned long long m[2];
      CK(cudaMemcpy(c.data(), seen, 4 * n, cudaMemcpyDeviceToHost));
      CK(cudaMemcpy(m, moved, 16, cudaMemcpyDeviceToHost));
      std::vector<double> v(c.begin(), c.end());
      double sum = 0;
      for (double x : v) sum += x;
      double gbps = (double)m[0] / m[1];  // each warp's first lane counted its 2 KB
      fprintf(f, "%s,%zu,%d,%d,%.1f,%.1f", names[how], span, mixed, busy, gbps, sum / n);
      for (double q : {.05, .25, .5, .75, .9, .99}) fprintf(f, ",%.0f", pct(v, q));
      fprintf(f, "\n");
      printf("%d SMs %s, span %zu, mixed %d: %.0f GB/s, mean %.0f cycles\n", busy, names[how], span, mixed, gbps, sum / n);
    }
  fclose(f);
}
