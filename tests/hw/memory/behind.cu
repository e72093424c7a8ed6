// How far behind a load of another SM of its GPC one may come to join it, load by load, by when each was issued: one that joins comes when the first
// does, and so takes less the more it is behind (window.cu counts sectors, and when its SMs ask is known less well).
//   behind DIR   writes DIR/behind.csv: cycles between two reads of a line that hits in L2 (negative: the second SM is first) and what both take
#include "gpcs.cuh"
constexpr int LINES = 32, APART = 2000, REPS = 4;
struct Seen { unsigned at, took; };
// SM `first` reads line after line, SM `second` each of them `later` cycles behind it; all others, if `busy`, read L2 meanwhile, `pause` cycles between
__global__ void __launch_bounds__(256) k_behind(const unsigned* p, const unsigned* others, int first, int second, int later, int pause, unsigned long long* go,
                                                volatile unsigned* stop, Seen* out, unsigned* never) {
  extern __shared__ char smem[];
  int me = smid();
  if (me != first && me != second) {
    if (pause < 0) return;
    unsigned sum = 0, i = (me * 977 + threadIdx.x / 32 * 131) & 16383;
    while (!*stop) {
      unsigned v[4];
      for (int k = 0; k < 4; k++) {
        asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(v[k]) : "l"(others + ((i + k * 41) & 16383) * 32 + (threadIdx.x & 31)) : "memory");
      }
      sum += v[0] + v[1] + v[2] + v[3];
      i = (i * 5 + 1237) & 16383;
      unsigned t = tick();
      while ((int)(tick() - t - pause) < 0) {}
    }
    if (sum) never[0] = sum;
    return;
  }
  if (threadIdx.x >= 32) return;
  unsigned base = meet(go, me == first) + 8192 + (me == second ? later : 0);
  for (int i = 0; i < LINES; i++) {
    while ((int)(tick() - base - i * APART) < 0) {}
    unsigned t = tick(), v;
    asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(v) : "l"(p + i * 32 + threadIdx.x) : "memory");
    if (v) never[0] = v;
    unsigned took = tick() - t;
    if (threadIdx.x == 0) out[(me == second) * LINES + i] = {t, took};
  }
  if (me == second) *stop = 1;
}
int main(int argc, char** argv) {
  FILE* f = fopen((std::string(argc > 1 ? argv[1] : ".") + "/behind.csv").c_str(), "w");
  fprintf(f, "pause,second,block,line,behind,first_cycles,second_cycles\n");
  unsigned *p, *others, *never, *stop;
  unsigned long long* go;
  Seen* out;
  CK(cudaMalloc(&p, 1 << 20)); CK(cudaMemset(p, 0, 1 << 20)); CK(cudaMalloc(&others, 4 << 20)); CK(cudaMemset(others, 0, 4 << 20));
  CK(cudaMalloc(&never, 64)); CK(cudaMalloc(&stop, 4)); CK(cudaMalloc(&go, 8)); CK(cudaMalloc(&out, 2 * LINES * sizeof(Seen)));
  CK(cudaFuncSetAttribute(k_behind, cudaFuncAttributeMaxDynamicSharedMemorySize, 200000));
  auto ahead = ahead_of_sm0();
  auto gpc = gpcs_of_sms();
  std::vector<int> mates;
  for (int i = 1; i < 132; i++) if (gpc[i] == gpc[0]) mates.push_back(i);
  int far = mates.size() > 2 ? mates[mates.size() / 2] : 16;
  for (int pause : {-1, 1000, 250})
    for (int second : {mates[0], mates[1], far})
      for (int block = 0; block < 4; block++)
        for (int later = -160; later <= 160; later += 4)
          for (int r = 0; r < (pause < 0 ? REPS : 2); r++) {
            CK(cudaMemset(go, 0, 8)); CK(cudaMemset(stop, 0, 4));
            k_behind<<<132, 256, 200000>>>(p + block * 1024, others, 0, second, later, pause, go, stop, out, never);
            CK(cudaDeviceSynchronize());
            Seen h[2 * LINES];
            CK(cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost));
            for (int i = 0; i < LINES; i++) {
              int behind = (int)(h[LINES + i].at - h[i].at) - (int)llround(ahead[second]);
              fprintf(f, "%d,%d,%d,%d,%d,%u,%u\n", pause, second, block, i, behind, h[i].took, h[LINES + i].took);
            }
          }
  fclose(f);
  return 0;
}
