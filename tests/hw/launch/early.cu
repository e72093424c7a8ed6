// How soon a kernel of a programmatic launch starts behind the trigger of the one before it, by the bytes of its
// parameters, its shared memory, and when the trigger comes: at a TB's start, or after 6 us.
//   early DIR   writes DIR/early.csv: ns from the last TB's trigger to the first start of the next kernel, of chains of six
#include "common.cuh"

template <int BYTES> struct Args { unsigned word[BYTES / 4]; };
struct Rec { unsigned long long start, trigger, end; };

template <int BYTES>
__global__ void __launch_bounds__(256) k_early(Rec* rec, int late, Args<BYTES> a, unsigned* sink) {
  unsigned long long t = gtime(), g = t;
  if (!late) pdl_trigger();
  while (gtime() - t < 6000) {}
  if (late) { g = gtime(); pdl_trigger(); }
  while (gtime() - t < 8000) {}
  pdl_wait();
  unsigned long long e = gtime();
  while (gtime() - e < 1000) {}
  if (a.word[BYTES / 4 - 1] == 77) *sink = 1;
  if (threadIdx.x == 0) rec[blockIdx.x] = Rec{t, g, gtime()};
}

static FILE* CSV;
static Rec* REC;
static unsigned* SINK;
static cudaStream_t S;
template <int BYTES>
static void one() {
  const int N = 6;
  CK(cudaFuncSetAttribute(k_early<BYTES>, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024));
  Args<BYTES> a = {};
  for (int graph : {0, 1})
    for (int late : {0, 1})
      for (int smem : {0, 1, 2})  // KiB: 0, 30, 30 in every second one
        for (int tbs : {1, 24, 132}) {
          auto go = [&] {
            for (int k = 0; k < N; k++)
              launch_ex(k_early<BYTES>, dim3(tbs), dim3(128), smem == 1 || (smem == 2 && k % 2 == 0) ? 30 * 1024 : 0, S, k > 0, REC + k * tbs, late, a, SINK);
          };
          cudaGraph_t g;
          cudaGraphExec_t ge;
          if (graph) {
            CK(cudaStreamBeginCapture(S, cudaStreamCaptureModeThreadLocal));
            go();
            CK(cudaStreamEndCapture(S, &g));
            CK(cudaGraphInstantiate(&ge, g, 0));
          }
          std::vector<double> v, w;
          for (int rep = 0; rep < 8; rep++) {
            k_gate<<<1, 1, 0, S>>>(60000);
            if (graph) CK(cudaGraphLaunch(ge, S)); else go();
            CK(cudaDeviceSynchronize());
            if (!rep) continue;
            std::vector<Rec> h(N * tbs);
            CK(cudaMemcpy(h.data(), REC, h.size() * sizeof(Rec), cudaMemcpyDeviceToHost));
            for (int k = 1; k < N; k++) {
              unsigned long long trigger = 0, start = ~0ull;
              for (int i = 0; i < tbs; i++) {
                trigger = std::max(trigger, h[(k - 1) * tbs + i].trigger);
                start = std::min(start, h[k * tbs + i].start);
              }
              (k == 1 ? w : v).push_back((double)start - (double)trigger);
            }
          }
          fprintf(CSV, "%s,%s,%d,%s,%d,%.0f,%.0f\n", graph ? "graph" : "stream", late ? "late" : "start", BYTES + 24, smem == 0 ? "0" : smem == 1 ? "30" : "30 and 0", tbs, stat_of(w).med, stat_of(v).med);
          printf("%s %s bytes %d smem %d tbs %d: second %.0f later %.0f [%.0f .. %.0f]\n", graph ? "graph" : "stream", late ? "late" : "start", BYTES + 24, smem, tbs, stat_of(w).med, stat_of(v).med, stat_of(v).mn, stat_of(v).mx);
          if (graph) { CK(cudaGraphExecDestroy(ge)); CK(cudaGraphDestroy(g)); }
        }
}
int main(int argc, char** argv) {
  CSV = fopen((std::string(argc > 1 ? argv[1] : ".") + "/early.csv").c_str(), "w");
  fprintf(CSV, "launch,trigger,parameter_bytes,smem_kb,tbs,second_ns,later_ns\n");
  CK(cudaStreamCreateWithFlags(&S, cudaStreamNonBlocking));
  CK(cudaMalloc(&REC, 1 << 20));
  CK(cudaMalloc(&SINK, 64));
  one<8>(); one<40>(); one<104>(); one<168>(); one<232>(); one<488>(); one<1000>();
  fclose(CSV);
  return 0;
}
