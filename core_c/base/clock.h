/* The SM clock under load. Each GPC has its own clock, which is slower while tensor cores of the GPC are
   busy. Its period changes only between epochs of fixed length, and depends on the activity of the epoch
   before. An epoch is a whole number of quanta, so the period is constant within a quantum. L2, DRAM and
   the scheduler do not use this clock. Times are in ticks (1/1024 ns). */
#pragma once
#include "base/state.h"

void gs_clock_init(gs_sim *sim);
/* The longest quantum of at most `most` ticks that divides the epoch. */
u64 gs_clock_quantum(u64 most);
/* Sets the clocks for the SMs' quantum that begins at `begin`. Called between quanta. */
void gs_clock_epochs(gs_sim *sim, u64 begin);
/* Cycles of the GPC that counted the most, when the job has ended. */
u64 gs_clock_cycles(const gs_sim *sim);

/* The first SM of a GPC; the next GPC begins where it ends. */
static inline u32 gs_gpc_first(const gs_sim *sim, u32 gpc)
{
    u32 each = (u32)sim->params.gpu.tpc_sms, gpcs = (u32)sim->params.gpu.gpcs;
    u32 tpcs = (sim->sms + each - 1) / each, size = tpcs / gpcs, longer = tpcs % gpcs;
    return gs_min32((gpc * size + gs_min32(gpc, longer)) * each, sim->sms);
}

static inline const gs_clock *gs_clock_of(const gs_sim *sim, const gs_sm *sm)
{
    return &sim->clock[sm->gpc];
}

/* When a cycle begins. */
static inline u64 gs_clock_edge(const gs_clock *k, u64 cycle)
{
    return cycle * k->period + k->origin;
}

/* The first cycle that begins at `time` or later. */
static inline u64 gs_clock_cycle(const gs_clock *k, u64 time)
{
    return gs_div_by(time - k->origin + k->period - 1, k->by_period);
}

/* Samples have equal lengths of time: this is the SM's cycle in which the current one ends. */
static inline void gs_clock_sample(const gs_sim *sim, gs_sm *sm)
{
    sm->next_sample =
        gs_clock_cycle(gs_clock_of(sim, sm), (sm->sample + 1) * sim->sample_cycles * sim->period);
    sm->next_due = 0; /* computed again at the next event */
}
