/* Merged loads (gpu.noc.join_loads): if SMs of a GPC request the same sectors of a line while the first
   request is being served, its reply serves them all. Requests merge at the entry of the slice. A load
   joins until the slice has the data, or until they are back from the other partition; the time that the
   reply then waits for the link to the GPC does not count. */
#pragma once
#include "base/mailbox.h"
#include "memory/gpc_link.h"
#include "memory/l2_reply.h"

/* The last request for a line by the SMs that join each other; NULL: none join. */
static inline gs_l2_join *gs_l2_join_of(const gs_sim *sim, gs_slice *s, u64 pay, u32 tag, u32 sm)
{
    u32 row = GS_PAY_ROW(pay);
    if (GS_LIKELY(!sim->join_loads)) {
        return NULL;
    }
    u64 key = (u64)tag | (u64)row << 16 | (u64)sim->join_group_of[sm] << 32;
    gs_l2_join *j = &s->join[(key * 0x9e3779b97f4a7c15ull >> 32) & (GS_L2_JOINS - 1)];
    if (j->key != key + 1) {
        j->key = key + 1;
        j->until = 0; /* no load joins it: gs_l2_join_begin sets the rest */
    }
    return j;
}

/* an SM's bit, no other's in a GPC of up to 32 SMs */
static inline u32 gs_l2_join_bit(u32 sm)
{
    return 1u << sm % 32;
}

/* 1: the reply to a request for just these sectors is still to come at time t */
static inline int gs_l2_join_is_open(const gs_l2_join *j, u32 mask, u64 t)
{
    return mask == j->mask && t < j->until;
}

/* 1: the load joins the request. A request serves at most sim->join_loads loads. */
static inline int gs_l2_join_take(const gs_sim *sim, gs_l2_join *j, u32 mask, u64 t)
{
    if (!gs_l2_join_is_open(j, mask, t) || j->served >= sim->join_loads) {
        return 0;
    }
    j->served++;
    return 1;
}

/* Records a request that joins no other: loads that arrive before `until` join it. */
static inline void gs_l2_join_begin(const gs_sim *sim, gs_l2_join *j, u64 reply, u64 until, u32 mask,
                                    u32 remote, u32 sm)
{
    *j = (gs_l2_join){j->key,     reply, until + sim->mean_distance, (u8)mask, 1,
                      (u8)remote, 0,     gs_l2_join_bit(sm)};
}

/* How long a load that joins waits for the link to its GPC, ticks. One reply serves several SMs, each only
   once. */
static inline u64 gs_l2_join_link(gs_sim *sim, gs_l2_join *j, u32 group, u64 t, u32 sm, u32 sectors)
{
    u32 bit = gs_l2_join_bit(sm);
    if (j->sms & bit) {
        return gs_gpc_link_reserve(sim, group, t, sm, sectors);
    }
    j->sms |= bit;
    return 0;
}

/* A load that has joined has its data at `reply`. */
static inline void gs_l2_join_reply(gs_ctx *ctx, gs_slice *s, const gs_sender *own, const gs_msg *m, u32 sm,
                                    u64 reply)
{
    s->count.joined += gs_popcount(GS_PAY_MASK(m->pay));
    s->hash = gs_mix(s->hash, reply ^ m->pay << 8);
    gs_l2_reply(ctx, own, sm, reply + ctx->sim->noc, m->pay);
}

/* With merged loads, every load passes the slice's entry: returns when it has passed, ticks. */
static inline u64 gs_l2_enter(const gs_sim *sim, gs_slice *s, u64 t)
{
    u64 in = gs_max(t, s->entry_free);
    s->entry_free = in + sim->entry_hold;
    return in;
}

/* When a load that joins none is looked up: the look-up is a server of its own, beside the data port. A load
   of more than 64 B holds the entry for a second look-up. */
static inline u64 gs_l2_look_up(const gs_sim *sim, gs_slice *s, u64 in, u32 sectors)
{
    s->entry_free += sectors > 2 ? sim->lookup_hold : 0;
    if (!sim->lookup_hold) {
        return in;
    }
    u64 at = gs_max(in, s->lookup_free);
    s->lookup_free = at + sim->lookup_hold;
    return at;
}
