/* The load/store unit of an SM: memory ops of its warps. */
#pragma once
#include "base/mailbox.h"

/* Prefetches the sets of L1 that the warp's next op, a load, will look up. */
void gs_lsu_prefetch(const gs_sim *sim, const gs_sm *sm, u32 wi, const gs_iop *op);
/* Executes a memory op at cycle c; 0: the warp waits for credits. */
int gs_lsu_access(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c);
