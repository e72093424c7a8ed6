/* Ops of pipelined programs, in which each warp has a place of its own: its tile, and its step in the rings.
 */
#pragma once
#include "base/mailbox.h"

/* Runs an op of a warp at cycle c. 1: the warp goes on with its next op in this cycle. */
int gs_pipeline_op(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c);
