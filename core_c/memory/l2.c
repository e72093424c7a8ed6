/* L2 slices: sectored, write-back, 16 ways. A set is two host cache lines: tags, sector masks and reference
   bits in the first, fill times in the second. One tag compare covers all ways. */
#include "memory/l2.h"

#include "base/mailbox.h"
#include "base/time_series.h"
#include "memory/address_map.h"
#include "memory/dram.h"
#include "memory/gpc_link.h"
#include "memory/host_copy.h"
#include "memory/l2_partition.h"
#include "memory/partial_sectors.h"
#include "memory/semaphore.h"

#if defined(__SSE2__)
#include <emmintrin.h>
static inline u32 match_ways(const gs_set *s, u32 tag)
{
    __m128i v = _mm_set1_epi16((short)tag);
    __m128i lo = _mm_cmpeq_epi16(v, _mm_load_si128((const __m128i *)(const void *)s->tag));
    __m128i hi = _mm_cmpeq_epi16(v, _mm_load_si128((const __m128i *)(const void *)(s->tag + 8)));
    return (u32)_mm_movemask_epi8(_mm_packs_epi16(lo, hi));
}
#else
static inline u32 match_ways(const gs_set *s, u32 tag)
{
    u32 hit = 0;
    for (u32 i = 0; i < GS_WAYS; i++) {
        hit |= (u32)(s->tag[i] == tag) << i;
    }
    return hit;
}
#endif

static inline void touch(int lru, gs_set *s, u32 way)
{
    s->referenced |= (u16)(1u << way);
    if (lru) {
        u64 o = s->order;
        u32 at = 0;
        while ((o >> 4 * at & 15) != way) {
            at++;
        }
        u64 below = at ? o & ((1ull << 4 * at) - 1) : 0;
        u64 above = at < 15 ? o >> 4 * (at + 1) << 4 * (at + 1) : 0;
        s->order = above | below << 4 | way;
    }
}

/* `random` is the state of a generator; with a clock it is 0 and its hand lies in the uppermost four bits */
static inline u32 victim(int lru, int clock, gs_set *s)
{
    u32 empty = match_ways(s, 0);
    if (empty) {
        return gs_ctz(empty);
    }
    if (lru) {
        return (u32)(s->order >> 60);
    }
    s->random = clock ? s->random : s->random * 1664525u + 1013904223u;
    u32 open = (u16)~s->referenced;
    if (!open) {
        s->referenced = 0;
        open = 0xffff;
    }
    u32 r = s->random >> 28;
    u32 turned = (open >> r | open << (16 - r)) & 0xffff;
    u32 way = (gs_ctz(turned) + r) & 15;
    s->random = clock ? (way + 1) << 28 : s->random;
    return way;
}

/* a line has taken the way; `often` times in 32 it counts as referenced: scans do not push out what is in use
 */
static inline void enter(int lru, u32 often, gs_set *s, u32 way)
{
    s->referenced &= (u16) ~(1u << way);
    if (lru) {
        touch(lru, s, way);
        return;
    }
    s->twins &= (u16) ~(1u << way);
    if ((s->random >> 20 & 31) < often) {
        s->referenced |= (u16)(1u << way);
    }
}

static inline void fill_set(gs_set *s, u32 way, u64 time)
{
    s->fill[way] = (u32)(time >> 9) + 1;
    s->pending |= (u16)(1u << way);
}

/* fill times lie within a second of now, so 32 bits of 512-tick units name them */
static inline u64 fill_get(const gs_set *s, u32 way, u64 now)
{
    return (u64)((i64)(now >> 9) + (i32)(s->fill[way] - (u32)(now >> 9))) << 9;
}

/* the sectors that DRAM delivers for these */
static inline u32 fill_mask(const gs_sim *sim, u32 mask)
{
    return sim->fill_pairs ? mask | (mask & 5) << 1 | (mask & 10) >> 1 : mask;
}

