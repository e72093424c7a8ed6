/* Programmatic dependent launch: pdl.c. */
#pragma once
#include "base/mailbox.h"

/* a TB has triggered, or ended without */
void gs_pdl_trigger(gs_sim *sim, gs_resident *r, u64 t);
/* a kernel before an early one has ended */
void gs_pdl_producer_end(gs_ctx *ctx, u32 kernel, u64 t);
/* a kernel has ended */
void gs_pdl_kernel_end(gs_sim *sim, u64 t);
/* another kernel may be in flight */
void gs_pdl_slot_free(gs_sim *sim, u64 t);
