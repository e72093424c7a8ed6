/* TBs of all kernels as one graph, as Wireframe keeps them: a buffer takes in TBs level by level, as many as
   it has room for, and a TB is dispatched from there alone; its place is free when it has ended. A TB that is
   counted down before it is there takes an entry of another buffer until then, or is counted in memory.
   Levels go up along every edge, so the first TB that has not ended waits for nothing. */
#include "scheduler.h"

static void load(gs_sim *sim, u64 t)
{
    gs_sched *d = &sim->sched;
    u64 next = GS_CONST_TABLE(sim, u64, at_sequence)[d->next_load++];
    d->loaded++;
    d->table_peak = gs_max32(d->table_peak, d->loaded);
    gs_ring_push(sim, &d->ready, (gs_event){t, GS_EVENT_LOADED, (u32)(next >> 32), (u32)next, 0});
}

void gs_levels_fill(gs_sim *sim, u64 t)
{
    gs_sched *d = &sim->sched;
    while (d->loaded < sim->order.nodes && d->next_load < sim->n_sequence) {
        load(sim, t + sim->order.spill);
    }
}

void gs_levels_end(gs_sim *sim, u64 t)
{
    sim->sched.loaded--;
    gs_levels_fill(sim, t);
}

void gs_levels_loaded(gs_sim *sim, u32 kernel, u32 tb, u64 t)
{
    gs_fine *f = &gs_fine_of(sim, &gs_kernels(sim)[kernel])[tb];
    f->loaded = 1;
    if (f->entry) {
        f->entry = 0;
        sim->sched.pending--;
    }
    sim->sched.sm = GS_NO_SM;
    gs_depend_tb(sim, kernel, tb, t, GS_NONE, GS_NONE);
}

void gs_levels_pending(gs_sim *sim, gs_fine *f)
{
    gs_sched *d = &sim->sched;
    if (f->loaded || f->entry) {
        return;
    }
    if (d->pending < sim->order.pending) {
        f->entry = 1;
        d->pending++;
        d->lists_peak = gs_max32(d->lists_peak, d->pending);
    } else {
        d->spills++;
    }
}
