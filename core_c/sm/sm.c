/* Warps of an SM: see sm.h. */
#include "sm/sm.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/mailbox.h"
#include "base/time_series.h"
#include "memory/semaphore.h"
#include "sm/barrier.h"
#include "sm/lsu.h"
#include "sm/smem_returns.h"
#include "sm/tb.h"
#include "sm/warp_order.h"
#include "sm/warp_sync.h"

/* Warps are picked greedily: once a run of blocks without a wait has begun, its main pipe is the warp's until
   the run ends; what others have for other pipes goes on in the gaps. The next run is that of the warp that
   has waited longest. 1: the warp may go on; 0: it waits for its turn. */
static int take_turn(gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    gs_subcore *b = &sm->sub[wi & 3];
    if (b->owner && b->owner != wi + 1) {
        if (op->uses >> b->owner_pipe & 1) {
            sm->warp[wi].state = GS_WARP_WAITS_RESOURCE;
            sm->warp[wi].since = (u32)c;
            b->waiters |= 1ull << wi;
            return 0;
        }
        return 1;
    }
    if (op->run) {
        b->owner = (u8)(wi + 1);
        b->owner_pipe = (u8)(op->run - 1);
    } else if (b->owner) {
        b->owner = 0;
        if (b->waiters) {
            u32 next = gs_ctz(b->waiters);
            for (u64 left = b->waiters; left; left &= left - 1) {
                u32 i = gs_ctz(left);
                next = sm->warp[i].since < sm->warp[next].since ? i : next;
            }
            b->waiters &= ~(1ull << next);
            b->owner = (u8)(next + 1);
            gs_sm_wake(sm, next, c + 1);
        }
    }
    return 1;
}

/* The same where the oldest goes first, if need be once the one that issues has to wait: a block begins when
   what it needs longest is free, so much earlier as its other parts take longer. */
static int take_turn_by_age(gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    const gs_subcore *b = &sm->sub[wi & 3];
    const int held = b->holder && c <= b->held, holds = held && b->holder == wi + 1;
    u64 free = b->issue > c && b->last <= b->issue ? b->issue : c, end = (free + op->slots) * 64,
        longest = op->slots * 64ull, amount = longest;
    u32 what = GS_RESOURCE_ISSUE;
    for (u32 i = 0; i < op->npipes; i++) {
        u64 e = gs_max(c * 64, b->pipe[op->pipe[i]]) + op->amount[i];
        longest = gs_max(longest, op->amount[i]);
        if (e > end) {
            end = e;
            amount = op->amount[i];
            what = op->pipe[i];
        }
    }
    sm->slack[wi] = (u32)((longest - amount) >> 6);
    u64 go = (end - longest) >> 6;
    if (op->smem) {
        gs_data_array_catch_up(sm, c);
        u64 room = gs_smem_queue_room(sm);
        /* in the cycle in which there is room, too, older ones may wait for it */
        if (room > go || (go <= c && room >= c && sm->waiting[4].waits[GS_RESOURCE_SMEM])) {
            what = GS_RESOURCE_SMEM;
            sm->slack[wi] = 0;
            go = room;
        }
    }
    if (sm->queue && op->smem && !op->npipes) {
        /* it enters behind all that wait */
        u64 room = gs_subcore_queue_room(sm, b);
        if (room > go || (go <= c && (room >= c || sm->waiting[wi & 3].waits[GS_RESOURCE_QUEUE]))) {
            sm->slack[wi] = 0;
            return gs_warp_order_acquire(sm, wi, GS_RESOURCE_QUEUE, gs_max(room, go), c);
        }
    }
    if (holds && go <= c) {
        return 1;
    }
    if (held && !holds && go <= b->held) {
        what = GS_RESOURCE_ISSUE;
        sm->slack[wi] = 0;
        go = b->held + 1;
    }
    return gs_warp_order_acquire(sm, wi, what, go, c);
}

