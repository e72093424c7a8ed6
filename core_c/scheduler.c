/* The scheduler part: see scheduler.h. Its event sources are queues that fill in time order; the earliest
 * goes first. */
#include "scheduler.h"

#include "copy.h"
#include "oracle.h"

enum { WHY_DEPENDENCE, WHY_LAUNCH, WHY_NO_TB };

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

/* As gs_ring_push; what is due at one time goes by kernel and TB, in whatever order SMs sent it. */
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

/* ---- ready kernels: a bit a rank, and a bit for each word of those ---- */
void gs_ready_set(gs_sim *sim, u32 kernel)
{
    u32 r = gs_launches(sim)[kernel].rank;
    GS_TABLE(sim, u64, at_ready_words)[r >> 6] |= 1ull << (r & 63);
    GS_TABLE(sim, u64, at_ready_summary)[r >> 12] |= 1ull << (r >> 6 & 63);
}

void gs_ready_clear(gs_sim *sim, u32 kernel)
{
    u32 r = gs_launches(sim)[kernel].rank;
    u64 *word = GS_TABLE(sim, u64, at_ready_words) + (r >> 6);
    *word &= ~(1ull << (r & 63));
    if (*word == 0) {
        GS_TABLE(sim, u64, at_ready_summary)[r >> 12] &= ~(1ull << (r >> 6 & 63));
    }
}

/* the first ready rank at or after `rank`, or GS_NONE */
u32 gs_ready_next(const gs_sim *sim, u32 rank)
{
    const u64 *words = GS_CONST_TABLE(sim, u64, at_ready_words),
              *summary = GS_CONST_TABLE(sim, u64, at_ready_summary);
    u32 n = sim->n_launches;
    if (rank >= n) {
        return GS_NONE;
    }
    u64 x = words[rank >> 6] & (~0ull << (rank & 63));
    if (x) {
        return (rank & ~63u) + gs_ctz(x);
    }
    for (u32 w = (rank >> 6) + 1; w <= (n - 1) >> 6; w = (w | 63) + 1) {
        u64 s = summary[w >> 6] & (~0ull << (w & 63));
        if (s) {
            u32 at = (w & ~63u) + gs_ctz(s);
            return at * 64 + gs_ctz(words[at]);
        }
    }
    return GS_NONE;
}

u32 gs_ready_take(gs_sim *sim, u32 kernel, u32 tb, u64 *ready, u32 *cause_kernel, u32 *cause_tb)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    *ready = k->record.ready;
    *cause_kernel = k->cause_kernel;
    *cause_tb = k->cause_tb;
    k->dispatched++;
    if (!k->fine) {
        tb = k->next_tb++;
        if (k->next_tb == k->tbs) {
            gs_ready_clear(sim, kernel);
        }
        return tb;
    }
    u64 *bits = gs_fine_bits(sim, k);
    if (tb == GS_NONE) {
        u32 w = k->next_tb >> 6; /* no ready bit lies before this word */
        while (!bits[w]) {
            w++;
        }
        tb = w * 64 + gs_ctz(bits[w]);
    }
    bits[tb >> 6] &= ~(1ull << (tb & 63));
    gs_gate_passed(sim, kernel, tb);
    const gs_fine *f = &gs_fine_of(sim, k)[tb];
    if (f->ready > *ready || *cause_kernel == GS_NONE) {
        *ready = gs_max(*ready, f->ready);
        *cause_kernel = f->cause_kernel;
        *cause_tb = f->cause_tb;
    }
    if (--k->ready == 0) {
        gs_ready_clear(sim, kernel);
    }
    return tb;
}

/* ---- idle SM time by reason ---- */
static void account(gs_sim *sim, u64 t)
{
    gs_sched *d = &sim->sched;
    u64 dt = t - d->accounted;
    if (dt == 0) {
        return;
    }
    d->accounted = t;
    u64 *sum = d->why == WHY_DEPENDENCE ? &d->idle.dependence
               : d->why == WHY_LAUNCH   ? &d->idle.launch
                                        : &d->idle.no_tb;
    *sum += dt;
    gs_kernel *kernels = gs_kernels(sim);
    gs_idles *k = &kernels[gs_min(d->oldest, sim->n_launches - 1)].record.idles;
    u64 *own = d->why == WHY_DEPENDENCE ? &k->dependence : d->why == WHY_LAUNCH ? &k->launch : &k->no_tb;
    *own += dt * d->idle_sms;
}

static u32 warps_of(const gs_sim *sim, const gs_kernel *k)
{
    return GS_CONST_TABLE(sim, gs_shape, at_shapes)[k->shape].warps;
}

