/* A group of L2 slices: requests sorted by time go through the slice's entry, look-up and data port; hits are
   served here, misses in l2_miss.c, and what crosses to the other partition in l2_twin.c. */
#include "memory/l2.h"

#include "base/mailbox.h"
#include "base/time_series.h"
#include "memory/gpc_link.h"
#include "memory/l2_host_copy.h"
#include "memory/l2_join.h"
#include "memory/l2_miss.h"
#include "memory/l2_partition.h"
#include "memory/l2_reply.h"
#include "memory/l2_set.h"
#include "memory/l2_twin.h"
#include "memory/partial_sectors.h"
#include "memory/semaphore.h"

/* Features of an L2. They are constants at each call of serve(), so the compiler makes a loop for each kind
   of L2. */
typedef struct features {
    int lru, partitions;
    int partial; /* sectors may be written in part */
    int shared;  /* SMs share requests, look-ups or links */
} features;

/* Values that are the same for all requests of a group. */
typedef struct server {
    gs_ctx *ctx;
    gs_sim *sim;
    const gs_sender *sender;
    u64 l2_latency, noc;
    u32 group;
} server;

typedef struct request {
    const gs_msg *m;
    gs_slice *s;
    gs_set *set;
    u64 t, pay;
    u32 tag, mask, sectors, kind, load, from;
    u64 fabric;       /* of the reply, over the fabric */
    int forwarded;    /* a load that the opposite slice could not answer */
    int through_twin; /* a store that came through the opposite slice, whose twin keeps it */
} request;

/* A request with two partitions, but for loads that serve() gives to gs_l2_twin_load. 1: it is done. */
static GS_ALWAYS_INLINE int pass_partition(const server *v, request *r)
{
    gs_sim *sim = v->sim;
    if (r->tag & GS_ACROSS && r->from >= GS_SENDER_SLICE) {
        gs_l2_twin_store(sim, r->s, r->set, r->tag, r->mask, r->t);
        return 1;
    }
    if (r->tag & GS_ACROSS) {
        r->t += gs_partition_link_reserve(sim, r->s, r->t, r->sectors, r->kind);
        r->tag &= ~GS_ACROSS;
        r->fabric = sim->fabric;
        r->through_twin = r->kind == GS_MSG_STORE;
    } else if (r->from >= GS_SENDER_FORWARD) {
        r->from -= GS_SENDER_FORWARD;
        r->forwarded = 1;
        /* No reply comes back sooner than a hit from here on would, even if the request that it joined is
           already being answered. A load that waited longer for the link than that request may miss it. */
        if (r->pay & GS_PAY_JOINED) {
            const gs_l2_join *first = gs_l2_join_of(sim, r->s, r->pay, r->tag, r->from);
            if (gs_l2_join_is_open(first, r->mask, r->t - sim->tag_latency - sim->fabric)) {
                gs_l2_join_reply(v->ctx, r->s, v->sender, r->m, r->from,
                                 gs_max(first->reply, r->t + sim->l2_latency));
                return 1;
            }
        }
        if (r->pay & GS_PAY_IN_TRANSIT &&
            gs_l2_reply_in_transit(v->ctx, r->s, r->set, v->sender, r->m, r->from)) {
            return 1;
        }
        r->fabric = sim->fabric_back + gs_partition_link_reserve(sim, r->s, r->t, r->sectors, GS_MSG_LOAD);
    }
    return 0;
}

/* A hit: returns when the reply leaves. */
static GS_ALWAYS_INLINE u64 hit_way(const server *v, const request *r, u32 way, u64 start, features f)
{
    gs_sim *sim = v->sim;
    gs_set *set = r->set;
    u64 reply = start + v->l2_latency;
    gs_l2_touch(f.lru, set, way);
    const u32 update = GS_PAY_KIND(r->pay) == GS_MSG_REDUCE;
    if (!r->load && !update) {
        u32 had = set->mask[way];
        set->mask[way] |= (u8)(r->mask | r->mask << 4);
        if (f.partial && GS_UNLIKELY(GS_PAY_WORDS(r->pay) || set->partial >> way & 1)) {
            gs_partial_store(sim, r->s, set, way, had, r->mask, GS_PAY_WORDS(r->pay),
                             start + sim->tag_latency);
        }
    } else if (GS_UNLIKELY(
                   (f.partial && set->partial >> way & 1 && gs_partial_load(sim, r->s, set, way, r->mask)) ||
                   r->mask & ~(u32)set->mask[way])) {
        return gs_l2_sector_miss(sim, r->s, set, r->pay, r->tag, start, way);
    } else if (set->pending >> way & 1) {
        u64 filled = gs_l2_fill_time(set, way, start);
        if (filled <= start) {
            set->pending &= (u16) ~(1u << way);
        } else {
            r->s->count.pending_hits++;
            reply = gs_max(reply, filled + sim->fill_latency);
        }
    }
    if (GS_UNLIKELY(update)) {
        set->mask[way] |= (u8)(r->mask << 4); /* its old value was there */
    }
    return reply;
}

