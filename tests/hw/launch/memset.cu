// The period of kernels in a CUDA graph of one chain, with and without a memset of `bytes` before each: `tbs` TBs of 256 threads spin
// for `spin` cycles and store. `alone`: kernels alone, `with`: with memsets, `memsets`: memsets alone; ns, the median of 15 replays.
//   memset DIR   writes DIR/memset.csv
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>
#include <cuda_runtime.h>
#define CHECK(x) do { cudaError_t e = (x); if (e) { fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e)); return 1; } } while (0)

__global__ void k_spin(int cycles, int* out) {
  long long begin = clock64();
  while (clock64() - begin < cycles) {}
  if (threadIdx.x == 0) out[blockIdx.x] = cycles;
}

static double period(cudaStream_t stream, int nodes, bool kernels, int bytes, int tbs, int spin, char* counter, int* out) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int i = 0; i < nodes; i++) {
    if (bytes) cudaMemsetAsync(counter, 0, bytes, stream);
    if (kernels) k_spin<<<tbs, 256, 0, stream>>>(spin, out);
  }
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaEvent_t from, to;
  cudaEventCreate(&from);
  cudaEventCreate(&to);
  std::vector<float> found;
  for (int i = 0; i < 18; i++) {
    k_spin<<<1, 32, 0, stream>>>(200000, out);  // the queue fills meanwhile
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
  FILE* f = fopen((dir + "/memset.csv").c_str(), "w");
  if (!f) return 1;
  char* counter;
  int* out;
  cudaStream_t stream;
  CHECK(cudaMalloc(&counter, 1 << 24));
  CHECK(cudaMalloc(&out, 1 << 20));
  CHECK(cudaStreamCreate(&stream));
  fprintf(f, "bytes,tbs,spin_cycles,alone_ns,with_ns,memsets_ns\n");
  const int MANY = 120, FEW = 20;
  for (int bytes : {4, 64, 256, 4096, 65536, 1 << 20})
    for (int tbs : {1, 132, 1056})
      for (int spin : {0, 2000, 10000}) {
        double times[3];
        for (int what = 0; what < 3; what++) {
          bool kernels = what < 2;
          int size = what == 0 ? 0 : bytes;
          double many = period(stream, MANY, kernels, size, tbs, spin, counter, out);
          double few = period(stream, FEW, kernels, size, tbs, spin, counter, out);
          times[what] = (many - few) / (MANY - FEW);
        }
        fprintf(f, "%d,%d,%d,%.0f,%.0f,%.0f\n", bytes, tbs, spin, times[0], times[1], times[2]);
      }
  CHECK(cudaGetLastError());
  fclose(f);
  return 0;
}
