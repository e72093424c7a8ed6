/* The scheduler's loop: see scheduler.h. Its event sources are queues that fill in time order; the earliest
   event is next. */
#include "scheduler/scheduler.h"

#include "base/fail.h"
#include "base/mailbox.h"
#include "oracle/oracle_log.h"
#include "scheduler/admission.h"
#include "scheduler/aql_queues.h"
#include "scheduler/child_lists.h"
#include "scheduler/copy_engine.h"
#include "scheduler/dependence_table.h"
#include "scheduler/dispatch.h"
#include "scheduler/learned_footprints.h"
#include "scheduler/pdl.h"
#include "scheduler/placement.h"
#include "scheduler/prologue.h"
#include "scheduler/table_memory.h"
#include "scheduler/wavefront_buffer.h"

void gs_ring_push(gs_sim *sim, gs_ring *r, gs_event e)
{
    gs_event *all = (gs_event *)(void *)((char *)sim + r->at);
    u32 i = r->tail++;
    /* almost always in order already */
    while (i != r->head && all[(i - 1) & r->mask].time > e.time) {
        all[i & r->mask] = all[(i - 1) & r->mask];
        i--;
    }
    all[i & r->mask] = e;
}

/* As gs_ring_push; events at one time go by kernel and TB, in whatever order SMs sent them. */
static void ring_push_tied(gs_sim *sim, gs_ring *r, gs_event e)
{
    gs_event *all = (gs_event *)(void *)((char *)sim + r->at);
    u32 i = r->tail++;
    for (; i != r->head; i--) {
        const gs_event *p = &all[(i - 1) & r->mask];
        if (p->time < e.time || (p->time == e.time && (p->a < e.a || (p->a == e.a && p->b < e.b)))) {
            break;
        }
        all[i & r->mask] = *p;
    }
    all[i & r->mask] = e;
}

static void tb_counts(gs_ctx *ctx, u64 t, u32 kernel, u32 tb)
{
    gs_sim *sim = ctx->sim;
    gs_sched *d = &sim->sched;
    gs_kernel *k = &gs_kernels(sim)[kernel];
    d->end = t;
    d->tbs_done++;
    if (sim->order.tb_edges) {
        gs_table_tb_end(sim, kernel, tb, t);
    }
    if (++k->done == k->tbs) {
        k->record.released = t;
        if (sim->order.tb_edges) {
            gs_admit_table_kernel_end(sim, kernel, tb, t);
        } else {
            d->running -= !gs_launches(sim)[kernel].copies;
            gs_admit_successors(ctx, kernel, tb, t);
            if (sim->order.queues) {
                gs_aql_kernel_end(sim, kernel, t);
            }
            if (d->has_pdl) {
                gs_pdl_kernel_end(sim, t);
            }
        }
        if (++d->kernels_done == sim->n_launches) {
            d->finished = 1;
        }
    }
}

static void copy_goes_on(gs_ctx *ctx, u64 t, u32 kernel, u32 piece)
{
    gs_sim *sim = ctx->sim;
    if (gs_copy_engine_send(ctx, kernel, piece, t)) {
        sim->sched.producer_sm = GS_NO_SM;
        gs_kernel_record *r = &gs_kernels(sim)[kernel].record;
        r->last_end = t;
        sim->sched.hash = gs_mix(gs_mix(sim->sched.hash, r->first_dispatch ^ t << 1), (u64)kernel << 32);
        gs_oracle_end(sim, kernel, 0, t);
        tb_counts(ctx, t, kernel, 0);
    }
}

/* All stores of the TB are acknowledged. */
static void tb_complete(gs_ctx *ctx, u64 t, u32 kernel, u32 tb, const gs_departed *from)
{
    gs_sim *sim = ctx->sim;
    sim->sched.producer_sm = from->sm;
    sim->sched.hash = gs_mix(sim->sched.hash, t ^ (u64)kernel << 44 ^ (u64)tb << 12);
    gs_oracle_end(sim, kernel, tb, t);
    if (sim->order.lists) {
        gs_child_lists_tb_end(sim, from);
    }
    if (!sim->order.footprints || !gs_footprints_record(sim, kernel, tb, t)) {
        tb_counts(ctx, t, kernel, tb);
    }
    if (sim->order.nodes) {
        gs_wavefront_tb_end(sim, t);
    }
}

