// Where L1 keeps which lines, and which it gives up: one warp loads lines one by one and tells by the time whether L1 had them.
//   l1 DIR   writes DIR/l1_bits.csv: how many lines further on (xor) an address lies that has that bit more than one of its set
//            DIR/l1_order.csv   loads (small letters) and stores (capitals: the whole line, with " its first sector, with ' its
//                               first word; *: past L1; in brackets: loads that are under way together, in any order) of lines of
//                               one set, and whether a load of the probed one then hits
//            DIR/l1_walks.csv   lines side by side that are walked through over and over, by the carve-out (KiB): share of hits
#include <string>
#include "common.cuh"
__device__ __forceinline__ unsigned load(const char* p) {
  unsigned v;
  asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ unsigned tick_when_there(unsigned v) {  // when v is there; it is never 12345
  unsigned t = 0;
  asm volatile("{.reg .pred p; setp.ne.u32 p, %1, 12345; @p mov.u32 %0, %%clock;}" : "+r"(t) : "r"(v) : "memory");
  return t;
}
__device__ __forceinline__ bool hits(const char* p, unsigned& v) {  // 68 cycles, 330 from L2
  unsigned t = tick_when_there(v);
  v = load(p + v);
  return tick_when_there(v) - t < 150;
}
enum Kind { LOAD, STORE, SECTOR, WORD, PAST };
struct Access { size_t at; int kind, together; };  // together: with the one before it, while that is under way
__global__ void k_list(char* p, const Access* list, int n, size_t probe, int* kept) {
  unsigned v = 0;
  __threadfence();  // L1 holds nothing
  for (int i = 0; i < n; i++) {
    char* q = p + __ldcg((const unsigned long long*)&list[i].at) + v;
    int kind = __ldcg(&list[i].kind), n = __ldcg(&list[i].together);  // of the first: how many
    if (n > 1) {
      const char* r[4];
      unsigned got[4];
      for (int k = 0; k < 4; k++) r[k] = p + __ldcg((const unsigned long long*)&list[i + min(k, n - 1)].at) + v;
      got[0] = load(r[0]), got[1] = load(r[1]), got[2] = n > 2 ? load(r[2]) : 0, got[3] = n > 3 ? load(r[3]) : 0;
      v = got[0] + got[1] + got[2] + got[3];
      i += n - 1;
    } else if (kind == LOAD) v = load(q);
    else if (kind != PAST) {
      if (threadIdx.x < (kind == STORE ? 32 : kind == SECTOR ? 8 : 1)) asm volatile("st.global.u32 [%0], %1;" ::"l"(q + 4 * threadIdx.x), "r"(v) : "memory");
      __syncwarp();
    }
    else asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(q) : "memory");
  }
  *kept = hits(p + probe, v);
}
__global__ void k_walk(const char* p, int n, int passes, int* kept) {
  unsigned v = 0;
  __threadfence();
  for (int pass = 0; pass < passes; pass++) {
    int found = 0;
    for (int i = 0; i < n; i++) found += hits(p + (size_t)i * 128, v);
    __stcg(kept + pass, found);
  }
}
static char* memory;
static Access* list;
static int* kept;
static bool probe(const std::vector<Access>& l, size_t at) {
  int yes = 0, h;
  CK(cudaMemcpy(list, l.data(), l.size() * sizeof(Access), cudaMemcpyHostToDevice));
  for (int run = 0; run < 3; run++) {
    k_list<<<1, 32>>>(memory, list, (int)l.size(), at, kept);
    CK(cudaMemcpy(&h, kept, 4, cudaMemcpyDeviceToHost));
    yes += h;
  }
  return yes >= 2;
}
int main(int argc, char** argv) {
  std::string dir = argc > 1 ? argv[1] : ".";
  const size_t most = (size_t)1 << 35;
  CK(cudaMalloc(&memory, (size_t)96 << 30)); CK(cudaMalloc(&list, 1 << 20)); CK(cudaMalloc(&kept, 4096));
  memory = (char*)(((size_t)memory + most - 1) & ~(most - 1));  // of its address those bits are 0 that are tried
  CK(cudaMemset(memory, 0, (size_t)64 << 30));
  CK(cudaFuncSetAttribute(k_list, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxL1));
  // of many lines those few without which line 0 would stay
  std::vector<Access> few(1, {0, LOAD, 1});
  for (size_t i = 1; i < 6000; i++) few.push_back({(i * 2654435761u % (1 << 21)) << 7, LOAD, 1});
  for (int parts = 8; few.size() > 5;) {
    bool cut = false;
    for (int part = 0; part < parts && !cut; part++) {
      std::vector<Access> rest(1, few[0]);
      size_t n = few.size() - 1;
      for (size_t i = 0; i < n; i++) if (i * parts / n != (size_t)part) rest.push_back(few[i + 1]);
      if (rest.size() < few.size() && !probe(rest, 0)) { few = rest; cut = true; }
    }
    if (!cut && parts > (int)few.size()) { fprintf(stderr, "%zu lines and none too many\n", few.size()); return 1; }
    if (!cut) parts *= 2;
  }
  few.resize(4);
  FILE* f = fopen((dir + "/l1_bits.csv").c_str(), "w");
  fprintf(f, "bit,lines\n");
  std::vector<size_t> adds;
  for (int bit = 16; bit < 35; bit++)
    for (int lines = 0; lines < 512; lines++) {
      std::vector<Access> l = few;
      l.push_back({(size_t)1 << bit | (size_t)lines << 7, LOAD, 1});
      if (probe(l, 0)) continue;
      fprintf(f, "%d,%d\n", bit, lines);
      if (bit < 20) adds.push_back(l.back().at);
    }
  fclose(f);
  f = fopen((dir + "/l1_order.csv").c_str(), "w");
  fprintf(f, "accesses,probe,kept\n");
  const size_t line[] = {0, adds[0], adds[1], adds[0] ^ adds[1], adds[2], adds[2] ^ adds[0], adds[2] ^ adds[1]};  // a, b, ...
  for (const char* order : {"abcd", "abcde", "abcdae", "abcdaef", "abcdbef", "abcdAe", "abcda*e", "A", "A'", "e*", "aBCD", "aBCDE", "aB'C'D'E'", "ab*c*d*e*", "abcdE'", "aA", "aA\"", "aA'", "A\"", "aB\"C\"D\"E\"", "aBCDEF", "aBCDEFb", "abcd(ef)", "abcd(efg)", "abc(de)", "abc(def)", "ab(cd)e", "ab(cd)ef", "ab(cde)", "ab(cdef)", "a(bcde)",
                            "abcd(ea)", "abcd(ef)g", "abcd(efg)a", "abcdb(ef)",
                            "abcdabcde", "abcdabcdef", "abcdabcdefg", "abcdabcdeefg", "abcdabcd(ef)", "abcdabcd(efg)", "abcdcdef", "abcdcdefg", "abcdaabbccddef", "abcdabcdebf"}) {
    std::vector<Access> l;
    size_t first = 0;
    for (const char* p = order; *p; p++) {
      if (*p == '\'') l.back().kind = WORD;
      else if (*p == '"') l.back().kind = SECTOR;
      else if (*p == '*') l.back().kind = PAST;
      else if (*p == '(') first = l.size();
      else if (*p == ')') l[first].together = (int)(l.size() - first);
      else l.push_back({line[(*p | 32) - 'a'], *p < 'a' ? STORE : LOAD, 1});
    }
    for (char at = 'a'; at < 'h'; at++)
      if (strchr(order, at) || strchr(order, at - 32)) fprintf(f, "%s,%c,%d\n", order, at, (int)probe(l, line[at - 'a']));
  }
  fclose(f);
  f = fopen((dir + "/l1_walks.csv").c_str(), "w");
  fprintf(f, "carve_KiB,lines,pass,kept\n");
  CK(cudaFuncSetAttribute(k_walk, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10));
  for (int carve : {32, 64, 132, 196})
    for (int beyond : {-64, 0, 8, 16, 32, 64, 128, 192, 256, 320, 448}) {
      const int passes = 6, lines = (249 - carve) * 8 + beyond;
      int h[passes];
      CK(cudaFuncSetAttribute(k_walk, cudaFuncAttributePreferredSharedMemoryCarveout, carve * 100 / 228));
      k_walk<<<1, 1, (carve - 1) << 10>>>(memory, lines, passes, kept);  // a block has 1 KiB of its own
      CK(cudaMemcpy(h, kept, sizeof h, cudaMemcpyDeviceToHost));
      for (int pass = 0; pass < passes; pass++) fprintf(f, "%d,%d,%d,%.4f\n", carve, lines, pass, h[pass] / (double)lines);
    }
  fclose(f);
}