/* What the SMs of a GPC last asked of a line, where they join each other. */
static inline gs_l2_join *joint_of(const gs_sim *sim, gs_slice *s, u64 pay, u32 tag, u32 sm)
{
    u32 row = GS_PAY_ROW(pay);
    if (GS_LIKELY(!sim->join_loads)) {
        return NULL;
    }
    u64 key = (u64)tag | (u64)row << 16 | (u64)sim->join_group_of[sm] << 32;
    gs_l2_join *j = &s->joint[(key * 0x9e3779b97f4a7c15ull >> 32) & (GS_L2_JOINS - 1)];
    if (j->key != key + 1) {
        *j = (gs_l2_join){.key = key + 1};
    }
    return j;
}

/* an SM's bit, no other's in a GPC of up to 32 SMs */
static inline u32 joint_bit(u32 sm)
{
    return 1u << sm % 32;
}

/* Whether just these sectors are still to come for the GPC. Requests meet behind the network, in front of the
   slice, so that they join one until the slice has its reply, or it is back from the other half, however long
   that waits for the link to the GPC then. */
static inline int joint_holds(const gs_l2_join *j, u32 mask, u64 t)
{
    return mask == j->mask && t < j->until;
}

/* 1: a load joins the request, which serves so many, be they of one SM or of several */
static inline int joint_takes(const gs_sim *sim, gs_l2_join *j, u32 mask, u64 t)
{
    if (!joint_holds(j, mask, t) || j->served >= sim->join_loads) {
        return 0;
    }
    j->served++;
    return 1;
}

/* Where loads join, each takes the slice's way in, whether it joins or not: returns when it is in. What comes
   later is looked up and sent behind it. */
static inline u64 way_in(const gs_sim *sim, gs_slice *s, u64 t)
{
    u64 in = gs_max(t, s->entry_free);
    s->entry_free = in + sim->entry_hold;
    return in;
}

/* A load that joins none is looked up, apart from what is sent of others: returns when. One of more than 64 B
   holds the way in for another look-up. */
static inline u64 look_up(const gs_sim *sim, gs_slice *s, u64 in, u32 sectors)
{
    s->entry_free += sectors > 2 ? sim->lookup_hold : 0;
    if (!sim->lookup_hold) {
        return in;
    }
    u64 at = gs_max(in, s->lookup_free);
    s->lookup_free = at + sim->lookup_hold;
    return at;
}

/* A request of that SM that joins none is the one that is joined from now on, by those that come until then.
 */
static inline void joint_set(const gs_sim *sim, gs_l2_join *j, u64 reply, u64 until, u32 mask, u32 away,
                             u32 sm)
{
    *j = (gs_l2_join){j->key, reply, until + sim->mean_distance, (u8)mask, 1, (u8)away, 0, joint_bit(sm)};
}

/* What a request that joins waits for: one reply goes to several SMs, but once to each. */
static inline u64 joint_link(gs_sim *sim, gs_l2_join *j, u32 group, u64 t, u32 sm, u32 sectors)
{
    u32 bit = joint_bit(sm);
    if (j->sms & bit) {
        return gs_gpc_link_take(sim, group, t, sm, sectors);
    }
    j->sms |= bit;
    return 0;
}

/* A request joins one of its GPC and has its data when they pass. */
static void join(gs_ctx *ctx, gs_slice *s, const gs_sender *own, const gs_msg *m, u32 sm, u64 reply)
{
    s->count.joined += gs_popcount(GS_PAY_MASK(m->pay));
    s->hash = gs_mix(s->hash, reply ^ m->pay << 8);
    gs_send(ctx, own, sm / GS_GROUP, reply + ctx->sim->noc, m->pay);
}

/* the DRAM row of a set's line with that tag */
static inline u32 row_of(const gs_sim *sim, u32 tag, u32 at, u32 unit)
{
    return (tag * sim->sets + at - unit * sim->sets) >> sim->row_shift;
}

/* Makes room for a line that is not there; returns from when on the channel has room for what is pushed out.
 */
