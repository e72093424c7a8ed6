// How fast one SM copies from L2: cp.async and plain loads by the shape of a warp's access, its stride and the depth of the pipeline.
//   copies DIR   writes DIR/copies.csv: kind, threads, tbs, rows a warp instruction, stride (B), stages, bytes a cycle and SM
#include "suite.cuh"
static unsigned long long* CYC;
// KIND 0 cp.async.cg, 1 cp.async.ca, 2 ld.global.cg into registers, 3 ld.global.ca
template <int KIND, int ST>
__global__ void k_copy(const char* src, int rows, size_t stride, size_t wrap, int steps, unsigned long long* cyc, float* out) {
  extern __shared__ __align__(16) char smem[];
  const int tid = threadIdx.x, lane = tid & 31, w = tid >> 5, nw = blockDim.x >> 5;
  const int across = 32 / rows, r = lane / across, c = lane % across;
  const size_t row_bytes = 512 / rows;
  // a step of the TB: 4 instructions a warp; rows of all follow one another, columns move on with the steps
  const unsigned dst = (unsigned)__cvta_generic_to_shared(smem) + tid * 16;
  size_t at = (size_t)blockIdx.x * 4 * nw * rows * stride;
  const size_t col_wrap = stride < wrap ? stride : wrap;
  float s = 0;
  size_t col = 0;
  auto go = [&](int st) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const char* p = src + (at + (size_t)((j * nw + w) * rows + r) * stride) % wrap + col + c * 16;
      unsigned d = dst + (st * 4 + j) * blockDim.x * 16;
      if (KIND == 0) asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(d), "l"(p));
      if (KIND == 1) asm volatile("cp.async.ca.shared.global [%0],[%1],16;" ::"r"(d), "l"(p));
      if (KIND == 2) { float4 v; asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p)); s += v.x; }
      if (KIND == 3) { float4 v; asm volatile("ld.global.ca.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p)); s += v.x; }
    }
    col += row_bytes;
    if (col + row_bytes > col_wrap) col = 0;
    if (KIND < 2) asm volatile("cp.async.commit_group;");
  };
  for (int i = 0; i < ST - 1; i++) go(i);
  __syncthreads();
  unsigned long long t0 = clock64();
  int st = ST - 1;
  for (int k = 0; k < steps; k++) {
    if (KIND < 2) asm volatile("cp.async.wait_group %0;" ::"n"(ST - 2));
    go(st);
    st = st + 1 == ST ? 0 : st + 1;
  }
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  unsigned long long t1 = clock64();
  if (s == 12345.678f) out[tid] = s;
  if (tid == 0 && blockIdx.x == 0) *cyc = t1 - t0;
}
static FILE* OUT;
template <int KIND, int ST>
static void go(const char* what, const char* src, int nt, int tbs, int rows, size_t stride) {
  const int steps = 512;
  size_t smem = (size_t)ST * 4 * nt * 16;
  CK(cudaFuncSetAttribute(k_copy<KIND, ST>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)smem));
  size_t wrap = stride * ((size_t)(16 << 20) / stride);  // 16 MB: stays in L2
  for (int i = 0; i < 3; i++) k_copy<KIND, ST><<<tbs, nt, smem>>>(src, rows, stride, wrap, steps, CYC, (float*)CYC);
  CK(cudaDeviceSynchronize());
  unsigned long long c;
  CK(cudaMemcpy(&c, CYC, 8, cudaMemcpyDeviceToHost));
  double b = 4.0 * nt * 16 * steps / c;
  fprintf(OUT, "%s,%d,%d,%d,%zu,%d,%.3f\n", what, nt, tbs, rows, stride, ST, b);
  printf("%-12s %4d thr %4d TBs rows %2d stride %6zu stages %d %8.2f B/cycle\n", what, nt, tbs, rows, stride, ST, b);
}
int main(int argc, char** argv) {
  OUT = fopen((std::string(argc > 1 ? argv[1] : ".") + "/copies.csv").c_str(), "w");
  fprintf(OUT, "kind,threads,tbs,rows,stride_B,stages,bytes_per_cycle\n");
  char* M;
  CK(cudaMalloc(&M, (size_t)64 << 20));
  CK(cudaMemset(M, 0, (size_t)64 << 20));
  CK(cudaMalloc(&CYC, 4096));
  for (int tbs : {1, 132}) {
    for (int rows : {1, 2, 4, 8, 16, 32})
      for (size_t stride : {(size_t)1536, (size_t)2048, (size_t)8192, (size_t)8320}) {
        go<0, 3>("cp.async.cg", M, 256, tbs, rows, stride);
        if (stride == 8192 || stride == 1536) {
          go<1, 3>("cp.async.ca", M, 256, tbs, rows, stride);
          go<2, 3>("ld.cg", M, 256, tbs, rows, stride);
          go<3, 3>("ld.ca", M, 256, tbs, rows, stride);
        }
      }
    for (int rows : {1, 2, 8}) {
      go<0, 2>("cp.async.cg", M, 256, tbs, rows, 8320);
      go<0, 6>("cp.async.cg", M, 256, tbs, rows, 8320);
      go<0, 3>("cp.async.cg", M, 128, tbs, rows, 8320);
      go<0, 6>("cp.async.cg", M, 128, tbs, rows, 8320);
      go<0, 3>("cp.async.cg", M, 512, tbs, rows, 8320);
      go<2, 3>("ld.cg", M, 1024, tbs, rows, 8320);
      go<2, 3>("ld.cg", M, 512, tbs, rows, 8320);
      go<2, 3>("ld.cg", M, 128, tbs, rows, 8320);
    }
  }
  fclose(OUT);
  return 0;
}
