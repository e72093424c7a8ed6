/* Warps that are served oldest first (gpu.sm.warp_order). A warp whose next op needs what older ops have
   reserved does not queue behind them: it waits, and the oldest of those that wait for a unit goes when the
   unit is free. A sub-core's pipes and issue slots have a set of waiting warps each, the load/store unit and
   shared memory one an SM. With greedy_oldest a warp that issued in every cycle goes on before older ones,
   also those that wait for shared memory, as long as it need not wait: to the end of its run of blocks, which
   a load, a store, a block with tensor instructions or a slot that another warp takes from it ends, too.
   Shared memory keeps the order of arrival among the wavefronts that it queues (gpu.sm.smem_queue): only
   behind them the oldest goes first. In front of both lies a queue of each sub-core (gpu.sm.queue), which
   copies and loads from shared memory by themselves (ldmatrix) enter in the order in which they come, not by
   age: a load waits there behind copies of others, and these until the load/store unit has room. Who finds
   no room when its turn comes keeps its place in that order; who has waited for credits comes in line when it
   has them, while those behind it wait for theirs. */
#pragma once
#include "sm/sm.h"

static inline gs_waiting *gs_waiting_with(gs_sm *sm, u32 wi, u32 what)
{
    return &sm->waiting[what < GS_RESOURCE_LSU ? wi & 3 : 4];
}

/* 1: warp a belongs to an older TB than b, or comes before it in the same one */
static inline int gs_warp_is_older(const gs_sm *sm, u32 a, u32 b)
{
    return (i32)(sm->warp_age[a] - sm->warp_age[b]) < 0;
}

/* A block of the warp has begun: its next may follow in that cycle before older warps; 0: it may not. */
static inline void gs_warp_order_hold(gs_subcore *b, u32 wi, u64 at_once)
{
    if (at_once || b->holder == wi + 1) {
        b->holder = at_once ? (u8)(wi + 1) : 0;
        b->held = at_once;
    }
}

/* the cycle from which shared memory has room in its queue */
static inline u64 gs_smem_queue_room(const gs_sm *sm)
{
    return gs_max(sm->smem_free >> 6, sm->smem_queue) - sm->smem_queue;
}

/* the cycle from which the sub-core's queue has room for one more */
static inline u64 gs_subcore_queue_room(const gs_sm *sm, const gs_subcore *b)
{
    return b->leaves[(b->queued - sm->queue) % GS_QUEUED];
}

/* a copy or a load of the warp has entered the queue and leaves at that cycle */
static inline void gs_subcore_queue_enter(gs_sm *sm, u32 wi, u64 leaves)
{
    gs_subcore *b = &sm->sub[wi & 3];
    b->left = leaves;
    b->leaves[b->queued++ % GS_QUEUED] = leaves;
    sm->queued_since[wi] = 0;
}

/* 1: of two that wait for `what`, warp a goes before b */
static inline int gs_warp_order_before(const gs_sm *sm, u32 a, u32 b, u32 what)
{
    i32 sooner = (i32)(sm->queued_since[b] - sm->queued_since[a]);
    return what == GS_RESOURCE_QUEUE && sooner ? sooner > 0 : gs_warp_is_older(sm, a, b);
}

/* the cycle from which a warp that waits may go */
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

/* Warp wi had its turn: the first of those that wait will wake when what they wait for is free. If wi waits
   again, alone, it will already. */
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
    /* the first of those that wait is none of them while its turn has come */
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

/* One of a set that waits is awake, as one always is due to be. Returns the oldest of the set, which waits no
   more: whoever wakes runs that one, and then wakes another (gs_warp_order_wake_next). */
static inline u32 gs_warp_order_pop(gs_sm *sm, u32 wi)
{
    u32 what = sm->waits_for[wi];
    gs_waiting *t = gs_waiting_with(sm, wi, what);
    u32 next = t->next[what];
    t->waits[what] &= ~(1ull << next);
    return next;
}
