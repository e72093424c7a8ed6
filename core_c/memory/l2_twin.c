/* Two partitions of L2, and the twins of lines: see l2_twin.h. */
#include "memory/l2_twin.h"

#include "memory/l2_join.h"
#include "memory/l2_miss.h"
#include "memory/l2_partition.h"
#include "memory/l2_set.h"

/* a load of an SM on this side, for a line whose home is opposite */
typedef struct twin_request {
    gs_slice *s;
    gs_set *set;
    const gs_sender *own;
    const gs_msg *m;
    u32 group, tag, mask, sectors, sm;
    u64 in; /* when it has entered the slice */
    u64 to_home;
} twin_request;

/* Forwards a load to the opposite slice, which treats it as a load of the same SM. */
static void forward(gs_ctx *ctx, const twin_request *r, u64 leave, u64 pay)
{
    const gs_sim *sim = ctx->sim;
    /* no other part sends this SM's loads to that box */
    const gs_sender sender = gs_sender_across(ctx, GS_SENDER_FORWARD + r->sm);
    gs_send(ctx, &sender, sim->sm_boxes + gs_opposite_box(sim, r->group), leave + r->to_home,
            gs_pay_across(pay, 1));
}

/* A load that joins one before it. If that one was forwarded, the home knows when the data are there. */
static void join_twin(gs_ctx *ctx, const twin_request *r, gs_l2_join *join, u64 t)
{
    gs_sim *sim = ctx->sim;
    u64 wait = gs_l2_join_link(sim, join, r->group, t, r->sm, r->sectors);
    if (join->remote) {
        u64 behind = join->reply - sim->twin_latency + 1; /* the first load has left by then */
        forward(ctx, r, gs_max(r->in + wait, behind), r->m->pay | GS_PAY_JOINED | GS_PAY_IN_TRANSIT);
    } else {
        gs_l2_join_reply(ctx, r->s, r->own, r->m, r->sm,
                         gs_max(join->reply, r->in + sim->l2_latency + sim->far_latency + wait));
    }
}

/* All sectors that the load asks for have arrived in the twin. */
static void reply_from_twin(gs_ctx *ctx, const twin_request *r, gs_l2_join *join, u64 start, u64 wait)
{
    const gs_sim *sim = ctx->sim;
    u64 reply = start + wait + sim->l2_latency + sim->far_latency;
    r->s->count.sectors_read += r->sectors;
    if (join) {
        /* loads meet before the way over the fabric (h200_behind.csv: 56 to 76 cycles) */
        gs_l2_join_begin(sim, join, reply, reply - wait - sim->far_latency, r->mask, 0, r->sm);
    }
    r->s->hash = gs_mix(r->s->hash, reply ^ r->m->pay << 8);
    gs_l2_reply(ctx, r->own, r->sm, reply + sim->noc, r->m->pay);
}

/* Allocates a twin, which will be filled over the fabric at time `filled`. */
static void allocate_twin(gs_sim *sim, const twin_request *r, u64 start, u64 filled)
{
    u32 way = gs_l2_victim(0, sim->clock_hand, r->set);
    gs_l2_evict(sim, r->s, r->set, way, start);
    r->set->tag[way] = (u16)r->tag;
    gs_l2_insert(0, (u32)sim->params.gpu_l2.referenced, r->set, way);
    r->set->mask[way] = (u8)r->mask;
    gs_l2_set_fill_time(r->set, way, filled);
}

