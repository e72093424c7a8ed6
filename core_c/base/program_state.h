/* Programs as the hot loop reads them. */
#pragma once
#include "base/types.h"
#include "gs_api.h"

typedef struct gs_iop {
    u8 kind, slot, stages, level;
    u8 bypass_l1, per_warp, npipes;
    u8 uses; /* bit a pipe */
    u8 run;  /* COMPUTE: main pipe + 1 of a run of blocks that the next op continues; 0: none */
    u8 pipe[GS_PIPES];
    u32 amount[GS_PIPES]; /* 64ths of a cycle */
    u16 tail[GS_PIPES];   /* 64ths: how long the last instruction holds the pipe after its issue cycle */
    u16 phase;            /* part of the program as the oracle orders it: 0, or stage + 1 */
    u32 smem, smem_ahead; /* 64ths: hold of shared memory; how far a warp may run ahead of it */
    u32 smem_late;        /* 64ths: hold after that, see gpu.sm.smem_late */
    u32 smem_lsu;         /* cycles of the LSU */
    u32 waves;            /* shared-memory wavefronts */
    u32 smem_return,
        smem_slow; /* 64ths: what results take longer to reach their sub-core: of all wavefronts; of one */
    u32 issue, slots, chain;
    u32 smem_back, smem_wait; /* see gs_op: wavefronts not waited for; latency of shared memory, 0: no wait */
    i32 pattern, count_plus;
    u32 count, target;
    u16 to; /* GS_TO_* */
    u8 async;
} gs_iop;

/* of each sector of a line, a bit a byte */
typedef struct gs_bytes {
    u32 of[4];
} gs_bytes;

typedef struct gs_ipattern {
    i64 base, bx, by, bz, warp, step, step2;
    u32 templates; /* index of the template for offset 0 */
    u8 shift;      /* offset in the line >> shift selects the template */
    u8 arg, level2, recorded;
} gs_ipattern;

_Static_assert(sizeof(gs_ipattern) == 64, "a pattern is one cache line");
