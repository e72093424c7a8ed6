/* Barriers of a TB that count: see tb_barrier.h.

   A barrier's count only grows. Whoever waits knows the count to wait for: at a named barrier of n warps the
   next multiple of n, at a transaction barrier what its copies or arrivals will have come to in that phase.
   Replies are applied up to a quantum early, so the times of the last arrivals are kept: the length of the
   quantum does not matter. */
#include "sm/tb_barrier.h"

#include "sm/barrier.h"
#include "sm/sm.h"

#include <string.h>

static gs_tb_barrier *barriers_of(gs_sm *sm, u32 wi)
{
    u32 at = sm->warp[wi].tb;
    if (!sm->tb_barriers_used[at]) {
        sm->tb_barriers_used[at] = 1;
        memset(sm->tb_barrier[at], 0, sizeof sm->tb_barrier[at]);
        for (u64 left = sm->tb[at].warps; left; left &= left - 1) {
            memset(sm->awaited[gs_ctz(left)], 0, sizeof *sm->awaited);
        }
    }
    return sm->tb_barrier[at];
}

/* The warp, which has issued at `since`, goes on at cycle `go`. */
static void go_on(gs_sm *sm, u32 wi, u64 go, u64 *stall)
{
    gs_warp *w = &sm->warp[wi];
    w->state = GS_WARP_RUNS;
    *stall += go - w->since - 1;
    sm->warp_cycles += go - w->since;
    gs_sm_wake(sm, wi, go);
}

/* `n` more have counted, the last at cycle `at`. */
static void add(gs_tb_barrier *b, u32 n, u32 at)
{
    b->last = gs_max32(b->last, at);
    for (u32 i = 0; i < n && i < GS_BARRIER_TIMES; i++) {
        b->time[(b->arrived + n - i) % GS_BARRIER_TIMES] = b->last;
    }
    b->arrived += n;
}

static void count_named(const gs_sim *sim, gs_sm *sm, u32 wi, gs_tb_barrier *b, u64 issued)
{
    gs_tb *tb = &sm->tb[sm->warp[wi].tb];
    /* a barrier counts one warp at a time */
    sm->barrier_counted = gs_max(sm->barrier_counted, issued) + (u64)sim->params.gpu_sm.barrier_warp;
    add(b, 1, (u32)sm->barrier_counted);
    for (u64 left = b->waiting; left; left &= left - 1) {
        u32 i = gs_ctz(left);
        if (sm->barrier_need[i] <= b->arrived) {
            b->waiting &= ~(1ull << i);
            go_on(sm, i, gs_barrier_leaves(sim, sm, i, tb->live_warps, sm->barrier_counted),
                  &tb->stalls.barrier);
        }
    }
}

static void count(gs_sm *sm, gs_tb *tb, gs_tb_barrier *b, u32 n, u32 at)
{
    add(b, n, at);
    for (u64 left = b->waiting; left; left &= left - 1) {
        u32 i = gs_ctz(left);
        if (sm->barrier_need[i] <= b->arrived) {
            b->waiting &= ~(1ull << i);
            go_on(sm, i, gs_max(b->last, sm->warp[i].since + 1ull), &tb->stalls.memory);
        }
    }
}

static void wait_for(gs_sm *sm, u32 wi, gs_tb_barrier *b, u32 need)
{
    sm->barrier_need[wi] = need;
    sm->warp[wi].state = GS_WARP_AT_COUNTER;
    b->waiting |= 1ull << wi;
}

void gs_tb_barrier_sync(const gs_sim *sim, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    gs_tb_barrier *b = barriers_of(sm, wi) + op->count;
    u64 at = gs_sm_issue_single(sm, wi, c);
    sm->warp[wi].since = (u32)c;
    sm->warp[wi].pc++;
    wait_for(sm, wi, b, (b->arrived / op->chain + 1) * op->chain);
    count_named(sim, sm, wi, b, at);
}

static int arrive(const gs_sim *sim, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    gs_tb_barrier *b = barriers_of(sm, wi) + op->count;
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    w->pc++;
    if (op->per_warp) {
        u32 slot = gs_scoreboard_slot_of(w, op), copy = op->count - GS_NAMED_BARRIERS;
        if (w->slot[slot].count == 0) {
            count(sm, tb, b, 1, gs_max32((u32)c, w->slot[slot].done));
        } else {
            sm->copies_count_at[wi * GS_SLOTS + slot] |= 1u << copy;
            sm->copies[wi * GS_SLOTS + slot][copy]++;
        }
        return 1;
    }
    u64 at = gs_sm_issue_single(sm, wi, c);
    if (op->count < GS_NAMED_BARRIERS) {
        count_named(sim, sm, wi, b, at);
    } else {
        count(sm, tb, b, 1, (u32)at);
    }
    sm->warp_cycles++;
    gs_sm_wake(sm, wi, c + 1);
    return 0;
}

/* The warp's j-th wait is for j of `waves` phases, in which `chain` copies or arrivals come altogether. A
   barrier without copies may be complete before it is first used (buffers that are empty at the start), so
   that its waits are a phase behind. */
static int await(gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    gs_tb_barrier *b = barriers_of(sm, wi) + op->count;
    gs_warp *w = &sm->warp[wi];
    u64 phase = ++sm->awaited[wi][op->count - GS_NAMED_BARRIERS] - (u64)op->per_warp;
    /* fewer than it may be, rather than what comes only after this warp has gone on; but not none */
    u64 share = phase * op->chain / op->waves, most = op->chain;
    u32 need = (u32)gs_min(
        op->chain < op->waves && !op->per_warp ? (phase * most + op->waves - 1) / op->waves : share, most);
    u64 at = gs_sm_issue_single(sm, wi, c);
    w->since = (u32)c;
    w->pc++;
    if (b->arrived < need) {
        wait_for(sm, wi, b, need);
        return 0;
    }
    /* older arrivals were long ago */
    u64 came = need && b->arrived - need < GS_BARRIER_TIMES ? b->time[need % GS_BARRIER_TIMES] : 0;
    go_on(sm, wi, gs_max(came, at + 1), &sm->tb[w->tb].stalls.memory);
    return 0;
}

int gs_tb_barrier_op(const gs_sim *sim, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    return op->kind == GS_OP_ARRIVE ? arrive(sim, sm, wi, op, c) : await(sm, wi, op, c);
}

void gs_tb_barrier_copied(gs_sm *sm, u32 wi, u32 slot, u32 done)
{
    gs_tb_barrier *b = barriers_of(sm, wi) + GS_NAMED_BARRIERS;
    u16 *copies = sm->copies[wi * GS_SLOTS + slot];
    for (u32 left = sm->copies_count_at[wi * GS_SLOTS + slot]; left; left &= left - 1) {
        u32 i = gs_ctz(left);
        count(sm, &sm->tb[sm->warp[wi].tb], b + i, copies[i], done);
        copies[i] = 0;
    }
    sm->copies_count_at[wi * GS_SLOTS + slot] = 0;
}
