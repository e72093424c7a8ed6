/* Which thread runs which boxes: see shares.h. */
#include "engine/shares.h"

#include "base/mailbox.h"
#include "engine/team.h"

#include <string.h>

/* The boxes of its share that a thread has still to run: from `next` to before `end`. */
static u64 range_of(u32 next, u32 end)
{
    return (u64)end << 32 | next;
}

void gs_shares_lay_out(gs_team *t, u32 kind, u32 thread)
{
    const u32 *first = t->sim->share[kind];
    __atomic_store_n(&t->left[thread].range[kind], range_of(first[thread], first[thread + 1]),
                     __ATOMIC_RELAXED);
}

void gs_shares_split(gs_sim *sim, u32 threads)
{
    for (u32 t = 0; t <= threads; t++) {
        sim->share[GS_SHARE_SLICES][t] = sim->slice_boxes * t / threads;
        sim->share[GS_SHARE_SMS][t] = sim->sm_boxes * t / threads;
    }
    for (u32 t = 0; t < threads; t++) {
        memset(sim->thread[t].stolen, 0, sizeof sim->thread[t].stolen);
    }
    sim->shares_checked = sim->quanta;
}

/* Boxes of thread t's share that other threads have run. */
static u32 stolen_boxes(const gs_sim *sim, u32 kind, u32 t)
{
    u32 n = 0;
    for (u32 i = 0; i < GS_THREADS; i++) {
        n += sim->thread[i].stolen[kind][t];
    }
    return n;
}

/* Boxes differ in work, and host processors in speed. A box that is stolen in most quanta moves to the
   share of a neighbour whose boxes are seldom stolen, so that a box's data stay in the caches of one
   processor. */
void gs_shares_adapt(gs_team *t)
{
    enum { QUANTA = 1024 };
    gs_sim *sim = t->sim;
    if (t->threads == 1 || sim->quanta - sim->shares_checked < QUANTA) {
        return;
    }
    for (u32 kind = 0; kind < GS_SHARES; kind++) {
        u32 *first = sim->share[kind];
        for (u32 i = 0; i + 1 < t->threads; i++) {
            u32 a = stolen_boxes(sim, kind, i), b = stolen_boxes(sim, kind, i + 1);
            if (a > b + QUANTA / 2 && first[i + 1] - first[i] > 1) {
                first[i + 1]--;
            } else if (b > a + QUANTA / 2 && first[i + 2] - first[i + 1] > 1) {
                first[i + 1]++;
            }
        }
    }
    for (u32 i = 0; i < t->threads; i++) {
        memset(sim->thread[i].stolen, 0, sizeof sim->thread[i].stolen);
        gs_shares_lay_out(t, GS_SHARE_SLICES, i);
    }
    sim->shares_checked = sim->quanta;
}

u32 gs_steal_work(gs_team *t, gs_ctx *ctx, u32 kind)
{
    for (u32 i = 0; i < t->threads; i++) {
        u32 of = ctx->id + i < t->threads ? ctx->id + i : ctx->id + i - t->threads;
        u64 *range = &t->left[of].range[kind], left = __atomic_load_n(range, __ATOMIC_RELAXED);
        for (;;) {
            u32 next = (u32)left, end = (u32)(left >> 32);
            if (next == end) {
                break;
            }
            u64 then = i ? range_of(next, end - 1) : range_of(next + 1, end);
            if (!__atomic_compare_exchange_n(range, &left, then, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
                continue;
            }
            ctx->t->stolen[kind][of] += i != 0;
            return i ? end - 1 : next;
        }
    }
    return GS_NO_BOX;
}
