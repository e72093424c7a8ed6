/* Programmatic dependent launch. A kernel with `early` starts when all TBs of its predecessors have
   triggered or ended; it waits for their end inside its program. At most gs_order.in_flight kernels are in
   flight; after one has ended, the next starts with a delay. */
#pragma once
#include "base/mailbox.h"

/* A TB has triggered, or ended without. */
void gs_pdl_trigger(gs_sim *sim, gs_resident *r, u64 t);
/* A predecessor of a PDL kernel has ended. */
void gs_pdl_producer_end(gs_ctx *ctx, u32 kernel, u64 t);
/* A kernel has ended. */
void gs_pdl_kernel_end(gs_sim *sim, u64 t);
/* Another kernel may be in flight. */
void gs_pdl_slot_free(gs_sim *sim, u64 t);
