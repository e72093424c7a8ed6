/* Programmatic dependent launch: see pdl.h. */
#include "scheduler/pdl.h"

#include "base/mailbox.h"
#include "memory/semaphore.h"
#include "scheduler/scheduler.h"

static void start(gs_sim *sim, u32 kernel, u32 cause_kernel, u32 cause_tb, u64 t)
{
    gs_sched *d = &sim->sched;
    if (sim->order.in_flight && d->in_flight >= sim->order.in_flight) {
        gs_ring_push(sim, &d->waiting_kernels,
                     (gs_event){t, GS_EVENT_KERNEL_READY, kernel, cause_kernel, cause_tb});
        return;
    }
    d->in_flight++;
    gs_ring_push(sim, &d->admit, (gs_event){t, GS_EVENT_KERNEL_READY, kernel, cause_kernel, cause_tb});
}

void gs_pdl_trigger(gs_sim *sim, gs_resident *r, u64 t)
{
    gs_kernel *kernels = gs_kernels(sim), *k = &kernels[r->kernel];
    const gs_launch *launches = gs_launches(sim);
    r->triggered = 1;
    if (++k->triggered < k->tbs) {
        return;
    }
    const u32 *ptr = GS_CONST_TABLE(sim, u32, at_succ_ptr) + r->kernel;
    const u32 *succs = GS_CONST_TABLE(sim, u32, at_succs);
    for (u32 i = ptr[0]; i < ptr[1]; i++) {
        u32 s = succs[i];
        if (launches[s].early && --kernels[s].unmet == 0) {
            start(sim, s, r->kernel, r->tb,
                  gs_max(t + sim->order.early, launches[s].enqueued + sim->order.launch));
        }
    }
}

void gs_pdl_producer_end(gs_ctx *ctx, u32 kernel, u64 t)
{
    gs_sim *sim = ctx->sim;
    gs_kernel *k = &gs_kernels(sim)[kernel];
    if (--k->unended_producers || k->dispatched == 0) {
        return; /* TBs that are dispatched later know it from their start */
    }
    const gs_sm_load *loads = GS_CONST_TABLE(sim, gs_sm_load, at_sm_loads);
    for (u32 sm = 0; sm < sim->sms; sm++) {
        const gs_resident *r = gs_residents_of(sim, sm);
        u32 all = sim->params.gpu_sm.tbs == 32 ? ~0u : (1u << sim->params.gpu_sm.tbs) - 1;
        for (u32 left = all & ~loads[sm].tb_free; left; left &= left - 1) {
            u32 slot = gs_ctz(left);
            if (r[slot].kernel == kernel) {
                gs_send_one(ctx, sm / GS_GROUP, gs_max(t + sim->depend_latency, r[slot].start),
                            GS_SENDER_SCHED,
                            gs_pay_op(slot, GS_SYNC_CONDITIONS_MET, GS_MSG_SYNC, sm % GS_GROUP));
            }
        }
    }
}

void gs_pdl_kernel_end(gs_sim *sim, u64 t)
{
    u64 at = t + (u64)sim->params.gpu_cp.early_reuse;
    gs_ring_push(sim, &sim->sched.admit, (gs_event){at, GS_EVENT_PDL_SLOT, 0, 0, 0});
}

void gs_pdl_slot_free(gs_sim *sim, u64 t)
{
    gs_sched *d = &sim->sched;
    d->in_flight--;
    if (d->waiting_kernels.head != d->waiting_kernels.tail) {
        gs_event e = *gs_ring_head(sim, &d->waiting_kernels);
        d->waiting_kernels.head++;
        start(sim, e.a, e.b, e.pad, gs_max(t, e.time));
    }
}
