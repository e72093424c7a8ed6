/* The buffer of TBs by level: see wavefront_buffer.h. */
#include "scheduler/wavefront_buffer.h"

#include "scheduler/dependence_table.h"
#include "scheduler/scheduler.h"
#include "scheduler/table_memory.h"

/* Fetches the next TB, and those after it whose entries are in the same line of memory. */
static void load(gs_sim *sim, u64 t)
{
    gs_sched *d = &sim->sched;
    const u64 *all = GS_CONST_TABLE(sim, u64, at_sequence), size = sim->order.entry_bytes;
    u64 first = all[d->next_load], line = (u32)first * size / 128;
    u32 index = (u32)d->next_load, room = (u32)sim->order.nodes - d->loaded, n = 0;
    do {
        n++;
        d->next_load++;
    } while (n < room && d->next_load < sim->n_sequence && all[d->next_load] == first + n &&
             (u32)all[d->next_load] * size / 128 == line);
    d->loaded += n;
    d->table_peak = gs_max32(d->table_peak, d->loaded);
    u32 wait = gs_table_memory_await(sim, (gs_event){0, GS_EVENT_LOADED, index, n, 0});
    gs_table_memory_request(sim, (u32)(first >> 32), (u32)first * size, n * size, 0, wait);
    gs_table_memory_requested(sim, wait, t);
}

void gs_wavefront_fill(gs_sim *sim, u64 t)
{
    gs_sched *d = &sim->sched;
    while (d->loaded < sim->order.nodes && d->next_load < sim->n_sequence &&
           !gs_table_memory_is_congested(sim)) {
        load(sim, t);
    }
}

void gs_wavefront_tb_end(gs_sim *sim, u64 t)
{
    sim->sched.loaded--;
    gs_wavefront_fill(sim, t);
}

static void loaded(gs_sim *sim, u32 kernel, u32 tb, u64 t)
{
    gs_tb_conditions *f = &gs_tb_conditions_of(sim, &gs_kernels(sim)[kernel])[tb];
    f->loaded = 1;
    if (f->entry) {
        f->entry = 0;
        sim->sched.pending--;
    }
    sim->sched.producer_sm = GS_NO_SM;
    gs_table_tb_condition_met(sim, kernel, tb, t, GS_NONE, GS_NONE);
}

void gs_wavefront_loaded(gs_sim *sim, u32 first, u32 count, u64 t)
{
    const u64 *all = GS_CONST_TABLE(sim, u64, at_sequence);
    for (u32 i = first; i < first + count; i++) {
        loaded(sim, (u32)(all[i] >> 32), (u32)all[i], t);
    }
}

void gs_wavefront_pending(gs_sim *sim, u32 kernel, u32 tb)
{
    gs_sched *d = &sim->sched;
    gs_tb_conditions *f = &gs_tb_conditions_of(sim, &gs_kernels(sim)[kernel])[tb];
    u64 size = sim->order.entry_bytes;
    if (f->loaded || f->entry) {
        return;
    }
    if (d->pending < sim->order.pending) {
        f->entry = 1;
        d->pending++;
        d->lists_peak = gs_max32(d->lists_peak, d->pending);
    } else {
        d->spills++;
        gs_table_memory_request(sim, kernel, tb * size, size, 1, 0);
    }
}
