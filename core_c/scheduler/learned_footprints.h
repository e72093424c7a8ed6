/* Footprints that were learned: learned_footprints.c. */
#pragma once
#include "base/state.h"

/* A TB has ended. 1: its ranges are learned, and its end counts when they are written. */
int gs_footprints_record(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* Asks for a kernel's before its admission; 1: they have not come. */
int gs_footprints_wait(gs_sim *sim, u32 kernel, u64 t);
/* what a kernel asked for has come; first: the beginning of it */
void gs_footprints_arrived(gs_sim *sim, u32 kernel, u32 first, u64 t);

/* 1: a kernel's are to be read before its admission, and have not been */
static inline int gs_footprints_due(const gs_sim *sim, u32 kernel)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    return l->footprint && !l->recorded && !sim->sched.footprints_here;
}