/* A compute block reserves its issue slots behind the sub-core's backlog, or between those of blocks that are
   slower than it, and each pipe for its own count; the warp goes on when the last instruction has issued, and
   its result is there `chain` later. Returns the cycle in which its next block may follow before those of
   older warps, or 0: it must wait, or tensor cores are used, which serve the oldest first (measured,
   h200_shared_steps.csv). */
static u64 compute(gs_sm *sm, u32 wi, const gs_iop *op, u64 c, u32 read_load)
{
    gs_warp *w = &sm->warp[wi];
    gs_subcore *b = &sm->sub[wi & 3];
    gs_tb *tb = &sm->tb[w->tb];
    u64 start = gs_max(c, b->issue), end = 0, *work = (u64 *)(void *)&sm->work;
    for (u32 i = 0; i < op->npipes; i++) {
        u32 p = op->pipe[i];
        u64 e = gs_max(c * 64, b->pipe[p]) + op->amount[i];
        b->pipe[p] = e;
        work[p] += op->amount[i];
        end = gs_max(end, e - op->tail[i]);
    }
    if (op->smem) {
        gs_data_array_catch_up(sm, c);
        u64 e = gs_max(c * 64, sm->smem_free) + op->smem;
        sm->smem_free = e + op->smem_late;
        sm->work.smem += op->smem;
        sm->lsu_free = op->smem_lsu ? gs_max(sm->lsu_free, c) + op->smem_lsu : sm->lsu_free;
        if (op->smem_back != GS_UNNEEDED) {
            b->returned = gs_max(gs_max(c, b->left) * 64, b->returned) + op->smem + op->smem_return;
            sm->shared_done[wi] = (u32)((gs_max(e, b->returned - op->smem_slow) + 63) >> 6);
            gs_smem_returns_add(&sm->smem_returns[wi], sm->shared_done[wi], op->waves);
        }
        end = gs_max(end, e > op->smem_ahead ? e - op->smem_ahead : 0);
    }
    if (sm->queue && op->smem && !op->npipes) {
        gs_subcore_queue_enter(sm, wi, gs_max(c, b->left) + read_load);
    }
    u64 last = (end + 63) >> 6, issued = start + op->slots;
    if (issued > last && start > c && b->last > start) {
        /* blocks that wait for pipes leave slots open all over their span */
        u32 open = (u32)(b->last - start), span = (u32)(b->last - c);
        issued = op->slots <= open ? c + (op->slots * span + open - 1) / open : issued;
    }
    b->issue = start + op->slots;
    last = gs_max(last, issued);
    u64 go = last + op->chain;
    if (op->smem_wait) {
        if (op->smem_back != GS_UNNEEDED) {
            go =
                gs_max(go, gs_smem_returns_before(&sm->smem_returns[wi], op->smem_back) + op->smem_wait - 1u);
        }
    } else if (op->chain) {
        /* what the warp asked of shared memory belongs to the result */
        last = gs_max(last, sm->shared_done[wi]);
        go = last + op->chain;
    }
    b->last = gs_max(b->last, last);
    w->debt = b->debt;
    w->state = GS_WARP_IN_BLOCK;
    tb->stalls.issued += op->issue;
    tb->stalls.scoreboard += go - last;
    tb->stalls.pipe += last - c - op->issue;
    sm->work.warp_instructions += op->issue;
    sm->warp_cycles += go - c;
    gs_sm_wake(sm, wi, go);
    int tensor = op->uses >> GS_PIPE_TENSOR & 1;
    return go == last && last <= b->issue && !tensor ? go : 0;
}

/* Whether the oldest warp goes first to the load/store unit, or the first to its sub-core's queue. 1: this
   one may go on; 0: it waits for its turn. Once the unit's has come it goes, however much else was queued
   meanwhile; nor does one wait for the unit that has waited for credits, `granted`. */
