// How TBs of one kernel drift apart: when each begins each of its steps, by the cycle counter of its SM. Counters of one GPC
// count together, from different beginnings; those of two GPCs do not (they part by 20,000 to 200,000 cycles in a run of this).
//   drift DIR   writes DIR/drift.csv: for TBs by their age on their SM (0: the oldest), of those that are there when the kernel
//               begins, cycles a step and, of all that read the same rows (convolutions: the same pixels) in a GPC, how far
//               apart they begin a step: standard deviation, and the share of neighbours in time less than 70 cycles apart
//               (which is how long loads join, window.cu); and DIR/drift_sms.csv: of each SM the mean of its first TBs' steps
//   with -DFEW, drift DIR N   writes DIR/drift_few.csv and drift_few_sms.csv: the same where only the first N SMs have TBs
#include <string>
static __constant__ unsigned* drift_out;
static __constant__ int drift_steps;
#ifdef FEW
static __constant__ unsigned drift_sms;
#define AT_STEP(step) \
  if ((step) == 0 && smid() >= drift_sms) return; \
  if (threadIdx.x == 0) drift_at((step) + 1, step)
#else
#define AT_STEP(step) \
  if (threadIdx.x == 0) drift_at((step) + 1, step)
#endif
#include "gpcs.cuh"
__device__ __forceinline__ void drift_at(int to, int step) {
  unsigned* p = drift_out + (size_t)((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * drift_steps;
  if (step == 0) p[0] = smid();
  p[to] = tick();
}
#define main plain_kernels
#include "kernels.cu"
#undef main
// reads all of a buffer, so that L2 holds nothing else and nothing that was written
__global__ void k_read(const float4* p, size_t n, float4* out) {
  float4 s = make_float4(0, 0, 0, 0);
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    float4 v = p[i];
    s.x += v.x + v.y + v.z + v.w;
  }
  if (s.x == -1.f) *out = s;
}
// the lines of one run
static void report(FILE* f, FILE* by_sm, const char* kernel, const char* params, int run, bool conv, dim3 grid, const std::vector<unsigned>& h, int S,
                   const std::vector<int>& gpc, const std::vector<double>& offset) {
  int tbs = grid.x * grid.y * grid.z, K = S - 1;
  std::vector<int> ran;
  for (int i = 0; i < tbs; i++)
    if (h[(size_t)i * S + 1 + K - 1] != 0) ran.push_back(i);
  auto at = [&](int tb, int k) { return (double)(int)(h[(size_t)tb * S + 1 + k] - (unsigned)(long long)offset[h[(size_t)tb * S]]); };
  std::vector<double> lasts;
  for (int i : ran) lasts.push_back(at(i, K - 1) - at(i, 0));
  double half = stat_of(lasts).med * .3;
  std::map<unsigned, std::vector<int>> on;
  for (int i : ran) on[h[(size_t)i * S]].push_back(i);
  std::vector<int> age(tbs, -1);
  int ages = 0;
  for (auto& s : on) {
    double first = 1e300;
    int n = 0;
    for (int i : s.second) first = std::min(first, at(i, 0));
    for (int i : s.second)
      if (at(i, 0) < first + half) age[i] = n++;
    ages = std::max(ages, n);
  }
  for (auto& s : on) {
    std::vector<double> means;
    for (int i : s.second)
      if (age[i] >= 0) means.push_back((at(i, K - 1) - at(i, 0)) / (K - 1));
    double sum = 0;
    for (double x : means) sum += x / means.size();
    fprintf(by_sm, "%s,%s,%s,%d,%u,%d,%zu,%.0f\n", kernel, params, run < 2 ? "warm" : "cold", run & 1, s.first, gpc[s.first], means.size(), sum);
  }
  for (int a = 0; a < ages; a++) {
    std::vector<double> steps;
    std::map<std::pair<int, int>, std::vector<int>> groups;
    int n = 0;
    for (int i : ran) {
      if (age[i] != a) continue;
      n++;
      for (int k = 1; k < K; k++) steps.push_back(at(i, k) - at(i, k - 1));
      int same = conv ? i / (int)(grid.x * grid.y) * (int)grid.x + i % (int)grid.x : i / (int)grid.x;
      groups[{gpc[h[(size_t)i * S]], same}].push_back(i);
    }
    for (int k : {0, 1, 2, 4, 8, 16, 24, K - 1}) {
      double sd = 0, near = 0;
      int many = 0;
      for (auto& g : groups) {
        std::vector<double> t;
        for (int i : g.second) t.push_back(at(i, k));
        if (t.size() < 2) continue;
        std::sort(t.begin(), t.end());
        double mean = 0, var = 0, close = 0;
        for (double x : t) mean += x / t.size();
        for (double x : t) var += (x - mean) * (x - mean) / t.size();
        for (size_t i = 1; i < t.size(); i++) close += t[i] - t[i - 1] < 70;
        sd += sqrt(var);
        near += close / (t.size() - 1);
        many++;
      }
      fprintf(f, "%s,%s,%s,%d,%d,%d,%.0f,%.0f,%.0f,%d,%d,", kernel, params, run < 2 ? "warm" : "cold", run & 1, a, n, pct(steps, .1), pct(steps, .5),
              pct(steps, .9), many, k);
      if (many) fprintf(f, "%.0f,%.2f\n", sd / many, near / many); else fprintf(f, ",\n");
    }
  }
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  for (float** q : {&PA, &PB, &PC, &PO, &PR}) CK(cudaMalloc(q, POOL * 4));
  HA = (__half*)PC; HB = (__half*)(PC + POOL / 2); HO = (__half*)PO; HR = (__half*)PR;
  init_rand<float><<<1024, 256>>>(PA, POOL, 1.f, 1);
  init_rand<float><<<1024, 256>>>(PB, POOL, 1.f, 2);
  init_rand<__half><<<1024, 256>>>(HA, POOL * 2, 1.f, 4);
  build();
  unsigned* steps;
  const size_t ROOM = 8 << 20, FLUSH = 256 << 20;
  void* flush;
  CK(cudaMalloc(&flush, FLUSH)); CK(cudaMemset(flush, 0, FLUSH));
  CK(cudaMalloc(&steps, ROOM * 4));
  CK(cudaMemcpyToSymbol(drift_out, &steps, sizeof steps));
  auto gpc = gpcs_of_sms();
#ifdef FEW
  unsigned sms = atoi(argv[2]);
  CK(cudaMemcpyToSymbol(drift_sms, &sms, sizeof sms));
  FILE* f = fopen((dir + "/drift_few.csv").c_str(), "w");
#else
  FILE* f = fopen((dir + "/drift.csv").c_str(), "w");
#endif
#ifdef FEW
  FILE* by_sm = fopen((dir + "/drift_few_sms.csv").c_str(), "w");
#else
  FILE* by_sm = fopen((dir + "/drift_sms.csv").c_str(), "w");
#endif
  fprintf(by_sm, "kernel,params,l2,run,sm,gpc,tbs,step_mean\n");
  fprintf(f, "kernel,params,l2,run,age,tbs,step_p10,step_median,step_p90,groups,at_step,apart_std,near\n");
  auto before = ahead_of_sm0();
  struct Case { const char *kernel, *params; int step; };
  for (Case q : {Case{"hgemm_128x128x32_8warps", "M=512;N=4096;K=1024", 32}, Case{"hgemm_128x128x32_8warps", "M=1024;N=4096;K=1024", 32}, Case{"hgemm_128x128x32_8warps", "M=2048;N=4096;K=4096", 32},
                 Case{"hgemm_128x128x32_8warps", "M=512;N=6144;K=12288", 32}, Case{"hgemm_64x64x32", "M=1024;N=1600;K=6400", 32}, Case{"hgemm_64x64x32", "M=64;N=8448;K=2816", 32},
                 Case{"hgemm_128x128x32_4warps", "M=1024;N=6400;K=1600", 32}, Case{"hgemm_128x128x32_4warps", "M=2048;N=4096;K=4096", 32},
                 Case{"sgemm_64x64x16", "M=2048;N=2048;K=1024", 16}, Case{"sgemm_64x64x16", "M=1024;N=1024;K=1024", 16}, Case{"sgemm_128x128x8", "M=1200;N=4096;K=1024", 8}, Case{"conv3x3_direct", "N=32;C=256;H=W=14;K=256", 1},
                 Case{"conv3x3_direct", "N=8;C=64;H=W=56;K=64", 1}}) {
    bool found = false;
    for (auto& it : L) {
      if (it.kernel != q.kernel) continue;
      int m, n, k;
      bool conv = q.step == 1;
      if (it.params != q.params) continue;
      found = true;
      if (conv) sscanf(q.params, "N=%d;C=%d", &n, &k); else sscanf(q.params, "M=%d;N=%d;K=%d", &m, &n, &k);
      int S = k / q.step + 1;  // step 0: the SM
      size_t tbs = (size_t)it.grid.x * it.grid.y * it.grid.z;
      CK(cudaMemcpyToSymbol(drift_steps, &S, sizeof S));
      if (tbs * S > ROOM) { printf("too large\n"); return 1; }
      for (int run = -3; run < 4; run++) {
        if (run > 1) k_read<<<132 * 4, 512>>>((const float4*)flush, FLUSH / 16, (float4*)flush);
        CK(cudaMemset(steps, 0, tbs * S * 4));
        it.run();
        CK(cudaDeviceSynchronize());
        if (run < 0) continue;
        std::vector<unsigned> h(tbs * S);
        CK(cudaMemcpy(h.data(), steps, h.size() * 4, cudaMemcpyDeviceToHost));
        report(f, by_sm, q.kernel, q.params, run, conv, it.grid, h, S, gpc, before);
      }
    }
    if (!found) printf("no %s %s\n", q.kernel, q.params);
  }
  auto after = ahead_of_sm0();
  for (int i = 0; i < 132; i++)
    for (int j = 0; j < i; j++)
      if (gpc[i] == gpc[j] && fabs(after[i] - before[i] - after[j] + before[j]) > 30) printf("SMs %d and %d: counters drift\n", i, j);
  fclose(f);
  fclose(by_sm);
  return 0;
}
