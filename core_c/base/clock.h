/* The SM clock under load. A GPC has a clock of its own, which runs slower while tensor cores of the GPC are
   busy. Its period changes at epochs of fixed length only, by what the epoch before did, so all of a quantum
   has one period: whole quanta make an epoch. Everything outside GPCs keeps its time. */
#pragma once
#include "base/state.h"

void gs_clock_init(gs_sim *sim);
/* The longest quantum up to `most` of which a whole number makes an epoch. */
u64 gs_clock_quantum(u64 most);
/* Sets the clocks for the SMs' quantum that begins at `begin`; between quanta. */
void gs_clock_epochs(gs_sim *sim, u64 begin);
/* Cycles that the GPC with the most has counted when the job ends. */
u64 gs_clock_cycles(const gs_sim *sim);

/* the first of a GPC's SMs; those of the next begin where they end */
static inline u32 gs_gpc_first(const gs_sim *sim, u32 gpc)
{
    u32 each = (u32)sim->params.gpu.tpc_sms, gpcs = (u32)sim->params.gpu.gpcs;
    u32 tpcs = (sim->sms + each - 1) / each, size = tpcs / gpcs, longer = tpcs % gpcs;
    return (u32)gs_min((gpc * size + gs_min(gpc, longer)) * each, sim->sms);
}

static inline const gs_clock *gs_clock_of(const gs_sim *sim, const gs_sm *sm)
{
    return &sim->clock[sm->gpc];
}

/* when a cycle begins */
static inline u64 gs_clock_edge(const gs_clock *k, u64 cycle)
{
    return cycle * k->period + k->origin;
}

/* the first cycle that begins at `time` or later */
static inline u64 gs_clock_cycle(const gs_clock *k, u64 time)
{
    return gs_div_by(time - k->origin + k->period - 1, k->by_period);
}

/* Samples are of equal lengths of time: the SM's cycle in which the one that it counts for ends. */
static inline void gs_clock_sample(const gs_sim *sim, gs_sm *sm)
{
    sm->next_sample =
        gs_clock_cycle(gs_clock_of(sim, sm), (sm->sample + 1) * sim->sample_cycles * sim->period);
    sm->next_due = 0; /* found anew at the next event */
}
