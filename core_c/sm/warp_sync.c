/* Ops that wait inside the program: see warp_sync.h. */
#include "sm/warp_sync.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/mailbox.h"
#include "memory/address_map.h"
#include "memory/semaphore.h"
#include "oracle/oracle_log.h"
#include "program/sync_ops.h"
#include "sm/barrier.h"
#include "sm/ring_barrier.h"
#include "sm/sm.h"

#include <stdio.h>

static void issue_one(gs_sm *sm, u32 wi, u64 c)
{
    gs_subcore *b = &sm->sub[wi & 3];
    u64 issue = gs_max(c, b->single);
    b->single = issue + 1;
    gs_subcore_steal_slot(b, issue);
    sm->work.warp_instructions++;
    sm->tb[sm->warp[wi].tb].stalls.issued++;
}

/* The op takes an issue slot at cycle c and ends in the next. */
static int over(gs_sm *sm, u32 wi, u64 c)
{
    issue_one(sm, wi, c);
    sm->warp_cycles++;
    sm->warp[wi].pc++;
    gs_sm_wake(sm, wi, c + 1);
    return 0;
}

/* The warp's wait since its op issued ends at cycle c: adds it to one kind of stall. */
static void waited(gs_sm *sm, u32 wi, u64 c, u64 *stall)
{
    gs_warp *w = &sm->warp[wi];
    w->state = GS_WARP_RUNS;
    w->pc++;
    *stall += c - w->since - 1;
    sm->warp_cycles += c - w->since;
}

/* The last answer of a poll arrives at cycle c. Until its last warp arrived the TB waited for its own
   warps, as at any barrier; since then it has waited for other TBs. Returns the latter time in cycles,
   summed over its warps. */
static u64 waited_for_others(const gs_sm *sm, const gs_tb *tb, u64 c)
{
    u64 last = 0, n = 0;
    for (u64 left = tb->warps; left; left &= left - 1) {
        const gs_warp *w = &sm->warp[gs_ctz(left)];
        if (w->state == GS_WARP_AT_BARRIER) {
            last = gs_max(last, w->since);
            n++;
        }
    }
    return c > last + 1 ? n * (c - last - 1) : 0;
}

/* Sends a request for a semaphore through the SM's port; returns when it arrives. */
static u64 request(gs_ctx *ctx, gs_sm *sm, u64 index, u64 pay, u64 c)
{
    const gs_sim *sim = ctx->sim;
    u32 slice, set, tag, store = GS_SYNC_WHAT(pay) == GS_SYNC_POST;
    gs_home(&sim->map, (gs_address_limit(sim) >> 7) - 1 - index / GS_SEMAPHORES_A_LINE, &slice, &set, &tag);
    u64 leave = gs_max(c + sim->l1_latency, sm->port_free),
        arrive = gs_clock_edge(gs_clock_of(sim, sm), leave) + sim->noc +
                 sim->sync_extra[gs_sync_far(sim, sm->id, slice)][0];
    sm->port_free = leave + sim->port_hold[sm->port_sharers][!store][1];
    sm->work.l2_requests++;
    gs_send_one(ctx, sim->sm_boxes + slice / GS_GROUP, arrive, sm->id,
                pay | index | gs_pay_line(0, 0, 0, 0, slice % GS_GROUP));
    return arrive;
}

static int known(gs_sim *sim, const gs_tb *tb, u64 index)
{
    if (index < sim->n_semaphores) {
        return 1;
    }
    gs_fail(sim, GS_ERR_ARG, "TB %u of kernel %u: semaphore %lld of %u", tb->tb, tb->kernel, (long long)index,
            sim->n_semaphores);
    return 0;
}

/* The first warp fences, then posts, and goes on. Its TB is complete only after L2 has acknowledged the
   post. */
