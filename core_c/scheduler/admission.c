/* Admission: which kernels are in the window, and when kernels ordered by barriers start. It runs once for
   each kernel. */
#include "scheduler/admission.h"

#include "base/mailbox.h"
#include "memory/semaphore.h"
#include "oracle/oracle_log.h"
#include "scheduler/aql_queues.h"
#include "scheduler/copy_engine.h"
#include "scheduler/dependence_table.h"
#include "scheduler/learned_footprints.h"
#include "scheduler/pdl.h"
#include "scheduler/scheduler.h"
#include "scheduler/wavefront_buffer.h"

/* Words that a kernel takes in the store of hints. */
static u32 words_of(const gs_sim *sim, u32 kernel)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    return (u32)gs_min((u64)l->words * l->places, sim->order.store);
}

void gs_admit_plan(gs_sim *sim, u64 t)
{
    gs_sched *d = &sim->sched;
    if (!sim->order.tb_edges || d->admit_at != GS_NEVER || d->footprint_waits ||
        d->next_admit == sim->n_launches || d->active >= sim->order.window || d->barrier_running ||
        !gs_table_has_room(sim, d->next_admit) ||
        d->words + words_of(sim, d->next_admit) > sim->order.store ||
        (sim->order.ahead && d->next_admit - d->oldest_unfinished >= sim->order.ahead)) {
        return;
    }
    const gs_launch *l = gs_launches(sim) + d->next_admit;
    if (l->barrier && d->active) {
        return;
    }
    /* a kernel that is launched ahead pays the launch after its admission */
    u64 begin =
        gs_max(gs_max(t, d->admit_free), l->enqueued + (sim->order.prelaunch ? 0 : sim->order.launch));
    d->admit_at = gs_max(begin, d->barrier_lifted_at);
    if (!gs_footprints_due(sim, d->next_admit)) {
        d->admit_at += gs_admit_check_time(sim, d->next_admit);
    }
}

u64 gs_admit_check_time(const gs_sim *sim, u32 kernel)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    return l->look_up + (u64)l->segments * sim->sched.segments * sim->order.check;
}

/* A kernel of a table scheme has ended: the gap of a barrier begins, if it was one. */
static void barrier_passed(gs_sim *sim, u32 kernel, u64 t)
{
    gs_sched *d = &sim->sched;
    const gs_launch *launches = gs_launches(sim);
    int stood = launches[kernel].barrier != 0;
    if (stood || (d->active == 0 && d->next_admit < sim->n_launches && launches[d->next_admit].barrier)) {
        d->barrier_lifted_at = t + (launches[kernel].copies ? 0 : sim->order.gap);
    }
    d->barrier_running &= !stood;
}

void gs_admit_next(gs_sim *sim, u64 t)
{
    gs_sched *d = &sim->sched;
    u32 kernel = d->next_admit;
    d->admit_at = GS_NEVER;
    if (gs_footprints_wait(sim, kernel, t)) {
        return;
    }
    d->next_admit++;
    d->admit_free =
        t + (gs_host_copy_is_free(sim, kernel) ? 0 : sim->order.admit) + gs_launches(sim)[kernel].enter;
    d->active += gs_launches(sim)[kernel].places;
    d->words += words_of(sim, kernel);
    d->barrier_running = gs_launches(sim)[kernel].barrier;
    d->segments += gs_launches(sim)[kernel].segments;
    gs_kernels(sim)[kernel].record.admitted = t;
    gs_oracle_admit(sim, kernel);
    if (sim->order.prelaunch && !gs_host_copy_is_free(sim, kernel)) {
        gs_kernels(sim)[kernel].unmet++;
        gs_ring_push(sim, &d->admit,
                     (gs_event){gs_max(t + sim->order.prelaunch,
                                       gs_launches(sim)[kernel].enqueued + sim->order.launch),
                                GS_EVENT_PRELAUNCHED, kernel, GS_NONE, GS_NONE});
    }
    gs_table_admit(sim, kernel, t);
    if (sim->order.nodes && d->next_admit == sim->n_launches) {
        gs_wavefront_fill(sim, t);
    }
    gs_admit_plan(sim, t);
}

