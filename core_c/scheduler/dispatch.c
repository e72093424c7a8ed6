/* Dispatch: selects the next TB, reserves warps for older kernels, and accounts the idle time of SMs by
   reason. */
#include "scheduler/dispatch.h"

#include "base/clock.h"
#include "base/mailbox.h"
#include "scheduler/child_lists.h"
#include "scheduler/cluster.h"
#include "scheduler/placement.h"
#include "scheduler/prologue.h"
#include "scheduler/scheduler.h"
#include "scheduler/table_fetch.h"
#include "scheduler/table_memory.h"
#include "scheduler/user_rule.h"

enum { WHY_DEPENDENCE, WHY_LAUNCH, WHY_NO_TB };

/* Ready kernels: a bit for each rank, and a bit for each word of those. */
void gs_ready_set(gs_sim *sim, u32 kernel)
{
    u32 r = gs_launches(sim)[kernel].rank;
    GS_TABLE(sim, u64, at_ready_words)[r >> 6] |= 1ull << (r & 63);
    GS_TABLE(sim, u64, at_ready_summary)[r >> 12] |= 1ull << (r >> 6 & 63);
}

static void ready_clear(gs_sim *sim, u32 kernel)
{
    u32 r = gs_launches(sim)[kernel].rank;
    u64 *word = GS_TABLE(sim, u64, at_ready_words) + (r >> 6);
    *word &= ~(1ull << (r & 63));
    if (*word == 0) {
        GS_TABLE(sim, u64, at_ready_summary)[r >> 12] &= ~(1ull << (r >> 6 & 63));
    }
}

static int is_ready(const gs_sim *sim, u32 kernel)
{
    u32 r = gs_launches(sim)[kernel].rank;
    return GS_CONST_TABLE(sim, u64, at_ready_words)[r >> 6] >> (r & 63) & 1;
}

u32 gs_ready_tbs(gs_sim *sim, u32 kernel)
{
    const gs_kernel *k = &gs_kernels(sim)[kernel];
    return !is_ready(sim, kernel) ? 0 : k->per_tb ? k->ready : k->tbs - k->dispatched;
}

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

static u32 ready_take(gs_sim *sim, u32 kernel, u32 tb, u64 *ready, u32 *cause_kernel, u32 *cause_tb)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    *ready = k->record.ready;
    *cause_kernel = k->cause_kernel;
    *cause_tb = k->cause_tb;
    k->dispatched++;
    if (!k->per_tb) {
        tb = k->next_tb++;
        if (k->next_tb == k->tbs) {
            ready_clear(sim, kernel);
        }
        return tb;
    }
    u64 *bits = gs_ready_bits(sim, k);
    if (tb == GS_NONE) {
        u32 w = k->next_tb >> 6; /* no earlier word has a ready bit */
        while (!bits[w]) {
            w++;
        }
        tb = w * 64 + gs_ctz(bits[w]);
    }
    bits[tb >> 6] &= ~(1ull << (tb & 63));
    gs_prologue_skip(sim, kernel, tb);
    const gs_tb_conditions *f = &gs_tb_conditions_of(sim, k)[tb];
    if (f->ready > *ready || *cause_kernel == GS_NONE) {
        *ready = gs_max(*ready, f->ready);
        *cause_kernel = f->cause_kernel;
        *cause_tb = f->cause_tb;
    }
    if (--k->ready == 0) {
        ready_clear(sim, kernel);
    }
    return tb;
}

/* Idle time of SMs, by reason. */
void gs_idle_init(gs_sim *sim)
{
    sim->sched.idle_sms = sim->sms;
    sim->sched.idle_reason = WHY_LAUNCH;
}

void gs_idle_account(gs_sim *sim, u64 t)
{
    gs_sched *d = &sim->sched;
    u64 dt = t - d->accounted;
    if (dt == 0) {
        return;
    }
    d->accounted = t;
    u64 *sum = d->idle_reason == WHY_DEPENDENCE ? &d->idle.dependence
               : d->idle_reason == WHY_LAUNCH   ? &d->idle.launch
                                                : &d->idle.no_tb;
    *sum += dt;
    gs_kernel *kernels = gs_kernels(sim);
    gs_idles *k = &kernels[gs_min(d->oldest_undispatched, sim->n_launches - 1)].record.idles;
    u64 *own = d->idle_reason == WHY_DEPENDENCE ? &k->dependence
               : d->idle_reason == WHY_LAUNCH   ? &k->launch
                                                : &k->no_tb;
    *own += dt * d->idle_sms;
}

/* The oldest kernel with TBs left to dispatch. */
static u32 oldest_left(gs_sim *sim)
{
    gs_sched *d = &sim->sched;
    const gs_kernel *kernels = gs_kernels(sim);
    while (d->oldest_undispatched < sim->n_launches &&
           kernels[d->oldest_undispatched].dispatched == kernels[d->oldest_undispatched].tbs) {
        d->oldest_undispatched++;
        if (sim->order.reserve && d->oldest_undispatched < sim->n_launches &&
            !gs_launches(sim)[d->oldest_undispatched].copies) {
            const gs_kernel *k = &kernels[d->oldest_undispatched];
            d->newer_warps -= (k->dispatched - k->done) * gs_dispatch_warps(sim, k);
        }
    }
    return d->oldest_undispatched;
}