static int take_turn_of_access(gs_sm *sm, u32 wi, const gs_iop *op, u32 turn, int granted, u64 c)
{
    int queued = sm->queue && op->kind == GS_OP_LOAD && op->smem;
    sm->slack[wi] = 0;
    if (!queued && (granted || turn == GS_RESOURCE_LSU)) {
        return 1;
    }
    if (queued && op->count && (i64)sm->warp[wi].k[op->level] + op->count_plus >= (i64)op->count) {
        return 1; /* it is skipped, and enters nothing */
    }
    u32 what = queued ? GS_RESOURCE_QUEUE : GS_RESOURCE_LSU;
    return gs_warp_order_acquire(sm, wi, what, gs_resource_free_at(sm, wi, what), c);
}

/* 1: the slot is empty at cycle c; 0: the warp was parked */
static int slot_wait(gs_sm *sm, u32 wi, u32 slot, u64 c)
{
    gs_warp *w = &sm->warp[wi];
    gs_scoreboard_slot *s = &w->slot[slot];
    if (s->count) {
        w->wait = (u8)(slot + 1);
        w->since = (u32)c;
        return 0;
    }
    if (s->done > c) {
        w->since = (u32)c;
        w->wait = GS_WOKEN;
        gs_sm_wake(sm, wi, s->done);
        return 0;
    }
    return 1;
}

/* 1: the warp has ended; what it loads must have come first */
static int warp_exit(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    for (u32 left = op->uses; left; left &= left - 1) {
        if (!slot_wait(sm, wi, gs_ctz(left), c)) {
            return 0;
        }
    }
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    tb->stalls.issued++;
    sm->work.warp_instructions++;
    sm->warp_cycles++;
    if (--tb->live_warps == 0) {
        gs_tb_end(ctx, sm, w->tb, c + 1);
    } else if (tb->arrived >= tb->live_warps && !tb->polls) {
        gs_barrier_release(ctx->sim, sm, tb, c); /* a warp that ended is waited for no more */
    }
    return 1;
}

/* 1: the code of the warp that goes next, where warp wi is awake, was dropped and is not there again */
static int lacks_code(const gs_sim *sim, gs_sm *sm, u32 wi)
{
    const gs_warp *w = &sm->warp[wi];
    if (w->state == GS_WARP_WAITS_RESOURCE && sim->oldest_first) {
        u32 what = sm->waits_for[wi];
        w = &sm->warp[gs_waiting_with(sm, wi, what)->next[what]];
    }
    return gs_launches(sim)[sm->tb[w->tb].kernel].refetch != 0;
}

/* What a warp's next op needs of L1 has left the host's caches since the SM had its turn: it comes while
 * others run. */
static inline void ahead(const gs_sim *sim, const gs_sm *sm, u32 wi, const gs_iop *next)
{
    if (next->kind == GS_OP_LOAD) {
        gs_lsu_prefetch(sim, sm, wi, next);
    }
}

