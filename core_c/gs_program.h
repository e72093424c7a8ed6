/* Programs as callers hand them to the core: ops, and the tables that they name. cffi reads this text, too.
 */
#pragma once
#include <stdint.h>

/* One op of a warp program. `pipes[i]` counts instructions on pipe i (order of PIPES). */
typedef struct gs_op {
    uint8_t kind;      /* GS_OP_* */
    uint8_t slot;      /* scoreboard slot 0..4 (LOAD, STORE, REDUCE, WAIT) */
    uint8_t stages;    /* >0: the slot is slot + counter[level] mod stages */
    uint8_t level;     /* loop counter 0..2 (LOOP: which; memory, stages: which one counts) */
    uint8_t bypass_l1; /* LOAD: skip the look-up in L1 */
    uint8_t per_warp;  /* 1: pattern is pattern + warp in TB; ARRIVE: copies count, once their slot is empty;
                          AWAIT: a barrier without copies; COMPUTE: asynchronous multiplies, which the warp
                          does not wait for; LOOP: as often as the warp's tile has steps; ADVANCE: by these;
                          RING_ARRIVE: not in a loop's first turn */
    uint16_t smem;     /* COMPUTE: shared-memory wavefronts; LOAD: not 0: an async copy into shared memory;
                          BULK_LOAD, RING_ARRIVE: GS_TO_*: the TBs of the cluster that get it */
    uint32_t issue; /* issue slots = warp instructions; memory: 1, or 0 for a further part of the op before */
    uint32_t conflicts; /* COMPUTE: issue slots, and cycles of the fp32 pipe, lost to late operands; AWAIT:
                           phases of the barrier */
    uint32_t chain;     /* COMPUTE: dependence-chain latency after the last issue, cycles; BARRIER: warps of a
                           named one (0: all of the TB); AWAIT: what comes in all phases */
    uint32_t
        smem_wait; /* COMPUTE: 0, or 1 + the warp's latest wavefronts whose results it does not wait for at
                      the end; 1 + GS_UNNEEDED: it waits for none, and nothing waits for its results */
    uint32_t pipes[7];
    int32_t pattern; /* LOAD, STORE, REDUCE: index into patterns; POST, POLL: sems; TILE: stages; BULK_LOAD,
                        BULK_STORE: boxes */
    int32_t count_plus; /* memory: added to counter[level] in the address; COMPUTE: 0, or what its tensor
                           instructions take of the pipe, 64ths of an instruction of the device, or of a
                           cycle if they are asynchronous */
    uint32_t count;     /* BARRIER, ARRIVE, AWAIT: which, 0 to 15 named, above transaction barriers; LOOP:
                           iterations; DELAY: cycles; memory, POLL: skipped when counter + count_plus >=
                           count (0: never); POST: 1 = without a fence */
    uint32_t target;    /* LOOP: the loop's first op; TILE: where the program goes on when no tile is left; an
                           index into ops */
} gs_op;

/* Address of lane l: args[arg] + base + bx*x + by*y + bz*z + w*warp + counter[level]*step +
   counter[level2]*step2 + pair(l), pair(l) = (l / minor)*s1 + (l % minor)*s0, for the lanes of `lanes`;
   `width` bytes a lane. `recorded`: the sum is no address but an index into the warp's block of `accesses`;
   bx to warp are 0 then, and `arg` only selects the bit of `bypass`. */
typedef struct gs_pattern {
    int64_t base, bx, by, bz, warp, step, step2, s0, s1;
    uint32_t lanes; /* bit mask of active lanes */
    uint16_t minor;
    uint8_t width;
    uint8_t arg;
    uint8_t align;  /* every address is a multiple of this: 1, 2, 4, 8, 16, 32, 64 or 128 */
    uint8_t level2; /* counter multiplied by step2 (with step2 = 0: none) */
    uint8_t recorded;
    uint8_t into;        /* an async copy: the byte of a line that lane 0 is copied to, below 128, */
    uint32_t shape;      /* 0: pair(l); else lane l is lanes[shape - 1].offset[l] after lane 0's place */
    uint32_t into_pitch; /* and the distances of lanes l and l + minor there; 0: no such copy */
    uint32_t pad;
} gs_pattern;

