/* Host threads that launch kernels: see host_launcher.h. */
#include "scheduler/host_launcher.h"

#include "scheduler/copy_engine.h"
#include "scheduler/scheduler.h"

static void launch(gs_sim *sim, gs_event e, u64 t)
{
    sim->sched.busy_launchers++;
    gs_ring_push(sim, &sim->sched.admit,
                 (gs_event){t + sim->order.submit, GS_EVENT_LAUNCHED, e.a, e.b, e.pad});
}

void gs_host_launcher_take(gs_sim *sim, u32 kernel, u64 t, u32 cause_kernel, u32 cause_tb)
{
    gs_sched *d = &sim->sched;
    gs_event e = {t, GS_EVENT_LAUNCHED, kernel, cause_kernel, cause_tb};
    if (d->busy_launchers < sim->order.launchers) {
        launch(sim, e, t);
    } else {
        gs_ring_push(sim, &d->waiting_kernels, e);
    }
}

void gs_host_launcher_release(gs_sim *sim, u32 kernel, u64 t)
{
    gs_sched *d = &sim->sched;
    if (gs_host_copy_is_free(sim, kernel)) {
        return;
    }
    d->busy_launchers--;
    if (d->waiting_kernels.head != d->waiting_kernels.tail) {
        gs_event e = *gs_ring_head(sim, &d->waiting_kernels);
        d->waiting_kernels.head++;
        launch(sim, e, t);
    }
}
