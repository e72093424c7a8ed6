/* Ready TBs and where they go: dispatch.c. */
#pragma once
#include "base/mailbox.h"

/* Dispatches all that fit now; hint: see gs_placement_find. Kernels go by rank. */
void gs_dispatch(gs_ctx *ctx, u64 t, u32 hint);
/* SMs that share a port learn that one of them has TBs now, or none */
void gs_dispatch_port_sharers(gs_ctx *ctx, u32 sm, u64 time, u32 more);
void gs_idle_init(gs_sim *sim);
/* idle SMs: their time up to t counts for the reason that held so far; and why they are idle from now on */
void gs_idle_account(gs_sim *sim, u64 t);
void gs_idle_classify(gs_sim *sim);
/* the kernel has TBs that are ready */
void gs_ready_set(gs_sim *sim, u32 kernel);
/* how many TBs of the kernel are ready and not dispatched */
u32 gs_ready_tbs(gs_sim *sim, u32 kernel);

static inline u32 gs_dispatch_warps(const gs_sim *sim, const gs_kernel *k)
{
    return GS_CONST_TABLE(sim, gs_tb_resources, at_tb_resources)[k->shape].warps;
}

/* The first ready rank at or after `rank`, or GS_NONE. */
u32 gs_ready_next(const gs_sim *sim, u32 rank);
/* Dispatches a TB to an SM that has room for it. tb: GS_NONE: the kernel's first ready one; rotate: the
   sub-core that takes its first warp; in_prologue: the TB waits inside for its conditions. */
void gs_dispatch_one(gs_ctx *ctx, u32 kernel, u32 tb, u32 sm, u32 rotate, u32 in_prologue, u64 t);