/* the oldest kernel that has TBs left to dispatch */
static u32 oldest_left(gs_sim *sim)
{
    gs_sched *d = &sim->sched;
    const gs_kernel *kernels = gs_kernels(sim);
    while (d->oldest < sim->n_launches && kernels[d->oldest].dispatched == kernels[d->oldest].tbs) {
        d->oldest++;
        if (sim->order.reserve && d->oldest < sim->n_launches && !gs_launches(sim)[d->oldest].copies) {
            const gs_kernel *k = &kernels[d->oldest];
            d->younger -= (k->dispatched - k->done) * warps_of(sim, k);
        }
    }
    return d->oldest;
}

/* 1: so much of the chip is kept for older kernels that a TB of this one has to wait */
static int is_reserved(gs_sim *sim, u32 kernel)
{
    if (kernel <= oldest_left(sim)) {
        return 0;
    }
    u64 all = (u64)sim->sms * (u64)sim->params.gpu_sm.warps;
    u64 warps = sim->sched.younger + warps_of(sim, &gs_kernels(sim)[kernel]);
    return warps * 65536 > all * (65536 - sim->order.reserve);
}

static void classify(gs_sim *sim)
{
    gs_sched *d = &sim->sched;
    const gs_kernel *kernels = gs_kernels(sim);
    oldest_left(sim);
    if (d->oldest == sim->n_launches) {
        d->why = WHY_NO_TB;
    } else if (kernels[d->oldest].gate || (kernels[d->oldest].admitted && !sim->order.launchers)) {
        d->why = WHY_DEPENDENCE;
    } else {
        d->why = WHY_LAUNCH;
    }
}

/* ---- dispatch ---- */
/* SMs that share a port learn how many of them have TBs */
static void share(gs_ctx *ctx, u32 sm, u64 time, u32 more)
{
    if (ctx->sim->port_sms > 1) {
        gs_send_one(ctx, sm / GS_GROUP, time, GS_SENDER_SCHED,
                    gs_pay_share(sm % GS_GROUP & ~(ctx->sim->port_sms - 1), more));
    }
}

static void dispatch_one(gs_ctx *ctx, u32 kernel, u32 tb, u32 sm, u32 rotate, u32 gated, u64 t)
{
    gs_sim *sim = ctx->sim;
    gs_sched *d = &sim->sched;
    gs_kernel *k = &gs_kernels(sim)[kernel];
    gs_smload *l = GS_TABLE(sim, gs_smload, at_smloads) + sm;
    u32 slot, configure, cause_kernel = GS_NONE, cause_tb = GS_NONE;
    u64 ready = t;
    u32 idle = l->tbs == 0;
    if (idle) {
        l->idle.dependence += d->idle.dependence - l->idle_at.dependence;
        l->idle.launch += d->idle.launch - l->idle_at.launch;
        l->idle.no_tb += d->idle.no_tb - l->idle_at.no_tb;
        l->since = t;
        d->idle_sms--;
    }
    gs_place_take(sim, sm, k->shape, rotate, &slot, &configure);
    tb = gated ? gs_gate_take(sim, kernel, sm * GS_TBS + slot)
               : gs_ready_take(sim, kernel, tb, &ready, &cause_kernel, &cause_tb);
    if (GS_UNLIKELY(sim->order.reserve)) {
        d->younger += kernel > d->oldest ? warps_of(sim, k) : 0;
    }
    u64 at = gs_max(t, d->start_free);
    d->start_free = at + (u64)sim->params.gpu_cp.tb_start;
    u64 start = at + sim->start_latency;
    if (idle) {
        share(ctx, sm, start, 1);
    }
    if (k->record.first_dispatch == GS_NEVER) {
        k->record.first_dispatch = at;
        if (sim->order.fetch) {
            gs_depend_fetch(sim, kernel, t);
        }
    }
    GS_TABLE(sim, gs_resident, at_residents)
    [sm * GS_TBS + slot] =
        (gs_resident){ready, at, start, kernel, tb, cause_kernel, cause_tb, rotate, 0, gated, 0, 0, 0};
    if (sim->order.each) {
        gs_lists_start(sim, GS_TABLE(sim, gs_resident, at_residents) + sm * GS_TBS + slot);
    }
    gs_send_one(ctx, sm / GS_GROUP, start, GS_SENDER_SCHED,
                gs_pay_start(tb, slot, rotate, configure, kernel, sm % GS_GROUP) |
                    (u64)(k->depends == 0 && !gated) << 63);
}

