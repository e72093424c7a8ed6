/* Dispatch of ready TBs to SMs. */
#pragma once
#include "base/mailbox.h"

/* Dispatches all TBs that fit now, kernels by rank; hint: see gs_placement_find. */
void gs_dispatch(gs_ctx *ctx, u64 t, u32 hint);
/* Informs the SMs of a shared port, at time `time`, that one more of them has TBs, or one fewer. */
void gs_dispatch_port_sharers(gs_ctx *ctx, u32 sm, u64 time, u32 more);
void gs_idle_init(gs_sim *sim);
/* Adds the idle time of SMs up to t (ticks) to the present reason, and determines the reason from t on. */
void gs_idle_account(gs_sim *sim, u64 t);
void gs_idle_classify(gs_sim *sim);
/* The kernel has ready TBs. */
void gs_ready_set(gs_sim *sim, u32 kernel);
/* How many TBs of the kernel are ready and not dispatched. */
u32 gs_ready_tbs(gs_sim *sim, u32 kernel);

static inline u32 gs_dispatch_warps(const gs_sim *sim, const gs_kernel *k)
{
    return GS_CONST_TABLE(sim, gs_tb_resources, at_tb_resources)[k->shape].warps;
}

/* 1: a cooperative kernel may not begin. TBs of two that begin together would hold the slots that the others
   need, and all would wait for good. So one begins when all its TBs are ready and no other has begun in part.
 */
static inline int gs_dispatch_is_held(const gs_sim *sim, u32 kernel)
{
    const gs_kernel *k = GS_CONST_TABLE(sim, gs_kernel, at_kernels) + kernel;
    return GS_UNLIKELY(gs_launches(sim)[kernel].cooperative) && k->dispatched == 0 &&
           (sim->sched.partly || (k->per_tb && k->ready < k->tbs && !sim->order.prologue));
}

/* The first ready rank at or after `rank`, or GS_NONE. */
u32 gs_ready_next(const gs_sim *sim, u32 rank);
/* Dispatches a TB to an SM that has room for it. tb: GS_NONE: the kernel's first ready one; rotate: the
   sub-core that takes its first warp; in_prologue: the TB waits inside for its conditions. */
void gs_dispatch_one(gs_ctx *ctx, u32 kernel, u32 tb, u32 sm, u32 rotate, u32 in_prologue, u64 t);
