/* Which barriers the instructions of a TB count and wait at. */
#pragma once
#include "trace/convert.h"

/* Where a warp's walk through its instructions stands: the last wait, and how far back it is. */
typedef struct gs_barrier_walk {
    u64 address;
    u32 pc, since;
} gs_barrier_walk;

/* Before a TB's instructions are taken: finds the barriers that its warps use. */
void gs_barriers_scan(gs_convert *c, const gs_trace_tb *tb);
/* Fills what an instruction of the TB does at a barrier; instructions of a warp come in order. */
void gs_barriers_row(const gs_convert *c, const gs_trace_tb *tb, const gs_trace_inst *t,
                     gs_barrier_walk *walk, gs_sass *s);
