/* The SM clock under load. A GPC has a clock of its own, which runs slower while tensor cores of the GPC are
   busy. Its period changes only at epochs of fixed length, by what the epoch before did. Whole quanta make an
   epoch, so a quantum has one period. What is outside GPCs has no such clock. */
#pragma once
#include "base/state.h"

void gs_clock_init(gs_sim *sim);
/* The longest quantum up to `most` of which a whole number makes an epoch. */
u64 gs_clock_quantum(u64 most);
/* Sets the clocks for the SMs' quantum that begins at `begin`. Called between quanta. */
void gs_clock_epochs(gs_sim *sim, u64 begin);
/* Cycles counted by the GPC with the most, when the job has ended. */
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
