// What it takes when SMs read the same lines of L2 at the same time, by how many SMs do and how many lines they are.
//   hot DIR profile   launches the pipelined loads once each, for a profiler
//   hot DIR   writes DIR/hot.csv: cycles of a step (all loads of a TB, then a barrier), mean over steps and TBs
#include <string>
#include "common.cuh"
#include <cuda_profiler_api.h>
static FILE* OUT;
// `lines` pieces of `piece` B, `pitch` B apart, a step; the TBs of `share` SMs in a row read the same. kind 0: ld.cg, 1: cp.async.cg
__global__ void __launch_bounds__(128) k_hot(const char* p, size_t group_bytes, int share, int lines, int piece, size_t pitch, size_t move, int steps, int kind, unsigned* out, unsigned* go) {
  extern __shared__ __align__(16) char smem[];
  const char* q = p + blockIdx.x / share * group_bytes;
  const int each = piece / 16, n = lines * each;  // 16 B a lane
  unsigned s0 = (unsigned)__cvta_generic_to_shared(smem);
  if (threadIdx.x == 0) {
    atomicAdd(go, 1u);
    while (*(volatile unsigned*)go < gridDim.x) {}
  }
  unsigned t0 = 0, sum = 0, most = 0;
  __syncthreads();
  for (int s = 0; s < steps; s++) {
    if (s == 4) { __syncthreads(); t0 = tick(); }
    unsigned b = tick();
    if (kind) {
      for (int i = threadIdx.x; i < n; i += 128) asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(s0 + i * 16), "l"(q + s * move + i / each * pitch + i % each * 16) : "memory");
      asm volatile("cp.async.commit_group;\n cp.async.wait_group 0;" ::: "memory");
    } else {
      uint4 v[4];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int i = threadIdx.x + 128 * j;
        if (i < n) asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3},[%4];" : "=r"(v[j].x), "=r"(v[j].y), "=r"(v[j].z), "=r"(v[j].w) : "l"(q + s * move + i / each * pitch + i % each * 16) : "memory");
      }
