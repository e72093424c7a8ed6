/* Ops that wait inside a program: polls and posts of semaphores (see memory/semaphore.h), triggers and waits
   of programmatic dependent launch, tiles of persistent kernels. */
#pragma once
#include "base/mailbox.h"

/* An op of a warp at cycle c; 0: the warp waits, or goes on in a later cycle. */
int gs_sync_op(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c);
/* A message of kind GS_MSG_SYNC reaches an SM at cycle c. */
void gs_sync_event(gs_ctx *ctx, gs_sm *sm, u64 pay, u64 c);
