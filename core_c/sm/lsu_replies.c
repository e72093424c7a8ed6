/* Replies of L2 at an SM: see lsu_replies.h. */
#include "sm/lsu_replies.h"

#include "base/clock.h"
#include "memory/l2_reply.h"
#include "sm/credits.h"
#include "sm/l1.h"
#include "sm/ring_barrier.h"
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

/* Times of an SM: a port's is in 64ths of a cycle, and a message's is converted from the beginning of the
   quantum on. */
typedef struct receiver {
    gs_sm *sm;
    u64 *port; /* kept at the first of the SMs that share it */
    u64 begin, add, inverse;
} receiver;

/* A reply passes the port; returns the cycle. */
static GS_ALWAYS_INLINE u32 pass_port(const receiver *r, u64 key, u32 hold)
{
    u64 there = r->begin + (((key >> GS_KEY_TIME) * r->inverse + r->add) >> 44);
    u64 taken = gs_max(*r->port, there) + hold;
    *r->port = taken;
    return (u32)((taken + 63) >> 6);
}

/* A line of a bulk copy is here, for one or more SMs of the group. */
static GS_ALWAYS_INLINE void bulk_line(gs_sim *sim, const receiver *at, const gs_msg *m)
{
    const u32 name = gs_pay_flight(m->pay), hold = sim->reply_hold[0][GS_PAY_MASK(m->pay)];
    gs_sm *from = &gs_sms(sim)[name >> GS_FLIGHT_BITS];
    gs_flight *f = &from->flight[name & (GS_FLIGHTS - 1)];
    u32 i = gs_pay_first_tb(m->pay);
    if (i == 0) {
        f->lines--;
        from->bulk_lines--;
    }
    const u32 group = f->sm[i] / GS_GROUP;
    do {
        const receiver *r = &at[f->sm[i] % GS_GROUP];
        u32 c = pass_port(r, m->key, hold);
        if (sim->hold_late) {
            gs_data_array_fill(r->sm, c, 64);
        }
        gs_ring_line(sim, r->sm, f->slot[i], f->ring, c);
        i++;
    } while (i < f->n && f->sm[i] / GS_GROUP == group);
}

int gs_lsu_replies(gs_ctx *ctx, gs_sm *sms, const gs_msg *m, u32 n)
{
    gs_sim *sim = ctx->sim;
    receiver at[GS_GROUP];
    for (u32 i = 0; i < GS_GROUP; i++) {
        const gs_clock *clock = gs_clock_of(sim, &sms[i]);
        u64 from = (ctx->q0 - clock->origin) * 64, begin = gs_div_by(from, clock->by_period);
        /* (64 * (time - q0) + rest) * inverse */
        u64 rest = from - begin * clock->period;
        at[i] = (receiver){.sm = &sms[i],
                           .port = &sms[i & ~(sim->port_sms - 1)].reply_port,
                           .begin = begin + sim->distance[sms[i].id],
                           .add = rest * clock->inverse,
                           .inverse = 64 * clock->inverse};
    }
    int others = 0;
    for (const gs_msg *end = m + n; m < end; m++) {
        u64 pay = m->pay;
        if (gs_pay_is_bulk_reply(pay)) {
            bulk_line(sim, at, m);
            continue;
        }
        u32 kind = GS_PAY_KIND(pay);
        if (GS_UNLIKELY(kind > GS_MSG_REDUCE)) {
            others = 1;
            continue;
        }
        const receiver *r = &at[GS_PAY_SM(pay)];
        gs_sm *sm = r->sm;
        u32 c = pass_port(r, m->key, sim->reply_hold[kind != GS_MSG_LOAD][GS_PAY_MASK(pay)]),
            place = GS_PAY_L1(pay);
        const u32 pool = gs_credit_pool(sim, kind == GS_MSG_LOAD, (pay & GS_PAY_ASYNC_COPY) != 0);
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