/* TBs of a cluster, one's own always among them: those at the same place in m, and those at the same in n. */
enum { GS_TO_SELF = 0, GS_TO_SAME_M = 1, GS_TO_SAME_N = 2 };

/* A rectangle of a tensor that one bulk copy moves: `rows` rows of `bytes`, `pitch` apart. Its first row and
   byte are sums of 1, x, y, z of the warp's tile, the TB's place m and n in its cluster, and counter[level] +
   count_plus, each times what `row` and `col` have for it. What lies outside of the plane z of the tensor,
   `all_rows` rows of `all_bytes`, is not moved. Planes are `plane` bytes apart. Ring barriers: an op names
   `count` + (the warp's cursor + count_plus) mod `stages`. */
typedef struct gs_bulk_box {
    int64_t pitch, plane;
    int32_t row[7], col[7];
    uint32_t all_rows, all_bytes;
    uint32_t rows, bytes;
    uint32_t arg, pad;
} gs_bulk_box;

/* Distances of lanes that pair(l) cannot describe, bytes; at most 2^30 either way. */
typedef struct gs_lanes {
    int32_t offset[32];
} gs_lanes;

/* Lines that an access touches: a slice of parts. */
typedef struct gs_template {
    uint32_t first;
    uint16_t lines, sectors;
} gs_template;

typedef struct gs_part {
    int32_t line;  /* relative to the line of the access */
    uint16_t mask; /* sectors of the line */
    /* Not 0: some byte of these sectors is not touched. Up to 7: so many words of each sector are; 8: all
       words of some are. Recorded accesses have 0. */
    uint16_t partial;
} gs_part;

/* Which semaphore an op names: semaphores[base] of its launch + first + row / rows * stride + col / cols, row
   = row[0] + row[1]*x + row[2]*y + row[3]*z + row[4]*(counter[level] + count_plus), col likewise. POLL waits
   for `times` of them, `apart` from one to the next. `ahead`: 1: the TB remembers the semaphores after its
   own that the poll finds complete, and a POLL of those costs nothing; 2: it remembers that these `times` are
   complete (uses with the same beginning have the same `apart`). `wrap` > 0: columns so far apart share
   semaphores. */
typedef struct gs_sem {
    int32_t row[5], col[5];
    uint32_t rows, cols, stride, first, base, times, apart, ahead, wrap;
} gs_sem;

/* A part of a persistent kernel's program that runs once for each tile of a grid: ops first to end - 1. A
   tile starts at entry[variant], as a TB of that grid would. The op TILE selects the tile (level 0: the
   TB's own number; level 1: the last tile's number + the number of TBs) and jumps to its start, or to the
   op's target when no tile is left. */
typedef struct gs_stage {
    uint32_t grid[3];
    uint32_t first, end;
    uint32_t entry[8];
} gs_stage;

/* A kernel's code: ops of all variants one after another. A TB's variant is the sum of 1 (last x), 2 (last y)
   and 4 (last z) of its position in the grid; its warps start at entry[variant], an index into ops. With
   rows, a TB has a row of `entries` instead, an index into ops for each of its warps. The ops from an entry
   to the next EXIT are a segment; segments do not overlap. */
typedef struct gs_program {
    uint32_t first_op, ops;
    uint32_t first_pattern, patterns;
    uint32_t entry[8];
    uint32_t warps;     /* warps of a TB */
    uint32_t registers; /* 32-bit registers a thread */
    uint32_t smem;      /* bytes a TB */
    uint32_t args;
    uint32_t first_entry, rows; /* rows x warps entries; rows = 0: entry[variant] */
} gs_program;
