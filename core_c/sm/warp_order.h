/* Warps served oldest first (gpu.sm.warp_order). A warp whose next op needs what older ops have reserved does
   not queue behind them: it waits, and when the resource is free the oldest of the waiting warps goes on.
   Each sub-core has a set of waiting warps for each of its pipes and for its issue slots; the LSU and shared
   memory have one for the SM.

   With greedy_oldest, a warp that has issued in every cycle goes on before older ones, also before those that
   wait for shared memory, as long as it need not wait: to the end of its run of blocks. A load, a store, a
   block with tensor instructions, or another warp that takes one of its issue slots ends the run, too.

   Shared memory keeps the order of arrival among the wavefronts in its queue (gpu.sm.smem_queue); warps that
   find the queue full go oldest first. Before both comes a queue of each sub-core (gpu.sm.queue), which async
   copies and blocks that are only loads from shared memory (ldmatrix) enter in order of arrival, not by age:
   a load waits there for copies of other warps, and these for room in the LSU. A warp that finds no room when
   its turn comes keeps its place in that order. A warp that waits for credits takes its place when it has
   them. */
#pragma once
#include "sm/sm.h"

static inline gs_waiting *gs_waiting_with(gs_sm *sm, u32 wi, u32 what)
{
    return &sm->waiting[what < GS_RESOURCE_LSU ? wi & 3 : 4];
}

/* 1: warp a is of an older TB than b, or comes before it in the same TB. */
static inline int gs_warp_is_older(const gs_sm *sm, u32 a, u32 b)
{
    return (i32)(sm->warp_age[a] - sm->warp_age[b]) < 0;
}

/* A block of the warp has begun; at_once: the cycle in which its next block may follow before older warps; 0:
   it may not. */
static inline void gs_warp_order_hold(gs_subcore *b, u32 wi, u64 at_once)
{
    if (at_once || b->holder == wi + 1) {
        b->holder = at_once ? (u8)(wi + 1) : 0;
        b->held = at_once;
    }
}

/* The cycle from which shared memory's queue has room. */
static inline u64 gs_smem_queue_room(const gs_sm *sm)
{
    return gs_max(sm->smem_free >> 6, sm->smem_queue) - sm->smem_queue;
}

/* The cycle from which the sub-core's queue has room. */
static inline u64 gs_subcore_queue_room(const gs_sm *sm, const gs_subcore *b)
{
    return b->leaves[(b->queued - sm->queue) % GS_QUEUED];
}

/* A copy or a load of the warp has entered the queue and leaves it at cycle `leaves`. */
static inline void gs_subcore_queue_enter(gs_sm *sm, u32 wi, u64 leaves)
{
    gs_subcore *b = &sm->sub[wi & 3];
    b->left = leaves;
    b->leaves[b->queued++ % GS_QUEUED] = leaves;
    sm->queued_since[wi] = 0;
}

/* 1: of two warps that wait for `what`, a goes before b. */
static inline int gs_warp_order_before(const gs_sm *sm, u32 a, u32 b, u32 what)
{
    i32 sooner = (i32)(sm->queued_since[b] - sm->queued_since[a]);
    return what == GS_RESOURCE_QUEUE && sooner ? sooner > 0 : gs_warp_is_older(sm, a, b);
}

/* The cycle from which a waiting warp may go on. */
static inline u64 gs_resource_free_at(const gs_sm *sm, u32 wi, u32 what)
{
    const gs_subcore *b = &sm->sub[wi & 3];
    u64 free = what == GS_RESOURCE_QUEUE   ? gs_subcore_queue_room(sm, b)
               : what == GS_RESOURCE_LSU   ? gs_max(sm->lsu_free, sm->lsu_queue) - sm->lsu_queue
               : what == GS_RESOURCE_SMEM  ? gs_smem_queue_room(sm)
               : what == GS_RESOURCE_ISSUE ? gs_max(b->issue, b->held + 1)
                                           : b->pipe[what] >> 6;
    return gs_max(free, sm->slack[wi]) - sm->slack[wi];
}

/* Warp wi had its turn: the first of the others is woken for when the resource is free. A warp that waits
   again, alone, is woken already. */
static inline void gs_warp_order_wake_next(gs_sm *sm, u32 wi, u32 what, u64 c)
{
    gs_waiting *t = gs_waiting_with(sm, wi, what);
    u64 left = t->waits[what];
    if (!left || left == 1ull << wi) {
        return;
    }
    u32 best = gs_ctz(left);
    for (left &= left - 1; left; left &= left - 1) {
        u32 i = gs_ctz(left);
        best = gs_warp_order_before(sm, i, best, what) ? i : best;
    }
    t->next[what] = (u8)best;
    gs_sm_wake(sm, best, gs_max(gs_resource_free_at(sm, best, what), c + 1));
}

/* 1: the warp may go on at cycle c; 0: it waits, until `free` at least. */
static inline int gs_warp_order_acquire(gs_sm *sm, u32 wi, u32 what, u64 free, u64 c)
{
    gs_waiting *t = gs_waiting_with(sm, wi, what);
    u64 others = t->waits[what];
    /* next[what] is no waiting warp while its turn is on */
    int first = !(others >> t->next[what] & 1) ||
                (what != GS_RESOURCE_QUEUE && gs_warp_is_older(sm, wi, t->next[what]));
    if (free <= c && first) {
        return 1;
    }
    gs_warp *w = &sm->warp[wi];
    w->state = GS_WARP_WAITS_RESOURCE;
    w->since = (u32)c;
    if (what == GS_RESOURCE_QUEUE && !sm->queued_since[wi]) {
        sm->queued_since[wi] = (u32)c + 1;
    }
    sm->waits_for[wi] = (u8)what;
    t->waits[what] = others | 1ull << wi;
    if (first) {
        t->next[what] = (u8)wi;
    }
    if (!others) {
        gs_sm_wake(sm, wi, gs_max(free, c + 1));
    }
    return 0;
}

/* One warp of a waiting set is always due to wake. Returns the first of the set in order and takes it out: it
   runs, and then wakes the next (gs_warp_order_wake_next). */
static inline u32 gs_warp_order_pop(gs_sm *sm, u32 wi)
{
    u32 what = sm->waits_for[wi];
    gs_waiting *t = gs_waiting_with(sm, wi, what);
    u32 next = t->next[what];
    t->waits[what] &= ~(1ull << next);
    return next;
}
