/* The log of the oracle: see oracle_log.h. */
#include "oracle/oracle_log.h"

#include "base/fail.h"
#include "oracle/expected_order.h"
#include "oracle/oracle_state.h"

static u64 *l1_times(gs_sim *sim, const gs_sm *sm, u32 place)
{
    return gs_oracle_of(sim)->l1_time + ((u64)sm->id * GS_L1_SETS * GS_L1_WAYS + place - GS_L1_WAYS) * 4;
}

void gs_oracle_log_poll(gs_ctx *ctx, u32 kernel, u32 tb, u32 semaphore, u32 count, u64 time)
{
    gs_oracle_access a = {time, GS_NEVER, semaphore, kernel, tb, count, 0, 0, GS_ORACLE_POLLS};
    if (!gs_oracle_push(&gs_oracle_of(ctx->sim)->logs[ctx->id], a)) {
        gs_fail(ctx->sim, GS_ERR_MEM, "the oracle needs more memory than there is");
    }
}

void gs_oracle_log_post(gs_ctx *ctx, u32 kernel, u32 tb, u32 semaphore, u64 time)
{
    gs_oracle_access a = {time, GS_NEVER, semaphore, kernel, tb, 0, 0, 0, GS_ORACLE_POSTS};
    if (!gs_oracle_push(&gs_oracle_of(ctx->sim)->logs[ctx->id], a)) {
        gs_fail(ctx->sim, GS_ERR_MEM, "the oracle needs more memory than there is");
    }
}

void gs_oracle_log_l2(gs_ctx *ctx, const gs_sm *sm, const gs_tb *tb, u64 line, u32 mask, u64 time, u32 kind,
                      u32 place)
{
    if (place && sm) { /* a copy from the host has neither */
        for (u32 i = 0; i < 4; i++) {
            if (mask >> i & 1) {
                l1_times(ctx->sim, sm, place)[i] = time;
            }
        }
    }
    gs_oracle_access a = {time, GS_NEVER,       line,     tb->kernel,      tb->tb,
                          mask, (u16)tb->phase, (u8)kind, GS_ORACLE_ACCESS};
    if (!gs_oracle_push(&gs_oracle_of(ctx->sim)->logs[ctx->id], a)) {
        gs_fail(ctx->sim, GS_ERR_MEM, "the oracle needs more memory than there is");
    }
}

void gs_oracle_log_l1(gs_ctx *ctx, const gs_sm *sm, const gs_tb *tb, u64 line, u32 mask, u64 time, u32 place)
{
    for (u32 i = 0; i < 4; i++) {
        if (mask >> i & 1) {
            gs_oracle_access a = {time,
                                  l1_times(ctx->sim, sm, place)[i],
                                  line,
                                  tb->kernel,
                                  tb->tb,
                                  1u << i,
                                  (u16)tb->phase,
                                  GS_MSG_LOAD,
                                  GS_ORACLE_ACCESS};
            a.time = gs_max(a.time, a.seen);
            if (!gs_oracle_push(&gs_oracle_of(ctx->sim)->logs[ctx->id], a)) {
                gs_fail(ctx->sim, GS_ERR_MEM, "the oracle needs more memory than there is");
            }
        }
    }
}

void gs_oracle_log_end(gs_sim *sim, u32 kernel, u32 tb, u64 time)
{
    gs_oracle_access a = {time, GS_NEVER, 0, kernel, tb, 0, 0, 0, GS_ORACLE_ENDS};
    if (!gs_oracle_push(&gs_oracle_of(sim)->logs[GS_THREADS], a)) {
        gs_fail(sim, GS_ERR_MEM, "the oracle needs more memory than there is");
    }
}

void gs_oracle_log_admit(gs_sim *sim, u32 kernel)
{
    gs_oracle_add_kernels(sim, kernel);
}