static inline u64 push_out(gs_sim *sim, gs_slice *s, gs_set *set, u32 way, u64 start)
{
    u32 dirty = (u32)set->mask[way] >> 4;
    if (!dirty) {
        return 0;
    }
    if (GS_UNLIKELY(sim->keep_partial && set->partial >> way & 1)) {
        gs_partial_evict(sim, s, set, way, start + sim->tag_latency);
    }
    gs_dram_write(sim, s, start + sim->tag_latency, gs_popcount(dirty));
    return s->drained > sim->write_ahead ? s->drained - sim->write_ahead : 0;
}

/* A load of an SM on this side for a line whose home is opposite: answered from a twin that has come, or
   passed on to the home. */
static void twin_load(gs_ctx *ctx, gs_slice *s, gs_set *set, const gs_sender *own, const gs_msg *m, u32 group)
{
    gs_sim *sim = ctx->sim;
    u64 t = gs_key_time(m->key), pay = m->pay;
    u32 tag = GS_PAY_TAG(pay), mask = GS_PAY_MASK(pay), sectors = gs_popcount(mask);
    u32 sm = gs_key_sender(m->key) & (GS_SENDER_SLICE - 1);
    gs_l2_join *joint = joint_of(sim, s, pay, tag, sm);
    /* no other part sends that SM's loads to that box */
    const gs_sender forward = gs_sender_across(ctx, GS_SENDER_FORWARD + sm);
    const u32 home = sim->sm_boxes + gs_opposite_box(sim, group);
    const u64 there = sim->tag_latency + sim->fabric;
    const u64 in = joint ? way_in(sim, s, t) : t;
    if (joint && joint_takes(sim, joint, mask, t)) {
        if (joint->away) {
            u64 behind = joint->reply - sim->twin_latency + 1; /* the first one has left by then */
            u64 wait = joint_link(sim, joint, group, t, sm, sectors);
            gs_send(ctx, &forward, home, gs_max(in + wait, behind) + there,
                    gs_pay_across(pay, 1) | GS_PAY_JOINED | GS_PAY_IN_TRANSIT);
        } else {
            u64 wait = joint_link(sim, joint, group, t, sm, sectors);
            join(ctx, s, own, m, sm, gs_max(joint->reply, in + sim->l2_latency + sim->far_latency + wait));
        }
        return;
    }
    u64 start = gs_max(look_up(sim, s, in, sectors), s->port_free);
    /* what the reply waits for the link to the GPC; one that comes across is asked for as much later */
    const u64 wait = gs_gpc_link_take(sim, group, start, sm, sectors);
    s->port_free = start + sectors * sim->slice_sector[GS_MSG_LOAD];
    s->count.requests++;
    u32 hit = match_ways(set, tag), way;
    if (hit) {
        way = gs_ctz(hit);
        touch(0, set, way);
        if ((mask & ~(u32)set->mask[way]) == 0) {
            if (set->pending >> way & 1 && fill_get(set, way, start) <= start) {
                set->pending &= (u16) ~(1u << way);
            }
            if (!(set->pending >> way & 1)) {
                u64 reply = start + wait + sim->l2_latency + sim->far_latency;
                s->count.sectors_read += sectors;
                if (joint) {
                    /* the way there lies before where they meet (h200_behind.csv: 56 to 76 cycles) */
                    joint_set(sim, joint, reply, reply - wait - sim->far_latency, mask, 0, sm);
                }
                s->hash = gs_mix(s->hash, reply ^ pay << 8);
                gs_send(ctx, own, sm / GS_GROUP, reply + sim->noc, pay);
                return;
            }
            /* they are on their way already: the home tells when they are there, less what the first one
               waits for the fabric */
            pay |= GS_PAY_IN_TRANSIT;
        } else {
            set->mask[way] |= (u8)mask;
            fill_set(set, way, start + wait + sim->twin_latency);
        }
    } else {
        way = victim(0, sim->clock_hand, set);
        push_out(sim, s, set, way, start);
        set->tag[way] = (u16)tag;
        enter(0, (u32)sim->params.gpu_l2.referenced, set, way);
        set->mask[way] = (u8)mask;
        fill_set(set, way, start + wait + sim->twin_latency);
    }
    if (joint) {
        u64 reply = start + wait + sim->twin_latency;
        joint_set(sim, joint, reply, reply - wait, mask, 1, sm);
    }
    gs_send(ctx, &forward, home, start + wait + there, gs_pay_across(pay, 1));
}

