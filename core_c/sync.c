/* Ops that wait inside the program: see sync.h. */
#include "sync.h"

#include "address.h"
#include "barrier.h"
#include "clock.h"
#include "oracle.h"
#include "program.h"
#include "scheduler.h"
#include "sm.h"

#include <stdio.h>

static i64 place_of(const int32_t *term, u32 x, u32 y, u32 z, i64 k)
{
    return term[0] + (i64)term[1] * x + (i64)term[2] * y + (i64)term[3] * z + term[4] * k;
}

u64 gs_semaphore_of(const gs_sim *sim, const gs_launch *l, const gs_iop *op, u32 x, u32 y, u32 z, u32 k)
{
    const gs_sem *s = GS_CONST_TABLE(sim, gs_sem, at_sems) + op->pattern;
    i64 at = (i64)k + op->count_plus, row = place_of(s->row, x, y, z, at),
        col = place_of(s->col, x, y, z, at);
    if (row < 0 || col < 0) {
        return GS_NEVER;
    }
    u64 across = s->wrap ? (u64)col % s->wrap : (u64)col;
    return l->semaphores[s->base] + (u64)s->first + (u64)row / s->rows * s->stride + across / s->cols;
}

u32 gs_stage_next(const gs_sim *sim, const gs_program *p, const gs_iop *op, u32 tb, u32 tbs, u32 *tile,
                  u32 at[3])
{
    const gs_stage *s = GS_CONST_TABLE(sim, gs_stage, at_stages) + op->pattern;
    const u32 *grid = s->grid;
    *tile = op->level ? *tile + tbs : tb;
    if (*tile >= grid[0] * grid[1] * grid[2]) {
        return op->target;
    }
    at[0] = *tile % grid[0];
    at[1] = *tile / grid[0] % grid[1];
    at[2] = *tile / grid[0] / grid[1];
    u32 variant =
        (u32)(at[0] + 1 == grid[0]) | (u32)(at[1] + 1 == grid[1]) << 1 | (u32)(at[2] + 1 == grid[2]) << 2;
    return s->entry[variant] - p->first_op;
}

static void issue_one(gs_sm *sm, u32 wi, u64 c)
{
    gs_sub *b = &sm->sub[wi & 3];
    u64 issue = gs_max(c, b->single);
    b->single = issue + 1;
    gs_sub_steal(b, issue);
    sm->work.warp_instructions++;
    sm->tb[sm->warp[wi].tb].stalls.issued++;
}

/* the op took its issue slot at cycle c and is over at the next */
static int over(gs_sm *sm, u32 wi, u64 c)
{
    issue_one(sm, wi, c);
    sm->warp_cycles++;
    sm->warp[wi].pc++;
    gs_sm_wake(sm, wi, c + 1);
    return 0;
}

/* what the warp waited for since its op issued is there at cycle c: its time goes to one kind of stall */
static void waited(gs_sm *sm, u32 wi, u64 c, u64 *stall)
{
    gs_warp *w = &sm->warp[wi];
    w->state = GS_WARP_RUNS;
    w->pc++;
    *stall += c - w->since - 1;
    sm->warp_cycles += c - w->since;
}

/* The last answer of a poll is there at cycle c. Up to the arrival of its last warp the TB waited for itself,
   as at any barrier; from then on for other TBs. Returns that time, of all its warps. */
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

/* Sends a request for a semaphore through the SM's port; returns when it gets there. */
static u64 request(gs_ctx *ctx, gs_sm *sm, u64 index, u64 pay, u64 c)
{
    const gs_sim *sim = ctx->sim;
    u32 slice, set, tag, store = GS_SYNC_WHAT(pay) == GS_SYNC_POST;
    gs_home(&sim->map, (gs_address_top(sim) >> 7) - 1 - index / GS_SEMAPHORES_A_LINE, &slice, &set, &tag);
    u64 leave = gs_max(c + sim->l1_latency, sm->port),
        arrive = gs_clock_edge(gs_clock_of(sim, sm), leave) + sim->noc +
                 sim->sync_extra[gs_sync_far(sim, sm->id, slice)][0];
    sm->port = leave + sim->port_hold[sm->sharing][!store][1];
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

/* The first warp fences, then posts, and goes on; its TB is not complete before L2 has acknowledged. */
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
    gs_owner *o = &sm->owner[tb->owner];
    o->left++;
    sm->work.store_sectors++;
    tb->store_sectors++;
    u64 pay = gs_pay_op(w->tb, GS_SYNC_POST, GS_MSG_SYNC, sm->id % GS_GROUP);
    u64 there = request(ctx, sm, index, pay | gs_pay_line(0, 0, 0, tb->owner, 0), c);
    o->leaves = gs_max32(o->leaves, (u32)sm->port);
    if (GS_UNLIKELY(sim->oracle)) {
        gs_oracle_log_post(ctx, tb->kernel, tb->tb, (u32)index, there);
    }
    return over(sm, wi, c);
}

/* 1: this was the last of the TB's warps */
static int arrive(const gs_sim *sim, gs_sm *sm, u32 wi, u64 c)
{
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    issue_one(sm, wi, c);
    w->since = (u32)c;
    w->state = GS_WARP_AT_BARRIER;
    sm->arrival = gs_max(sm->arrival, c) + (u64)sim->params.gpu_sm.barrier_warp;
    return ++tb->arrived >= tb->live;
}