/* no TB is ready: those of the oldest kernel may run ahead of what they need */
static void dispatch_gated(gs_ctx *ctx, u64 t, u32 hint)
{
    gs_sim *sim = ctx->sim;
    for (;;) {
        u32 kernel = gs_gate_kernel(sim, oldest_left(sim)), rotate = 0;
        u32 sm = kernel == GS_NONE ? GS_NONE : gs_place_find(sim, kernel, hint, &rotate);
        if (sm == GS_NONE) {
            return;
        }
        dispatch_one(ctx, kernel, GS_NONE, sm, rotate, 1, t);
    }
}

/* whether a TB of a kernel was dispatched */
static inline int dispatch_from(gs_ctx *ctx, u32 kernel, u64 t, u32 hint)
{
    gs_sim *sim = ctx->sim;
    u32 rotate = 0, tb = GS_NONE, sm = GS_NONE;
    if (sim->order.placement == 2 && gs_kernels(sim)[kernel].fine) {
        sm = gs_place_near(sim, kernel, hint, &rotate, &tb);
    }
    if (sm == GS_NONE) {
        sm = gs_place_find(sim, kernel, hint, &rotate);
    }
    if (sm == GS_NONE) {
        return 0;
    }
    dispatch_one(ctx, kernel, tb, sm, rotate, 0, t);
    return 1;
}

/* the first rank that is ready, from `rank` on; in turn: from there on and round */
static u32 next_rank(const gs_sim *sim, u32 rank)
{
    u32 r = gs_ready_next(sim, rank);
    return r == GS_NONE && sim->order.rotate && rank ? gs_ready_next(sim, 0) : r;
}

/* A kernel whose TB fits nowhere is passed over, so many at once and so often; those passed over are tried
   again, first, with whatever happens next. */
static void dispatch(gs_ctx *ctx, u64 t, u32 hint)
{
    gs_sim *sim = ctx->sim;
    const u32 *by_rank = GS_CONST_TABLE(sim, u32, at_rank);
    gs_kernel *kernels = gs_kernels(sim);
    const int turns = sim->order.rotate != 0;
    u32 rank = turns ? sim->sched.turn : 0, passed = 0, head = GS_NONE, kept = GS_NONE;
    for (;;) {
        u32 r = next_rank(sim, rank);
        if (r == GS_NONE) {
            if (sim->order.prologue && passed == 0) {
                dispatch_gated(ctx, t, hint);
            }
            return;
        }
        u32 kernel = by_rank[r];
        gs_kernel *k = &kernels[kernel];
        if (kernel == head || (sim->order.strict && kernel != oldest_left(sim)) ||
            (sim->order.each && gs_backing_is_behind(sim))) {
            return;
        }
        if (GS_UNLIKELY(sim->order.reserve) && is_reserved(sim, kernel)) {
            /* it fits, but may not: those behind it may go on, however many may be passed over */
            if (kernel == kept) {
                return;
            }
            kept = kept == GS_NONE ? kernel : kept;
            rank = r + 1;
            continue;
        }
        if (dispatch_from(ctx, kernel, t, hint)) {
            kept = GS_NONE;
            if (head != GS_NONE) {
                kernels[head].passed++;
            }
            k->passed = 0;
            rank = head == GS_NONE ? r : rank;
            if (turns) {
                rank = r + 1;
                sim->sched.turn = head == GS_NONE ? rank : sim->sched.turn;
            }
            continue;
        }
        if (passed++ >= sim->order.bypass || k->passed >= (u32)sim->params.scheme.bypass_age) {
            return;
        }
        head = head == GS_NONE ? kernel : head;
        rank = r + 1;
    }
}

