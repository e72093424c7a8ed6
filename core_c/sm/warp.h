/* A warp of an SM: it runs its ops until one makes it wait. All this is inlined into the loop over cycles in
   sm.c, the hot loop of an SM. */
#pragma once
#include "sm/barrier.h"
#include "sm/compute_block.h"
#include "sm/lsu.h"
#include "sm/pipeline.h"
#include "sm/sm.h"
#include "sm/tb.h"
#include "sm/tb_barrier.h"
#include "sm/warp_order.h"
#include "sm/warp_sync.h"

/* The op waits for its turn at the LSU, or in its sub-core's queue. 1: the warp may go on; 0: it waits. A
   warp whose turn at the LSU has come goes on, whatever was queued meanwhile; so does one that has waited for
   credits, `granted`. */
static inline int gs_warp_acquire_lsu(gs_sm *sm, u32 wi, const gs_iop *op, u32 waited_for, int granted, u64 c)
{
    int queued = sm->queue && op->kind == GS_OP_LOAD && op->smem;
    sm->slack[wi] = 0;
    if (!queued && (granted || waited_for == GS_RESOURCE_LSU)) {
        return 1;
    }
    if (queued && op->count && (i64)sm->warp[wi].k[op->level] + op->count_plus >= (i64)op->count) {
        return 1; /* it is skipped, and does not enter the queue */
    }
    u32 what = queued ? GS_RESOURCE_QUEUE : GS_RESOURCE_LSU;
    return gs_warp_order_acquire(sm, wi, what, gs_resource_free_at(sm, wi, what), c);
}

/* 1: the slot is empty at cycle c; 0: the warp waits for it */
static inline int gs_warp_slot_wait(gs_sm *sm, u32 wi, u32 slot, u64 c)
{
    gs_warp *w = &sm->warp[wi];
    gs_scoreboard_slot *s = &w->slot[slot];
    if (s->count) {
        w->wait = (u8)(slot + 1);
        w->since = (u32)c;
        return 0;
    }
    if (s->done > c) {
        w->since = (u32)c;
        w->wait = GS_WOKEN;
        gs_sm_wake(sm, wi, s->done);
        return 0;
    }
    return 1;
}

/* 1: the warp has ended; its loads must have returned first. */
static inline int gs_warp_exit(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    for (u32 left = op->uses; left; left &= left - 1) {
        if (!gs_warp_slot_wait(sm, wi, gs_ctz(left), c)) {
            return 0;
        }
    }
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    tb->stalls.issued++;
    sm->work.warp_instructions++;
    sm->warp_cycles++;
    if (--tb->live_warps == 0) {
        gs_tb_end(ctx, sm, w->tb, c + 1);
    } else if (tb->arrived >= tb->live_warps && !tb->polls) {
        gs_barrier_release(ctx->sim, sm, tb, c); /* the others do not wait for a warp that has ended */
    }
    return 1;
}

/* 1: the code of the next warp was dropped and has not been fetched again. If warp wi waits for a resource,
   the next warp is the first in that resource's order. */
static inline int gs_warp_waits_for_code(const gs_sim *sim, gs_sm *sm, u32 wi)
{
    const gs_warp *w = &sm->warp[wi];
    if (w->state == GS_WARP_WAITS_RESOURCE && sim->oldest_first) {
        u32 what = sm->waits_for[wi];
        w = &sm->warp[gs_waiting_with(sm, wi, what)->next[what]];
    }
    return gs_launches(sim)[sm->tb[w->tb].kernel].refetch != 0;
}

/* Prefetches the L1 sets of the warp's next op, which have left the host's caches meanwhile. */
static inline void gs_warp_prefetch(const gs_sim *sim, const gs_sm *sm, u32 wi, const gs_iop *next)
{
    if (next->kind == GS_OP_LOAD) {
        gs_lsu_prefetch(sim, sm, wi, next);
    }
}

/* a warp at cycle c */
typedef struct gs_running {
    gs_ctx *ctx;
    gs_sim *sim;
    gs_sm *sm;
    gs_warp *w;
    gs_tb *tb;
    u64 c;
    u32 wi;
    u32 waited_for; /* the resource that it waited for, whose next warp must be woken; GS_RESOURCES: none */
} gs_running;

/* The warp continues: its wait since `since` is added to one kind of stall. */
static GS_ALWAYS_INLINE void gs_warp_stalled(const gs_running *r, u64 *stall)
{
    u64 cycles = r->c - r->w->since;
    *stall += cycles;
    r->sm->warp_cycles += cycles;
}

