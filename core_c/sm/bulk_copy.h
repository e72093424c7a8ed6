/* Bulk copies (Hopper's TMA): one instruction moves a box of a tensor between global and shared memory. A
   unit of the SM takes its lines one after another; loads count at a ring barrier, of all TBs that get them.
   Times are in cycles. */
#pragma once
#include "base/mailbox.h"

/* BULK_LOAD at cycle c. */
void gs_bulk_load(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c);
/* BULK_STORE at cycle c; op TAKEN waits until shared memory has been read. */
void gs_bulk_store(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c);