static void run_warp(gs_ctx *ctx, gs_sm *sm, u32 wi, u64 c)
{
    gs_sim *sim = ctx->sim;
    gs_warp *w = &sm->warp[wi];
    if (w->ready > c) {
        gs_sm_wake(sm, wi, w->ready);
        return;
    }
    gs_tb *tb = &sm->tb[w->tb];
    if (GS_UNLIKELY(sm->code_ready > c) && lacks_code(sim, sm, wi)) {
        if (w->state == GS_WARP_IN_BLOCK || (w->state == GS_WARP_RUNS && !w->wait)) {
            tb->stalls.memory += sm->code_ready - c; /* else it counts from when it began to wait */
            sm->warp_cycles += sm->code_ready - c;
        }
        gs_sm_wake(sm, wi, sm->code_ready);
        return;
    }
    if (w->state == GS_WARP_IN_BLOCK) {
        u32 debt = sm->sub[wi & 3].debt - w->debt;
        if (debt) {
            w->debt += debt;
            tb->stalls.pipe += debt;
            sm->warp_cycles += debt;
            gs_sm_wake(sm, wi, c + debt);
            return;
        }
        w->state = GS_WARP_RUNS;
    }
    u32 turn = GS_RESOURCES;
    int granted;
    const u32 oldest_first = sim->oldest_first;
    if (w->state == GS_WARP_WAITS_RESOURCE) {
        if (oldest_first) {
            wi = gs_warp_order_pop(sm, wi);
            w = &sm->warp[wi];
            tb = &sm->tb[w->tb];
            turn = sm->waits_for[wi];
        }
        tb->stalls.pipe += c - w->since;
        sm->warp_cycles += c - w->since;
        w->state = GS_WARP_RUNS;
    }
    const gs_iop *code = gs_iops(sim) + tb->code;
    for (;;) {
        const gs_iop *op = code + w->pc;
        sm->work.ops++;
        switch (op->kind) {
        case GS_OP_COMPUTE:
            if (!(oldest_first ? take_turn_by_age(sm, wi, op, c) : take_turn(sm, wi, op, c))) {
                sm->work.ops--;
            } else {
                w->pc++;
                u64 at_once = compute(sm, wi, op, c, sim->read_load);
                ahead(sim, sm, wi, op + 1);
                if (oldest_first > GS_OLDEST_FIRST) {
                    gs_warp_order_hold(&sm->sub[wi & 3], wi, at_once);
                }
            }
            if (turn < GS_RESOURCES) {
                gs_warp_order_wake_next(sm, wi, turn, c);
            }
            return;
        case GS_OP_LOAD:
        case GS_OP_STORE:
        case GS_OP_REDUCE:
            granted = w->state == GS_WARP_IN_QUEUE;
            if (granted) {
                tb->stalls.memory += c - w->since;
                sm->warp_cycles += c - w->since;
                w->state = GS_WARP_RUNS;
            }
            if ((oldest_first && !take_turn_of_access(sm, wi, op, turn, granted, c)) ||
                !gs_lsu_access(ctx, sm, wi, op, c)) {
                sm->work.ops--;
                if (turn < GS_RESOURCES) {
                    gs_warp_order_wake_next(sm, wi, turn, c);
                }
                return;
            }
            if (turn < GS_RESOURCES) {
                gs_warp_order_wake_next(sm, wi, turn, c);
                turn = GS_RESOURCES;
            }
            w->pc++;
            if (w->ready > c) {
                gs_sm_wake(sm, wi, w->ready);
                ahead(sim, sm, wi, op + 1);
                return;
            }
            break;
        case GS_OP_WAIT:
            if (w->wait) {
                tb->stalls.memory += c - w->since;
                sm->warp_cycles += c - w->since;
                w->wait = 0;
            }
            if (!slot_wait(sm, wi, gs_scoreboard_slot_of(w, op), c)) {
                sm->work.ops--;
                return;
            }
            w->pc++;
            break;
        case GS_OP_TAKEN:
            w->pc++;
            if (sm->copy_left[wi] > c) {
                tb->stalls.memory += sm->copy_left[wi] - c;
                sm->warp_cycles += sm->copy_left[wi] - c;
                gs_sm_wake(sm, wi, sm->copy_left[wi]);
                return;
            }
            break;
        case GS_OP_BARRIER:
            gs_barrier_arrive(sim, sm, wi, c);
            return;
        case GS_OP_LOOP:
            if (++w->k[op->level] < op->count) {
                w->pc = op->target;
            } else {
                w->k[op->level] = 0;
                w->pc++;
            }
            break;
        case GS_OP_DELAY:
            w->pc++;
            tb->stalls.scoreboard += op->count;
            sm->warp_cycles += op->count;
            gs_sm_wake(sm, wi, c + op->count);
            return;
        case GS_OP_POST:
        case GS_OP_POLL:
        case GS_OP_TRIGGER:
        case GS_OP_DEPEND:
        case GS_OP_TILE:
            if (!gs_sync_op(ctx, sm, wi, op, c)) {
                return;
            }
            break;
        default:
            if (w->wait) {
                tb->stalls.memory += c - w->since;
                sm->warp_cycles += c - w->since;
                w->wait = 0;
            }
            if (!warp_exit(ctx, sm, wi, op, c)) {
                sm->work.ops--;
            }
            return;
        }
    }
}

