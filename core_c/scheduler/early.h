/* Programmatic dependent launch: early.c. */
#pragma once
#include "base/mail.h"

/* a TB has triggered, or ended without */
void gs_early_trigger(gs_sim *sim, gs_resident *r, u64 t);
/* a kernel before an early one has ended */
void gs_early_pred_end(gs_ctx *ctx, u32 kernel, u64 t);
/* a kernel has ended */
void gs_early_end(gs_sim *sim, u64 t);
/* another kernel may be in flight */
void gs_early_place(gs_sim *sim, u64 t);
