/* Replies of L2 at an SM: see lsu_replies.h. */
#include "sm/lsu_replies.h"

#include "base/clock.h"
#include "sm/bulk_copy.h"
#include "sm/credits.h"
#include "sm/l1.h"
#include "sm/sm.h"
#include "sm/tb.h"
#include "sm/tb_barrier.h"

/* A line that a warp's scoreboard slot waits for has arrived at cycle c. */
static inline void slot_done(gs_sm *sm, u32 wi, u32 slot, u32 c)
{
    gs_warp *w = &sm->warp[wi];
    gs_scoreboard_slot *ws = &w->slot[slot];
    ws->done = gs_max32(ws->done, c);
    if (--ws->count == 0) {
        if (w->wait == slot + 1) {
            w->wait = GS_WOKEN;
            gs_sm_wake(sm, wi, ws->done);
        }
        if (GS_UNLIKELY(sm->copies_count_at[wi * GS_SLOTS + slot])) {
            gs_tb_barrier_copied(sm, wi, slot, ws->done);
        }
    }
}

int gs_lsu_replies(gs_ctx *ctx, gs_sm *sms, const gs_msg *m, u32 n)
{
    const gs_sim *sim = ctx->sim;
    /* A port's time is in 64ths of a cycle: a message's time is converted from the beginning of the quantum
       on. */
    struct {
        u64 begin, add, inverse;
    } at[GS_GROUP];
    gs_sm *of[GS_GROUP];
    u64 *ports[GS_GROUP];
    for (u32 i = 0; i < GS_GROUP; i++) {
        of[i] = &sms[i];
        ports[i] = &sms[i & ~(sim->port_sms - 1)].reply_port; /* kept at the first of the SMs that share it */
        const gs_clock *clock = gs_clock_of(sim, &sms[i]);
        u64 from = (ctx->q0 - clock->origin) * 64;
        u64 begin = gs_div_by(from, clock->by_period);
        at[i].begin = begin + sim->distance[sms[i].id];
        /* (64 * (time - q0) + rest) * inverse */
        u64 rest = from - begin * clock->period;
        at[i].add = rest * clock->inverse;
        at[i].inverse = 64 * clock->inverse;
    }
    int others = 0;
    for (const gs_msg *end = m + n; m < end; m++) {
        u64 pay = m->pay;
        u32 kind = GS_PAY_KIND(pay);
        if (GS_UNLIKELY(kind > GS_MSG_REDUCE)) {
            others = 1;
            continue;
        }
        u32 who = GS_PAY_SM(pay);
        gs_sm *sm = of[who];
        u64 *port = ports[who];
        u64 there = at[who].begin + (((m->key >> GS_KEY_TIME) * at[who].inverse + at[who].add) >> 44);
        u64 taken = gs_max(*port, there) + sim->reply_hold[kind != GS_MSG_LOAD][GS_PAY_MASK(pay)];
        *port = taken;
        u32 c = (u32)((taken + 63) >> 6), place = GS_PAY_L1(pay);
        const u32 pool = gs_credit_pool(sim, kind == GS_MSG_LOAD, (pay & GS_PAY_ASYNC_COPY) != 0);
        if (GS_UNLIKELY(GS_PAY_SLOT(pay) == GS_SLOT_BULK)) {
            gs_bulk_line(ctx, sm, pay, c);
            continue;
        }
        if (kind == GS_MSG_LOAD) {
            slot_done(sm, GS_PAY_WARP(pay), GS_PAY_SLOT(pay), c);
            if (sim->hold_late) {
                gs_data_array_fill(
                    sm, c, pay & GS_PAY_ASYNC_COPY ? sim->copy_hold[gs_popcount(GS_PAY_MASK(pay))] : 64);
            }
            u32 x = gs_l1_fill(sm, place, c);
            while (GS_UNLIKELY(x)) {
                gs_waiter *waiter = &sm->waiter[x];
                u32 next = waiter->next;
                slot_done(sm, waiter->warp, waiter->slot, c);
                waiter->next = (u16)sm->waiter_free;
                sm->waiter_free = x;
                x = next;
            }
        } else {
            gs_store_owner *o = &sm->owner[GS_PAY_OWNER(pay)];
            if (!o->tb_left) { /* else the warp may belong to another TB now */
                slot_done(sm, GS_PAY_WARP(pay), GS_PAY_SLOT(pay), c);
            }
            gs_tb_stores_acknowledged(ctx, sm, o, c);
        }
        gs_credit_release_at(sim, sm, pool, c);
    }
    return others;
}
