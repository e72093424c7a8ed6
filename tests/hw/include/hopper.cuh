// Hopper's own instructions: transaction barriers, tensor tiles to and from shared memory, warp-group multiplies, clusters.
#pragma once
#include <cuda.h>
#include "common.cuh"

// ---- transaction barriers
__device__ __forceinline__ uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void bar_init(uint64_t* b, int count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count)); }
__device__ __forceinline__ void bar_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void bar_expect(uint64_t* b, uint32_t bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(bytes) : "memory"); }
__device__ __forceinline__ void bar_arrive(uint64_t* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory"); }
// arrives on the barrier of TB `rank` of the cluster
__device__ __forceinline__ void bar_arrive_at(uint64_t* b, int rank) {
  asm volatile("{.reg .b32 a; mapa.shared::cluster.u32 a, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [a];}" ::"r"(shared_address(b)), "r"(rank) : "memory");
}
// the same, and what this thread wrote before is seen by the cluster
__device__ __forceinline__ void bar_release_at(uint64_t* b, int rank) {
  asm volatile("{.reg .b32 a; mapa.shared::cluster.u32 a, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a];}" ::"r"(shared_address(b)), "r"(rank) : "memory");
}
__device__ __forceinline__ bool bar_test(uint64_t* b, int parity) {
  uint32_t ok;
  asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}" : "=r"(ok) : "r"(shared_address(b)), "r"(parity) : "memory");
  return ok;
}
__device__ __forceinline__ void bar_wait(uint64_t* b, int parity) { while (!bar_test(b, parity)) {} }

// one thread of a warp that runs together; with it the compiler knows that no other thread is there, and uniform instructions need no loop
__device__ __forceinline__ bool elected() {
  uint32_t ok;
  asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p;}" : "=r"(ok));
  return ok;
}
__device__ __forceinline__ int warp_of_tb() { return __shfl_sync(0xffffffff, threadIdx.x / 32, 0); }

