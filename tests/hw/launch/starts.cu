// When TBs of a kernel begin on their SMs: cycles behind the first of their GPC, at entry and behind a load and a barrier.
//   starts DIR   writes DIR/starts.csv: threads, TBs, TBs of the GPC, which of them in the order of dispatch: means over GPCs and launches
#include "gpcs.cuh"
__global__ void __launch_bounds__(1024) k_start(const float* p, unsigned* out) {
  unsigned t0 = tick();
  float v;
  asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(v) : "l"(p + blockIdx.x % 4 * 1024 + threadIdx.x) : "memory");
  if (v == -1.f) out[0] = 1;
  __syncthreads();
  unsigned t1 = tick();
  for (int i = 0; i < 200; i++) __nanosleep(100);
  if (threadIdx.x == 0) {
    unsigned* o = out + 3 * blockIdx.x;
    o[0] = smid(); o[1] = t0; o[2] = t1;
  }
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  float* p; unsigned* out;
  CK(cudaMalloc(&p, 1 << 20)); CK(cudaMemset(p, 0, 1 << 20)); CK(cudaMalloc(&out, 1 << 20));
  auto gpc = gpcs_of_sms();
  auto ahead = ahead_of_sm0();
  CK(cudaFuncSetAttribute(k_start, cudaFuncAttributeMaxDynamicSharedMemorySize, 200000));
  FILE* f = fopen((dir + "/starts.csv").c_str(), "w");
  fprintf(f, "threads,tbs,tbs_of_gpc,place,entry,ready\n");
  for (int threads : {32, 64, 128, 256, 512, 1024})
    for (int tbs : {132, 264}) {
      std::map<std::pair<int, int>, std::vector<double>> entry, ready;
      for (int launch = -2; launch < 8; launch++) {
        k_start<<<tbs, threads, tbs == 132 ? 200000 : 100000>>>(p, out);
        CK(cudaDeviceSynchronize());
        if (launch < 0) continue;
        std::vector<unsigned> h(3 * tbs);
        CK(cudaMemcpy(h.data(), out, 12 * tbs, cudaMemcpyDeviceToHost));
        auto when = [&](int i, int k) { return (double)(int)(h[3 * i + k] - (unsigned)(long long)ahead[h[3 * i]]); };
        std::map<int, std::vector<int>> of;
        for (int i = 0; i < tbs; i++) of[gpc[h[3 * i]]].push_back(i);
        for (auto& g : of) {
          int n = (int)g.second.size();
          if (n < 16 * tbs / 132) continue;
          double first = 1e300;
          for (int i : g.second) first = std::min(first, when(i, 1));
          for (int k = 0; k < n; k++) {
            entry[{n, k}].push_back(when(g.second[k], 1) - first);
            ready[{n, k}].push_back(when(g.second[k], 2) - first);
          }
        }
      }
      for (auto& x : entry) {
        double a = 0, b = 0;
        for (double v : x.second) a += v / x.second.size();
        for (double v : ready[x.first]) b += v / x.second.size();
        fprintf(f, "%d,%d,%d,%d,%.0f,%.0f\n", threads, tbs, x.first.first, x.first.second, a, b);
      }
    }
  fclose(f);
  return 0;
}
