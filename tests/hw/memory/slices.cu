// Which lines of 64 GiB lie in one slice of L2, and in which half of it their home is.
//   slices DIR   writes DIR/slices.csv: a number for each line, the same for those in one slice (-1: not clear); DIR/homes.csv: which half the line's
//                home is in, 0 or 1 (-1: not clear): an SM of the other half waits longer for what an SM of its home's wrote
#include "slices.cuh"
__global__ void k_write(char* p, const int* line, int n, int sm) {
  if (smid() != sm) return;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    for (int w = 0; w < 32; w++) *(unsigned*)(p + (size_t)line[i] * 128 + w * 4) = 1;
}
__global__ void k_read(const char* p, const int* line, int n, int sm, unsigned short* out, unsigned* sink) {
  if (smid() != sm || threadIdx.x) return;
  unsigned acc = 0;
  for (int i = 0; i < n; i++) {
    const char* q = p + (size_t)line[i] * 128 + (acc & 0);
    if (q == nullptr) break;  // so that `line[i]` is here before the time is taken
    unsigned v, t0 = tick();
    asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(v) : "l"(q) : "memory");
    acc += v;
    unsigned t = acc == 12345u ? 0 : tick();
    out[i] = (unsigned short)(t - t0);
  }
  *sink = acc;
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  char* p;
  CK(cudaMalloc(&p, (size_t)64 << 30));
  Slices slices(p);
  fprintf(stderr, "%zu slices\n", slices.first.size());
  // 128 KiB, the beginning of each power of two from 256 KiB on, and lines anywhere
  std::vector<int> at;
  for (int i = 0; i < 1024; i++) at.push_back(i);
  for (int b = 11; b < 29; b++) for (int i = 0; i < 64; i++) at.push_back((1 << b) + 2 * i);
  unsigned r = 777;
  for (int i = 0; i < 2048; i++) {
    r = r * 1664525u + 1013904223u;
    at.push_back((int)(((unsigned long)r << 5 | r >> 27) % (1ul << 29)));
  }
  auto of = slices.of(at);
  FILE* f = fopen((dir + "/slices.csv").c_str(), "w");
  fprintf(f, "line,slice\n");
  for (size_t i = 0; i < at.size(); i++) fprintf(f, "%d,%d\n", at[i], of[i]);
  fclose(f);
  // SMs 0 and 2 lie at different halves
  unsigned short* out; unsigned* sink; int* list;
  CK(cudaMalloc(&out, 1 << 16)); CK(cudaMalloc(&sink, 4)); CK(cudaMalloc(&list, 1 << 16));
  std::vector<unsigned short> took[2];
  for (int way = 0; way < 2; way++)
    for (size_t i = 0; i < at.size(); i += 2048) {
      const int n = (int)std::min(at.size() - i, (size_t)2048);
      CK(cudaMemcpy(list, at.data() + i, n * 4, cudaMemcpyHostToDevice));
      for (int rep = 0; rep < 2; rep++) {
        k_write<<<132, 256>>>(p, list, n, way ? 2 : 0);
        CK(cudaDeviceSynchronize());
        k_read<<<132, 32>>>(p, list, n, way ? 0 : 2, out, sink);
        CK(cudaDeviceSynchronize());
      }
      std::vector<unsigned short> h(n);
      CK(cudaMemcpy(h.data(), out, n * 2, cudaMemcpyDeviceToHost));
      took[way].insert(took[way].end(), h.begin(), h.end());
    }
  f = fopen((dir + "/homes.csv").c_str(), "w");
  fprintf(f, "line,home\n");
  for (size_t i = 0; i < at.size(); i++) {
    const bool a = took[0][i] > 400, b = took[1][i] > 400;
    fprintf(f, "%d,%d\n", at[i], a == b ? -1 : b);
  }
  fclose(f);
  return 0;
}