/* 1: a TB of this kernel has to wait: its warps are reserved for older kernels. */
static int is_reserved(gs_sim *sim, u32 kernel)
{
    if (kernel <= oldest_left(sim)) {
        return 0;
    }
    u64 all = (u64)sim->sms * (u64)sim->params.gpu_sm.warps;
    u64 warps = sim->sched.newer_warps + gs_dispatch_warps(sim, &gs_kernels(sim)[kernel]);
    return warps * 65536 > all * (65536 - sim->order.reserve);
}

void gs_idle_classify(gs_sim *sim)
{
    gs_sched *d = &sim->sched;
    const gs_kernel *kernels = gs_kernels(sim);
    oldest_left(sim);
    if (d->oldest_undispatched == sim->n_launches) {
        d->idle_reason = WHY_NO_TB;
    } else if (kernels[d->oldest_undispatched].unmet ||
               (kernels[d->oldest_undispatched].admitted && !sim->order.launchers)) {
        d->idle_reason = WHY_DEPENDENCE;
    } else {
        d->idle_reason = WHY_LAUNCH;
    }
}

/* Dispatch. */
void gs_dispatch_port_sharers(gs_ctx *ctx, u32 sm, u64 time, u32 more)
{
    if (ctx->sim->port_sms > 1) {
        gs_send_one(ctx, sm / GS_GROUP, time, GS_SENDER_SCHED,
                    gs_pay_port_sharers(sm % GS_GROUP & ~(ctx->sim->port_sms - 1), more));
    }
}

/* When a TB starts that is dispatched to an SM at time `at`. A cluster of SMs accepts one TB at a time. The
   first TB of an SM starts a fixed time after the first TB of another SM of its TPC. */
static u64 start_of(gs_sim *sim, u32 sm, u32 warps, u32 first, u64 at)
{
    const gs_gpu_cp_params *p = &sim->params.gpu_cp;
    gs_sm_load *loads = GS_TABLE(sim, gs_sm_load, at_sm_loads);
    u32 gpc = sim->gpc_of[sm], begin = gs_gpc_first(sim, gpc);
    u64 *turn = &sim->sched.cluster_free[gpc][sim->cluster_of[sm]];
    at = gs_max(at, *turn);
    *turn = at + (u64)p->cluster_start;
    u64 start = gs_max(at + sim->start_latency, loads[sm].begun);
    gs_sm_load *tpc = &loads[sm - (sm - begin) % (u32)sim->params.gpu.tpc_sms];
    if (first) {
        start = tpc->tpc_sm == sm ? start : gs_max(start, tpc->tpc_free);
        tpc->tpc_free = start + (u64)p->tpc_start * gs_min(warps, (u64)p->tpc_warps);
        tpc->tpc_sm = sm;
    }
    loads[sm].begun = start;
    return start;
}

void gs_dispatch_one(gs_ctx *ctx, u32 kernel, u32 tb, u32 sm, u32 rotate, u32 in_prologue, u64 t)
{
    gs_sim *sim = ctx->sim;
    gs_sched *d = &sim->sched;
    gs_kernel *k = &gs_kernels(sim)[kernel];
    gs_sm_load *l = GS_TABLE(sim, gs_sm_load, at_sm_loads) + sm;
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
    gs_placement_take(sim, sm, k->shape, rotate, &slot, &configure);
    tb = in_prologue ? gs_prologue_next_tb(sim, kernel, sm * GS_TBS + slot)
                     : ready_take(sim, kernel, tb, &ready, &cause_kernel, &cause_tb);
    if (GS_UNLIKELY(gs_launches(sim)[kernel].cooperative)) {
        d->partly = k->dispatched < k->tbs ? kernel + 1 : 0;
    }
    if (GS_UNLIKELY(sim->order.reserve)) {
        d->newer_warps += kernel > d->oldest_undispatched ? gs_dispatch_warps(sim, k) : 0;
    }
    u64 at = gs_max(t, d->start_free);
    d->start_free = at + (u64)sim->params.gpu_cp.tb_start;
    u64 start = start_of(sim, sm, gs_dispatch_warps(sim, k), idle, at);
    if (idle) {
        gs_dispatch_port_sharers(ctx, sm, start, 1);
    }
    if (k->record.first_dispatch == GS_NEVER) {
        k->record.first_dispatch = at;
        if (sim->order.fetch) {
            gs_table_fetch(sim, kernel, t);
        }
    }
    gs_resident *r = gs_residents_of(sim, sm) + slot;
    *r = (gs_resident){ready, at, start, kernel, tb, cause_kernel, cause_tb, rotate, 0, in_prologue, 0, 0, 0};
    if (sim->order.lists) {
        gs_child_lists_tb_start(sim, r);
    }
    gs_send_one(ctx, sm / GS_GROUP, start, GS_SENDER_SCHED,
                gs_pay_start(sim, tb, slot, rotate, configure, kernel, sm % GS_GROUP) |
                    (u64)(k->unended_producers == 0 && !in_prologue) << 63);
}

