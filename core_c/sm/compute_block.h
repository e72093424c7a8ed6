/* Compute blocks: which warp issues the next one, and what a block reserves in its sub-core and in shared
   memory. Times are in cycles; pipes count 64ths of a cycle. */
#pragma once
#include "sm/sm.h"
#include "sm/smem_returns.h"
#include "sm/warp_order.h"

/* Greedy order: once a warp has begun a run of blocks without a wait, the run's main pipe belongs to the warp
   until the run ends; other warps' blocks for other pipes go on meanwhile. The next run is that of the warp
   that has waited longest. 1: the warp may go on; 0: it waits. */
static inline int gs_block_acquire_greedy(gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    gs_subcore *b = &sm->sub[wi & 3];
    if (b->owner && b->owner != wi + 1) {
        if (op->uses >> b->owner_pipe & 1) {
            sm->warp[wi].state = GS_WARP_WAITS_RESOURCE;
            sm->warp[wi].since = (u32)c;
            b->waiters |= 1ull << wi;
            return 0;
        }
        return 1;
    }
    if (op->run) {
        b->owner = (u8)(wi + 1);
        b->owner_pipe = (u8)(op->run - 1);
    } else if (b->owner) {
        b->owner = 0;
        if (b->waiters) {
            u32 next = gs_ctz(b->waiters);
            for (u64 left = b->waiters; left; left &= left - 1) {
                u32 i = gs_ctz(left);
                next = sm->warp[i].since < sm->warp[next].since ? i : next;
            }
            b->waiters &= ~(1ull << next);
            b->owner = (u8)(next + 1);
            gs_sm_wake(sm, next, c + 1);
        }
    }
    return 1;
}

/* Oldest first, or, with greedy_oldest, once the warp that issues has to wait: a block begins when the
   resource that it needs longest is free, earlier by as much as its other parts take longer. */
static inline int gs_block_acquire_oldest(gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    const gs_subcore *b = &sm->sub[wi & 3];
    const int held = b->holder && c <= b->held, holds = held && b->holder == wi + 1;
    u64 free = b->issue > c && b->last <= b->issue ? b->issue : c, end = (free + op->slots) * 64,
        longest = op->slots * 64ull, amount = longest;
    u32 what = GS_RESOURCE_ISSUE;
    for (u32 i = 0; i < op->npipes; i++) {
        u64 e = gs_max(c * 64, b->pipe[op->pipe[i]]) + op->amount[i];
        longest = gs_max(longest, op->amount[i]);
        if (e > end) {
            end = e;
            amount = op->amount[i];
            what = op->pipe[i];
        }
    }
    sm->slack[wi] = (u32)((longest - amount) >> 6);
    u64 go = (end - longest) >> 6;
    if (op->smem) {
        gs_data_array_catch_up(sm, c);
        u64 room = gs_smem_queue_room(sm);
        /* older warps may wait for the cycle in which there is room */
        if (room > go || (go <= c && room >= c && sm->waiting[4].waits[GS_RESOURCE_SMEM])) {
            what = GS_RESOURCE_SMEM;
            sm->slack[wi] = 0;
            go = room;
        }
    }
    if (sm->queue && op->smem && !op->npipes) {
        /* it enters the queue after all warps that wait for it */
        u64 room = gs_subcore_queue_room(sm, b);
        if (room > go || (go <= c && (room >= c || sm->waiting[wi & 3].waits[GS_RESOURCE_QUEUE]))) {
            sm->slack[wi] = 0;
            return gs_warp_order_acquire(sm, wi, GS_RESOURCE_QUEUE, gs_max(room, go), c);
        }
    }
    if (holds && go <= c) {
        return 1;
    }
    if (held && !holds && go <= b->held) {
        what = GS_RESOURCE_ISSUE;
        sm->slack[wi] = 0;
        go = b->held + 1;
    }
    return gs_warp_order_acquire(sm, wi, what, go, c);
}

/* What a block takes of shared memory, and when the results of its loads from there are back. Returns the end
   of the block as far as shared memory decides it, in 64ths of a cycle. */
static inline u64 gs_block_smem(gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    gs_subcore *b = &sm->sub[wi & 3];
    gs_data_array_catch_up(sm, c);
    u64 e = gs_max(c * 64, sm->smem_free) + op->smem;
    sm->smem_free = e + op->smem_late;
    sm->work.smem += op->smem;
    sm->lsu_free = op->smem_lsu ? gs_max(sm->lsu_free, c) + op->smem_lsu : sm->lsu_free;
    if (op->smem_back != GS_UNNEEDED) {
        b->returned = gs_max(gs_max(c, b->left) * 64, b->returned) + op->smem + op->smem_return;
        sm->shared_done[wi] = (u32)((gs_max(e, b->returned - op->smem_slow) + 63) >> 6);
        gs_smem_returns_add(&sm->smem_returns[wi], sm->shared_done[wi], op->waves);
    }
    return e > op->smem_ahead ? e - op->smem_ahead : 0;
}