/* A store tells the side opposite the home: the sectors that an SM there wrote are in its twin, and a twin of
   what an SM on this side wrote (no sectors) is out of date. */
static void twin_tell(gs_ctx *ctx, u32 group, u64 start, u64 pay, int written)
{
    const gs_sim *sim = ctx->sim;
    const gs_sender tell = gs_sender_across(ctx, GS_SENDER_SLICE + group);
    u64 sectors = written ? 0 : gs_pay_line(0, 0, 15, 0, 0);
    gs_send(ctx, &tell, sim->sm_boxes + gs_opposite_box(sim, group), start + sim->tag_latency + sim->fabric,
            gs_pay_across(pay, 0) & ~sectors);
}

static void twin_told(gs_sim *sim, gs_slice *s, gs_set *set, u32 tag, u32 mask, u64 t)
{
    u32 hit = match_ways(set, tag), way = hit ? gs_ctz(hit) : 0;
    if (mask && hit) {
        set->mask[way] |= (u8)mask;
    } else if (mask) {
        way = victim(0, sim->clock_hand, set);
        push_out(sim, s, set, way, t);
        set->tag[way] = (u16)tag;
        set->mask[way] = (u8)mask;
        set->pending &= (u16) ~(1u << way);
        enter(0, (u32)sim->params.gpu_l2.referenced, set, way);
    } else if (hit) {
        set->tag[way] = 0;
        set->mask[way] = 0;
        set->pending &= (u16) ~(1u << way);
        set->referenced &= (u16) ~(1u << way);
    }
}

/* A line that L2 does not have takes a way; returns when the reply leaves. Misses stand apart so that hits,
   of which there are more, keep their variables in registers. */
static __attribute__((noinline)) u64 miss(gs_sim *sim, gs_slice *s, gs_set *set, u64 pay, u32 tag, u64 start)
{
    const int lru = sim->params.gpu_l2.replacement == GS_GPU_L2_REPLACEMENT_LRU;
    u32 way = victim(lru, sim->clock_hand, set), mask = GS_PAY_MASK(pay);
    u64 room = push_out(sim, s, set, way, start);
    set->tag[way] = (u16)tag;
    set->pending &= (u16) ~(1u << way);
    enter(lru, (u32)sim->params.gpu_l2.referenced, set, way);
    if (GS_PAY_KIND(pay) != GS_MSG_LOAD) {
        set->mask[way] = (u8)(mask | mask << 4);
        return gs_max(start + sim->l2_latency, room);
    }
    s->misses++;
    u32 row = row_of(sim, tag, GS_PAY_ROW(pay), GS_PAY_SLICE(pay)), fill = fill_mask(sim, mask);
    u64 filled = gs_dram_read(sim, s, start + sim->tag_latency, row, gs_popcount(fill));
    set->mask[way] = (u8)fill;
    fill_set(set, way, filled);
    return gs_max(filled + sim->fill_latency, room);
}

/* the same for a load of sectors that L2 does not have of a line */
static __attribute__((noinline)) u64 widen(gs_sim *sim, gs_slice *s, gs_set *set, u64 pay, u32 tag, u64 start,
                                           u32 way)
{
    u32 fill = fill_mask(sim, GS_PAY_MASK(pay)), have = set->mask[way];
    s->misses++;
    u32 row = row_of(sim, tag, GS_PAY_ROW(pay), GS_PAY_SLICE(pay));
    u64 filled = gs_dram_read(sim, s, start + sim->tag_latency, row, gs_popcount(fill & ~have));
    if (set->pending >> way & 1) {
        filled = gs_max(filled, fill_get(set, way, start));
    }
    set->mask[way] = (u8)(have | fill);
    fill_set(set, way, filled);
    return filled + sim->fill_latency;
}

