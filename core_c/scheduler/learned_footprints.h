/* Learned footprints in memory: for each TB of a launch, the ranges that it touched. They are written when
   the TB ends, and the end counts in the table only after the write. They are read before a later launch of
   the same kernel is admitted. The comparison starts when the first line arrives, takes
   gs_admit_check_time, and ends no sooner than the last line arrives. */
#pragma once
#include "base/state.h"

/* A TB has ended. 1: its ranges are learned, and its end counts when they are written. */
int gs_footprints_record(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* Requests a kernel's footprints before its admission; 1: they are still to come. */
int gs_footprints_wait(gs_sim *sim, u32 kernel, u64 t);
/* Footprints of a kernel have arrived; first: the first line. */
void gs_footprints_arrived(gs_sim *sim, u32 kernel, u32 first, u64 t);

/* 1: a kernel's footprints must be read before its admission, and have not been. */
static inline int gs_footprints_due(const gs_sim *sim, u32 kernel)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    return l->footprint && !l->recorded && !sim->sched.footprints_here;
}