/* `what`: the entry of its stores, its slot, and 1 if it is complete. */
static void tb_left_sm(gs_ctx *ctx, u64 t, u32 sm, u32 what, u64 end)
{
    gs_sim *sim = ctx->sim;
    gs_sched *d = &sim->sched;
    u32 slot = what >> 1 & (GS_TBS - 1);
    gs_resident *r = gs_residents_of(sim, sm) + slot;
    gs_kernel *k = &gs_kernels(sim)[r->kernel];
    gs_sm_load *l = GS_TABLE(sim, gs_sm_load, at_sm_loads) + sm;
    gs_placement_free(sim, sm, k->shape, r->rotate, slot);
    if (GS_UNLIKELY(sim->order.reserve)) {
        d->newer_warps -= r->kernel > d->oldest_undispatched ? gs_dispatch_warps(sim, k) : 0;
    }
    if (r->in_prologue) {
        gs_fail(sim, GS_ERR_ARG,
                "TB %u of kernel %u has ended before it might go on: no DEPEND in its program", r->tb,
                r->kernel);
    }
    d->releases++;
    if (l->tbs == 0) {
        l->busy += t - l->since;
        l->idle_at = d->idle;
        d->idle_sms++;
        gs_dispatch_port_sharers(ctx, sm, t + sim->start_latency, 0);
    }
    k->record.last_end = gs_max(k->record.last_end, end);
    k->record.busy += end - r->start;
    d->hash = gs_mix(gs_mix(d->hash, r->start ^ end << 1), (u64)r->kernel << 32 | r->tb);
    gs_tb_record *records = GS_TABLE(sim, gs_tb_record, at_tb_records);
    if (d->tb_tail - d->tb_head < sim->tb_room) {
        records[d->tb_tail++ % sim->tb_room] = (gs_tb_record){
            r->ready, r->dispatch, r->start, end, r->kernel, r->tb, sm, slot, r->last_kernel, r->last_tb};
    }
    if (d->has_pdl && !r->triggered) {
        gs_pdl_trigger(sim, r, t);
    }
    const gs_departed departed = {sm, r->lists, r->missing};
    if (what & 1) {
        tb_complete(ctx, t, r->kernel, r->tb, &departed);
    } else {
        GS_TABLE(sim, gs_departed, at_departed)[sm * GS_STORE_OWNERS + (what >> 8)] = departed;
    }
}

enum { SOURCE_RELEASE, SOURCE_COMPLETE, SOURCE_READY, SOURCE_ADMIT, SOURCE_WINDOW };

static u64 next_of(const gs_sim *sim, const gs_ring *r)
{
    const gs_event *all = (const gs_event *)(const void *)((const char *)sim + r->at);
    return r->head == r->tail ? GS_NEVER : all[r->head & r->mask].time;
}

/* The earlier of two; at one time the first stays. */
static inline u64 sooner(u64 time, u32 whose, u64 first, u32 *source)
{
    *source = time < first ? whose : *source;
    return time < first ? time : first;
}

static u64 next_event(const gs_sim *sim, u32 *source)
{
    const gs_sched *d = &sim->sched;
    u64 first = next_of(sim, &d->release);
    *source = SOURCE_RELEASE;
    first = sooner(next_of(sim, &d->complete), SOURCE_COMPLETE, first, source);
    first = sooner(next_of(sim, &d->ready), SOURCE_READY, first, source);
    first = sooner(next_of(sim, &d->admit), SOURCE_ADMIT, first, source);
    return sooner(d->admit_at, SOURCE_WINDOW, first, source);
}

u64 gs_sched_next(const gs_sim *sim)
{
    u32 source;
    return next_event(sim, &source);
}

static void run_event(gs_ctx *ctx, u32 source)
{
    gs_sim *sim = ctx->sim;
    gs_sched *d = &sim->sched;
    u64 t = gs_sched_next(sim);
    u32 hint = GS_NONE;
    gs_event e = {0};
    gs_idle_account(sim, t);
    if (source != SOURCE_WINDOW) {
        gs_ring *const rings[] = {&d->release, &d->complete, &d->ready, &d->admit};
        gs_ring *r = rings[source];
        e = *gs_ring_head(sim, r);
        r->head++;
    }
    if (source == SOURCE_RELEASE) {
        hint = e.a;
        tb_left_sm(ctx, t, e.a, e.b, (u64)e.what << 32 | e.pad);
    } else if (source == SOURCE_COMPLETE) {
        tb_complete(ctx, t, e.a, e.b, GS_TABLE(sim, gs_departed, at_departed) + e.what);
    } else if (source == SOURCE_READY && e.what == GS_EVENT_RECORDED) {
        d->producer_sm = e.pad;
        tb_counts(ctx, t, e.a, e.b);
    } else if (source == SOURCE_READY) {
        gs_table_event(sim, e);
        if (e.what == GS_EVENT_KERNEL_END && sim->order.launchers) {
            gs_admit_leave_window(sim, e.a); /* not before the host has seen it */
        }
        gs_admit_plan(sim, t); /* entries may be free again */
    } else if (source == SOURCE_ADMIT && e.what == GS_EVENT_COPY) {
        copy_goes_on(ctx, t, e.a, e.b);
    } else if (source == SOURCE_ADMIT && e.what == GS_EVENT_PDL_SLOT) {
        gs_pdl_slot_free(sim, t);
    } else if (source == SOURCE_ADMIT && e.what == GS_EVENT_LAUNCHED) {
        gs_kernel_ready(sim, e.a, t, e.b, e.pad);
    } else if (source == SOURCE_ADMIT && e.what == GS_EVENT_PRELAUNCHED) {
        gs_table_kernel_condition_met(sim, e.a, t, GS_NONE, GS_NONE);
    } else if (source == SOURCE_ADMIT && e.what == GS_EVENT_QUANTUM) {
        gs_aql_quantum(sim, t);
    } else if (source == SOURCE_ADMIT) {
        gs_admit_concurrent(ctx, e.a, t);
        gs_admit_kernel_start(sim, e.a, e.b, e.pad, t);
    } else {
        gs_admit_next(sim, t);
    }
    gs_prologue_send(ctx);
    gs_dispatch(ctx, t, hint);
    gs_table_memory_send(ctx, t);
    gs_idle_classify(sim);
}