/* Adds what was counted since the last boundary to the sample that ends there. */
void gs_sm_sample(gs_ctx *ctx, gs_sm *sm, u64 c)
{
    gs_sim *sim = ctx->sim;
    gs_sample *all = (gs_sample *)(void *)((char *)sim + ctx->t->at_samples);
    gs_sample *s = &all[gs_min(sm->sample, GS_SAMPLES - 1)];
    u64 *to = (u64 *)&s->work;
    const u64 *now = (const u64 *)&sm->work;
    u64 *before = (u64 *)&sm->sampled;
    for (u32 j = 0; j < GS_WORK_N; j++) {
        to[j] += now[j] - before[j];
        before[j] = now[j];
    }
    s->warp_cycles += sm->warp_cycles - sm->sampled_warp_cycles;
    sm->sampled_warp_cycles = sm->warp_cycles;
    sm->sample = gs_clock_edge(gs_clock_of(sim, sm), c) / (sim->sample_cycles * sim->period);
    gs_clock_sample(sim, sm);
}

/* Samples that end before the event of cycle c. */
static void complete_samples(gs_ctx *ctx, gs_sm *sm, u64 c)
{
    if (c >= sm->next_sample) {
        gs_sm_sample(ctx, sm, c);
    }
    const gs_clock *clock = gs_clock_of(ctx->sim, sm);
    u64 end = gs_series_sm(ctx->sim, sm, gs_clock_edge(clock, c));
    sm->next_due = gs_min(sm->next_sample, end == GS_NEVER ? end : gs_clock_cycle(clock, end));
}

/* the next cycle in [cur, end) with a wake-up, or end */
static inline u64 wheel_next(const gs_sm *sm, u64 end)
{
    for (u64 c = sm->cur; c < end; c += 64) {
        /* 64 cycles from c on lie in two words of the wheel's map */
        u32 word = c / 64 & (GS_WHEEL / 64 - 1), bit = c & 63;
        u64 x = sm->occupied[word] >> bit | sm->occupied[(word + 1) & (GS_WHEEL / 64 - 1)] << 1 << (63 - bit);
        if (x) {
            return gs_min(c + gs_ctz(x), end);
        }
    }
    return end;
}

u64 gs_sm_next(const gs_sim *sim, const gs_sm *sm)
{
    u64 best = GS_NEVER;
    for (u32 i = 0; i < sm->deferred_n; i++) {
        best = gs_min(best, sm->deferred[i].time);
    }
    u64 c = wheel_next(sm, sm->cur + GS_WHEEL);
    return c < sm->cur + GS_WHEEL ? gs_min(best, gs_clock_edge(gs_clock_of(sim, sm), c)) : best;
}

