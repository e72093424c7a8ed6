/* An SM's cycles and messages: see sm.h. */
#include "sm/sm.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/mailbox.h"
#include "base/time_series.h"
#include "memory/semaphore.h"
#include "sm/lsu_replies.h"
#include "sm/tb.h"
#include "sm/warp.h"
#include "sm/warp_sync.h"

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

/* Completes the samples that end before the event of cycle c. */
static void complete_samples(gs_ctx *ctx, gs_sm *sm, u64 c)
{
    if (c >= sm->next_sample) {
        gs_sm_sample(ctx, sm, c);
    }
    const gs_clock *clock = gs_clock_of(ctx->sim, sm);
    u64 end = gs_series_sm(ctx->sim, sm, gs_clock_edge(clock, c));
    sm->next_due = gs_min(sm->next_sample, end == GS_NEVER ? end : gs_clock_cycle(clock, end));
}

/* the next cycle in [from, end) with a wake-up, or end */
static inline u64 wheel_next_from(const gs_sm *sm, u64 from, u64 end)
{
    for (u64 c = from; c < end; c += 64) {
        /* 64 cycles from c on are two words of the wheel's map */
        u32 word = c / 64 & (GS_WHEEL / 64 - 1), bit = c & 63;
        u64 x = sm->occupied[word] >> bit | sm->occupied[(word + 1) & (GS_WHEEL / 64 - 1)] << 1 << (63 - bit);
        if (x) {
            return gs_min(c + gs_ctz(x), end);
        }
    }
    return end;
}

static inline u64 wheel_next(const gs_sm *sm, u64 end)
{
    return wheel_next_from(sm, sm->cur, end);
}

u64 gs_sm_next(const gs_sim *sim, const gs_sm *sm)
{
    u64 best = GS_NEVER;
    for (u32 i = 0; i < sm->deferred_n; i++) {
        best = gs_min(best, sm->deferred[i].time);
    }
    /* warps whose time is beyond the wheel only look again in between */
    u64 end = sm->cur + GS_WHEEL, wakes = GS_NEVER;
    for (u64 c = sm->cur; c < end && c < wakes; c++) {
        c = wheel_next_from(sm, c, end);
        for (u64 due = c < end ? sm->wheel[c & (GS_WHEEL - 1)] : 0; due; due &= due - 1) {
            wakes = gs_min(wakes, gs_max(c, sm->warp[gs_ctz(due)].ready));
        }
    }
    return wakes == GS_NEVER ? best : gs_min(best, gs_clock_edge(gs_clock_of(sim, sm), wakes));
}

/* Time jumps to a cycle before which no warp can go on: those that would have looked again before do it
   then. */
static GS_COLD void jump(gs_sm *sm, u64 first)
{
    u64 looks = 0, end = gs_min(first, sm->cur + GS_WHEEL);
    for (u64 c = sm->cur; (c = wheel_next_from(sm, c, end)) < end; c++) {
        u32 b = c & (GS_WHEEL - 1);
        looks |= sm->wheel[b];
        sm->wheel[b] = 0;
        sm->occupied[b >> 6] &= ~(1ull << (b & 63));
    }
    sm->cur = first;
    for (; looks; looks &= looks - 1) {
        u32 w = gs_ctz(looks);
        gs_sm_wake(sm, w, sm->warp[w].ready);
    }
}

static void run_sm(gs_ctx *ctx, gs_sm *sm)
{
    gs_sim *sim = ctx->sim;
    /* the first cycle of the next quantum */
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
            gs_warp_run(ctx, sm, w, c);
        }
    }
}

void gs_sms_run(gs_ctx *ctx, u32 group)
{
    gs_sim *sim = ctx->sim;
    gs_sm *sms = gs_sms(sim) + (size_t)group * GS_GROUP;
    u32 here = (u32)gs_min(GS_GROUP, sim->sms - group * GS_GROUP);
    u64 first = gs_clock_cycle(gs_clock_of(sim, sms), ctx->q0);
    for (u32 i = 0; i < here; i++) {
        /* what every event of an SM touches has left the host's caches since the SM ran last */
        for (u32 at = 0; sms[i].live_tbs && at < offsetof(gs_sm, warp); at += 64) {
            __builtin_prefetch((const char *)&sms[i] + at, 1);
        }
        if (GS_UNLIKELY(i && sms[i].gpc != sms[i - 1].gpc)) {
            first = gs_clock_cycle(gs_clock_of(sim, &sms[i]), ctx->q0);
        }
        if (sms[i].cur < first) {
            jump(&sms[i], first);
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
                                          gs_clock_cycle(gs_clock_of(sim, sm), gs_msg_time(ctx, &m[i])));
            } else if (kind == GS_MSG_START || kind == GS_MSG_PORT_SHARERS || kind == GS_MSG_SYNC) {
                for (u32 j = 0; j < (kind == GS_MSG_PORT_SHARERS ? sim->port_sms : 1); j++) {
                    if (sm[j].deferred_n == GS_DEFERRED_MSGS) {
                        gs_fail(sim, GS_ERR_LIMIT, "more messages to an SM than fit; please report this");
                        return;
                    }
                    sm[j].deferred[sm[j].deferred_n++] = (gs_deferred_msg){gs_msg_time(ctx, &m[i]), m[i].pay};
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
