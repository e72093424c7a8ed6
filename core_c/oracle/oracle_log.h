/* Accesses that parts report to the oracle, for its check at the end of the quantum. In the hot loop
   callers test sim->oracle themselves, which saves the call. Times are in ticks. */
#pragma once
#include "base/mailbox.h"

/* A request on its way to L2, at the time of its arrival. kind: GS_MSG_LOAD, GS_MSG_STORE or GS_MSG_REDUCE;
   place: where L1 will keep the line, 0: nowhere. */
void gs_oracle_log_l2(gs_ctx *ctx, const gs_sm *sm, const gs_tb *tb, u64 line, u32 mask, u64 time, u32 kind,
                      u32 place);
/* A load that L1 serves: it sees memory as of when the line was read from L2. */
void gs_oracle_log_l1(gs_ctx *ctx, const gs_sm *sm, const gs_tb *tb, u64 line, u32 mask, u64 time, u32 place);
/* A post of a TB arrives at L2: what the TB will not touch again is published. */
void gs_oracle_log_post(gs_ctx *ctx, u32 kernel, u32 tb, u32 semaphore, u64 time);
/* A TB learns that so many semaphores, from one on, are complete. */
void gs_oracle_log_poll(gs_ctx *ctx, u32 kernel, u32 tb, u32 semaphore, u32 count, u64 time);
void gs_oracle_log_end(gs_sim *sim, u32 kernel, u32 tb, u64 time);
void gs_oracle_log_admit(gs_sim *sim, u32 kernel);

static inline void gs_oracle_end(gs_sim *sim, u32 kernel, u32 tb, u64 time)
{
    if (GS_UNLIKELY(sim->oracle)) {
        gs_oracle_log_end(sim, kernel, tb, time);
    }
}

static inline void gs_oracle_admit(gs_sim *sim, u32 kernel)
{
    if (GS_UNLIKELY(sim->oracle)) {
        gs_oracle_log_admit(sim, kernel);
    }
}