// ---- tensor tiles
__device__ __forceinline__ void tma_load(void* to, const CUtensorMap* map, uint64_t* bar, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(to)), "l"(map), "r"(shared_address(bar)), "r"(x), "r"(y) : "memory");
}
// to the same place of all TBs of the cluster whose bits are set in `who`
__device__ __forceinline__ void tma_load_to(void* to, const CUtensorMap* map, uint64_t* bar, int x, int y, uint16_t who) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(to)), "l"(map), "r"(shared_address(bar)), "r"(x), "r"(y), "h"(who) : "memory");
}
__device__ __forceinline__ void tma_store(const CUtensorMap* map, const void* from, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(shared_address(from)), "r"(x), "r"(y) : "memory");
}
__device__ __forceinline__ void tma_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void tma_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"); }
template <int N> __device__ __forceinline__ void tma_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory"); }
__device__ __forceinline__ void tma_prefetch_map(const CUtensorMap* map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }
__device__ __forceinline__ void proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- clusters
__device__ __forceinline__ int cluster_rank() { int r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ __forceinline__ int cluster_size() { int r; asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r)); return r; }
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
template <int N> __device__ __forceinline__ void registers_down() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> __device__ __forceinline__ void registers_up() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }
__device__ __forceinline__ void named_barrier(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

// ---- warp-group multiplies
__device__ __forceinline__ void wg_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wg_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wg_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
// matrix of 128 B rows in shared memory, swizzled by 128 B, groups of eight rows 1,024 B apart
__device__ __forceinline__ uint64_t wg_matrix(uint32_t address) {
  return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

#define WG_LIST4 "%0,%1,%2,%3"
#define WG_LIST8 WG_LIST4 ",%4,%5,%6,%7"
#define WG_LIST12 WG_LIST8 ",%8,%9,%10,%11"
#define WG_LIST16 WG_LIST12 ",%12,%13,%14,%15"
#define WG_LIST20 WG_LIST16 ",%16,%17,%18,%19"
#define WG_LIST24 WG_LIST20 ",%20,%21,%22,%23"
#define WG_LIST32 WG_LIST24 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define WG_LIST40 WG_LIST32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define WG_LIST48 WG_LIST40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define WG_LIST56 WG_LIST48 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define WG_LIST64 WG_LIST56 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define WG_LIST72 WG_LIST64 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define WG_LIST80 WG_LIST72 ",%72,%73,%74,%75,%76,%77,%78,%79"
#define WG_LIST88 WG_LIST80 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define WG_LIST96 WG_LIST88 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define WG_LIST104 WG_LIST96 ",%96,%97,%98,%99,%100,%101,%102,%103"
#define WG_LIST112 WG_LIST104 ",%104,%105,%106,%107,%108,%109,%110,%111"
#define WG_LIST120 WG_LIST112 ",%112,%113,%114,%115,%116,%117,%118,%119"
#define WG_LIST128 WG_LIST120 ",%120,%121,%122,%123,%124,%125,%126,%127"
#define WG_REGS4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define WG_REGS8(i) WG_REGS4(i), WG_REGS4(i + 4)
#define WG_REGS12(i) WG_REGS8(i), WG_REGS4(i + 8)
#define WG_REGS16(i) WG_REGS8(i), WG_REGS8(i + 8)
#define WG_REGS20(i) WG_REGS16(i), WG_REGS4(i + 16)
#define WG_REGS24(i) WG_REGS16(i), WG_REGS8(i + 16)
#define WG_REGS32(i) WG_REGS16(i), WG_REGS16(i + 16)
#define WG_REGS40(i) WG_REGS32(i), WG_REGS8(i + 32)
#define WG_REGS48(i) WG_REGS32(i), WG_REGS16(i + 32)
#define WG_REGS64(i) WG_REGS32(i), WG_REGS32(i + 32)
#define WG_REGS80(i) WG_REGS64(i), WG_REGS16(i + 64)
#define WG_REGS96(i) WG_REGS64(i), WG_REGS32(i + 64)
#define WG_REGS128(i) WG_REGS64(i), WG_REGS64(i + 64)

// Kinds of operands: steps of 32 B along k
enum { FP16, TF32, E4M3 };

// D += A B of m64 x N with k of 32 B; A and B in shared memory (SS), or A in registers (RS)
template <int KIND, int N> struct Wgmma;
#define WGMMA_SS(KIND, N, C, K, TA, EXTRA, P0, P1)                                                                     \
  static __device__ __forceinline__ void ss(float* d, uint64_t a, uint64_t b) {                                       \
    asm volatile("{.reg .pred p; setp.eq.u32 p, 1, 1; wgmma.mma_async.sync.aligned.m64n" #N "k" #K ".f32." TA "." TA " {" WG_LIST##C "}, " P0 ", " P1 ", p, 1, 1" EXTRA ";}" \
                 : WG_REGS##C(0)                                                                                            \
                 : "l"(a), "l"(b));                                                                                   \
  }
#define WGMMA_RS(KIND, N, C, K, TA, EXTRA, P0, P1, P2, P3, P4)                                                         \
  static __device__ __forceinline__ void rs(float* d, const uint32_t* a, uint64_t b) {                                \
    asm volatile("{.reg .pred p; setp.eq.u32 p, 1, 1; wgmma.mma_async.sync.aligned.m64n" #N "k" #K ".f32." TA "." TA " {" WG_LIST##C "}, {" P0 "," P1 "," P2 "," P3 "}, " P4 ", p, 1, 1" EXTRA ";}" \
                 : WG_REGS##C(0)                                                                                            \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                               \
  }
#define WGMMA(N, C, P0, P1, P2, P3, P4)                                                                                \
  template <> struct Wgmma<FP16, N> {                                                                                 \
    static constexpr int regs = C;                                                                                    \
    WGMMA_SS(FP16, N, C, 16, "f16", ", 0, 0", P0, P1)                                                                 \
    WGMMA_RS(FP16, N, C, 16, "f16", ", 0", P0, P1, P2, P3, P4)                                                        \
  };                                                                                                                  \
  template <> struct Wgmma<TF32, N> {                                                                                 \
    static constexpr int regs = C;                                                                                    \
    WGMMA_SS(TF32, N, C, 8, "tf32", "", P0, P1)                                                                       \
    WGMMA_RS(TF32, N, C, 8, "tf32", "", P0, P1, P2, P3, P4)                                                           \
  };                                                                                                                  \
  template <> struct Wgmma<E4M3, N> {                                                                                 \
    static constexpr int regs = C;                                                                                    \
    WGMMA_SS(E4M3, N, C, 32, "e4m3", "", P0, P1)                                                                      \
    WGMMA_RS(E4M3, N, C, 32, "e4m3", "", P0, P1, P2, P3, P4)                                                          \
  };
WGMMA(8, 4, "%4", "%5", "%6", "%7", "%8")
WGMMA(16, 8, "%8", "%9", "%10", "%11", "%12")
WGMMA(24, 12, "%12", "%13", "%14", "%15", "%16")
WGMMA(32, 16, "%16", "%17", "%18", "%19", "%20")
WGMMA(48, 24, "%24", "%25", "%26", "%27", "%28")
WGMMA(64, 32, "%32", "%33", "%34", "%35", "%36")
WGMMA(96, 48, "%48", "%49", "%50", "%51", "%52")
WGMMA(128, 64, "%64", "%65", "%66", "%67", "%68")
WGMMA(160, 80, "%80", "%81", "%82", "%83", "%84")
WGMMA(192, 96, "%96", "%97", "%98", "%99", "%100")
WGMMA(256, 128, "%128", "%129", "%130", "%131", "%132")

// ---- host side: maps of row-major tensors of `rows` x `cols` elements of 2 B, boxes of 64 columns
static CUtensorMap tensor_map(void* p, uint64_t rows, uint64_t cols, uint32_t box_rows, uint32_t box_cols = 64, bool swizzle = true) {
  typedef CUresult (*Encode)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
  static Encode encode = nullptr;
  if (!encode) {
    cudaDriverEntryPointQueryResult q;
    CK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void**)&encode, 12000, cudaEnableDefault, &q));
  }
  CUtensorMap m;
  cuuint64_t dims[2] = {cols, rows}, pitch[1] = {cols * 2};
  cuuint32_t box[2] = {box_cols, box_rows}, step[2] = {1, 1};
  CUresult r = encode(&m, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, p, dims, pitch, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (r != CUDA_SUCCESS) { fprintf(stderr, "tensor map of %llu x %llu, box %u x %u: error %d\n", (unsigned long long)rows, (unsigned long long)cols, box_rows, box_cols, (int)r); exit(1); }
  return m;
}

// Launches with clusters.
template <typename... P, typename... A>
static void launch(void (*kernel)(P...), int grid, int threads, size_t smem, int cluster, cudaStream_t s, A... args) {
  CK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)smem));
  if (cluster > 8) CK(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  cudaLaunchConfig_t c = {};
  c.gridDim = dim3(grid); c.blockDim = dim3(threads); c.dynamicSmemBytes = smem; c.stream = s;
  cudaLaunchAttribute a[1];
  a[0].id = cudaLaunchAttributeClusterDimension;
  a[0].val.clusterDim.x = cluster; a[0].val.clusterDim.y = 1; a[0].val.clusterDim.z = 1;
  c.attrs = a; c.numAttrs = cluster > 1 ? 1 : 0;
  CK(cudaLaunchKernelEx(&c, kernel, P(args)...));
}
