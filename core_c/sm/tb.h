/* Start and end of TBs on an SM. A TB frees its slot before L2 has acknowledged all its stores; it is
   complete only after that. */
#pragma once
#include "base/mailbox.h"

/* The message that starts a TB has arrived. */
void gs_tb_start(gs_ctx *ctx, gs_sm *sm, gs_deferred_msg s);
/* The last warp of a TB has ended at cycle c. The TB frees its slot when its stores have left the SM. It is
   complete when L2 has acknowledged them and the whole GPU sees them. */
void gs_tb_end(gs_ctx *ctx, gs_sm *sm, u32 at, u64 c);
/* A store of a TB, or a post, is acknowledged at cycle c. */
void gs_tb_stores_acknowledged(gs_ctx *ctx, gs_sm *sm, gs_store_owner *o, u64 c);