/* ---- a TB has ended ---- */
static void tb_counts(gs_ctx *ctx, u64 t, u32 kernel, u32 tb)
{
    gs_sim *sim = ctx->sim;
    gs_sched *d = &sim->sched;
    gs_kernel *k = &gs_kernels(sim)[kernel];
    d->end = t;
    d->tbs_done++;
    if (sim->order.tb_edges) {
        gs_depend_tb_end(sim, kernel, tb, t);
    }
    if (++k->done == k->tbs) {
        k->record.released = t;
        if (sim->order.tb_edges) {
            gs_admit_table_done(sim, kernel, tb, t);
        } else {
            d->running--;
            gs_admit_behind(ctx, kernel, tb, t);
            if (sim->order.queues) {
                gs_queues_end(sim, kernel, t);
            }
            if (d->early) {
                gs_early_end(sim, t);
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
    if (gs_copy_piece(ctx, kernel, piece, t)) {
        sim->sched.sm = GS_NO_SM;
        gs_kernel_record *r = &gs_kernels(sim)[kernel].record;
        r->last_end = t;
        sim->sched.hash = gs_mix(gs_mix(sim->sched.hash, r->first_dispatch ^ t << 1), (u64)kernel << 32);
        gs_oracle_end(sim, kernel, 0, t);
        tb_counts(ctx, t, kernel, 0);
    }
}

/* all that the TB has stored is acknowledged */
static void tb_complete(gs_ctx *ctx, u64 t, u32 kernel, u32 tb, const gs_departed *from)
{
    gs_sim *sim = ctx->sim;
    sim->sched.sm = from->sm;
    sim->sched.hash = gs_mix(sim->sched.hash, t ^ (u64)kernel << 44 ^ (u64)tb << 12);
    gs_oracle_end(sim, kernel, tb, t);
    if (sim->order.each) {
        gs_lists_end(sim, from);
    }
    tb_counts(ctx, t, kernel, tb);
    if (sim->order.nodes) {
        gs_levels_end(sim, t);
    }
}

/* `what`: entry that its stores name, its slot, and 1 if it is complete */
static void tb_left_sm(gs_ctx *ctx, u64 t, u32 sm, u32 what, u64 end)
{
    gs_sim *sim = ctx->sim;
    gs_sched *d = &sim->sched;
    u32 slot = what >> 1 & (GS_TBS - 1);
    gs_resident *r = GS_TABLE(sim, gs_resident, at_residents) + sm * GS_TBS + slot;
    gs_kernel *k = &gs_kernels(sim)[r->kernel];
    gs_smload *l = GS_TABLE(sim, gs_smload, at_smloads) + sm;
    gs_place_free(sim, sm, k->shape, r->rotate, slot);
    if (GS_UNLIKELY(sim->order.reserve)) {
        d->younger -= r->kernel > d->oldest ? warps_of(sim, k) : 0;
    }
    if (r->gated) {
        gs_fail(sim, GS_ERR_ARG,
                "TB %u of kernel %u has ended before it might go on: no DEPEND in its program", r->tb,
                r->kernel);
    }
    d->releases++;
    if (l->tbs == 0) {
        l->busy += t - l->since;
        l->idle_at = d->idle;
        d->idle_sms++;
        share(ctx, sm, t + sim->start_latency, 0);
    }
    k->record.last_end = gs_max(k->record.last_end, end);
    k->record.busy += end - r->start;
    d->hash = gs_mix(gs_mix(d->hash, r->start ^ end << 1), (u64)r->kernel << 32 | r->tb);
    gs_tb_record *records = GS_TABLE(sim, gs_tb_record, at_tb_records);
    if (d->tb_tail - d->tb_head < sim->tb_room) {
        records[d->tb_tail++ % sim->tb_room] = (gs_tb_record){
            r->ready, r->dispatch, r->start, end, r->kernel, r->tb, sm, slot, r->last_kernel, r->last_tb};
    }
    if (d->early && !r->triggered) {
        gs_early_trigger(sim, r, t);
    }
    const gs_departed departed = {sm, r->lists, r->missing};
    if (what & 1) {
        tb_complete(ctx, t, r->kernel, r->tb, &departed);
    } else {
        GS_TABLE(sim, gs_departed, at_departed)[sm * GS_OWNERS + (what >> 8)] = departed;
    }
}

enum { SOURCE_RELEASE, SOURCE_COMPLETE, SOURCE_READY, SOURCE_ADMIT, SOURCE_WINDOW, SOURCES };

static u64 next_of(const gs_sim *sim, const gs_ring *r)
{
    const gs_event *all = (const gs_event *)(const void *)((const char *)sim + r->at);
    return r->head == r->tail ? GS_NEVER : all[r->head & r->mask].time;
}

static u64 next_event(const gs_sim *sim, u32 *source)
{
    const gs_sched *d = &sim->sched;
    const u64 t[SOURCES] = {next_of(sim, &d->release), next_of(sim, &d->complete), next_of(sim, &d->ready),
                            next_of(sim, &d->admit), d->admit_at};
    u32 best = 0;
    for (u32 i = 1; i < SOURCES; i++) {
        best = t[i] < t[best] ? i : best;
    }
    *source = best;
    return t[best];
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
    account(sim, t);
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
    } else if (source == SOURCE_READY) {
        gs_depend_event(sim, e);
        if (e.what == GS_EVENT_KERNEL_END && sim->order.launchers) {
            gs_admit_leave(sim, e.a); /* not before the host has seen it */
        }
        gs_admit_plan(sim, t); /* entries may be free again */
    } else if (source == SOURCE_ADMIT && e.what == GS_EVENT_COPY) {
        copy_goes_on(ctx, t, e.a, e.b);
    } else if (source == SOURCE_ADMIT && e.what == GS_EVENT_EARLY_PLACE) {
        gs_early_place(sim, t);
    } else if (source == SOURCE_ADMIT && e.what == GS_EVENT_LAUNCHED) {
        gs_kernel_ready(sim, e.a, t, e.b, e.pad);
    } else if (source == SOURCE_ADMIT && e.what == GS_EVENT_PRELAUNCHED) {
        gs_depend_gate(sim, e.a, t, GS_NONE, GS_NONE);
    } else if (source == SOURCE_ADMIT && e.what == GS_EVENT_QUANTUM) {
        gs_queues_quantum(sim, t);
    } else if (source == SOURCE_ADMIT) {
        gs_admit_start(sim, e.a, e.b, e.pad, t);
    } else {
        gs_admit_next(sim, t);
    }
    gs_gate_send(ctx);
    dispatch(ctx, t, hint);
    gs_backing_send(ctx, t);
    classify(sim);
}

/* memory has answered: what waited for room to ask goes on */
static void table_answers(gs_ctx *ctx, u64 pay, u64 t)
{
    gs_sim *sim = ctx->sim;
    int behind = gs_backing_is_behind(sim);
    gs_backing_answer(sim, pay, t);
    gs_backing_send(ctx, t);
    if (behind && !gs_backing_is_behind(sim)) {
        account(sim, t);
        if (sim->order.nodes) {
            gs_levels_fill(sim, t);
        }
        dispatch(ctx, t, GS_NONE);
        gs_backing_send(ctx, t);
        classify(sim);
    }
}

void gs_sched_run(gs_ctx *ctx)
{
    gs_sim *sim = ctx->sim;
    gs_sched *d = &sim->sched;
    const gs_msg *m;
    u32 n = gs_mail_take(ctx, sim->boxes - 1, &m, NULL), i = 0, source;
    u64 end = ctx->q0 + sim->quantum;
    ctx->t->events += n;
    for (;;) {
        u64 event = next_event(sim, &source);
        u64 message = i < n ? gs_key_time(m[i].key) : GS_NEVER;
        if (message <= event && message != GS_NEVER && GS_PAY_KIND(m[i].pay) == GS_MSG_SYNC) {
            u32 sm = gs_key_sender(m[i].key);
            gs_early_trigger(
                sim, GS_TABLE(sim, gs_resident, at_residents) + sm * GS_TBS + GS_PAY_WARP(m[i].pay), message);
            i++;
        } else if (message <= event && message != GS_NEVER && GS_PAY_KIND(m[i].pay) == GS_MSG_TABLE) {
            table_answers(ctx, m[i].pay, message);
            i++;
        } else if (message <= event && message != GS_NEVER && GS_PAY_KIND(m[i].pay) == GS_MSG_COMPLETE) {
            /* not before its release, which came earlier, has been served */
            ring_push_tied(sim, &d->complete,
                           (gs_event){gs_max(message, d->release_free),
                                      (gs_key_sender(m[i].key) & (GS_SENDER_SLICE - 1)) * GS_OWNERS +
                                          GS_COMPLETE_OWNER(m[i].pay),
                                      GS_START_KERNEL(m[i].pay), GS_START_TB(m[i].pay), 0});
            i++;
        } else if (message <= event && message != GS_NEVER) {
            /* the chip-wide release server takes TBs one after another */
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
    d->idle_sms = sim->sms;
    d->admit_at = GS_NEVER;
    d->why = WHY_LAUNCH;
    for (u32 i = 0; i < sim->n_launches; i++) {
        gs_kernel *k = &kernels[i];
        k->cause_kernel = k->cause_tb = GS_NONE;
        k->record.enqueued = launches[i].enqueued;
        k->record.first_dispatch = GS_NEVER;
        k->record.tbs = k->tbs;
        if (!sim->order.tb_edges) {
            k->gate = launches[i].preds;
            k->depends = launches[i].early ? launches[i].preds : 0;
            k->fine = 0;
            if (k->gate == 0 && !sim->order.queues) {
                gs_ring_push(sim, &d->admit,
                             (gs_event){launches[i].enqueued + sim->order.launch, GS_EVENT_KERNEL_READY, i,
                                        GS_NONE, GS_NONE});
            }
        }
    }
    gs_admit_plan(sim, 0);
    if (sim->order.queues) {
        gs_queues_init(sim);
    }
}
