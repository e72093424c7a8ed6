/* Learned footprints in memory: see learned_footprints.h. */
#include "scheduler/learned_footprints.h"

#include "base/arena.h"
#include "scheduler/admission.h"
#include "scheduler/scheduler.h"
#include "scheduler/table_memory.h"

enum { REST, FIRST };

int gs_footprints_record(gs_sim *sim, u32 kernel, u32 tb, u64 t)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    if (!l->recorded || !l->footprint) {
        return 0;
    }
    u32 wait =
        gs_table_memory_await(sim, (gs_event){0, GS_EVENT_RECORDED, kernel, tb, sim->sched.producer_sm});
    gs_table_memory_request_footprints(sim, l->first_footprint + (u64)tb * l->footprint, l->footprint, 1,
                                       wait);
    gs_table_memory_requested(sim, wait, t);
    return 1;
}

static void request(gs_sim *sim, u32 kernel, u32 which, u64 at, u64 bytes, u64 t)
{
    u32 wait = gs_table_memory_await(sim, (gs_event){0, GS_EVENT_FOOTPRINTS, kernel, which, 0});
    sim->sched.footprint_waits++;
    gs_table_memory_request_footprints(sim, at, bytes, 0, wait);
    gs_table_memory_requested(sim, wait, t);
}

int gs_footprints_wait(gs_sim *sim, u32 kernel, u64 t)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    if (!gs_footprints_due(sim, kernel)) {
        sim->sched.footprints_here = 0;
        return 0;
    }
    u64 bytes = (u64)l->footprint * gs_tbs_of(l), line = gs_min(bytes, 128);
    request(sim, kernel, FIRST, l->first_footprint, line, t);
    if (bytes > line) {
        request(sim, kernel, REST, l->first_footprint + line, bytes - line, t);
    }
    return 1;
}

void gs_footprints_arrived(gs_sim *sim, u32 kernel, u32 first, u64 t)
{
    gs_sched *d = &sim->sched;
    if (first) {
        d->footprints_checked_at = t + gs_admit_check_time(sim, kernel);
    }
    if (--d->footprint_waits == 0) {
        d->footprints_here = 1;
        d->admit_at = gs_max(t, d->footprints_checked_at);
    }
}