static int post(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    gs_sim *sim = ctx->sim;
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    if (w->index) {
        w->pc++;
        return 1;
    }
    u64 fence = op->count ? 0 : (u64)sim->params.gpu_sync.fence;
    if (fence && w->state != GS_WARP_FENCES) {
        issue_one(sm, wi, c);
        sm->work.ops--;
        w->state = GS_WARP_FENCES;
        w->since = (u32)c;
        gs_sm_wake(sm, wi, c + 1 + fence);
        return 0;
    }
    if (fence) {
        waited(sm, wi, c, &tb->stalls.memory);
        w->pc--;
    }
    u64 index = gs_semaphore_of(sim, gs_launches(sim) + tb->kernel, op, tb->x, tb->y, tb->z, w->k[op->level]);
    if (!known(sim, tb, index)) {
        return 0;
    }
    gs_store_owner *o = &sm->owner[tb->owner];
    o->unacknowledged++;
    sm->work.store_sectors++;
    tb->store_sectors++;
    u64 pay = gs_pay_op(w->tb, GS_SYNC_POST, GS_MSG_SYNC, sm->id % GS_GROUP);
    u64 there = request(ctx, sm, index, pay | gs_pay_line(0, 0, 0, tb->owner, 0), c);
    o->leaves_sm = gs_max32(o->leaves_sm, (u32)sm->port_free);
    if (GS_UNLIKELY(sim->oracle)) {
        gs_oracle_log_post(ctx, tb->kernel, tb->tb, (u32)index, there);
    }
    return over(sm, wi, c);
}

/* A warp arrives at an op of the whole TB. 1: it was the last of the TB's warps. */
static int arrive(const gs_sim *sim, gs_sm *sm, u32 wi, u64 c)
{
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    issue_one(sm, wi, c);
    w->since = (u32)c;
    w->state = GS_WARP_AT_BARRIER;
    sm->barrier_counted = gs_max(sm->barrier_counted, c) + (u64)sim->params.gpu_sm.barrier_warp;
    return ++tb->arrived >= tb->live_warps;
}

static int poll(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    gs_sim *sim = ctx->sim;
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    const gs_sem *s = GS_CONST_TABLE(sim, gs_sem, at_sems) + op->pattern;
    u64 index = gs_semaphore_of(sim, gs_launches(sim) + tb->kernel, op, tb->x, tb->y, tb->z, w->k[op->level]);
    /* a group is remembered by its first semaphore and its size, which names no single semaphore */
    u32 mark = (u32)index | (s->ahead == 2 ? (s->times - 1) * GS_SEMAPHORES : 0);
    if ((op->count && (i64)w->k[op->level] + op->count_plus >= (i64)op->count) ||
        (s->ahead && mark >= tb->ready && mark < tb->ready_end)) {
        w->pc++;
        return 1;
    }
    if (!known(sim, tb, index) || !known(sim, tb, index + (u64)(s->times - 1) * s->apart)) {
        return 0;
    }
    w->pc++;
    int last = arrive(sim, sm, wi, c);
    if (w->index == 0) {
        tb->polls = (u8)s->times;
        tb->polled = tb->polled_end = s->ahead ? mark : 0;
        tb->polled_end += s->ahead == 2;
        sm->work.load_sectors += s->times;
        tb->load_sectors += s->times;
        for (u32 i = 0; i < s->times; i++) {
            u64 pay = gs_pay_op(w->tb, GS_SYNC_POLL, GS_MSG_SYNC, sm->id % GS_GROUP);
            request(ctx, sm, index + (u64)i * s->apart, pay | (u64)i << 29 | (u64)(s->ahead == 1) << 32, c);
        }
    } else if (last && !tb->polls) {
        gs_barrier_release(sim, sm, tb, sm->barrier_counted);
    }
    return 0;
}

/* The last warp of the TB moves it to its next tile. The first tile of a stage is computed by each warp
   alone. */
