// What L2 gives of few lines that SMs read all the time, and which GPCs share it.
//   hotline DIR   writes DIR/hotline.csv: cycles of a turn (each of an SM's 8 warps loads 32 times, all lines by turns), by SMs, lines
//                 (so many B apart), sectors of each that are read, and whether each SM has lines of its own; DIR/hotline_gpcs.csv: cycles
//                 of a turn where the SMs of one GPC, or of two, read one line
//   hotline DIR profile   launches some of the first once each, for a profiler, in the order of DIR/hotline_order.csv
#include "gpcs.cuh"
#include <cuda_profiler_api.h>
__global__ void __launch_bounds__(256) k_line(const char* p, int lines, size_t pitch, int sectors, size_t own, int turns, unsigned* out, unsigned* go, const unsigned char* runs, int wait_for) {
  if (runs && !runs[smid()]) return;
  extern __shared__ char smem[];
  const int lane = threadIdx.x & 31, w = threadIdx.x >> 5;
  const char* q = p + blockIdx.x * own + lane % (8 * sectors) * 4;
  if (threadIdx.x == 0) {
    atomicAdd(go, 1u);
    while (*(volatile unsigned*)go < wait_for) {}
  }
  __syncthreads();
  unsigned t0 = tick(), sum = 0;
  for (int i = 0; i < turns; i++) {
#pragma unroll
    for (int j = 0; j < 32; j += 4) {
      unsigned v[4];
#pragma unroll
      for (int k = 0; k < 4; k++) asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(v[k]) : "l"(q + (size_t)((j + k + w * 5) % lines) * pitch) : "memory");
#pragma unroll
      for (int k = 0; k < 4; k++) sum += v[k];
    }
  }
  if (sum == 12345u) out[1 << 16] = sum;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = tick() - t0;
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  const bool profile = argc > 2;
  char* p; unsigned *out, *go;
  CK(cudaMalloc(&p, 64 << 20)); CK(cudaMemset(p, 1, 64 << 20));
  CK(cudaMalloc(&out, 1 << 20)); CK(cudaMalloc(&go, 4));
  CK(cudaFuncSetAttribute(k_line, cudaFuncAttributeMaxDynamicSharedMemorySize, 120000));
  FILE* f = fopen((dir + (profile ? "/hotline_order.csv" : "/hotline.csv")).c_str(), "w");
  fprintf(f, "sms,lines,pitch,sectors,own,cycles\n");
  const int turns = 64;
  for (int sms : {132, 33})
    for (int own : {0, 1})
      for (int sectors : {1, 2, 4})
        for (int lines : {1, 2, 4, 8, 16, 32})
          for (size_t pitch : {128, 4096}) {
            if (lines == 1 && pitch > 128) continue;
            if (profile && (sms != 132 || pitch != 128)) continue;
            double took = 0;
            for (int r = 0; r < (profile ? 2 : 4); r++) {
              CK(cudaMemset(go, 0, 4));
              if (profile && r == 1) CK(cudaProfilerStart());
              k_line<<<sms, 256, 120000>>>(p, lines, pitch, sectors, own ? 131072 + 128 * 37 : 0, turns, out, go, nullptr, sms);
              CK(cudaDeviceSynchronize());
              if (profile && r == 1) CK(cudaProfilerStop());
              std::vector<unsigned> h(sms);
              CK(cudaMemcpy(h.data(), out, sms * 4, cudaMemcpyDeviceToHost));
              for (int i = 0; r && i < sms; i++) took += h[i] / (double)turns / sms / (profile ? 1 : 3);
            }
            fprintf(f, "%d,%d,%zu,%d,%d,%.1f\n", sms, lines, pitch, sectors, own, took);
          }
  fclose(f);
  if (profile) return 0;
  auto once = [&](int lines, const char* at, size_t pitch, int sectors, int n, const unsigned char* runs, int expect) {
    CK(cudaMemset(go, 0, 4)); CK(cudaMemset(out, 0, 132 * 4));
    k_line<<<132, 256, 120000>>>(at, lines, pitch, sectors, 0, n, out, go, runs, expect);
    CK(cudaDeviceSynchronize());
    std::vector<unsigned> h(132);
    CK(cudaMemcpy(h.data(), out, 132 * 4, cudaMemcpyDeviceToHost));
    double t = 0;
    for (unsigned x : h) t += x;
    return t / n / expect;
  };
  // SMs of one GPC, and of two
  f = fopen((dir + "/hotline_gpcs.csv").c_str(), "w");
  fprintf(f, "gpcs,sms,sectors,cycles\n");
  auto gpc = gpcs_of_sms();
  std::vector<int> ids(gpc);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  unsigned char* runs;
  CK(cudaMalloc(&runs, 132));
  for (int sectors : {1, 4})
    for (size_t a = 0; a < ids.size(); a++)
      for (size_t b = a; b < ids.size(); b++) {
        std::vector<unsigned char> h(132);
        int n = 0;
        for (int i = 0; i < 132; i++) n += h[i] = gpc[i] == ids[a] || gpc[i] == ids[b];
        CK(cudaMemcpy(runs, h.data(), 132, cudaMemcpyHostToDevice));
        once(1, p, 128, sectors, 16, runs, n);
        fprintf(f, "%zu-%zu,%d,%d,%.1f\n", a, b, n, sectors, once(1, p, 128, sectors, 32, runs, n));
      }
  fclose(f);
  return 0;
}
