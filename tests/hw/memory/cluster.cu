// What loads that hit in L2 bring to an SM a cycle while others load, too: do SMs of a cluster (CPC) share a path?
//   cluster DIR   writes DIR/cluster.csv: bytes a cycle of each SM, by what is read and by how many SMs read
#include "gpcs.cuh"
#include "suite.cuh"
static unsigned* CTR;
struct Rec { unsigned sm, on; long long cycles; };
static Rec* REC;
// one TB an SM; those whose SM is in `on` read `bytes` again and again, `share` SMs in a row the same
template <int LANES>
__global__ void __launch_bounds__(1024) k_read(const uint4* p, size_t bytes, int share, int turns, const unsigned char* on, unsigned* c, Rec* rec, unsigned* sink) {
  __shared__ unsigned go;
  const unsigned me = smid();
  const uint4* q = p + (size_t)(me / share) * (bytes / 16);
  const int n = (int)(bytes / 16);
  __syncthreads();
  if (threadIdx.x == 0) { atomicAdd(c, 1u); poll(c, gridDim.x); go = on[me]; }
  __syncthreads();
  unsigned x = 0;
  long long t = clock64();
  if (go)
    for (int r = 0; r < turns; r++)
#pragma unroll 8
      for (int i = threadIdx.x; i < n; i += 1024) { uint4 v = __ldcg(q + ((unsigned)i / LANES * 8 & (n - 1)) + (unsigned)i % LANES); x ^= v.x ^ v.y ^ v.z ^ v.w; }
  __syncthreads();
  long long e = clock64();
  if (x == 12345u) sink[0] = x;
  if (threadIdx.x == 0) rec[blockIdx.x] = Rec{me, go, e - t};
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  const int sms = 132, turns = 40;
  const size_t bytes = 64 << 10;
  char* buf; unsigned* sink; unsigned char* on;
  CK(cudaMalloc(&CTR, 4096)); CK(cudaMalloc(&REC, sizeof(Rec) * 256)); CK(cudaMalloc(&sink, 64)); CK(cudaMalloc(&on, 256));
  CK(cudaMalloc(&buf, bytes * 256)); CK(cudaMemset(buf, 0, bytes * 256));
  FILE* f = fopen((dir + "/cluster.csv").c_str(), "w");
  fprintf(f, "lanes,share,active,sm,bytes_a_cycle_median,bytes_a_cycle_min,bytes_a_cycle_max\n");
  auto one = [&](int share, int lanes, const char* name, const std::vector<unsigned char>& who) {
    std::vector<std::vector<double>> by(sms);
    CK(cudaMemcpy(on, who.data(), who.size(), cudaMemcpyHostToDevice));
    for (int r = 0; r < 6; r++) {
      CK(cudaMemset(CTR, 0, 64));
      auto kernel = lanes == 2 ? k_read<2> : lanes == 4 ? k_read<4> : k_read<8>;
      CK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024));
      kernel<<<sms, 1024, 200 * 1024>>>((uint4*)buf, bytes, share, turns, on, CTR, REC, sink);
      CK(cudaDeviceSynchronize());
      std::vector<Rec> h(sms);
      CK(cudaMemcpy(h.data(), REC, sizeof(Rec) * sms, cudaMemcpyDeviceToHost));
      if (r) for (auto& x : h) if (x.on) by[x.sm].push_back((double)bytes * turns / x.cycles);
    }
    for (int i = 0; i < sms; i++) if (by[i].size()) { Stat s = stat_of(by[i]); fprintf(f, "%d,%d,%s,%d,%.2f,%.2f,%.2f\n", lanes, share, name, i, s.med, s.mn, s.mx); }
  };
  std::vector<unsigned char> all(256, 1);
  // a lane reads 16 B; 2, 4 and 8 lanes in a row a line's first 32, 64 and 128 B
  for (int lanes : {2, 4, 8})
    for (int share : {1, 132}) one(share, lanes, "all", all);
  auto tpcs = tpcs_of_gpcs();
  const char* sets[] = {"0", "03", "036", "147", "25", "01", "012", "0134", "013467", "01234567", "012345678", "25036", "25147"};
  for (int lanes : {2, 4, 8})
    for (int one_sm : {0, 1})
      for (int g : {1, 4, 6, -1})
        for (const char* set : sets) {
          std::vector<unsigned char> who(256, 0);
          for (int i = 0; i < 8; i++)
            if (g < 0 || g == i)
              for (const char* r = set; *r; r++)
                if (*r - '0' < (int)tpcs[i].size()) { int t = tpcs[i][*r - '0']; who[2 * t] = 1; if (!one_sm) who[2 * t + 1] = 1; }
          char name[48];
          snprintf(name, 48, "GPC %d TPCs %s%s", g, set, one_sm ? " one SM" : "");
          one(1, lanes, name, who);
        }
  fclose(f);
  printf("done\n");
  return 0;
}