/* The scheduler reads or updates a line of its tables: see table_memory.c. It lies between the halves of L2,
   so its way to either is the mean. */
static __attribute__((noinline)) void table_request(gs_ctx *ctx, u32 group, gs_slice *s, gs_set *set,
                                                    const gs_msg *m)
{
    gs_sim *sim = ctx->sim;
    const int lru = sim->params.gpu_l2.replacement == GS_GPU_L2_REPLACEMENT_LRU;
    u32 kind = GS_PAY_SLOT(m->pay) ? GS_MSG_REDUCE : GS_MSG_LOAD, load = kind == GS_MSG_LOAD;
    u32 tag = GS_PAY_TAG(m->pay), mask = GS_PAY_MASK(m->pay), sectors = gs_popcount(mask);
    u64 pay = gs_pay_op(0, 0, kind, 0) | (m->pay & gs_pay_line(0xffff, 8191, 15, 0, 3));
    u64 start = gs_max(gs_key_time(m->key), s->port_free), reply = start + sim->l2_latency;
    s->port_free = start + (u64)sectors * sim->slice_sector[kind];
    s->count.requests++;
    *(load ? &s->count.sectors_read : &s->count.sectors_written) += sectors;
    *(load ? &s->count.table_read : &s->count.table_written) += sectors;
    u64 misses = s->misses;
    u32 hit = match_ways(set, tag);
    if (!hit) {
        reply = gs_max(reply, miss(sim, s, set, pay, tag, start));
    } else {
        u32 way = gs_ctz(hit);
        touch(lru, set, way);
        if (!load) {
            set->mask[way] |= (u8)(mask | mask << 4);
        } else if (mask & ~(u32)set->mask[way]) {
            reply = gs_max(reply, widen(sim, s, set, pay, tag, start, way));
        } else if (set->pending >> way & 1) {
            u64 filled = fill_get(set, way, start);
            if (filled <= start) {
                set->pending &= (u16) ~(1u << way);
            } else {
                s->count.pending_hits++;
                reply = gs_max(reply, filled + sim->fill_latency);
            }
        }
    }
    reply += s->misses > misses ? sim->fabric_mean : 0;
    s->hash = gs_mix(s->hash, reply ^ m->pay << 19);
    const gs_sender back = gs_sender_across(ctx, GS_SENDER_SLICE + group);
    gs_send(ctx, &back, sim->boxes - 1, reply - sim->l2_latency + sim->sched.table_memory.way_back, m->pay);
}

/* A load of sectors that are on their way to the half opposite, or that has joined one there: they cross
   once, so that it takes nothing here. 0: the line has gone, and must be asked for again. */
static int behind(gs_ctx *ctx, gs_slice *s, gs_set *set, const gs_sender *own, const gs_msg *m, u32 sm)
{
    gs_sim *sim = ctx->sim;
    u64 t = gs_key_time(m->key), reply = t + sim->l2_latency;
    u32 mask = GS_PAY_MASK(m->pay), hit = match_ways(set, GS_PAY_TAG(m->pay)), way = hit ? gs_ctz(hit) : 0;
    if (!hit || mask & ~(u32)set->mask[way]) {
        return 0;
    }
    if (set->pending >> way & 1) {
        reply = gs_max(reply, fill_get(set, way, t) + sim->fill_latency);
    }
    u32 sectors = gs_popcount(mask);
    *(m->pay & GS_PAY_JOINED ? &s->count.joined : &s->count.sectors_read) += sectors;
    reply += sim->fabric_back;
    s->hash = gs_mix(s->hash, reply ^ m->pay << 19);
    gs_send(ctx, own, sm / GS_GROUP, reply + sim->noc, m->pay & ~(GS_PAY_JOINED | GS_PAY_IN_TRANSIT));
    return 1;
}

