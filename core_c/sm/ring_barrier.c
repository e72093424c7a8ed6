/* Barriers of pipelined programs: see ring_barrier.h.

   A remote arrival is a message; a line may be here before the bulk copy that asked for it has announced it,
   so lines count below zero. Replies are applied up to a quantum early: the ends of the last phases are kept,
   and a phase ends at its latest arrival, whatever the order in which they were applied. */
#include "sm/ring_barrier.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/mailbox.h"
#include "memory/semaphore.h"
#include "sm/sm.h"

#include <string.h>

/* The last barrier of a TB is that of op CLUSTER. */
enum { CLUSTER_RING = GS_RINGS - 1 };

void gs_ring_start(gs_sm *sm, u32 slot, u64 warps)
{
    memset(sm->ring[slot], 0, sizeof sm->ring[slot]);
    for (u64 left = warps; left; left &= left - 1) {
        memset(&sm->pipeline[gs_ctz(left)], 0, sizeof *sm->pipeline);
    }
}

/* The warp's wait ends at cycle `go`; its length is counted then, so that samples do not depend on when a
   reply was applied. */
static void go_on(gs_sm *sm, u32 wi, u64 go)
{
    sm->warp[wi].state = GS_WARP_RUNS;
    sm->warp[wi].wait = GS_WOKEN;
    gs_sm_wake(sm, wi, go);
}

/* The warp has waited until cycle c, and goes on. */
static int waited(gs_sm *sm, u32 wi, u64 c)
{
    gs_warp *w = &sm->warp[wi];
    sm->tb[w->tb].stalls.memory += c - w->since;
    sm->warp_cycles += c - w->since;
    w->wait = 0;
    w->pc++;
    return 1;
}

void gs_ring_settle(const gs_sim *sim, gs_sm *sm, gs_ring_barrier *b)
{
    if (!b->need || b->arrived < b->need || b->lines) {
        return;
    }
    b->arrived = 0;
    b->time[++b->phases % GS_RING_TIMES] = b->last;
    for (u64 left = b->waiting; left; left &= left - 1) {
        u32 wi = gs_ctz(left);
        if (sm->barrier_need[wi] <= b->phases) {
            b->waiting &= ~(1ull << wi);
            go_on(sm, wi, gs_max(b->last, sm->warp[wi].since) + (u64)sim->params.gpu_bulk.test);
        }
    }
}

void gs_ring_count(const gs_sim *sim, gs_sm *sm, u32 slot, u32 ring, u32 need, u32 lines, u64 at)
{
    gs_ring_barrier *b = &sm->ring[slot][ring];
    b->need = need;
    b->arrived++;
    b->lines += (i32)lines;
    b->last = gs_max32(b->last, (u32)at);
    gs_ring_settle(sim, sm, b);
}

u32 gs_ring_ranks(const gs_launch *l, u32 rank, u32 to)
{
    u32 cm = l->cluster[0], cn = l->cluster[1], m = rank % cm, n = rank / cm, ranks = 1u << rank;
    for (u32 i = 0; i < cm * cn; i++) {
        ranks |= (u32)((to & GS_TO_SAME_M && i % cm == m) || (to & GS_TO_SAME_N && i / cm == n)) << i;
    }
    return ranks;
}

/* Payload: ring 6 bits, arrivals of a phase 6, lines 13, what 3, TB slot 6, SM 2. */
void gs_ring_tell(gs_ctx *ctx, gs_sm *sm, u32 tb_slot, u32 rank, u32 ring, u32 need, u32 lines, u64 at)
{
    gs_sim *sim = ctx->sim;
    const gs_mates *mates = &gs_mates_of(sim, sm->id)[tb_slot];
    u32 to = mates->sm[rank];
    const gs_sender sender = gs_sender_across(ctx, sm->id);
    gs_send(ctx, &sender, to / GS_GROUP, gs_clock_edge(gs_clock_of(sim, sm), at),
            gs_pay_op(mates->slot[rank], GS_SYNC_RING, GS_MSG_SYNC, to % GS_GROUP) | ring | (u64)need << 6 |
                (u64)lines << 12);
}

void gs_ring_told(const gs_sim *sim, gs_sm *sm, u64 pay, u64 c)
{
    gs_ring_count(sim, sm, GS_PAY_WARP(pay), pay & 63, pay >> 6 & 63, pay >> 12 & 8191, c);
}

