/* Barriers of a TB: its warps are counted one at a time, and leave within a few cycles of the last. Times
   are in cycles. */
#pragma once
#include "base/state.h"

/* A warp arrives at cycle c. */
void gs_barrier_arrive(const gs_sim *sim, gs_sm *sm, u32 wi, u64 c);
/* When a warp leaves a barrier of `warps` warps whose last one was counted at cycle `last`. */
u64 gs_barrier_leaves(const gs_sim *sim, const gs_sm *sm, u32 wi, u32 warps, u64 last);
/* All warps of the TB have arrived, the last one at cycle `last`. */
void gs_barrier_release(const gs_sim *sim, gs_sm *sm, gs_tb *tb, u64 last);