static int tile(const gs_sim *sim, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    const gs_launch *l = gs_launches(sim) + tb->kernel;
    const gs_program *p = gs_programs(sim) + l->program;
    if (op->level && !arrive(sim, sm, wi, c)) {
        return 0;
    }
    u32 at[3] = {tb->x, tb->y, tb->z};
    u32 pc = gs_stage_next(sim, p, op, tb->tb, l->grid[0] * l->grid[1] * l->grid[2], &tb->tile, at);
    tb->x = at[0];
    tb->y = at[1];
    tb->z = at[2];
    tb->phase = (u32)op->pattern + 1;
    if (!op->level) {
        w->pc = pc;
        return 1;
    }
    tb->polled = tb->polled_end = 0;
    for (u64 left = tb->warps; left; left &= left - 1) {
        gs_warp *other = &sm->warp[gs_ctz(left)];
        other->pc = other->state == GS_WARP_AT_BARRIER ? pc : other->pc;
    }
    gs_barrier_release(sim, sm, tb, sm->barrier_counted);
    return 0;
}

static int trigger(gs_ctx *ctx, gs_sm *sm, u32 wi, u64 c)
{
    gs_sim *sim = ctx->sim;
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    if (!(tb->flags & GS_TB_TRIGGERED)) {
        tb->flags |= GS_TB_TRIGGERED;
        gs_send_one(ctx, sim->boxes - 1, gs_clock_edge(gs_clock_of(sim, sm), c) + sim->done_latency, sm->id,
                    gs_pay_op(w->tb, GS_SYNC_TRIGGER, GS_MSG_SYNC, 0));
    }
    return over(sm, wi, c);
}

static int depend(gs_sm *sm, u32 wi, u64 c)
{
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    if (w->state == GS_WARP_DEPENDS) {
        waited(sm, wi, c, &tb->stalls.sync);
        return 1;
    }
    if (tb->flags & GS_TB_CONDITIONS_MET) {
        return over(sm, wi, c);
    }
    issue_one(sm, wi, c);
    sm->work.ops--;
    w->since = (u32)c;
    w->state = GS_WARP_DEPENDS;
    return 0;
}

int gs_sync_op(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    switch (op->kind) {
    case GS_OP_POST:
        return post(ctx, sm, wi, op, c);
    case GS_OP_POLL:
        return poll(ctx, sm, wi, op, c);
    case GS_OP_TRIGGER:
        return trigger(ctx, sm, wi, c);
    case GS_OP_DEPEND:
        return depend(sm, wi, c);
    default:
        return tile(ctx->sim, sm, wi, op, c);
    }
}

void gs_sync_event(gs_ctx *ctx, gs_sm *sm, u64 pay, u64 c)
{
    u32 slot = GS_PAY_WARP(pay);
    gs_tb *tb = &sm->tb[slot];
    if (GS_SYNC_WHAT(pay) == GS_SYNC_RING) {
        gs_ring_told(ctx->sim, sm, pay, c);
    } else if (GS_SYNC_WHAT(pay) == GS_SYNC_REFETCH) {
        sm->code_ready = (u32)(c + ctx->sim->order.refetch);
    } else if (GS_SYNC_WHAT(pay) == GS_SYNC_CONDITIONS_MET) {
        tb->flags |= GS_TB_CONDITIONS_MET;
        for (u64 left = tb->warps; left; left &= left - 1) {
            u32 i = gs_ctz(left);
            if (sm->warp[i].state == GS_WARP_DEPENDS) {
                gs_sm_wake(sm, i, gs_max(c, sm->warp[i].since + 1));
            }
        }
    } else {
        if (GS_SYNC_LOOK_AHEAD(pay)) {
            tb->polled_end = tb->polled + GS_SYNC_COMPLETE_RUN(pay);
        }
        if (GS_UNLIKELY(ctx->sim->oracle)) {
            u32 count = GS_SYNC_LOOK_AHEAD(pay) ? gs_max32(1, GS_SYNC_COMPLETE_RUN(pay)) : 1;
            gs_oracle_log_poll(ctx, tb->kernel, tb->tb, GS_SYNC_INDEX(pay), count,
                               gs_clock_edge(gs_clock_of(ctx->sim, sm), c));
        }
        if (--tb->polls == 0 && tb->arrived >= tb->live_warps) {
            u64 others = waited_for_others(sm, tb, c);
            gs_barrier_release(ctx->sim, sm, tb, c);
            tb->stalls.barrier -= others;
            tb->stalls.sync += others;
        }
    }
}