/* Looks up the request's line: returns when the reply leaves. */
static GS_ALWAYS_INLINE u64 access_set(const server *v, const request *r, u64 start, features f)
{
    u32 hit = gs_l2_match(r->set, r->tag);
    if (GS_LIKELY(hit)) {
        return hit_way(v, r, gs_ctz(hit), start, f);
    }
    u64 reply = gs_l2_miss(v->sim, r->s, r->set, r->pay, r->tag, start);
    if (f.partial && GS_UNLIKELY(!r->load && GS_PAY_WORDS(r->pay))) {
        gs_partial_store(v->sim, r->s, r->set, gs_ctz(gs_l2_match(r->set, r->tag)), 0, r->mask,
                         GS_PAY_WORDS(r->pay), start + v->sim->tag_latency);
    }
    return reply;
}

/* Which lines have a twin changes with loads from the opposite partition and with stores, which the twin is
   sent. */
static GS_ALWAYS_INLINE void update_twin(const server *v, const request *r, u64 start)
{
    gs_set *set = r->set;
    u32 twins = set->twins, bit = gs_l2_match(set, r->tag);
    if (r->forwarded || r->through_twin) {
        set->twins = (u16)(twins | bit);
    } else if (!r->load) {
        set->twins = (u16)(twins & ~bit);
    }
    if (r->through_twin || (!r->load && twins & bit)) {
        gs_l2_twin_send_store(v->ctx, v->group, start, r->pay, r->through_twin);
    }
}

static GS_ALWAYS_INLINE void serve_one(const server *v, request *r, features f)
{
    gs_sim *sim = v->sim;
    gs_slice *s = r->s;
    if (f.partitions && pass_partition(v, r)) {
        return;
    }
    gs_l2_join *join = f.shared && r->load ? gs_l2_join_of(sim, s, r->pay, r->tag, r->from) : NULL;
    u64 in = r->t;
    if (GS_UNLIKELY(join != NULL) && !r->forwarded) {
        in = gs_l2_enter(sim, s, r->t);
        if (gs_l2_join_take(sim, join, r->mask, r->t)) {
            u64 wait = gs_l2_join_link(sim, join, v->group, r->t, r->from, r->sectors);
            gs_l2_join_reply(v->ctx, s, v->sender, r->m, r->from,
                             gs_max(join->reply, in + v->l2_latency + wait));
            return;
        }
    }
    u64 start = gs_max(f.shared && r->load ? gs_l2_look_up(sim, s, in, r->sectors) : in, s->port_free);
    s->port_free = start + (u64)r->sectors * sim->slice_sector[r->kind];
    s->count.requests++;
    if (r->load) {
        s->count.sectors_read += r->sectors;
    } else {
        s->count.sectors_written += r->sectors;
    }
    u64 reply = access_set(v, r, start, f);
    if (f.partitions) {
        update_twin(v, r, start);
        reply += r->fabric;
    }
    const u64 wait = f.shared && r->load && !r->forwarded
                         ? gs_gpc_link_reserve(sim, v->group, start, r->from, r->sectors)
                         : 0;
    reply += wait;
    if (GS_UNLIKELY(join != NULL)) {
        gs_l2_join_begin(sim, join, reply, reply - wait, r->mask, 0, r->from);
    }
    s->hash = gs_mix(s->hash, reply ^ r->pay << 19); /* without the place in L1, or the entry of the TB */
    gs_l2_reply(v->ctx, v->sender, r->from, reply + v->noc, r->pay);
}

static __attribute__((noinline)) void table_request(gs_ctx *ctx, u32 group, gs_slice *s, gs_set *set,
                                                    const gs_msg *m);

/* Serves the requests of a group's slices, sorted by time. */
static GS_ALWAYS_INLINE void serve(gs_ctx *ctx, u32 group, const gs_msg *m, u32 n, features f)
{
    gs_sim *sim = ctx->sim;
    /* one sender a group keeps replies of one time in the order in which they were made */
    const gs_sender sender = gs_sender_make(ctx, GS_SENDER_SLICE + group);
    const server v = {ctx, sim, &sender, sim->l2_latency, sim->noc, group};
    gs_slice *slices = gs_slices(sim) + (size_t)group * GS_GROUP;
    gs_set *sets = gs_l2_sets(sim, group * GS_GROUP);
    gs_slice *of[GS_GROUP];
    for (u32 i = 0; i < GS_GROUP; i++) {
        of[i] = &slices[i];
    }
    for (const gs_msg *end = m + n; m < end; m++) {
        u64 pay = m->pay;
        if (f.partitions && (pay & (gs_pay_op(0, 0, 7, 0) | GS_ACROSS)) == GS_ACROSS) { /* a load */
            gs_l2_twin_load(ctx, of[GS_PAY_SLICE(pay)], &sets[GS_PAY_ROW(pay)], &sender, m, group);
            continue;
        }
        u32 kind = GS_PAY_KIND(pay), mask = GS_PAY_MASK(pay);
        request r = {.m = m,
                     .s = of[GS_PAY_SLICE(pay)],
                     .set = &sets[GS_PAY_ROW(pay)],
                     .t = gs_msg_time(ctx, m),
                     .pay = pay,
                     .tag = GS_PAY_TAG(pay),
                     .mask = mask,
                     .sectors = gs_popcount(mask),
                     .kind = kind,
                     .load = kind == GS_MSG_LOAD,
                     .from = gs_key_sender(m->key)};
        if (GS_LIKELY(kind <= GS_MSG_REDUCE)) {
            serve_one(&v, &r, f);
        } else if (kind == GS_MSG_SYNC) {
            gs_semaphore_request(ctx, &sender, r.s, m);
        } else {
            table_request(ctx, group, r.s, r.set, m);
        }
    }
}

