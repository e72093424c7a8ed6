/* Time series of SMs, slices and banks. A sample ends at a multiple of the interval. It holds what all events
   before that time have counted, whichever quantum ran them. */
#pragma once
#include "base/state.h"

/* Sets `interval`, `limit` and `room` of sim->series. */
void gs_series_plan(gs_sim *sim);
/* A TB ends at `time`, or starts, with -time. Its residence counts up to the end of a sample. Called while
   the TB is not in live_tbs. */
static inline void gs_series_residence(const gs_sim *sim, gs_sm *sm, u64 warps, u64 time)
{
    if (GS_UNLIKELY(sim->series.interval != 0)) {
        sm->held.busy += sm->live_tbs ? 0 : time;
        sm->held.tb_time += time;
        sm->held.warp_time += warps * time;
    }
}

/* Completes the samples of an SM that end at `time` or before. All events of the SM before then must have
   run. Returns the end of its next sample in ticks; GS_NEVER: there is no time series. */
u64 gs_series_sm(gs_sim *sim, gs_sm *sm, u64 time);
/* The same for a group of slices. */
u64 gs_series_slices(gs_sim *sim, u32 group, u64 time);
/* What a slice's channel will do, and when. Reads: n sectors from a row, which the bank opens for them if
   row_misses has counted it. Writes: the collected batch is drained. */
GS_COLD void gs_series_dram_read(gs_sim *sim, const gs_slice *s, const gs_bank *b, u64 time, u32 n);
GS_COLD void gs_series_dram_write(gs_sim *sim, const gs_slice *s, u64 time, u32 slots);
/* Doubles the interval until a run up to `time` fits. Called between quanta. */
void gs_series_merge_to_fit(gs_sim *sim, u64 time);
/* Complete samples by now. */
u64 gs_series_samples(const gs_sim *sim);
/* A slice's counters, with those that are derived from others. */
gs_l2 gs_slice_count(const gs_sim *sim, const gs_slice *s);
