/* TBs of an SM: they start, end, and have stored what L2 acknowledges after they have left, too. */
#pragma once
#include "base/mailbox.h"

/* A TB starts when the message that says so comes. */
void gs_tb_start(gs_ctx *ctx, gs_sm *sm, gs_deferred_msg s);
/* The last warp of a TB has ended at cycle c. The TB's place is free when its stores have left the SM; the TB
   is complete when L2 has acknowledged them and all of the GPU sees them. */
void gs_tb_end(gs_ctx *ctx, gs_sm *sm, u32 at, u64 c);
/* A store of a TB, or a post, is acknowledged at cycle c. */
void gs_tb_stores_acknowledged(gs_ctx *ctx, gs_sm *sm, gs_store_owner *o, u64 c);
