/* Credits limit the lines that an SM may have in flight. Loads to registers, async copies and stores each
   have a pool, or share that of loads (gpu.l1). Credits are numbered, not counted, because the replies of a
   whole quantum are applied before its ops run: an op may issue when the release that it needs has a time
   at or before its cycle. Warps without a credit wait in FIFO order. Times are in cycles. */
#pragma once
#include "sm/sm.h"

static inline u32 gs_credit_pool(const gs_sim *sim, int load, int copy)
{
    return sim->pool[!load ? GS_POOL_STORES : copy ? GS_POOL_COPIES : GS_POOL_LOADS];
}

/* the cycle of a pool's `number`-th release */
static inline u32 *gs_credit_release(const gs_sim *sim, gs_sm *sm, u32 pool, u32 number)
{
    return &sm->release_time[pool][number & sim->credit_mask[pool]];
}

/* The release that the next line of a pool needs, whose credits are all in use. */
static inline u32 gs_credit_needed(const gs_sim *sim, const gs_sm *sm, u32 pool)
{
    return sm->acquired[pool] - sim->credits[pool] + 1;
}

/* Schedules the wake-up of the first waiting warp, if the cycle of its credit is known. */
static inline void gs_credit_arm(const gs_sim *sim, gs_sm *sm, u64 least)
{
    if (sm->credit_fifo_head == sm->credit_fifo_tail) {
        sm->credit_armed = 0;
        return;
    }
    u32 first = sm->credit_fifo[sm->credit_fifo_head & (GS_WARPS - 1)], w = first % GS_WARPS,
        pool = first / GS_WARPS;
    if (sm->warp[w].state != GS_WARP_IN_QUEUE) {
        /* it has its credits and waits for room in its sub-core's queue, which wakes it */
        sm->credit_armed = 1;
        return;
    }
    if (sm->acquired[pool] < sim->credits[pool]) {
        gs_sm_wake(sm, w, least);
        sm->credit_armed = 1;
        return;
    }
    u32 need = gs_credit_needed(sim, sm, pool);
    if ((i32)(sm->released[pool] - need) >= 0) {
        gs_sm_wake(sm, w, gs_max(*gs_credit_release(sim, sm, pool, need - 1), least));
        sm->credit_armed = 1;
    } else {
        sm->credit_armed = 0;
        sm->credit_least = least;
        sm->credit_need = need;
    }
}

static inline int gs_credit_is_free(const gs_sim *sim, gs_sm *sm, u32 pool, u64 c)
{
    if (sm->acquired[pool] < sim->credits[pool]) {
        return 1;
    }
    u32 need = gs_credit_needed(sim, sm, pool);
    return (i32)(sm->released[pool] - need) >= 0 && *gs_credit_release(sim, sm, pool, need - 1) <= c;
}

/* 1: the warp's op may go at cycle c; 0: the warp waits for a credit. */
static inline int gs_credit_take(const gs_sim *sim, gs_sm *sm, u32 wi, u32 pool, u64 c)
{
    gs_warp *w = &sm->warp[wi];
    int first = sm->credit_fifo_head == sm->credit_fifo_tail;
    if (first && gs_credit_is_free(sim, sm, pool, c)) {
        return 1;
    }
    if (!first && sm->credit_fifo[sm->credit_fifo_head & (GS_WARPS - 1)] % GS_WARPS == wi) {
        sm->credit_fifo_head++; /* it has waited and was woken: its credits are there */
        return 1;
    }
    sm->credit_fifo[sm->credit_fifo_tail++ & (GS_WARPS - 1)] = (u8)(wi | pool * GS_WARPS);
    w->state = GS_WARP_IN_QUEUE;
    w->since = (u32)c;
    if (first) {
        gs_credit_arm(sim, sm, c + 1);
    }
    return 0;
}

/* Returns a credit at cycle c: a line has arrived, or a store is acknowledged. */
static inline void gs_credit_release_at(const gs_sim *sim, gs_sm *sm, u32 pool, u32 c)
{
    *gs_credit_release(sim, sm, pool, sm->released[pool]++) = c;
    if (sm->credit_fifo_head != sm->credit_fifo_tail && !sm->credit_armed) {
        u32 first = sm->credit_fifo[sm->credit_fifo_head & (GS_WARPS - 1)];
        if (first / GS_WARPS == pool && (i32)(sm->released[pool] - sm->credit_need) >= 0) {
            sm->credit_armed = 1;
            gs_sm_wake(sm, first % GS_WARPS, gs_max(c, sm->credit_least));
        }
    }
}