/* No TB is ready: those of the oldest kernel may run ahead of their conditions. 1: their dispatch made a
   kernel the oldest that has ready TBs and was held back for it. */
static int dispatch_prologues(gs_ctx *ctx, u64 t, u32 hint)
{
    gs_sim *sim = ctx->sim;
    for (;;) {
        u32 kernel = gs_prologue_kernel(sim, oldest_left(sim)), rotate = 0;
        if (kernel != GS_NONE && is_ready(sim, kernel)) {
            return 1;
        }
        u32 sm = kernel == GS_NONE || gs_dispatch_is_held(sim, kernel)
                     ? GS_NONE
                     : gs_placement_find(sim, kernel, hint, &rotate);
        if (sm == GS_NONE) {
            return 0;
        }
        gs_dispatch_one(ctx, kernel, GS_NONE, sm, rotate, 1, t);
    }
}

/* 1: a TB of the kernel was dispatched. */
static inline int dispatch_from(gs_ctx *ctx, u32 kernel, u64 t, u32 hint)
{
    gs_sim *sim = ctx->sim;
    u32 rotate = 0, tb = GS_NONE, sm = GS_NONE;
    if (GS_UNLIKELY(sim->has_clusters) && gs_cluster_tbs(gs_launches(sim) + kernel) > 1) {
        return gs_cluster_dispatch(ctx, kernel, t);
    }
    if (sim->order.placement == 2 && gs_kernels(sim)[kernel].per_tb) {
        sm = gs_placement_near_producer(sim, kernel, hint, &rotate, &tb);
    }
    if (sm == GS_NONE) {
        sm = gs_placement_find(sim, kernel, hint, &rotate);
    }
    if (sm == GS_NONE) {
        return 0;
    }
    gs_dispatch_one(ctx, kernel, tb, sm, rotate, 0, t);
    return 1;
}

/* The first ready rank from `rank` on; in round robin the search wraps around. */
static u32 next_rank(const gs_sim *sim, u32 rank)
{
    u32 r = gs_ready_next(sim, rank);
    return r == GS_NONE && sim->order.rotate && rank ? gs_ready_next(sim, 0) : r;
}

/* A kernel whose TB fits nowhere is passed over; how many kernels are passed over, and how often, is limited.
   They are tried again, first, at the next event. */
void gs_dispatch(gs_ctx *ctx, u64 t, u32 hint)
{
    gs_sim *sim = ctx->sim;
    if (GS_UNLIKELY(sim->rule.next || sim->rule.place)) {
        gs_user_rule_dispatch(ctx, t, hint);
        return;
    }
    const u32 *by_rank = GS_CONST_TABLE(sim, u32, at_rank);
    gs_kernel *kernels = gs_kernels(sim);
    const int turns = sim->order.rotate != 0;
    u32 rank = turns ? sim->sched.next_rank : 0, passed = 0, head = GS_NONE, kept = GS_NONE;
    for (;;) {
        u32 r = next_rank(sim, rank);
        if (r == GS_NONE) {
            if (sim->order.prologue && passed == 0 && dispatch_prologues(ctx, t, hint)) {
                rank = 0;
                kept = GS_NONE;
                continue;
            }
            return;
        }
        u32 kernel = by_rank[r];
        gs_kernel *k = &kernels[kernel];
        if (kernel == head || (sim->order.strict && kernel != oldest_left(sim)) ||
            ((sim->order.lists || sim->order.footprints) && gs_table_memory_is_congested(sim))) {
            return;
        }
        if ((GS_UNLIKELY(sim->order.reserve) && is_reserved(sim, kernel)) ||
            gs_dispatch_is_held(sim, kernel)) {
            /* it fits, but is not allowed: later kernels may go on, however many are passed over */
            if (kernel == kept) {
                return;
            }
            kept = kept == GS_NONE ? kernel : kept;
            rank = r + 1;
            continue;
        }
        if (dispatch_from(ctx, kernel, t, hint)) {
            if (head != GS_NONE) {
                kernels[head].passed_over++;
            }
            k->passed_over = 0;
            if (head == GS_NONE) {
                rank = kept == GS_NONE ? r : 0; /* a kernel that was held back may be the oldest now */
            }
            kept = GS_NONE;
            if (turns) {
                rank = r + 1;
                sim->sched.next_rank = head == GS_NONE ? rank : sim->sched.next_rank;
            }
            continue;
        }
        if (passed++ >= sim->order.bypass || k->passed_over >= (u32)sim->params.scheme.bypass_age) {
            return;
        }
        head = head == GS_NONE ? kernel : head;
        rank = r + 1;
    }
}