#pragma unroll
      for (int j = 0; j < 4; j++)
        if (threadIdx.x + 128 * j < n && v[j].x == 12345u) out[1 << 16] = v[j].y + v[j].z + v[j].w;
    }
    unsigned d = tick() - b;
    if (s >= 4) { sum += d; most = d > most ? d : most; }
    __syncthreads();
  }
  if (threadIdx.x == 0) { out[blockIdx.x * 4] = tick() - t0; out[blockIdx.x * 4 + 1] = sum; out[blockIdx.x * 4 + 2] = most; }
}
// a tensor product's loads, three stages deep: a step takes 64 pieces of 64 B of A and 32 of 128 B of B; `wait`: cycles that a
// step spends on something else, `skew`: TBs start up to so many cycles apart
__global__ void __launch_bounds__(128) k_deep(const char* a, const char* b, size_t ga, size_t gb, int share_a, int share_b, size_t pitch_a, size_t pitch_b, int steps, int wait, int skew, int pad, unsigned* out, unsigned* go) {
  extern __shared__ __align__(16) char smem[];
  const char *pa = a + blockIdx.x / share_a * ga, *pb = b + blockIdx.x / share_b * gb;
  unsigned s0 = (unsigned)__cvta_generic_to_shared(smem);
  if (threadIdx.x == 0) {
    atomicAdd(go, 1u);
    while (*(volatile unsigned*)go < gridDim.x) {}
    unsigned t = tick(), d = skew ? (blockIdx.x * 2654435761u >> 8) % skew : 0;
    while (tick() - t < d) {}
  }
  __syncthreads();
  const char *qa = pa + threadIdx.x / 4 * pitch_a + threadIdx.x % 4 * 16, *qb = pb + threadIdx.x / 8 * pitch_b + threadIdx.x % 8 * 16;
  const int ra = 64 + pad, rb = 128 + pad;  // bytes of a row in shared memory
  auto load = [&](int s) {
    if (s < steps)
      for (int j = 0; j < 2; j++) {
        asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(s0 + s % 3 * 11264 + 6144 + (j * 16 + threadIdx.x / 8) * rb + threadIdx.x % 8 * 16), "l"(qb + ((size_t)s * 32 + j * 16) * pitch_b) : "memory");
        asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(s0 + s % 3 * 11264 + (j * 32 + threadIdx.x / 4) * ra + threadIdx.x % 4 * 16), "l"(qa + (size_t)s * 64 + j * 32 * pitch_a) : "memory");
      }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  unsigned t0 = 0;
  load(0);
  load(1);
  for (int s = 0; s < steps; s++) {
    if (s == 2) t0 = tick();
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    load(s + 2);
    unsigned t = tick();
    while (tick() - t < wait) {}
  }
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x * 4] = tick() - t0;
}
// rows of `row` B copied into rows `pad` B longer: what L2 is asked for (a profiler counts it); TBs read the same or not
__global__ void __launch_bounds__(128) k_pad(const char* p, int row, int pad, size_t group, int steps) {
  extern __shared__ __align__(128) char smem[];
  unsigned s0 = (unsigned)__cvta_generic_to_shared(smem);
  const int across = row / 16, r = threadIdx.x / across, c = threadIdx.x % across;
  for (int s = 0; s < steps; s++) {
    asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(s0 + r * (row + pad) + c * 16), "l"(p + blockIdx.x * group + ((size_t)s * (128 / across) + r) * 1024 + c * 16) : "memory");
    asm volatile("cp.async.commit_group;\n cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
  }
}
int main(int argc, char** argv) {
  OUT = fopen((std::string(argc > 1 ? argv[1] : ".") + "/hot.csv").c_str(), "w");
  fprintf(OUT, "kind,tbs,share,lines,piece,pitch,move,step_cycles,warp0_cycles,most_cycles\n");
  char* p;
  unsigned *out, *go;
  CK(cudaMalloc(&p, 256 << 20)); CK(cudaMemset(p, 1, 256 << 20));
  CK(cudaMalloc(&out, 1 << 20)); CK(cudaMalloc(&go, 4));
  CK(cudaFuncSetAttribute(k_hot, cudaFuncAttributeMaxDynamicSharedMemorySize, 120000));
  auto one = [&](int kind, int tbs, int share, int lines, int piece, size_t pitch, size_t move) {
    const int steps = 36;
    size_t group = (size_t)lines * pitch + steps * move + 4096;
    group = (group + 4095) / 4096 * 4096 + 4096 * 3;
    if (group * ((tbs + share - 1) / share) > (40u << 20)) return;
    double a = 0, b = 0, c = 0;
    for (int r = 0; r < 5; r++) {
      CK(cudaMemset(go, 0, 4));
      k_hot<<<tbs, 128, 120000>>>(p, group, share, lines, piece, pitch, move, steps, kind, out, go);
      CK(cudaDeviceSynchronize());
      std::vector<unsigned> h(tbs * 4);
      CK(cudaMemcpy(h.data(), out, h.size() * 4, cudaMemcpyDeviceToHost));
      if (r < 2) continue;
      for (int i = 0; i < tbs; i++) { a += h[4 * i] / (steps - 4.) / tbs / 3; b += h[4 * i + 1] / (steps - 4.) / tbs / 3; c += h[4 * i + 2] / 3. / tbs; }
    }
    fprintf(OUT, "%d,%d,%d,%d,%d,%zu,%zu,%.1f,%.1f,%.1f\n", kind, tbs, share, lines, piece, pitch, move, a, b, c);
  };
  for (int kind = argc > 2 ? 2 : 0; kind < 2; kind++)
    for (int share : {1, 2, 4, 8, 16, 33, 66, 132}) {
      // a row of A: 64 B of a step, moving on by 64 B; rows of B: whole lines, moving on by rows
      for (int lines : {1, 4, 16, 64}) for (size_t pitch : {512, 2048, 4096}) one(kind, 132, share, lines, 64, pitch, 64);
      for (int lines : {1, 4, 16, 32}) { one(kind, 132, share, lines, 128, 128, 128 * lines); one(kind, 132, share, lines, 128, 1024, 1024 * lines); }
      for (int lines : {1, 8, 32}) one(kind, 132, share, lines, 32, 128, 128 * lines);
    }
  for (int tbs : {8, 24, 48, 64, 96}) for (int lines : {1, 16, 64}) { one(1, tbs, 1, lines, 64, 1024, 64); one(1, tbs, tbs, lines, 64, 1024, 64); }
  fprintf(OUT, "#deep,tbs,share_a,share_b,pitch_a,pitch_b,wait,skew,pad,step_cycles\n");
  CK(cudaFuncSetAttribute(k_pad, cudaFuncAttributeMaxDynamicSharedMemorySize, 120000));
  CK(cudaFuncSetAttribute(k_deep, cudaFuncAttributeMaxDynamicSharedMemorySize, 120000));
  auto deep = [&](int tbs, int sa, int sb, size_t pa, size_t pb, int wait, int skew, size_t smem = 120000, int pad = 0) {
    const int steps = 32;
    size_t ga = 64 * pa, gb = pb == 128 ? 32 * 128 * steps : 128;  // tiles of B side by side, or one behind the other
    char* b = p + (64 << 20);
    double t = 0;
    for (int r = 0; r < 5; r++) {
      CK(cudaMemset(go, 0, 4));
      k_deep<<<tbs, 128, smem>>>(p, b, ga, gb, sa, sb, pa, pb, steps, wait, skew, pad, out, go);
      CK(cudaDeviceSynchronize());
      std::vector<unsigned> h(tbs * 4);
      CK(cudaMemcpy(h.data(), out, h.size() * 4, cudaMemcpyDeviceToHost));
      for (int i = 0; r > 1 && i < tbs; i++) t += h[4 * i] / (steps - 2.) / tbs / 3;
    }
    fprintf(OUT, "#deep,%d,%d,%d,%zu,%zu,%d,%d,%d,%.1f\n", tbs, sa, sb, pa, pb, wait, skew, pad, t);
  };
  if (argc > 2) {
    const int shares[][2] = {{1, 1}, {1, 132}, {132, 1}, {132, 132}, {33, 33}, {4, 4}};
    for (int pad : {0, 16, 32})
      for (auto& x : shares) {
        CK(cudaMemset(go, 0, 4));
        size_t ga = 64 * 2048, gb = 32 * 128 * 32;
        k_deep<<<132, 128, 120000>>>(p, p + (64 << 20), ga, gb, x[0], x[1], 2048, 128, 32, 0, 0, pad, out, go);
        CK(cudaDeviceSynchronize());
        CK(cudaMemset(go, 0, 4));
        CK(cudaProfilerStart());
        k_deep<<<132, 128, 120000>>>(p, p + (64 << 20), ga, gb, x[0], x[1], 2048, 128, 32, 0, 0, pad, out, go);
        CK(cudaDeviceSynchronize());
        CK(cudaProfilerStop());
      }
    for (int tbs : {1, 4})
      for (int row : {64, 128, 256})
        for (int pad : {0, 16, 32, 48, 64}) {
          CK(cudaProfilerStart());
          k_pad<<<tbs, 128, 120000>>>(p, row, pad, 0, 64);
          CK(cudaDeviceSynchronize());
          CK(cudaProfilerStop());
        }
    return 0;
  }
  for (int pad : {0, 16, 32})
    for (int wait : {0, 150, 300})
      for (int skew : {0, 2000})
        for (int sa : {1, 4, 33, 132})
          for (int sb : {1, 4, 33, 132}) deep(132, sa, sb, 2048, 128, wait, skew, 120000, pad);
  for (int tbs : {1, 4, 8, 24, 48, 64, 96}) for (int pad : {0, 16}) { deep(tbs, 1, 1, 2048, 128, 0, 0, 120000, pad); deep(tbs, tbs, 1, 2048, 128, 0, 0, 120000, pad); deep(tbs, 1, tbs, 2048, 128, 0, 0, 120000, pad); deep(tbs, tbs, tbs, 2048, 128, 0, 0, 120000, pad); }
  for (int sa : {1, 33, 132}) { deep(132, sa, 1, 2048, 16896, 150, 0, 120000, 16); deep(132, sa, 1, 512, 16896, 150, 0, 120000, 16); }
  for (int n : {2, 4, 6}) for (int sa : {1, 33, 132, 132 * n}) { deep(132 * n, sa, 1, 2048, 16896 * n, 150, 0, 34816, 16); deep(132 * n, sa, 132, 2048, 16896, 150, 0, 34816, 16); }
  fclose(OUT);
}
