/* Barriers: see barrier.h. */
#include "sm/barrier.h"

#include "sm/sm.h"

/* How much later than the first warp a warp leaves a barrier: they leave one after another, in an order
   that is drawn for each TB and kept (tests/hw/sm/skew.cu, vary.cu). So TBs that run the same program
   drift apart. */
static u64 leaves_after(const gs_sim *sim, const gs_sm *sm, u32 wi, u32 warps)
{
    u32 index = sm->warp[wi].index;
    u32 x = (sm->warp_age[wi] - index) * 0x9e3779b1u ^ sm->id * 0x85ebca77u;
    x = (x ^ x >> 15) * 0x2c1b3c6du;
    x ^= x >> 12;
    return ((index ^ x >> 8) % warps) * (u64)sim->params.gpu_sm.barrier_leave;
}

u64 gs_barrier_leaves(const gs_sim *sim, const gs_sm *sm, u32 wi, u32 warps, u64 last)
{
    return last + (u64)sim->params.gpu_sm.barrier + leaves_after(sim, sm, wi, warps);
}

void gs_barrier_release(const gs_sim *sim, gs_sm *sm, gs_tb *tb, u64 last)
{
    tb->arrived = 0;
    tb->ready = tb->polled;
    tb->ready_end = tb->polled_end;
    const u64 first = last + (u64)sim->params.gpu_sm.barrier;
    for (u64 left = tb->warps; left; left &= left - 1) {
        u32 i = gs_ctz(left);
        gs_warp *w = &sm->warp[i];
        if (w->state == GS_WARP_AT_BARRIER) {
            u64 go = first + leaves_after(sim, sm, i, tb->live_warps);
            w->state = GS_WARP_RUNS;
            tb->stalls.barrier += go - w->since - 1;
            sm->warp_cycles += go - w->since;
            gs_sm_wake(sm, i, go);
        }
    }
}

void gs_barrier_arrive(const gs_sim *sim, gs_sm *sm, u32 wi, u64 c)
{
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    gs_subcore *b = &sm->sub[wi & 3];
    u64 issue = gs_max(c, b->single);
    b->single = issue + 1;
    gs_subcore_steal_slot(b, issue);
    sm->work.warp_instructions++;
    tb->stalls.issued++;
    w->since = (u32)c;
    w->pc++;
    w->state = GS_WARP_AT_BARRIER;
    /* a barrier counts one warp at a time */
    sm->barrier_counted = gs_max(sm->barrier_counted, issue) + (u64)sim->params.gpu_sm.barrier_warp;
    if (++tb->arrived >= tb->live_warps) {
        gs_barrier_release(sim, sm, tb, sm->barrier_counted);
    }
}
