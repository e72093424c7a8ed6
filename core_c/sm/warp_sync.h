/* Ops that wait inside the program: polls and posts of semaphores, triggers and waits of programmatic
   dependent launch, tiles of persistent kernels. See memory/semaphore.h. */
#pragma once
#include "base/mailbox.h"

/* An op of a warp at cycle c; 0: the warp was parked, or goes on later. */
int gs_sync_op(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c);
/* A message of kind GS_MSG_SYNC that reaches an SM at cycle c. */
void gs_sync_event(gs_ctx *ctx, gs_sm *sm, u64 pay, u64 c);