/* A reply from memory: what waited for room to request more goes on. */
static void table_answers(gs_ctx *ctx, u64 pay, u64 t)
{
    gs_sim *sim = ctx->sim;
    int behind = gs_table_memory_is_congested(sim);
    gs_table_memory_reply(sim, pay, t);
    gs_table_memory_send(ctx, t);
    if (behind && !gs_table_memory_is_congested(sim)) {
        gs_idle_account(sim, t);
        if (sim->order.nodes) {
            gs_wavefront_fill(sim, t);
        }
        gs_dispatch(ctx, t, GS_NONE);
        gs_table_memory_send(ctx, t);
        gs_idle_classify(sim);
    }
}

void gs_sched_run(gs_ctx *ctx)
{
    gs_sim *sim = ctx->sim;
    gs_sched *d = &sim->sched;
    const gs_msg *m;
    u32 n = gs_mailbox_take(ctx, sim->boxes - 1, &m, GS_PREFETCH_NOTHING, NULL), i = 0, source;
    u64 end = ctx->q0 + sim->quantum;
    ctx->t->events += n;
    for (u32 j = 0; j < n; j++) {
        if (GS_PAY_KIND(m[j].pay) == GS_MSG_DONE) {
            /* rarely in the host's caches */
            __builtin_prefetch(gs_residents_of(sim, gs_key_sender(m[j].key)) + GS_PAY_WARP(m[j].pay));
        }
    }
    for (;;) {
        u64 event = next_event(sim, &source);
        u64 message = i < n ? gs_msg_time(ctx, &m[i]) : GS_NEVER;
        if (message <= event && message != GS_NEVER && GS_PAY_KIND(m[i].pay) == GS_MSG_SYNC) {
            u32 sm = gs_key_sender(m[i].key);
            gs_pdl_trigger(sim, gs_residents_of(sim, sm) + GS_PAY_WARP(m[i].pay), message);
            i++;
        } else if (message <= event && message != GS_NEVER && GS_PAY_KIND(m[i].pay) == GS_MSG_TABLE) {
            table_answers(ctx, m[i].pay, message);
            i++;
        } else if (message <= event && message != GS_NEVER && GS_PAY_KIND(m[i].pay) == GS_MSG_COMPLETE) {
            /* not before its release, which came earlier, has been served */
            ring_push_tied(sim, &d->complete,
                           (gs_event){gs_max(message, d->release_free),
                                      (gs_key_sender(m[i].key) & (GS_SENDER_SLICE - 1)) * GS_STORE_OWNERS +
                                          GS_COMPLETE_OWNER(m[i].pay),
                                      gs_start_kernel(sim, m[i].pay), gs_start_tb(sim, m[i].pay), 0});
            i++;
        } else if (message <= event && message != GS_NEVER) {
            /* the chip-wide release server takes one TB after another */
            u64 at = gs_max(message, d->release_free) + (u64)sim->params.gpu_cp.tb_release;
            u64 over = message - sim->done_latency - ((u32)m[i].pay & ((1u << 29) - 1));
            d->release_free = at;
            gs_ring_push(
                sim, &d->release,
                (gs_event){at, (u32)(over >> 32), gs_key_sender(m[i].key),
                           GS_PAY_L1(m[i].pay) << 8 | GS_PAY_WARP(m[i].pay) << 1 | GS_PAY_SLOT(m[i].pay),
                           (u32)over});
            i++;
        } else if (event < end) {
            ctx->t->events++;
            run_event(ctx, source);
            if (d->finished) {
                return;
            }
        } else {
            return;
        }
    }
}

void gs_sched_init(gs_sim *sim)
{
    gs_sched *d = &sim->sched;
    gs_kernel *kernels = gs_kernels(sim);
    const gs_launch *launches = gs_launches(sim);
    d->admit_at = GS_NEVER;
    gs_idle_init(sim);
    for (u32 i = 0; i < sim->n_launches; i++) {
        gs_kernel *k = &kernels[i];
        k->cause_kernel = k->cause_tb = GS_NONE;
        k->record.enqueued = launches[i].enqueued;
        k->record.first_dispatch = GS_NEVER;
        k->record.tbs = k->tbs;
        if (!sim->order.tb_edges) {
            k->unmet = launches[i].preds;
            k->unended_producers = launches[i].early ? launches[i].preds : 0;
            k->per_tb = 0;
            if (k->unmet == 0 && !sim->order.queues) {
                gs_ring_push(sim, &d->admit,
                             (gs_event){launches[i].enqueued + sim->order.launch, GS_EVENT_KERNEL_READY, i,
                                        GS_NONE, GS_NONE});
            }
        }
    }
    gs_admit_plan(sim, 0);
    if (sim->order.queues) {
        gs_aql_init(sim);
    }
}