/* The scheduler reads or updates a line of its tables: see table_memory.c. It is as far from one partition as
   from the other, so it pays the mean latency between them. */
static __attribute__((noinline)) void table_request(gs_ctx *ctx, u32 group, gs_slice *s, gs_set *set,
                                                    const gs_msg *m)
{
    gs_sim *sim = ctx->sim;
    const features f = {.lru = gs_l2_is_lru(sim)};
    const server v = {.ctx = ctx, .sim = sim, .l2_latency = sim->l2_latency, .group = group};
    u32 kind = GS_PAY_SLOT(m->pay) ? GS_MSG_REDUCE : GS_MSG_LOAD, mask = GS_PAY_MASK(m->pay);
    request r = {.m = m,
                 .s = s,
                 .set = set,
                 /* the tables' own logic reads what it updates */
                 .pay = gs_pay_op(0, 0, kind == GS_MSG_LOAD ? kind : GS_MSG_STORE, 0) |
                        (m->pay & gs_pay_line(0xffff, 8191, 15, 0, 3)),
                 .tag = GS_PAY_TAG(m->pay),
                 .mask = mask,
                 .sectors = gs_popcount(mask),
                 .kind = kind,
                 .load = kind == GS_MSG_LOAD};
    u64 start = gs_max(gs_msg_time(ctx, m), s->port_free), misses = s->misses;
    s->port_free = start + (u64)r.sectors * sim->slice_sector[kind];
    s->count.requests++;
    *(r.load ? &s->count.sectors_read : &s->count.sectors_written) += r.sectors;
    *(r.load ? &s->count.table_read : &s->count.table_written) += r.sectors;
    u64 reply = gs_max(start + sim->l2_latency, access_set(&v, &r, start, f));
    reply += s->misses > misses ? sim->fabric_mean : 0;
    s->hash = gs_mix(s->hash, reply ^ m->pay << 19);
    const gs_sender back = gs_sender_across(ctx, GS_SENDER_SLICE + group);
    gs_send(ctx, &back, sim->boxes - 1, reply - sim->l2_latency + sim->sched.table_memory.way_back, m->pay);
}

static void serve_requests(gs_ctx *ctx, u32 group, const gs_msg *m, u32 n)
{
    const gs_sim *sim = ctx->sim;
    const int lru = gs_l2_is_lru(sim), partial = sim->keep_partial != 0;
    if (sim->partition_boxes) {
        serve(ctx, group, m, n, (features){lru, 1, 1, 1});
    } else if (sim->join_loads || sim->lookup_hold || sim->gpc_sector) {
        serve(ctx, group, m, n, (features){lru, 0, partial, 1});
    } else if (lru) {
        serve(ctx, group, m, n, (features){1, 0, 0, 0});
    } else if (partial) {
        serve(ctx, group, m, n, (features){0, 0, 1, 0});
    } else {
        serve(ctx, group, m, n, (features){0, 0, 0, 0});
    }
}

/* Requests, and pieces of copies from the host among them. */
static void serve_messages(gs_ctx *ctx, u32 group, const gs_msg *m, u32 n)
{
    if (GS_LIKELY(!ctx->sim->copies)) {
        serve_requests(ctx, group, m, n);
        return;
    }
    for (u32 at = 0, i = 0; i <= n; i++) {
        if (i == n || GS_PAY_KIND(m[i].pay) == GS_MSG_HOST_COPY) {
            serve_requests(ctx, group, m + at, i - at);
            if (i < n) {
                gs_l2_host_copy(ctx, group, &m[i]);
            }
            at = i + 1;
        }
    }
}

void gs_slices_run(gs_ctx *ctx, u32 group)
{
    gs_sim *sim = ctx->sim;
    const gs_msg *m;
    u32 n = gs_mailbox_take(ctx, sim->sm_boxes + group, &m, GS_PREFETCH_L2_SETS,
                            gs_l2_sets(sim, group * GS_GROUP));
    ctx->t->events += n;
    while (GS_UNLIKELY(sim->series.interval != 0) && n) {
        /* a sample of the time series ends between two messages */
        u64 due = gs_series_slices(sim, group, gs_msg_time(ctx, m));
        u32 before = 1;
        while (before < n && gs_msg_time(ctx, &m[before]) < due) {
            before++;
        }
        serve_messages(ctx, group, m, before);
        m += before;
        n -= before;
    }
    serve_messages(ctx, group, m, n);
}