/* 0: the warp stays asleep. */
static GS_ALWAYS_INLINE int gs_warp_is_awake(const gs_running *r)
{
    gs_sm *sm = r->sm;
    gs_warp *w = r->w;
    if (GS_UNLIKELY(sm->code_ready > r->c) && gs_warp_waits_for_code(r->sim, sm, r->wi)) {
        if (w->state == GS_WARP_IN_BLOCK || (w->state == GS_WARP_RUNS && !w->wait)) {
            r->tb->stalls.memory +=
                sm->code_ready - r->c; /* a warp that waits counts it from when it began to */
            sm->warp_cycles += sm->code_ready - r->c;
        }
        gs_sm_wake(sm, r->wi, sm->code_ready);
        return 0;
    }
    if (w->state == GS_WARP_IN_BLOCK) {
        u32 debt = sm->sub[r->wi & 3].debt - w->debt;
        if (debt) {
            w->debt += debt;
            r->tb->stalls.pipe += debt;
            sm->warp_cycles += debt;
            gs_sm_wake(sm, r->wi, r->c + debt);
            return 0;
        }
        w->state = GS_WARP_RUNS;
    }
    return 1;
}

/* A warp that waits for a resource is awake: the first in the resource's order continues in its place. */
static GS_ALWAYS_INLINE void gs_warp_take_resource(gs_running *r)
{
    if (r->sim->oldest_first) {
        r->wi = gs_warp_order_pop(r->sm, r->wi);
        r->w = &r->sm->warp[r->wi];
        r->tb = &r->sm->tb[r->w->tb];
        r->waited_for = r->sm->waits_for[r->wi];
    }
    gs_warp_stalled(r, &r->tb->stalls.pipe);
    r->w->state = GS_WARP_RUNS;
}

/* The warp has used the resource that it waited for, or waits again: wakes the next warp. */
static GS_ALWAYS_INLINE void gs_warp_wake_next_waiter(gs_running *r)
{
    if (r->waited_for < GS_RESOURCES) {
        gs_warp_order_wake_next(r->sm, r->wi, r->waited_for, r->c);
        r->waited_for = GS_RESOURCES;
    }
}

static GS_ALWAYS_INLINE void gs_warp_run_block(gs_running *r, const gs_iop *op)
{
    gs_sm *sm = r->sm;
    const u32 oldest_first = r->sim->oldest_first;
    if (GS_UNLIKELY(op->async)) {
        r->w->pc++;
        gs_block_run_async(r->sim, sm, r->wi, op, r->c);
        gs_warp_wake_next_waiter(r);
        return;
    }
    if (!(oldest_first ? gs_block_acquire_oldest(sm, r->wi, op, r->c)
                       : gs_block_acquire_greedy(sm, r->wi, op, r->c))) {
        sm->work.ops--;
    } else {
        r->w->pc++;
        u64 at_once = gs_block_run(sm, r->wi, op, r->c, r->sim->read_load);
        gs_warp_prefetch(r->sim, sm, r->wi, op + 1);
        if (oldest_first > GS_OLDEST_FIRST) {
            gs_warp_order_hold(&sm->sub[r->wi & 3], r->wi, at_once);
        }
    }
    gs_warp_wake_next_waiter(r);
}

/* 1: the warp goes on with its next op in this cycle */
static GS_ALWAYS_INLINE int gs_warp_run_access(gs_running *r, const gs_iop *op)
{
    gs_sm *sm = r->sm;
    gs_warp *w = r->w;
    int granted = w->state == GS_WARP_IN_QUEUE;
    if (granted) {
        gs_warp_stalled(r, &r->tb->stalls.memory);
        w->state = GS_WARP_RUNS;
    }
    if ((r->sim->oldest_first && !gs_warp_acquire_lsu(sm, r->wi, op, r->waited_for, granted, r->c)) ||
        !gs_lsu_access(r->ctx, sm, r->wi, op, r->c)) {
        sm->work.ops--;
        gs_warp_wake_next_waiter(r);
        return 0;
    }
    gs_warp_wake_next_waiter(r);
    w->pc++;
    if (w->ready > r->c) {
        gs_sm_wake(sm, r->wi, w->ready);
        gs_warp_prefetch(r->sim, sm, r->wi, op + 1);
        return 0;
    }
    return 1;
}

/* The wait for a slot is over. */
static GS_ALWAYS_INLINE void gs_warp_end_wait(const gs_running *r)
{
    if (r->w->wait) {
        gs_warp_stalled(r, &r->tb->stalls.memory);
        r->w->wait = 0;
    }
}