/* The block takes its issue slots after the sub-core's backlog, or between those of blocks that are slower
   than it: returns the cycle after the last. */
static inline u64 gs_block_issue(gs_subcore *b, const gs_iop *op, u64 start, u64 last, u64 c)
{
    u64 issued = start + op->slots;
    if (issued > last && start > c && b->last > start) {
        /* blocks that wait for pipes leave slots open all over their span */
        u32 open = (u32)(b->last - start), span = (u32)(b->last - c);
        issued = op->slots <= open ? c + (op->slots * span + open - 1) / open : issued;
    }
    b->issue = start + op->slots;
    return issued;
}

/* A block of asynchronous multiplies reserves its issue slots and the tensor pipe; the warp goes on when they
   have issued, and op MULTIPLY_WAIT waits for their end, `chain` after the pipe has done them. */
static inline void gs_block_run_async(const gs_sim *sim, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    gs_warp *w = &sm->warp[wi];
    gs_subcore *b = &sm->sub[wi & 3];
    gs_tb *tb = &sm->tb[w->tb];
    gs_pipeline *p = &sm->pipeline[wi];
    u64 start = gs_max(c, b->issue), *work = (u64 *)(void *)&sm->work, end = 0;
    /* lines that were written to shared memory meanwhile have delayed the multiplies that read it */
    gs_data_array_catch_up(sm, c);
    u64 late = (sm->fills_seen - b->fills) * (u64)sim->params.gpu_bulk.fill_delay;
    b->fills = sm->fills_seen;
    b->pipe[GS_PIPE_TENSOR] += b->pipe[GS_PIPE_TENSOR] > c * 64 ? late : 0;
    for (u32 i = 0; i < op->npipes; i++) {
        u64 e = gs_max(start * 64, b->pipe[op->pipe[i]]) + op->amount[i];
        b->pipe[op->pipe[i]] = e;
        work[op->pipe[i]] += op->amount[i];
        end = gs_max(end, e);
    }
    p->done[p->multiplies++ % GS_MULTIPLIES] = (u32)(((end + 63) >> 6) + op->chain);
    b->issue = start + op->slots;
    b->last = gs_max(b->last, b->issue);
    tb->stalls.issued += op->issue;
    tb->stalls.pipe += b->issue - c - op->issue;
    sm->work.warp_instructions += op->issue;
    sm->warp_cycles += b->issue - c;
    gs_sm_wake(sm, wi, b->issue);
}

/* A compute block reserves its issue slots, and each pipe for its own count; the warp goes on when the last
   instruction has issued, and its result is there `chain` later. Returns the cycle in which its next block
   may follow before those of older warps, or 0: it must wait, or tensor cores are used, which serve the
   oldest first (measured, h200_shared_steps.csv). */
static inline u64 gs_block_run(gs_sm *sm, u32 wi, const gs_iop *op, u64 c, u32 read_load)
{
    gs_warp *w = &sm->warp[wi];
    gs_subcore *b = &sm->sub[wi & 3];
    gs_tb *tb = &sm->tb[w->tb];
    u64 start = gs_max(c, b->issue), end = 0, *work = (u64 *)(void *)&sm->work;
    for (u32 i = 0; i < op->npipes; i++) {
        u32 p = op->pipe[i];
        u64 e = gs_max(c * 64, b->pipe[p]) + op->amount[i];
        b->pipe[p] = e;
        work[p] += op->amount[i];
        end = gs_max(end, e - op->tail[i]);
    }
    if (op->smem) {
        end = gs_max(end, gs_block_smem(sm, wi, op, c));
    }
    if (sm->queue && op->smem && !op->npipes) {
        gs_subcore_queue_enter(sm, wi, gs_max(c, b->left) + read_load);
    }
    u64 last = (end + 63) >> 6;
    last = gs_max(last, gs_block_issue(b, op, start, last, c));
    u64 go = last + op->chain;
    if (op->smem_wait) {
        if (op->smem_back != GS_UNNEEDED) {
            go =
                gs_max(go, gs_smem_returns_before(&sm->smem_returns[wi], op->smem_back) + op->smem_wait - 1u);
        }
    } else if (op->chain) {
        /* the result depends on what the warp asked of shared memory */
        last = gs_max(last, sm->shared_done[wi]);
        go = last + op->chain;
    }
    b->last = gs_max(b->last, last);
    w->debt = b->debt;
    w->state = GS_WARP_IN_BLOCK;
    tb->stalls.issued += op->issue;
    tb->stalls.scoreboard += go - last;
    tb->stalls.pipe += last - c - op->issue;
    sm->work.warp_instructions += op->issue;
    sm->warp_cycles += go - c;
    gs_sm_wake(sm, wi, go);
    int tensor = op->uses >> GS_PIPE_TENSOR & 1;
    return go == last && last <= b->issue && !tensor ? go : 0;
}
