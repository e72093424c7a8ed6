// What the start of a kernel waits for while a kernel of another stream keeps memory busy, `warps` warps on each of `sms` SMs
// that do `what` and rest for `rest` cycles after every `deep` accesses. Kernels of one TB and of 64 come in turn: from the end of the
// one TB to the first start of the 64 (`stored`: it has noted when it ends, `quiet`: it has stored nothing), and from the last
// end of the 64 to the start of the one (`many`); `last`: the last start of the 64 behind `stored`. Medians and 10 and 90 % of all;
// `late`: runs in which a quiet one came too late to end when it should; what single loads take meanwhile.
//   busy DIR   writes DIR/busy.csv
#include "common.cuh"
#include <array>

enum { SPIN, L2_READ, DRAM_READ, L2_WRITE, DRAM_WRITE, COPY, HOT_READ, KINDS };
static const char* NAMES[] = {"spin", "l2 read", "dram read", "l2 write", "dram write", "copy", "hot read"};
template <int KIND>
__global__ void __launch_bounds__(1024) k_load(float4* big, float4* small, unsigned* started, unsigned long long* moved, long long last, int rest, int deep) {
  if (threadIdx.x == 0) atomicAdd(started, 1u);
  long long begin = clock64();
  const size_t warps = (size_t)gridDim.x * (blockDim.x / 32), me = (size_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const size_t lane = threadIdx.x & 31, BIG = (size_t)4 << 26, SMALL = (size_t)1 << 20, HOT = (size_t)1 << 16;  // in float4: 4 GiB, 16 MiB, 1 MiB
  float4 sum = make_float4(0, 0, 0, 0);
  unsigned long long n = 0;
  for (size_t i = me; clock64() - begin < last; i += deep * warps) {
#pragma unroll 16
    for (int j = 0; j < deep; j++) {
      const size_t at = ((i + j * warps) * 32 + lane);
      if (KIND == L2_READ || KIND == HOT_READ) {
        float4 v = __ldcg(small + at % (KIND == HOT_READ ? HOT : SMALL));
        sum.x += v.x; sum.y += v.w;
      } else if (KIND == DRAM_READ) {
        float4 v = __ldcg(big + at % BIG);
        sum.x += v.x; sum.y += v.w;
      } else if (KIND == L2_WRITE) {
        __stcg(small + at % SMALL, sum);
      } else if (KIND == DRAM_WRITE) {
        __stcg(big + at % BIG, sum);
      } else if (KIND == COPY) {
        __stcg(big + BIG / 2 + at % (BIG / 2), __ldcg(big + at % (BIG / 2)));
      }
    }
    n += deep;
    if (rest) {
      long long t = clock64();
      while (clock64() - t < rest) {}
    }
  }
  if (lane == 0) atomicAdd(moved, n * 512);
  if (sum.x == 1.2345f) small[0] = sum;
}
// waits for the others, then for so many cycles; notes when it ends
__global__ void __launch_bounds__(1024) k_first(volatile unsigned* started, unsigned want, int spin, unsigned long long* end) {
  while (*started < want) {}
  long long t = clock64();
  while (clock64() - t < spin) {}
  *end = gtime();
}
// ends so many ns behind another's end and stores nothing, unless it comes too late
__global__ void k_quiet(const unsigned long long* first, unsigned behind, unsigned* late) {
  unsigned long long end = *(volatile const unsigned long long*)first + behind;
  if (gtime() > end) *late = 1;
  while (gtime() < end) {}
}
struct Args { int spin, loads; unsigned pad[30]; };
__global__ void k_next(unsigned long long* start, unsigned long long* last, unsigned long long* end, const unsigned* near_, const unsigned* far_, int* took, Args a) {
  if (threadIdx.x == 0) {
    unsigned long long me = gtime();
    atomicMin(start, me); atomicMax(last, me);
    if (a.loads && blockIdx.x == 0) {
      unsigned at = 0;
      for (int pass = 0; pass < 2; pass++) {
        long long t = clock64();
        for (int i = 0; i < a.loads; i++) at = __ldcg(near_ + at);
        if (pass) took[0] = (int)(clock64() - t) + (at == 1);
      }
      unsigned x = (unsigned)(gtime() & 0xffff);
      long long t = clock64();
      for (int i = 0; i < a.loads; i++) x = __ldcg(far_ + ((size_t)(x * 2654435761u + i * 40503u) & ((1u << 28) - 1))) + x * 7 + 1;
      took[1] = (int)(clock64() - t + (x == 77));
    }
  }
  long long t = clock64();
  while (clock64() - t < a.spin) {}
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(end, gtime());
}

static const int ROUNDS = 8, EACH_NS = 100000;
struct Times { unsigned long long first; unsigned long long start[3 * ROUNDS], last[3 * ROUNDS], end[3 * ROUNDS]; int took[2]; unsigned late; };

int main(int argc, char** argv) {
  FILE* out = fopen((std::string(argc > 1 ? argv[1] : ".") + "/busy.csv").c_str(), "w");
  fprintf(out, "what,sms,warps,deep,rest,TB_per_s,stored_ns,stored_low,stored_high,quiet_ns,quiet_low,quiet_high,many_ns,many_low,many_high,last_ns,last_low,last_high,late,l2_cycles,dram_cycles\n");
  float4 *big, *small;
  unsigned *started, *near_, *far_;
  unsigned long long* moved;
  Times* times;
  CK(cudaMalloc(&big, (size_t)4 << 30)); CK(cudaMemset(big, 0, (size_t)4 << 30));
  CK(cudaMalloc(&small, (size_t)16 << 20)); CK(cudaMemset(small, 0, (size_t)16 << 20));
  CK(cudaMalloc(&far_, (size_t)1 << 30)); CK(cudaMemset(far_, 0, (size_t)1 << 30));
  const int LINES = 48;
  std::vector<unsigned> chase(LINES * 32 * 37, 0);
  for (int i = 0; i < LINES; i++) chase[(size_t)i * 32 * 37] = (unsigned)(((i + 1) % LINES) * 32 * 37);
  CK(cudaMalloc(&near_, chase.size() * 4));
  CK(cudaMemcpy(near_, chase.data(), chase.size() * 4, cudaMemcpyHostToDevice));
  CK(cudaMalloc(&started, 4)); CK(cudaMalloc(&moved, 8)); CK(cudaMalloc(&times, sizeof(Times)));
  cudaStream_t a, b;
  int low, high;
  CK(cudaDeviceGetStreamPriorityRange(&low, &high));
  CK(cudaStreamCreateWithPriority(&a, cudaStreamNonBlocking, high));
  CK(cudaStreamCreateWithPriority(&b, cudaStreamNonBlocking, low));
  const long long LAST = 1980 * 1200;
  for (int kind = 0; kind < KINDS; kind++)
    for (auto& c : std::vector<std::array<int, 4>>{{132, 1, 4, 0}, {132, 2, 4, 0}, {132, 4, 4, 4000}, {132, 4, 4, 2000}, {132, 4, 4, 1000}, {132, 4, 4, 500}, {132, 4, 4, 0}, {132, 8, 4, 0}, {132, 8, 8, 0},
                                                   {132, 8, 16, 0}, {132, 12, 4, 0}, {132, 12, 16, 0}, {66, 8, 4, 0}, {66, 8, 16, 0}, {16, 8, 16, 0}}) {
        const int sms = c[0], warps = c[1], deep = c[2], rest = c[3];
        if (kind == SPIN && rest) continue;
        std::vector<double> gap[4], rate, l2, dram;
        int late = 0;
        for (int rep = 0; rep < 6; rep++) {
          Times t;
          memset(&t, 0, sizeof t);
          for (auto& x : t.start) x = ~0ull;
          CK(cudaMemset(started, 0, 4)); CK(cudaMemset(moved, 0, 8));
          CK(cudaMemcpy(times, &t, sizeof t, cudaMemcpyHostToDevice));
          auto go = [&](auto kernel) { kernel<<<sms, warps * 32, 0, a>>>(big, small, started, moved, LAST, rest, deep); };
          switch (kind) {
            case SPIN: go(k_load<SPIN>); break;
            case L2_READ: go(k_load<L2_READ>); break;
            case DRAM_READ: go(k_load<DRAM_READ>); break;
            case L2_WRITE: go(k_load<L2_WRITE>); break;
            case DRAM_WRITE: go(k_load<DRAM_WRITE>); break;
            case COPY: go(k_load<COPY>); break;
            default: go(k_load<HOT_READ>);
          }
          k_first<<<1, 1, 0, b>>>(started, sms, 1980 * 150, &times->first);
          for (int i = 0; i < ROUNDS; i++) {
            auto next = [&](int at, int tbs, int threads, int us, int loads) {
              Args args = {1980 * us, loads, {}};
              k_next<<<tbs, threads, 0, b>>>(times->start + at, times->last + at, times->end + at, near_, far_, times->took, args);
            };
            next(3 * i, 1, 32, 3, 0);
            next(3 * i + 1, 64, 128, 3, 0);
            k_quiet<<<1, 32, 0, b>>>(&times->first, (i + 1) * EACH_NS, &times->late);
            next(3 * i + 2, 64, 128, 3, i == ROUNDS - 1 ? LINES : 0);
          }
          CK(cudaDeviceSynchronize());
          CK(cudaMemcpy(&t, times, sizeof t, cudaMemcpyDeviceToHost));
          unsigned long long bytes;
          CK(cudaMemcpy(&bytes, moved, 8, cudaMemcpyDeviceToHost));
          if (!rep) continue;
          late += t.late;
          for (int i = 0; i < ROUNDS; i++) {
            gap[0].push_back((double)(long long)(t.start[3 * i + 1] - t.end[3 * i]));
            gap[1].push_back((double)(long long)(t.start[3 * i + 2] - (t.first + (i + 1) * EACH_NS)));
            gap[3].push_back((double)(long long)(t.last[3 * i + 1] - t.end[3 * i]));
            gap[2].push_back((double)(long long)(t.start[3 * i] - (i ? t.end[3 * i - 1] : t.first)));
          }
          rate.push_back(bytes / 1200e-6 / 1e12);
          l2.push_back((double)t.took[0] / LINES);
          dram.push_back((double)t.took[1] / LINES);
        }
        const double moves = kind == SPIN ? 0 : stat_of(rate).med * (kind == COPY ? 2 : 1);
        fprintf(out, "%s,%d,%d,%d,%d,%.2f", NAMES[kind], sms, warps, deep, rest, moves);
        for (auto& g : gap) fprintf(out, ",%.0f,%.0f,%.0f", stat_of(g).med, pct(g, .1), pct(g, .9));
        fprintf(out, ",%d,%.0f,%.0f\n", late, stat_of(l2).med, stat_of(dram).med);
        printf("%s sms %d warps %d deep %d rest %d: %.2f TB/s stored %.0f (last %.0f) quiet %.0f%s many %.0f l2 %.0f dram %.0f\n", NAMES[kind], sms, warps, deep, rest, moves, stat_of(gap[0]).med, stat_of(gap[3]).med, stat_of(gap[1]).med, late ? " LATE" : "",
               stat_of(gap[2]).med, stat_of(l2).med, stat_of(dram).med);
      }
  fclose(out);
  return 0;
}