static void run_sm(gs_ctx *ctx, gs_sm *sm)
{
    gs_sim *sim = ctx->sim;
    /* the first cycle whose edge lies in the next quantum */
    const gs_clock *clock = gs_clock_of(sim, sm);
    u64 end = gs_clock_cycle(clock, ctx->q0 + sim->quantum), events = 0;
    for (;;) {
        u64 c = wheel_next(sm, end);
        if (GS_UNLIKELY(sm->deferred_n)) {
            u32 first = 0;
            for (u32 i = 1; i < sm->deferred_n; i++) {
                if (sm->deferred[i].time < sm->deferred[first].time) {
                    first = i;
                }
            }
            u64 s = gs_clock_cycle(clock, sm->deferred[first].time);
            if (s <= c && s < end) {
                gs_deferred_msg start = sm->deferred[first];
                sm->deferred_n--;
                for (u32 i = first; i < sm->deferred_n; i++) {
                    sm->deferred[i] = sm->deferred[i + 1];
                }
                sm->cur = s;
                if (s >= sm->next_due) {
                    complete_samples(ctx, sm, s);
                }
                if (GS_PAY_KIND(start.pay) == GS_MSG_PORT_SHARERS) {
                    sm->port_sharers += start.pay & 1 ? 1 : ~0u;
                } else if (GS_PAY_KIND(start.pay) == GS_MSG_SYNC) {
                    gs_sync_event(ctx, sm, start.pay, s);
                } else {
                    gs_tb_start(ctx, sm, start);
                }
                continue;
            }
        }
        if (c >= end) {
            sm->cur = end;
            ctx->t->events += events;
            return;
        }
        sm->cur = c;
        if (GS_UNLIKELY(c >= sm->next_due)) {
            complete_samples(ctx, sm, c);
        }
        u32 b = c & (GS_WHEEL - 1);
        u64 due = sm->wheel[b];
        sm->wheel[b] = 0;
        sm->occupied[b >> 6] &= ~(1ull << (b & 63));
        events = 1;
        sm->cur = c + 1;
        while (due) {
            u32 w = gs_ctz(due);
            due &= due - 1;
            run_warp(ctx, sm, w, c);
        }
    }
}

void gs_sms_run(gs_ctx *ctx, u32 group)
{
    gs_sim *sim = ctx->sim;
    gs_sm *sms = gs_sms(sim) + group * GS_GROUP;
    u32 here = (u32)gs_min(GS_GROUP, sim->sms - group * GS_GROUP);
    u64 first = gs_clock_cycle(gs_clock_of(sim, sms), ctx->q0);
    for (u32 i = 0; i < here; i++) {
        /* what every event of an SM touches has left the host's caches since its last turn */
        for (u32 at = 0; sms[i].live_tbs && at < offsetof(gs_sm, warp); at += 64) {
            __builtin_prefetch((const char *)&sms[i] + at, 1);
        }
        if (GS_UNLIKELY(i && sms[i].gpc != sms[i - 1].gpc)) {
            first = gs_clock_cycle(gs_clock_of(sim, &sms[i]), ctx->q0);
        }
        if (sms[i].cur < first) {
            sms[i].cur = first;
        }
    }
    const gs_msg *m;
    u32 n = gs_mailbox_take(ctx, group, &m, GS_PREFETCH_L1_LINES, sms);
    ctx->t->events += n;
    if (gs_lsu_replies(ctx, sms, m, n)) {
        for (u32 i = 0; i < n; i++) {
            u32 kind = GS_PAY_KIND(m[i].pay);
            gs_sm *sm = &sms[GS_PAY_SM(m[i].pay)];
            if (kind == GS_MSG_SYNC && GS_SYNC_WHAT(m[i].pay) == GS_SYNC_POST) {
                gs_tb_stores_acknowledged(ctx, sm, &sm->owner[GS_PAY_L1(m[i].pay)],
                                          gs_clock_cycle(gs_clock_of(sim, sm), gs_key_time(m[i].key)));
            } else if (kind == GS_MSG_START || kind == GS_MSG_PORT_SHARERS || kind == GS_MSG_SYNC) {
                for (u32 j = 0; j < (kind == GS_MSG_PORT_SHARERS ? sim->port_sms : 1); j++) {
                    if (sm[j].deferred_n == GS_DEFERRED_MSGS) {
                        gs_fail(sim, GS_ERR_LIMIT, "more messages to an SM than fit; please report this");
                        return;
                    }
                    sm[j].deferred[sm[j].deferred_n++] = (gs_deferred_msg){gs_key_time(m[i].key), m[i].pay};
                }
            }
        }
    }
    for (u32 i = 0; i < here; i++) {
        if (sms[i].live_tbs | sms[i].deferred_n) {
            run_sm(ctx, &sms[i]);
        }
    }
}