/* Serves the requests of a group's slices, sorted by time. The last four are constants where it is called;
   `shared`: SMs share requests, look-ups or links. */
static inline __attribute__((always_inline)) void serve(gs_ctx *ctx, u32 group, const gs_msg *m, u32 n,
                                                        int lru, int halves, int open_lines, int shared)
{
    gs_sim *sim = ctx->sim;
    gs_slice *slices = gs_slices(sim) + group * GS_GROUP;
    gs_set *sets = GS_TABLE(sim, gs_set, at_sets) + (size_t)group * GS_GROUP * sim->sets;
    const u64 l2_latency = sim->l2_latency, noc = sim->noc;
    const u32 *slice_sector = sim->slice_sector;
    /* one sender a group: replies of the same time stay in the order in which they were made */
    const gs_sender sender = gs_sender_make(ctx, GS_SENDER_SLICE + group);
    gs_slice *of[GS_GROUP];
    for (u32 i = 0; i < GS_GROUP; i++) {
        of[i] = &slices[i];
    }
    for (const gs_msg *end = m + n; m < end; m++) {
        u64 t = gs_key_time(m->key), pay = m->pay;
        u32 tag = GS_PAY_TAG(pay), mask = GS_PAY_MASK(pay), kind = GS_PAY_KIND(pay);
        u32 load = kind == GS_MSG_LOAD, sectors = gs_popcount(mask);
        u32 from = gs_key_sender(m->key);
        gs_slice *s = of[GS_PAY_SLICE(pay)];
        gs_set *set = &sets[GS_PAY_ROW(pay)];
        if (GS_UNLIKELY(kind > GS_MSG_REDUCE)) {
            if (kind == GS_MSG_SYNC) {
                gs_semaphore_request(ctx, &sender, s, m->key, pay);
            } else {
                table_request(ctx, group, s, set, m);
            }
            continue;
        }
        u64 across = 0;    /* time over the fabric, back */
        int forwarded = 0; /* a load has come from the half opposite, where it could not join */
        int passed = 0;    /* a store has come through the side opposite, which keeps what it writes */
        if (halves) {
            if (tag & GS_ACROSS && load) {
                twin_load(ctx, s, set, &sender, m, group);
                continue;
            }
            if (tag & GS_ACROSS && from >= GS_SENDER_SLICE) {
                twin_told(sim, s, set, tag, mask, t);
                continue;
            }
            if (tag & GS_ACROSS) {
                t += gs_partition_link_take(sim, s, t, sectors, kind);
                tag &= ~GS_ACROSS;
                across = sim->fabric;
                passed = kind == GS_MSG_STORE;
            } else if (from >= GS_SENDER_FORWARD) {
                from -= GS_SENDER_FORWARD;
                forwarded = 1;
                /* nothing can be back sooner than a hit from here on, be the first one's reply on its way;
                   one that has waited for the link for longer than the first's takes may miss it */
                if (pay & GS_PAY_JOINED) {
                    const gs_l2_join *first = joint_of(sim, s, pay, tag, from);
                    if (joint_holds(first, mask, t - sim->tag_latency - sim->fabric)) {
                        join(ctx, s, &sender, m, from, gs_max(first->reply, t + l2_latency));
                        continue;
                    }
                }
                if (pay & GS_PAY_IN_TRANSIT && behind(ctx, s, set, &sender, m, from)) {
                    continue;
                }
                across = sim->fabric_back + gs_partition_link_take(sim, s, t, sectors, GS_MSG_LOAD);
            }
        }
        gs_l2_join *joint = shared && load ? joint_of(sim, s, pay, tag, from) : NULL;
        u64 in = t;
        if (GS_UNLIKELY(joint != NULL) && !forwarded) {
            in = way_in(sim, s, t);
            if (joint_takes(sim, joint, mask, t)) {
                u64 wait = joint_link(sim, joint, group, t, from, sectors);
                join(ctx, s, &sender, m, from, gs_max(joint->reply, in + l2_latency + wait));
                continue;
            }
        }
        u64 start = gs_max(shared && load ? look_up(sim, s, in, sectors) : in, s->port_free);
        s->port_free = start + (u64)sectors * slice_sector[kind];
        s->count.requests++;
        u64 reply = start + l2_latency;
        u32 hit = match_ways(set, tag);
        if (!load) {
            s->count.sectors_written += sectors;
        } else {
            s->count.sectors_read += sectors;
        }
        if (GS_UNLIKELY(!hit)) {
            reply = miss(sim, s, set, pay, tag, start);
            if (open_lines && GS_UNLIKELY(!load && GS_PAY_WORDS(pay))) {
                gs_partial_store(sim, s, set, gs_ctz(match_ways(set, tag)), 0, mask, GS_PAY_WORDS(pay),
                                 start + sim->tag_latency);
            }
        } else {
            u32 way = gs_ctz(hit);
            touch(lru, set, way);
            if (!load) {
                u32 had = set->mask[way];
                set->mask[way] |= (u8)(mask | mask << 4);
                if (open_lines && GS_UNLIKELY(GS_PAY_WORDS(pay) || set->partial >> way & 1)) {
                    gs_partial_store(sim, s, set, way, had, mask, GS_PAY_WORDS(pay),
                                     start + sim->tag_latency);
                }
            } else if (GS_UNLIKELY((open_lines && set->partial >> way & 1 &&
                                    gs_partial_load(sim, s, set, way, mask)) ||
                                   mask & ~(u32)set->mask[way])) {
                reply = widen(sim, s, set, pay, tag, start, way);
            } else if (set->pending >> way & 1) {
                u64 filled = fill_get(set, way, start);
                if (filled <= start) {
                    set->pending &= (u16) ~(1u << way);
                } else {
                    s->count.pending_hits++;
                    reply = gs_max(reply, filled + sim->fill_latency);
                }
            }
        }
        if (halves) {
            u32 twins = set->twins, bit = match_ways(set, tag);
            if (gs_key_sender(m->key) & GS_SENDER_FORWARD || passed) {
                set->twins = (u16)(twins | bit);
            } else if (!load) {
                set->twins = (u16)(twins & ~bit);
            }
            if (passed || (!load && twins & bit)) {
                twin_tell(ctx, group, start, pay, passed);
            }
            reply += across;
        }
        const u64 wait =
            shared && load && !forwarded ? gs_gpc_link_take(sim, group, start, from, sectors) : 0;
        reply += wait;
        if (GS_UNLIKELY(joint != NULL)) {
            joint_set(sim, joint, reply, reply - wait, mask, 0, from);
        }
        s->hash = gs_mix(s->hash, reply ^ pay << 19); /* less the place in L1, or the entry of the TB */
        gs_send(ctx, &sender, from / GS_GROUP, reply + noc, pay);
    }
}

