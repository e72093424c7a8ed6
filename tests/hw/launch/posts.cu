// What the code of semaphores costs a TB: from before its stores until it has posted, while `tbs` TBs do the same; and
// what its kernel takes from event to event, if the TB goes on for `later` cycles behind that.
//   posts DIR   writes DIR/posts.csv
#include "common.cuh"

// what thread 0 of a TB noted: cycles from before the stores to behind them, the barrier, the fence and the atomic
struct Note { int stores, barrier, fence, atomic; };

template <int HOW>  // 0 stores, 1 and a barrier, 2 and a fence by thread 0, 3 and an atomic
__global__ void k_post(unsigned* out, unsigned* counters, int words, int spin, int apart, int later, Note* notes) {
  long long t = clock64();
  while (clock64() - t < spin) {}
  long long a = clock64();
  unsigned* p = out + (size_t)blockIdx.x * words * blockDim.x + threadIdx.x;
  for (int i = 0; i < words; i++) p[(size_t)i * blockDim.x] = (unsigned)a;
  long long b = clock64(), c = b, d = b, e = b;
  if (HOW >= 1) { __syncthreads(); c = clock64(); }
  if (HOW >= 2 && threadIdx.x == 0) {
    __threadfence();
    d = clock64();
    if (HOW >= 3) { atomicAdd(counters + blockIdx.x * apart, 1u); e = clock64(); }
  }
  if (later) {
    long long f = clock64();
    while (clock64() - f < later) {}
  }
  if (HOW < 1) c = b;
  if (HOW < 2) d = c;
  if (HOW < 3) e = d;
  if (threadIdx.x == 0) notes[blockIdx.x] = {(int)(b - a), (int)(c - b), (int)(d - c), (int)(e - d)};
}

static double med(std::vector<int> v) { std::sort(v.begin(), v.end()); return v[v.size() / 2]; }
static FILE* CSV;
static Note* NOTES;
template <class F>
static void row(const char* what, int how, int tbs, int threads, int words, int apart, int later, F go) {
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a)); CK(cudaEventCreate(&b));
  std::vector<double> us, parts[4];
  for (int rep = 0; rep < 12; rep++) {
    k_gate<<<1, 1>>>(40000);
    CK(cudaEventRecord(a));
    go();
    CK(cudaEventRecord(b));
    CK(cudaDeviceSynchronize());
    if (!rep) continue;
    float ms;
    CK(cudaEventElapsedTime(&ms, a, b));
    us.push_back(ms * 1e3);
    std::vector<Note> n(tbs);
    CK(cudaMemcpy(n.data(), NOTES, tbs * sizeof(Note), cudaMemcpyDeviceToHost));
    std::vector<int> v[4];
    for (auto& q : n) { v[0].push_back(q.stores); v[1].push_back(q.barrier); v[2].push_back(q.fence); v[3].push_back(q.atomic); }
    for (int i = 0; i < 4; i++) parts[i].push_back(med(v[i]));
  }
  fprintf(CSV, "%s,%d,%d,%d,%d,%d,%d,%.2f,%.0f,%.0f,%.0f,%.0f\n", what, how, tbs, threads, words, apart, later, stat_of(us).med, stat_of(parts[0]).med, stat_of(parts[1]).med, stat_of(parts[2]).med, stat_of(parts[3]).med);
  printf("%s how %d tbs %d threads %d words %d apart %d later %d: %.2f us  %.0f %.0f %.0f %.0f\n", what, how, tbs, threads, words, apart, later, stat_of(us).med, stat_of(parts[0]).med, stat_of(parts[1]).med, stat_of(parts[2]).med, stat_of(parts[3]).med);
}

int main(int argc, char** argv) {
  CSV = fopen((std::string(argc > 1 ? argv[1] : ".") + "/posts.csv").c_str(), "w");
  fprintf(CSV, "what,how,tbs,threads,words,apart,later,events_us,first,second,third,fourth\n");
  unsigned *out, *counters;
  CK(cudaMalloc(&out, 1 << 28));
  CK(cudaMalloc(&counters, 1 << 24));
  CK(cudaMemset(counters, 0, 1 << 24));
  CK(cudaMalloc(&NOTES, 1 << 20));
  for (int threads : {128, 256})
    for (int tbs : {1, 8, 24, 132, 528, 792, 4096})
      for (int words : {1, 16, 64})
        for (int apart : {0, 1}) {
          row("post", 0, tbs, threads, words, apart, 0, [&] { k_post<0><<<tbs, threads>>>(out, counters, words, 6000, apart, 0, NOTES); });
          if (apart) row("post", 1, tbs, threads, words, apart, 0, [&] { k_post<1><<<tbs, threads>>>(out, counters, words, 6000, apart, 0, NOTES); });
          if (apart) row("post", 2, tbs, threads, words, apart, 0, [&] { k_post<2><<<tbs, threads>>>(out, counters, words, 6000, apart, 0, NOTES); });
          row("post", 3, tbs, threads, words, apart, 0, [&] { k_post<3><<<tbs, threads>>>(out, counters, words, 6000, apart, 0, NOTES); });
        }
  for (int words : {1, 16})
    for (int tbs : {1, 24, 132})
      for (int later : {0, 100, 200, 300, 400, 500, 600, 800, 1000, 1500}) {
        row("post", 0, tbs, 128, words, 1, later, [&] { k_post<0><<<tbs, 128>>>(out, counters, words, 6000, 1, later, NOTES); });
        row("post", 1, tbs, 128, words, 1, later, [&] { k_post<1><<<tbs, 128>>>(out, counters, words, 6000, 1, later, NOTES); });
        row("post", 2, tbs, 128, words, 1, later, [&] { k_post<2><<<tbs, 128>>>(out, counters, words, 6000, 1, later, NOTES); });
        row("post", 3, tbs, 128, words, 1, later, [&] { k_post<3><<<tbs, 128>>>(out, counters, words, 6000, 1, later, NOTES); });
      }
  fclose(CSV);
  return 0;
}