int gs_ring_arrive(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    const gs_sim *sim = ctx->sim;
    gs_warp *w = &sm->warp[wi];
    if (op->per_warp && w->k[op->level] == 0) {
        w->pc++;
        return 1;
    }
    const u32 ring = gs_ring_of(sm, wi, op);
    u64 at = gs_sm_issue_single(sm, wi, c) + (u64)sim->params.gpu_bulk.arrive;
    w->pc++;
    if (op->to == GS_TO_SELF) {
        gs_ring_count(sim, sm, w->tb, ring, op->waves, 0, at);
    } else {
        const gs_launch *l = gs_launches(sim) + sm->tb[w->tb].kernel;
        u32 rank = sm->tb[w->tb].tb % gs_cluster_tbs(l);
        for (u32 left = gs_ring_ranks(l, rank, op->to); left; left &= left - 1) {
            u32 to = gs_ctz(left);
            if (to == rank) {
                gs_ring_count(sim, sm, w->tb, ring, op->waves, 0, at);
            } else {
                gs_ring_tell(ctx, sm, w->tb, to, ring, op->waves, 0,
                             at + (u64)sim->params.gpu_bulk.cluster_latency);
            }
        }
    }
    sm->warp_cycles++;
    gs_sm_wake(sm, wi, c + 1);
    return 0;
}

/* The warp, which has issued its op at cycle `at`, waits for so many phases. */
static int wait_for(const gs_sim *sim, gs_sm *sm, u32 wi, gs_ring_barrier *b, u32 need, u64 at)
{
    gs_warp *w = &sm->warp[wi];
    sm->warp_cycles++;
    sm->work.ops--; /* it runs again at the end of its wait */
    w->since = (u32)at + 1;
    if (b->phases < need) {
        sm->barrier_need[wi] = need;
        w->state = GS_WARP_AT_COUNTER;
        b->waiting |= 1ull << wi;
        return 0;
    }
    /* older phases ended long ago */
    u64 ended = need && b->phases - need < GS_RING_TIMES ? b->time[need % GS_RING_TIMES] : 0;
    go_on(sm, wi, gs_max(ended, at + 1) + (u64)sim->params.gpu_bulk.test);
    return 0;
}

int gs_ring_wait(const gs_sim *sim, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    gs_warp *w = &sm->warp[wi];
    if (w->wait) {
        return waited(sm, wi, c);
    }
    u32 round = (sm->pipeline[wi].cursor + (u32)op->count_plus) / op->stages, need = round + 1 - op->chain;
    return wait_for(sim, sm, wi, &sm->ring[w->tb][gs_ring_of(sm, wi, op)], need,
                    gs_sm_issue_single(sm, wi, c));
}

int gs_cluster_sync(gs_ctx *ctx, gs_sm *sm, u32 wi, u64 c)
{
    const gs_sim *sim = ctx->sim;
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    if (w->wait) {
        return waited(sm, wi, c);
    }
    const gs_launch *l = gs_launches(sim) + tb->kernel;
    u32 size = gs_cluster_tbs(l), rank = tb->tb % size, need = ++sm->pipeline[wi].syncs;
    u64 at = gs_sm_issue_single(sm, wi, c);
    wait_for(sim, sm, wi, &sm->ring[w->tb][CLUSTER_RING], need, at);
    /* the last warp of the TB arrives for all of it */
    if (++tb->arrived >= tb->live_warps) {
        tb->arrived = 0;
        for (u32 i = 0; i < size; i++) {
            if (i == rank) {
                gs_ring_count(sim, sm, w->tb, CLUSTER_RING, size, 0, at);
            } else {
                gs_ring_tell(ctx, sm, w->tb, i, CLUSTER_RING, size, 0,
                             at + (u64)sim->params.gpu_bulk.cluster_latency);
            }
        }
    }
    return 0;
}

int gs_multiply_wait(gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    gs_warp *w = &sm->warp[wi];
    const gs_pipeline *p = &sm->pipeline[wi];
    w->pc++;
    /* the newest group that must have ended */
    u32 back = op->count < GS_MULTIPLIES ? op->count : GS_MULTIPLIES - 1;
    u64 until = p->multiplies > op->count ? p->done[(p->multiplies - 1 - back) % GS_MULTIPLIES] : 0;
    u64 at = gs_sm_issue_single(sm, wi, c), go = gs_max(until, at + 1);
    sm->tb[w->tb].stalls.scoreboard += go - c - 1;
    sm->warp_cycles += go - c;
    gs_sm_wake(sm, wi, go);
    return 0;
}