/* The warp waits for `until`. 1: that is past. */
static GS_ALWAYS_INLINE int gs_warp_wait_until(const gs_running *r, u64 until, u64 *stall)
{
    r->w->pc++;
    if (until > r->c) {
        *stall += until - r->c;
        r->sm->warp_cycles += until - r->c;
        gs_sm_wake(r->sm, r->wi, until);
        return 0;
    }
    return 1;
}

static inline void gs_warp_run_loop(const gs_sm *sm, gs_warp *w, u32 wi, const gs_iop *op)
{
    const u32 count = GS_UNLIKELY(op->per_warp) ? sm->pipeline[wi].steps : op->count;
    if (++w->k[op->level] < count) {
        w->pc = op->target;
    } else {
        w->k[op->level] = 0;
        w->pc++;
    }
}

/* 1: the warp goes on with its next op in this cycle */
static GS_ALWAYS_INLINE int gs_warp_run_op(gs_running *r, const gs_iop *op)
{
    gs_sm *sm = r->sm;
    gs_warp *w = r->w;
    switch (op->kind) {
    case GS_OP_COMPUTE:
        gs_warp_run_block(r, op);
        return 0;
    case GS_OP_LOAD:
    case GS_OP_STORE:
    case GS_OP_REDUCE:
        return gs_warp_run_access(r, op);
    case GS_OP_WAIT:
        gs_warp_end_wait(r);
        if (!gs_warp_slot_wait(sm, r->wi, gs_scoreboard_slot_of(w, op), r->c)) {
            sm->work.ops--;
            return 0;
        }
        w->pc++;
        return 1;
    case GS_OP_TAKEN:
        return gs_warp_wait_until(r, sm->copy_left[r->wi], &r->tb->stalls.memory);
    case GS_OP_BARRIER:
        if (GS_UNLIKELY(op->chain)) {
            gs_tb_barrier_sync(r->sim, sm, r->wi, op, r->c);
        } else {
            gs_barrier_arrive(r->sim, sm, r->wi, r->c);
        }
        return 0;
    case GS_OP_ARRIVE:
    case GS_OP_AWAIT:
        return gs_tb_barrier_op(r->sim, sm, r->wi, op, r->c);
    case GS_OP_LOOP:
        gs_warp_run_loop(sm, w, r->wi, op);
        return 1;
    case GS_OP_TURN:
    case GS_OP_ADVANCE:
    case GS_OP_BULK_LOAD:
    case GS_OP_BULK_STORE:
    case GS_OP_RING_WAIT:
    case GS_OP_RING_ARRIVE:
    case GS_OP_MULTIPLY_WAIT:
    case GS_OP_CLUSTER:
        return gs_pipeline_op(r->ctx, sm, r->wi, op, r->c);
    case GS_OP_DELAY:
        w->pc++;
        r->tb->stalls.scoreboard += op->count;
        sm->warp_cycles += op->count;
        gs_sm_wake(sm, r->wi, r->c + op->count);
        return 0;
    case GS_OP_POST:
    case GS_OP_POLL:
    case GS_OP_TRIGGER:
    case GS_OP_DEPEND:
    case GS_OP_TILE:
        return gs_sync_op(r->ctx, sm, r->wi, op, r->c);
    default:
        gs_warp_end_wait(r);
        if (!gs_warp_exit(r->ctx, sm, r->wi, op, r->c)) {
            sm->work.ops--;
        }
        return 0;
    }
}

/* The wheel of cycles has woken the warp at cycle c. */
static inline void gs_warp_run(gs_ctx *ctx, gs_sm *sm, u32 wi, u64 c)
{
    gs_warp *w = &sm->warp[wi];
    if (w->ready > c) { /* its time is beyond the wheel */
        gs_sm_wake(sm, wi, w->ready);
        return;
    }
    gs_running r = {.ctx = ctx,
                    .sim = ctx->sim,
                    .sm = sm,
                    .w = w,
                    .tb = &sm->tb[w->tb],
                    .c = c,
                    .wi = wi,
                    .waited_for = GS_RESOURCES};
    if (!gs_warp_is_awake(&r)) {
        return;
    }
    if (w->state == GS_WARP_WAITS_RESOURCE) {
        gs_warp_take_resource(&r);
    }
    const gs_iop *code = gs_iops(r.sim) + r.tb->code;
    do {
        sm->work.ops++;
    } while (gs_warp_run_op(&r, code + r.w->pc));
}
