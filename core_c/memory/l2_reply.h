/* Replies of L2 to loads. The lines of a bulk copy go to all TBs that it names, at one time: a message to
   each group of SMs, which names the first TB in the flight. */
#pragma once
#include "base/mailbox.h"

/* The flight of a bulk copy's line: the SM that asked for it, and its number there. */
static inline u32 gs_pay_flight(u64 pay)
{
    return GS_PAY_L1(pay) | GS_PAY_WARP(pay) << 12;
}

static inline u64 gs_pay_of_flight(u32 sm, u32 flight)
{
    u32 both = sm << GS_FLIGHT_BITS | flight;
    return gs_pay_op(both >> 12, GS_SLOT_BULK, GS_MSG_LOAD, sm % GS_GROUP) |
           gs_pay_line(0, 0, 0, both & 4095, 0);
}

/* Of a reply: whether it is a bulk copy's line, and the first TB of its flight that gets it. */
static inline int gs_pay_is_bulk_reply(u64 pay)
{
    return (pay & gs_pay_op(0, 7, 7, 0)) == gs_pay_op(0, GS_SLOT_BULK, GS_MSG_LOAD, 0);
}

static inline u32 gs_pay_first_tb(u64 pay)
{
    return (u32)(pay >> 58 & 7);
}

_Static_assert(GS_CLUSTER_TBS <= 8, "a TB of a flight is named in 3 bits");
_Static_assert(1024 << GS_FLIGHT_BITS <= 1 << 18, "a flight is named in 18 bits");

/* Sends a load's reply to the SM `from`, or the SMs of its flight. */
static inline void gs_l2_reply(gs_ctx *ctx, const gs_sender *s, u32 from, u64 time, u64 pay)
{
    if (GS_LIKELY(GS_PAY_SLOT(pay) != GS_SLOT_BULK)) {
        gs_send(ctx, s, from / GS_GROUP, time, pay);
        return;
    }
    const u32 flight = gs_pay_flight(pay);
    const gs_flight *f = &gs_sms(ctx->sim)[flight >> GS_FLIGHT_BITS].flight[flight & (GS_FLIGHTS - 1)];
    pay &= ~((u64)7 << 58);
    u32 box = f->sm[0] / GS_GROUP;
    gs_send(ctx, s, box, time, pay);
    for (u32 i = 1; i < f->n; i++) {
        if (f->sm[i] / GS_GROUP != box) {
            box = f->sm[i] / GS_GROUP;
            gs_send(ctx, s, box, time, pay | (u64)i << 58);
        }
    }
}