void gs_admit_concurrent(gs_ctx *ctx, u32 kernel, u64 t)
{
    gs_sim *sim = ctx->sim;
    gs_sched *d = &sim->sched;
    /* a copy brings no code; several launches at one time drop it once */
    if (!sim->order.refetch || !d->running || gs_launches(sim)[kernel].copies || d->refetched == t + 1) {
        return;
    }
    d->refetched = t + 1;
    for (u32 sm = 0; sm < sim->sms; sm++) {
        gs_send_one(ctx, sm / GS_GROUP, t + sim->start_latency, GS_SENDER_SCHED,
                    gs_pay_op(0, GS_SYNC_REFETCH, GS_MSG_SYNC, sm % GS_GROUP));
    }
}

void gs_admit_kernel_start(gs_sim *sim, u32 kernel, u32 cause_kernel, u32 cause_tb, u64 t)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    k->admitted = 1;
    k->record.admitted = t;
    sim->sched.in_flight += !gs_launches(sim)[kernel].early;
    sim->sched.running += !gs_launches(sim)[kernel].copies;
    gs_oracle_admit(sim, kernel);
    gs_kernel_ready(sim, kernel, t, cause_kernel, cause_tb);
}

void gs_admit_successors(gs_ctx *ctx, u32 kernel, u32 tb, u64 t)
{
    gs_sim *sim = ctx->sim;
    gs_kernel *kernels = gs_kernels(sim);
    const gs_launch *launches = gs_launches(sim);
    const u32 *ptr = GS_CONST_TABLE(sim, u32, at_succ_ptr) + kernel;
    const u32 *succs = GS_CONST_TABLE(sim, u32, at_succs);
    kernels[kernel].ended = 1;
    for (u32 i = ptr[0]; i < ptr[1]; i++) {
        u32 s = succs[i];
        if (launches[s].early) {
            gs_pdl_producer_end(ctx, s, t);
        } else if (--kernels[s].unmet == 0) {
            /* a copy has paid the gap before it began */
            u64 gap = launches[kernel].copies ? 0 : sim->order.gap;
            /* the kernels of its own stream have ended: what runs is of other streams */
            gap += sim->sched.running ? sim->order.beside : 0;
            u64 at = gs_max(t + gap, launches[s].enqueued + sim->order.launch);
            at = gs_max(at, kernels[kernel].record.admitted + sim->order.prepare);
            if (sim->order.queues) {
                kernels[s].cause_kernel = kernel;
                kernels[s].cause_tb = tb;
                gs_aql_barrier_met(sim, s, t + gap, t);
            } else {
                gs_ring_push(sim, &sim->sched.admit, (gs_event){at, GS_EVENT_KERNEL_READY, s, kernel, tb});
            }
        }
    }
}

void gs_admit_leave_window(gs_sim *sim, u32 kernel)
{
    gs_sched *d = &sim->sched;
    const gs_kernel *kernels = gs_kernels(sim);
    d->active -= gs_launches(sim)[kernel].places;
    d->words -= words_of(sim, kernel);
    d->segments -= gs_launches(sim)[kernel].segments;
    while (d->oldest_unfinished < sim->n_launches &&
           kernels[d->oldest_unfinished].done == kernels[d->oldest_unfinished].tbs) {
        d->oldest_unfinished++;
    }
}

void gs_admit_table_kernel_end(gs_sim *sim, u32 kernel, u32 tb, u64 t)
{
    const gs_kernel *kernels = gs_kernels(sim);
    u32 end = kernel + 1;
    if (sim->order.in_order) {
        if (kernel != sim->sched.oldest_unfinished) {
            return;
        }
        while (end < sim->n_launches && kernels[end].done == kernels[end].tbs) {
            end++;
        }
    }
    for (u32 k = kernel; k < end; k++) {
        gs_table_kernel_end(sim, k, kernel, tb, t);
        if (!sim->order.launchers) {
            gs_admit_leave_window(sim, k);
        }
        barrier_passed(sim, k, t);
    }
    gs_admit_plan(sim, t);
}