static int poll(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    gs_sim *sim = ctx->sim;
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    const gs_sem *s = GS_CONST_TABLE(sim, gs_sem, at_sems) + op->pattern;
    u64 index = gs_semaphore_of(sim, gs_launches(sim) + tb->kernel, op, tb->x, tb->y, tb->z, w->k[op->level]);
    /* a group is remembered by its first and its number, which no single semaphore has */
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
        gs_barrier_release(sim, sm, tb, sm->arrival);
    }
    return 0;
}

/* The last warp of the TB moves it to its next tile; the first tile of a stage each warp finds alone. */
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
    gs_barrier_release(sim, sm, tb, sm->arrival);
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
    if (tb->flags & GS_TB_OPEN) {
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
    if (GS_SYNC_WHAT(pay) == GS_SYNC_REFETCH) {
        sm->refetched = (u32)(c + ctx->sim->order.refetch);
    } else if (GS_SYNC_WHAT(pay) == GS_SYNC_OPEN) {
        tb->flags |= GS_TB_OPEN;
        for (u64 left = tb->warps; left; left &= left - 1) {
            u32 i = gs_ctz(left);
            if (sm->warp[i].state == GS_WARP_DEPENDS) {
                gs_sm_wake(sm, i, gs_max(c, sm->warp[i].since + 1));
            }
        }
    } else {
        if (GS_SYNC_AHEAD(pay)) {
            tb->polled_end = tb->polled + GS_SYNC_RUN(pay);
        }
        if (GS_UNLIKELY(ctx->sim->oracle)) {
            u32 count = GS_SYNC_AHEAD(pay) ? gs_max32(1, GS_SYNC_RUN(pay)) : 1;
            gs_oracle_log_poll(ctx, tb->kernel, tb->tb, GS_SYNC_INDEX(pay), count,
                               gs_clock_edge(gs_clock_of(ctx->sim, sm), c));
        }
        if (--tb->polls == 0 && tb->arrived >= tb->live) {
            u64 others = waited_for_others(sm, tb, c);
            gs_barrier_release(ctx->sim, sm, tb, c);
            tb->stalls.barrier -= others;
            tb->stalls.sync += others;
        }
    }
}

enum { ROOM_TEXT = 96 };

/* How many TBs are ready and have no room, as an end of the error: they may be what others wait for. Of
   several kernels the oldest is named. */
static void name_room(gs_sim *sim, char text[ROOM_TEXT])
{
    u32 kernel = GS_NONE, tbs = 0;
    u64 others = 0;
    for (u32 i = 0; i < sim->n_launches; i++) {
        u32 left = gs_ready_tbs(sim, i);
        if (tbs) {
            others += left;
        } else {
            kernel = i;
            tbs = left;
        }
    }
    text[0] = 0;
    if (others) {
        snprintf(text, ROOM_TEXT, ": %u TBs of kernel %u and %llu of later ones wait for room", tbs, kernel,
                 (unsigned long long)others);
    } else if (tbs) {
        snprintf(text, ROOM_TEXT, ": %u TB%s of kernel %u wait%s for room", tbs, tbs > 1 ? "s" : "", kernel,
                 tbs > 1 ? "" : "s");
    }
}

/* the kernel, TB and semaphore of a TB's first warp that stands at a POLL; 0: it waits for nothing */
static int name_wait(gs_sim *sim, const gs_sm *sm, const gs_tb *tb, u32 wi, const char *room)
{
    const gs_warp *w = &sm->warp[wi];
    const gs_iop *op = gs_iops(sim) + tb->code + w->pc - (w->state == GS_WARP_AT_BARRIER);
    if (w->state == GS_WARP_DEPENDS) {
        return gs_fail(sim, GS_ERR_DEADLOCK,
                       "deadlock at %.3f us: TB %u of kernel %u waits for the kernels before it to end, and "
                       "nothing can happen%s",
                       (double)sim->q0 / 1024e3, tb->tb, tb->kernel, room);
    }
    if (w->state != GS_WARP_AT_BARRIER || op->kind != GS_OP_POLL || !tb->polls) {
        return GS_OK;
    }
    u64 index = gs_semaphore_of(sim, gs_launches(sim) + tb->kernel, op, tb->x, tb->y, tb->z, w->k[op->level]);
    const gs_sem *q = GS_CONST_TABLE(sim, gs_sem, at_sems) + op->pattern;
    const gs_semaphore *s = GS_CONST_TABLE(sim, gs_semaphore, at_semaphores) + index;
    for (u32 i = 1; s->count >= s->need && i < q->times; i++) {
        index += q->apart;
        s += q->apart;
    }
    return gs_fail(sim, GS_ERR_DEADLOCK,
                   "deadlock at %.3f us: TB %u of kernel %u waits for semaphore %llu, posted %u times of %u, "
                   "and nothing can happen%s",
                   (double)sim->q0 / 1024e3, tb->tb, tb->kernel, (unsigned long long)index, s->count, s->need,
                   room);
}

int gs_sync_deadlock(gs_sim *sim)
{
    char room[ROOM_TEXT];
    name_room(sim, room);
    for (u32 i = 0; i < sim->sms; i++) {
        const gs_sm *sm = &gs_sms(sim)[i];
        for (u32 slot = 0; sm->live_tbs && slot < GS_TBS; slot++) {
            const gs_tb *tb = &sm->tb[slot];
            for (u64 left = tb->live ? tb->warps : 0; left; left &= left - 1) {
                u32 w = gs_ctz(left);
                if (sm->warp[w].index == 0 && sm->warp[w].tb == slot && name_wait(sim, sm, tb, w, room)) {
                    return sim->error_code;
                }
            }
        }
    }
    return GS_OK;
}