static void requests(gs_ctx *ctx, u32 group, const gs_msg *m, u32 n)
{
    const gs_sim *sim = ctx->sim;
    const int lru = sim->params.gpu_l2.replacement == GS_GPU_L2_REPLACEMENT_LRU;
    if (sim->partition_boxes) {
        serve(ctx, group, m, n, lru, 1, 1, 1);
    } else if (sim->join_loads || sim->lookup_hold || sim->gpc_sector) {
        serve(ctx, group, m, n, lru, 0, sim->keep_partial != 0, 1);
    } else if (lru) {
        serve(ctx, group, m, n, 1, 0, 0, 0);
    } else if (sim->keep_partial) {
        serve(ctx, group, m, n, 0, 0, 1, 0);
    } else {
        serve(ctx, group, m, n, 0, 0, 0, 0);
    }
}

typedef struct filler {
    gs_ctx *ctx;
    u64 time;
    u32 group, timed;
} filler;

/* A line of a copy as the group's slices take it: as a store, but that nobody waits for an answer, and that a
   copy without time takes neither port nor bus and is not counted. */
static void copy_line(void *user, u64 line, u32 mask)
{
    const filler *f = user;
    gs_sim *sim = f->ctx->sim;
    u32 slice, row, tag, sectors = gs_popcount(mask);
    gs_home(&sim->map, line, &slice, &row, &tag);
    if (slice / GS_GROUP != f->group) {
        return;
    }
    const int lru = sim->params.gpu_l2.replacement == GS_GPU_L2_REPLACEMENT_LRU;
    gs_slice *s = &gs_slices(sim)[slice];
    gs_set *set = GS_TABLE(sim, gs_set, at_sets) + (size_t)slice * sim->sets + row;
    u64 start = f->time;
    if (f->timed) {
        start = gs_max(start, s->port_free);
        s->port_free = start + sectors * sim->slice_sector[GS_MSG_LOAD];
        s->count.requests++;
        s->count.sectors_written += sectors;
    }
    u32 hit = match_ways(set, tag), way = hit ? gs_ctz(hit) : victim(lru, sim->clock_hand, set);
    if (hit) {
        touch(lru, set, way);
        if (sim->keep_partial && set->partial >> way & 1) {
            gs_partial_store(sim, s, set, way, set->mask[way], mask, 0, start);
        }
        set->mask[way] = (u8)(set->mask[way] | mask | mask << 4);
        if (sim->partition_boxes && set->twins >> way & 1) {
            u32 unit = slice % GS_GROUP;
            set->twins &= (u16) ~(1u << way);
            twin_tell(f->ctx, f->group, start,
                      gs_pay_op(0, 0, GS_MSG_STORE, 0) |
                          gs_pay_line(tag, unit * sim->sets + row, mask, 0, unit),
                      0);
        }
    } else {
        if (f->timed) {
            push_out(sim, s, set, way, start);
        } else if (sim->keep_partial && set->partial >> way & 1) {
            gs_partial_forget(sim, s, set, way);
        }
        set->tag[way] = (u16)tag;
        set->mask[way] = (u8)(mask | mask << 4);
        set->pending &= (u16) ~(1u << way);
        enter(lru, (u32)sim->params.gpu_l2.referenced, set, way);
    }
    s->hash = gs_mix(s->hash, start ^ line << 8);
}