void gs_l2_twin_load(gs_ctx *ctx, gs_slice *s, gs_set *set, const gs_sender *own, const gs_msg *m, u32 group)
{
    gs_sim *sim = ctx->sim;
    u64 t = gs_msg_time(ctx, m), pay = m->pay;
    twin_request r = {.s = s,
                      .set = set,
                      .own = own,
                      .m = m,
                      .group = group,
                      .tag = GS_PAY_TAG(pay),
                      .mask = GS_PAY_MASK(pay),
                      .sectors = gs_popcount(GS_PAY_MASK(pay)),
                      .sm = gs_key_sender(m->key) & (GS_SENDER_SLICE - 1),
                      .to_home = sim->tag_latency + sim->fabric};
    gs_l2_join *join = gs_l2_join_of(sim, s, pay, r.tag, r.sm);
    r.in = join ? gs_l2_enter(sim, s, t) : t;
    if (join && gs_l2_join_take(sim, join, r.mask, t)) {
        join_twin(ctx, &r, join, t);
        return;
    }
    u64 start = gs_max(gs_l2_look_up(sim, s, r.in, r.sectors), s->port_free);
    /* what the reply waits for the link to the GPC: one from the home is asked for as much later */
    const u64 wait = gs_gpc_link_reserve(sim, group, start, r.sm, r.sectors);
    s->port_free = start + (u64)r.sectors * sim->slice_sector[GS_MSG_LOAD];
    s->count.requests++;
    u64 filled = start + wait + sim->twin_latency;
    u32 hit = gs_l2_match(set, r.tag);
    if (!hit) {
        s->forwarded++;
        allocate_twin(sim, &r, start, filled);
    } else {
        u32 way = gs_ctz(hit);
        gs_l2_touch(0, set, way);
        if (r.mask & ~(u32)set->mask[way]) {
            s->forwarded++;
            set->mask[way] |= (u8)r.mask;
            gs_l2_set_fill_time(set, way, filled);
        } else {
            if (set->pending >> way & 1 && gs_l2_fill_time(set, way, start) <= start) {
                set->pending &= (u16) ~(1u << way);
            }
            if (!(set->pending >> way & 1)) {
                reply_from_twin(ctx, &r, join, start, wait);
                return;
            }
            /* They cross the fabric already. The home knows when they arrive, but for what the first request
               waits for the fabric. */
            s->count.pending_hits++;
            pay |= GS_PAY_IN_TRANSIT;
        }
    }
    if (join) {
        gs_l2_join_begin(sim, join, filled, filled - wait, r.mask, 1, r.sm);
    }
    forward(ctx, &r, start + wait, pay);
}

void gs_l2_twin_send_store(gs_ctx *ctx, u32 group, u64 start, u64 pay, int written)
{
    const gs_sim *sim = ctx->sim;
    const gs_sender sender = gs_sender_across(ctx, GS_SENDER_SLICE + group);
    u64 sectors = written ? 0 : gs_pay_line(0, 0, 15, 0, 0);
    gs_send(ctx, &sender, sim->sm_boxes + gs_opposite_box(sim, group), start + sim->tag_latency + sim->fabric,
            gs_pay_across(pay, 0) & ~sectors);
}

void gs_l2_twin_store(gs_sim *sim, gs_slice *s, gs_set *set, u32 tag, u32 mask, u64 t)
{
    u32 hit = gs_l2_match(set, tag), way = hit ? gs_ctz(hit) : 0;
    if (mask && hit) {
        set->mask[way] |= (u8)mask;
    } else if (mask) {
        way = gs_l2_victim(0, sim->clock_hand, set);
        gs_l2_evict(sim, s, set, way, t);
        set->tag[way] = (u16)tag;
        set->mask[way] = (u8)mask;
        set->pending &= (u16) ~(1u << way);
        gs_l2_insert(0, (u32)sim->params.gpu_l2.referenced, set, way);
    } else if (hit) {
        set->tag[way] = 0;
        set->mask[way] = 0;
        set->pending &= (u16) ~(1u << way);
        set->referenced &= (u16) ~(1u << way);
    }
}

int gs_l2_reply_in_transit(gs_ctx *ctx, gs_slice *s, gs_set *set, const gs_sender *own, const gs_msg *m,
                           u32 sm)
{
    gs_sim *sim = ctx->sim;
    u64 t = gs_msg_time(ctx, m), reply = t + sim->l2_latency;
    u32 mask = GS_PAY_MASK(m->pay), hit = gs_l2_match(set, GS_PAY_TAG(m->pay)), way = hit ? gs_ctz(hit) : 0;
    if (!hit || mask & ~(u32)set->mask[way]) {
        return 0;
    }
    if (set->pending >> way & 1) {
        reply = gs_max(reply, gs_l2_fill_time(set, way, t) + sim->fill_latency);
    }
    u32 sectors = gs_popcount(mask);
    *(m->pay & GS_PAY_JOINED ? &s->count.joined : &s->count.sectors_read) += sectors;
    reply += sim->fabric_back;
    s->hash = gs_mix(s->hash, reply ^ m->pay << 19);
    gs_l2_reply(ctx, own, sm, reply + sim->noc, m->pay & ~(GS_PAY_JOINED | GS_PAY_IN_TRANSIT));
    return 1;
}
