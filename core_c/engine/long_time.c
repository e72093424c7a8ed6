/* Runs of more than a second: see long_time.h. */
#include "engine/long_time.h"

#include "base/clock.h"
#include "sm/l1.h"
#include "sm/sm.h"

/* How often the points move on: a quarter of a second. An SM counts less than 2^31 cycles until then, and
   what it knows ahead, less than 2^30, fits 32 bits. */
enum { EVERY = 38, KEPT = 1 << 28 };

/* What is so long past that it only matters that it is past is at cycle 1; 0 stands for `never`. */
static u64 earlier(u64 cycle, u64 by)
{
    return cycle > by ? cycle - by : cycle != 0;
}

static void shift32(u32 *cycles, u64 n, u64 by)
{
    for (u64 i = 0; i < n; i++) {
        cycles[i] = (u32)earlier(cycles[i], by);
    }
}

static void shift64(u64 *cycles, u64 n, u64 by)
{
    for (u64 i = 0; i < n; i++) {
        cycles[i] = earlier(cycles[i], by);
    }
}

/* What a warp waits for counts as this kind of stall. */
static u64 *stall_of(gs_tb *tb, const gs_warp *w)
{
    switch (w->state) {
    case GS_WARP_AT_BARRIER:
        return &tb->stalls.barrier;
    case GS_WARP_WAITS_RESOURCE:
        return &tb->stalls.pipe;
    case GS_WARP_DEPENDS:
        return &tb->stalls.sync;
    default:
        return &tb->stalls.memory;
    }
}

static void shift_warp(gs_sm *sm, u32 wi, u64 by)
{
    gs_warp *w = &sm->warp[wi];
    int waits = w->wait || (w->state != GS_WARP_RUNS && w->state != GS_WARP_IN_BLOCK);
    if (waits && w->since < by + 1) {
        /* the wait is counted up to cycle 1 here */
        u64 cycles = by + 1 - w->since;
        *stall_of(&sm->tb[w->tb], w) += cycles;
        sm->warp_cycles += cycles;
    }
    w->since = (u32)earlier(w->since, by);
    w->ready = (u32)earlier(w->ready, by);
    for (u32 i = 0; i < GS_SLOTS; i++) {
        w->slot[i].done = (u32)earlier(w->slot[i].done, by);
    }
}

static void shift_subcore(gs_subcore *b, u64 by)
{
    u64 *cycles[] = {&b->issue, &b->single, &b->last, &b->held, &b->copy, &b->left};
    for (u32 i = 0; i < sizeof cycles / sizeof *cycles; i++) {
        *cycles[i] = earlier(*cycles[i], by);
    }
    shift64(b->leaves, GS_QUEUED, by);
    shift64(b->pipe, GS_PIPES, by * 64);
    b->returned = earlier(b->returned, by * 64);
}

/* The SM's cycles count from `by` cycles later on. */
static void shift_sm(gs_sm *sm, u64 by)
{
    u64 *cycles[] = {&sm->cur, &sm->lsu_free, &sm->port_free, &sm->barrier_counted, &sm->credit_least};
    for (u32 i = 0; i < sizeof cycles / sizeof *cycles; i++) {
        *cycles[i] = earlier(*cycles[i], by);
    }
    sm->reply_port = earlier(sm->reply_port, by * 64);
    sm->smem_free = earlier(sm->smem_free, by * 64);
    shift32(&sm->parameters_ready, 1, by);
    shift32(&sm->code_ready, 1, by);
    for (u32 i = 0; i < 4; i++) {
        shift_subcore(&sm->sub[i], by);
    }
    for (u32 i = 0; i < GS_WARPS; i++) {
        shift_warp(sm, i, by);
        shift32(sm->smem_returns[i].done, GS_SMEM_RETURNS, by);
    }
    shift32(sm->shared_done, GS_WARPS, by);
    shift32(sm->queued_since, GS_WARPS, by);
    shift32(&sm->release_time[0][0], (u64)GS_POOLS * GS_CREDITS, by);
    shift32(sm->fill_time, GS_FILLS, by);
    shift32(sm->copy_left, GS_WARPS, by);
    shift64(sm->copy_begins, GS_COPIES, by);
    for (u32 i = 0; i <= GS_L1_SETS; i++) {
        for (u32 way = 0; way < GS_L1_WAYS; way++) {
            u32 *fill = &sm->l1[i].fill[way];
            *fill = *fill >= GS_IN_FLIGHT ? *fill : (u32)earlier(*fill, by);
        }
    }
    for (u32 i = 0; i < sm->owner_used; i++) {
        shift32(&sm->owner[i].leaves_sm, 1, by);
        shift32(&sm->owner[i].last_acknowledged, 1, by);
    }
}

static void shift_gpc(gs_sim *sim, u32 gpc, u64 by)
{
    gs_clock *k = &sim->clock[gpc];
    k->origin += by * k->period;
    k->last_origin += by * k->last_period;
    k->began = earlier(k->began, by);
    k->left_behind += by;
    for (u32 i = 0; i < sim->sms; i++) {
        gs_sm *sm = &gs_sms(sim)[i];
        if (sm->gpc == gpc) {
            shift_sm(sm, by);
            gs_clock_sample(sim, sm);
        }
    }
}

/* Ways whose fill was due long before `before` keep a fill time that is past. */
static void shift_fills(gs_sim *sim, u64 before)
{
    gs_set *sets = GS_TABLE(sim, gs_set, at_sets);
    const u64 old = before >> 9, now = sim->q0 >> 9;
    for (u64 i = 0; i < (u64)sim->slice_boxes * GS_GROUP * sim->sets; i++) {
        for (u32 left = sets[i].pending; left; left &= left - 1) {
            u32 *fill = &sets[i].fill[gs_ctz(left)];
            u64 due = (u64)((i64)old + (i32)(*fill - (u32)old));
            *fill = (i64)due < (i64)now - KEPT ? (u32)(now - KEPT) : *fill;
        }
    }
}

void gs_long_time_advance(gs_sim *sim, u64 before)
{
    const u64 begin = sim->q0 + sim->lead;
    if (begin - sim->last_shift < 1ull << EVERY) {
        return;
    }
    for (u32 gpc = 0; gpc < (u32)sim->params.gpu.gpcs; gpc++) {
        u64 cycle = gs_clock_cycle(&sim->clock[gpc], begin);
        if (cycle > 2 * (u64)KEPT) {
            shift_gpc(sim, gpc, (cycle - KEPT) / GS_WHEEL * GS_WHEEL);
        }
    }
    shift_fills(sim, before);
    sim->last_shift = begin;
}