static void copy_piece(gs_ctx *ctx, u32 group, const gs_msg *m)
{
    u32 kernel = GS_HOST_COPY_KERNEL(m->pay);
    filler f = {ctx, gs_key_time(m->key), group, gs_launches(ctx->sim)[kernel].copy_time != 0};
    gs_host_copy_lines(ctx->sim, kernel, GS_HOST_COPY_PIECE(m->pay), copy_line, &f);
}

static void messages(gs_ctx *ctx, u32 group, const gs_msg *m, u32 n)
{
    if (GS_LIKELY(!ctx->sim->copies)) {
        requests(ctx, group, m, n);
        return;
    }
    for (u32 at = 0, i = 0; i <= n; i++) {
        if (i == n || GS_PAY_KIND(m[i].pay) == GS_MSG_HOST_COPY) {
            requests(ctx, group, m + at, i - at);
            if (i < n) {
                copy_piece(ctx, group, &m[i]);
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
                            GS_TABLE(sim, gs_set, at_sets) + (size_t)group * GS_GROUP * sim->sets);
    ctx->t->events += n;
    while (GS_UNLIKELY(sim->series.interval != 0) && n) {
        /* a sample of the time series ends between two messages */
        u64 due = gs_series_slices(sim, group, gs_key_time(m->key));
        u32 before = 1;
        while (before < n && gs_key_time(m[before].key) < due) {
            before++;
        }
        messages(ctx, group, m, before);
        m += before;
        n -= before;
    }
    messages(ctx, group, m, n);
}
