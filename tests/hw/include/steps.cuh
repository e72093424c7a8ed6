// A K step of the tensor GEMMs with parts left out: what steps.cu times and inside.cu looks into.
#pragma once
#include "suite.cuh"
// where TBs run, and what a warp notes at places of a step (inside.cu)
#ifndef STEP_NOTE
#define STEP_ONLY
#define STEP_NOTES
#define STEP_NOTE(place)
#define STEP_NOTED
#endif
// ---- the tile's main loop with parts left out; F: 1 copies, 2 ldmatrix, 4 mma, 8 barrier, 16 wait for the copies
// BY_AGE: on the first `sms` SMs only; each TB notes its begin, the time of its first quarter of steps and its SM
template <class G, int F, bool BY_AGE>
__global__ void __launch_bounds__(G::NT, G::MINB) k_step(GemmArgs<__half> g, unsigned long long* cyc, float* out, unsigned sms, unsigned long long* begun) {
  if (BY_AGE && smid() >= sms) return;
  STEP_ONLY;
  extern __shared__ __align__(16) char smem[];
  constexpr int BM = G::BM, BN = G::BN, BK = G::BK, NT = G::NT, SA = G::SA, SB = G::SB, ASZ = G::ASZ, BSZ = G::BSZ;
  constexpr int ST = G::SMEM / 2 / (ASZ + BSZ), WCOLS = G::WCOLS, WN = BN / WCOLS, WM = BM / (NT / 32 / WCOLS);
  __half* sA = (__half*)smem;
  __half* sB = sA + ST * ASZ;
  const int tid = threadIdx.x, lane = tid & 31, w = tid >> 5;
  const int wm = (w / WCOLS) * WM, wn = (w % WCOLS) * WN;
  const int KT = g.K / BK;
  const __half* A = g.A + (size_t)(blockIdx.x / 8 % 8) * BM * g.lda;
  const __half* B = g.B + (size_t)(blockIdx.x % 8) * BN;
  const unsigned a0 = (unsigned)__cvta_generic_to_shared(sA), b0 = (unsigned)__cvta_generic_to_shared(sB);
  constexpr int LA = BM * BK / 8 / NT, LB = BK * BN / 8 / NT, RA = NT / (BK / 8), RB = NT / (BN / 8);
  const int ar = tid / (BK / 8), ac = (tid % (BK / 8)) * 8, br = tid / (BN / 8), bc = (tid % (BN / 8)) * 8;
  const __half* pA = A + (size_t)ar * g.lda + ac;
  const __half* pB = B + (size_t)br * g.ldb + bc;
  const unsigned dA = a0 + 2 * (ar * SA + ac), dB = b0 + 2 * (br * SB + bc);
  int ls = 0, cs = 0;
  auto load = [&]() {
    if (F & 1) {
#pragma unroll
      for (int j = 0; j < LB; j++) G::cp16(dB + 2 * (ls * BSZ + j * RB * SB), pB + (size_t)(j * RB) * g.ldb, true);
      pB += (size_t)BK * g.ldb;
#pragma unroll
      for (int j = 0; j < LA; j++) G::cp16(dA + 2 * (ls * ASZ + j * RA * SA), pA + (size_t)(j * RA) * g.lda, true);
      pA += BK;
    }
  };
  for (int i = tid; i < G::SMEM / 2; i += NT) sA[i] = __float2half_rn(0.001f * (i % 999) - 0.5f);
  __syncthreads();
  float acc[WM / 16][WN / 8][4] = {};
  unsigned fa[WM / 16][4], fb[WN / 8][2];
  for (int i = 0; i < WM / 16; i++) for (int q = 0; q < 4; q++) fa[i][q] = 0x38003801u + tid * 3 + i * 7 + q;
  for (int j = 0; j < WN / 8; j++) for (int q = 0; q < 2; q++) fb[j][q] = 0x34003801u + tid * 5 + j * 11 + q;
  for (int s = 0; s < ST - 1; s++) {
    load();
    ls = ls + 1 == ST ? 0 : ls + 1;
    if (F & 16) asm volatile("cp.async.commit_group;");
  }
  unsigned long long t0 = clock64();
  for (int kt = 0; kt < KT; kt++) {
    if (BY_AGE && kt == KT / 4 && tid == 0) begun[3 * blockIdx.x + 1] = clock64() - t0;
    if (F & 16) asm volatile("cp.async.wait_group %0;" ::"n"(ST - 2));
    STEP_NOTES;
    if (F & 8) __syncthreads();
    STEP_NOTE(0);
    if (kt + ST - 1 < KT) load();
    STEP_NOTE(1);
    ls = ls + 1 == ST ? 0 : ls + 1;
    if (F & 16) asm volatile("cp.async.commit_group;");
    unsigned as = a0 + 2 * (cs * ASZ), bs = b0 + 2 * (cs * BSZ);
    cs = cs + 1 == ST ? 0 : cs + 1;
#pragma unroll
    for (int ks = 0; ks < BK; ks += 16) {
      if (F & 2) {
#pragma unroll
        for (int i = 0; i < WM / 16; i++) {
          unsigned ad = as + 2 * ((wm + i * 16 + (lane & 15)) * SA + ks + (lane >> 4) * 8);
          asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3]) : "r"(ad));
        }
#pragma unroll
        for (int j = 0; j < WN / 16; j++) {
          unsigned bd = bs + 2 * ((ks + (lane & 15)) * SB + wn + j * 16 + (lane >> 4) * 8);
          asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(fb[2 * j][0]), "=r"(fb[2 * j][1]), "=r"(fb[2 * j + 1][0]), "=r"(fb[2 * j + 1][1]) : "r"(bd));
        }
      }
      STEP_NOTE(2 + ks / 16 * 3);
      if (F & 4) {
#pragma unroll
        for (int i = 0; i < WM / 16; i++)
#pragma unroll
          for (int j = 0; j < WN / 8; j++) {
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                         : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
                         : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]), "r"(fb[j][0]), "r"(fb[j][1]));
            if (i == 0 && j == 0) STEP_NOTE(3 + ks / 16 * 3);
          }
        STEP_NOTE(4 + ks / 16 * 3);
      }
    }
    STEP_NOTED;
  }
  unsigned long long t1 = clock64();
  asm volatile("cp.async.wait_all;");
  float s = 0;
  for (int i = 0; i < WM / 16; i++) for (int j = 0; j < WN / 8; j++) for (int q = 0; q < 4; q++) s += acc[i][j][q];
  for (int i = 0; i < WM / 16; i++) for (int q = 0; q < 4; q++) s += __uint_as_float(fa[i][q]);
  for (int j = 0; j < WN / 8; j++) for (int q = 0; q < 2; q++) s += __uint_as_float(fb[j][q]);
  if (s == 12345.678f) out[tid] = s;
  if (tid == 0) cyc[blockIdx.x] = t1 - t0;
  if (BY_AGE && tid == 0) { begun[3 * blockIdx.x] = t0; begun[3 * blockIdx.x + 2] = smid(); }
}
