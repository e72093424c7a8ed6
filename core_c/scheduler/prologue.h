/* Prologues: prologue.c. */
#pragma once
#include "base/mailbox.h"

/* the kernel whose TBs may be dispatched to wait inside, of that which is the oldest with TBs left */
u32 gs_prologue_kernel(gs_sim *sim, u32 oldest);
/* takes the next such TB, which gets the place of a resident */
u32 gs_prologue_take(gs_sim *sim, u32 kernel, u32 place);
/* a TB is dispatched that waits for nothing */
void gs_prologue_skip(gs_sim *sim, u32 kernel, u32 tb);
/* a TB's own conditions are met; 1: it is dispatched already */
int gs_prologue_tb_met(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* the conditions of a kernel as a whole are met */
void gs_prologue_kernel_met(gs_sim *sim, u32 kernel, u64 t);
/* tells the SMs */
void gs_prologue_send(gs_ctx *ctx);
