/* Load/store unit, L1 and request credits of an SM: lsu.c. */
#pragma once
#include "base/mailbox.h"

/* Asks the host for the sets of L1 that the warp's next op, a load, will look at. */
void gs_lsu_prefetch(const gs_sim *sim, const gs_sm *sm, u32 wi, const gs_iop *op);
/* Executes a memory op at cycle c; 0: the warp was parked until request credits are free. */
int gs_lsu_access(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c);
/* Applies the replies from L2 among a group's messages; 1: there are others. */
int gs_lsu_replies(gs_ctx *ctx, gs_sm *sms, const gs_msg *m, u32 n);
