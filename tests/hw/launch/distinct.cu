// The period of kernels in a CUDA graph of one chain: one kernel again and again (`same`), and `kinds` different ones in turn (`turns`), which
// differ in code alone. `tbs` TBs of 256 threads run `work` FFMA a thread in straight code, then store. `smem`: KiB of dynamic shared memory of every
// second kernel (0: none), so that the split of L1 changes from kernel to kernel; `all`: of all of them. ns, medians of 15 replays.
//   distinct DIR   writes DIR/distinct.csv
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>
#include <cuda_runtime.h>
#define CHECK(x) do { cudaError_t e = (x); if (e) { fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e)); return 1; } } while (0)

template <int KIND, int WORK>
__global__ void __launch_bounds__(256) k_work(float* out, float by) {
  float x = threadIdx.x;
#pragma unroll
  for (int i = 0; i < WORK; i++) x = x * by + (float)(KIND * WORK + i);
  out[blockIdx.x * 256 + threadIdx.x] = x;
}
typedef void (*Kernel)(float*, float);
template <int WORK>
static std::vector<Kernel> kernels() {
  return {k_work<0, WORK>, k_work<1, WORK>, k_work<2, WORK>, k_work<3, WORK>, k_work<4, WORK>, k_work<5, WORK>, k_work<6, WORK>, k_work<7, WORK>,
          k_work<8, WORK>, k_work<9, WORK>, k_work<10, WORK>, k_work<11, WORK>, k_work<12, WORK>, k_work<13, WORK>, k_work<14, WORK>, k_work<15, WORK>};
}

static double replay(cudaStream_t stream, const std::vector<Kernel>& all, int nodes, int kinds, int tbs, int smem, bool every, float* out) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int i = 0; i < nodes; i++) all[i % kinds]<<<tbs, 256, (every || i % 2 ? smem : 0) * 1024, stream>>>(out, 1.5f);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaEvent_t from, to;
  cudaEventCreate(&from);
  cudaEventCreate(&to);
  std::vector<float> found;
  for (int i = 0; i < 18; i++) {
    for (int j = 0; j < 40; j++) all[15]<<<1056, 256, 0, stream>>>(out, 1.5f);  // the queue fills meanwhile
    cudaEventRecord(from, stream);
    cudaGraphLaunch(exec, stream);
    cudaEventRecord(to, stream);
    cudaStreamSynchronize(stream);
    float ms = 0;
    cudaEventElapsedTime(&ms, from, to);
    if (i >= 3) found.push_back(ms);
  }
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  std::sort(found.begin(), found.end());
  return found[found.size() / 2] * 1e6;
}

int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  FILE* f = fopen((dir + "/distinct.csv").c_str(), "w");
  if (!f) return 1;
  float* out;
  cudaStream_t stream;
  CHECK(cudaMalloc(&out, 1 << 24));
  CHECK(cudaStreamCreate(&stream));
  fprintf(f, "work,kinds,tbs,smem,all,same_ns,turns_ns,first_ns\n");
  const int MANY = 320, FEW = 64;
  int works[] = {16, 256, 2048};
  for (int w = 0; w < 3; w++) {
    std::vector<Kernel> all = w == 0 ? kernels<16>() : w == 1 ? kernels<256>() : kernels<2048>();
    for (Kernel k : all) CHECK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024));
    for (int tbs : {1, 132, 528})
      for (int smem : {0, 16, 100, 200})
        for (int every = smem ? 0 : 1; every < 2; every++)
          for (int kinds : {2, 4, 16}) {
            double ns[2];
            for (int what = 0; what < 2; what++) {
              int many = what ? kinds : 1;
              ns[what] = (replay(stream, all, MANY, many, tbs, smem, every, out) - replay(stream, all, FEW, many, tbs, smem, every, out)) / (MANY - FEW);
            }
            double first = replay(stream, all, FEW, 1, tbs, smem, every, out) - FEW * ns[0];
            fprintf(f, "%d,%d,%d,%d,%d,%.0f,%.0f,%.0f\n", works[w], kinds, tbs, smem, every, ns[0], ns[1], first);
          }
  }
  CHECK(cudaGetLastError());
  fclose(f);
  return 0;
}
