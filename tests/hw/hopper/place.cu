// Where the TBs of clusters run: on an empty chip, and behind a kernel of the same shape.
//   place DIR   writes DIR/place.csv
// 384 threads and 210 KiB a TB, so an SM takes one. turn 0: the chip is empty; 1 to 3: launches in a row, each behind the one
// before. gpc: groups of SMs that clusters of eight have shared, numbered by their lowest SM.
#include "hopper.cuh"
extern __shared__ __align__(1024) char tiles[];
__global__ void __launch_bounds__(384, 1) k_where(unsigned* sm, int cycles) {
  unsigned t = tick();
  while ((int)(tick() - t) < cycles) {}
  if (threadIdx.x == 0) sm[blockIdx.x] = smid();
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  unsigned* sm;
  CK(cudaMalloc(&sm, 4 * 8192 * 4));
  const int smem = 210 * 1024;
  std::vector<int> of(132);
  for (int i = 0; i < 132; i++) of[i] = i;
  auto root = [&](int i) { while (of[i] != i) i = of[i]; return i; };
  auto where = [&](int cluster, int tbs, int turns) {
    std::vector<std::vector<unsigned>> all;
    CK(cudaDeviceSynchronize());
    for (int i = 0; i < turns; i++) launch(k_where, tbs, 384, smem, cluster, 0, sm + i * 8192, 3000);
    CK(cudaDeviceSynchronize());
    for (int i = 0; i < turns; i++) {
      std::vector<unsigned> h(tbs);
      CK(cudaMemcpy(h.data(), sm + i * 8192, 4 * tbs, cudaMemcpyDeviceToHost));
      all.push_back(h);
    }
    return all;
  };
  for (int rep = 0; rep < 40; rep++)
    for (int cluster : {2, 4, 8}) {
      int tbs = cluster == 2 ? 132 : 120;
      for (auto& h : where(cluster, tbs, 1))
        for (int i = 0; i < tbs; i++) of[root((int)h[i])] = root((int)h[i / cluster * cluster]);
    }
  FILE* f = fopen((dir + "/place.csv").c_str(), "w");
  fprintf(f, "cluster,tbs,turn,tb,sm,gpc\n");
  for (int cluster : {1, 2, 4, 8})
    for (int tbs : {32, 64, 96, 120, 128, 132, 264}) {
      if (tbs % cluster) continue;
      auto all = where(cluster, tbs, 4);
      for (size_t turn = 0; turn < all.size(); turn++)
        for (int i = 0; i < tbs; i++) fprintf(f, "%d,%d,%d,%d,%u,%d\n", cluster, tbs, (int)turn, i, all[turn][i], root((int)all[turn][i]));
    }
  fclose(f);
  printf("done\n");
  return 0;
}
