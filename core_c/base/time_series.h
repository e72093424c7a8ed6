/* Time series of SMs, slices and banks. A sample ends at a multiple of the interval: it holds what was
   counted by all events before, whatever the quantum they were run in. */
#pragma once
#include "base/state.h"

/* Sets `interval`, `limit` and `room` of sim->series. */
void gs_series_plan(gs_sim *sim);
/* A TB's end at `time`, or, with -time, its start: what is resident counts up to the moment of a sample.
   Called while the TB is not one of live_tbs. */
static inline void gs_series_residence(const gs_sim *sim, gs_sm *sm, u64 warps, u64 time)
{
    if (GS_UNLIKELY(sim->series.interval != 0)) {
        sm->held.busy += sm->live_tbs ? 0 : time;
        sm->held.tb_time += time;
        sm->held.warp_time += warps * time;
    }
}

/* Completes an SM's samples that end at `time` or before, when all its events before have been run; returns
   when the next one ends, GS_NEVER without series. */
u64 gs_series_sm(gs_sim *sim, gs_sm *sm, u64 time);
/* The same of a group of slices. */
u64 gs_series_slices(gs_sim *sim, u32 group, u64 time);
/* What a slice's channel will do, and when: n sectors have been read, from a row that the bank opens for them
   if that is counted already; the collected writes have been drained. Cold, to stay out of the hot loop. */
GS_COLD void gs_series_dram_read(gs_sim *sim, const gs_slice *s, const gs_bank *b, u64 time, u32 n);
GS_COLD void gs_series_dram_write(gs_sim *sim, const gs_slice *s, u64 time, u32 slots);
/* Doubles the interval until a run up to `time` fits. Between quanta. */
void gs_series_merge_to_fit(gs_sim *sim, u64 time);
/* Samples as of now. */
u64 gs_series_samples(const gs_sim *sim);
/* A slice's counters, those that follow from others included. */
gs_l2 gs_slice_count(const gs_sim *sim, const gs_slice *s);
