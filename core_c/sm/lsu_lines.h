/* The lines of a memory op, one by one: the look-up in L1, then the request through the SM's port to L2. A
   look-up sees L1 as of the op's own cycle. A line whose fill is later counts as in flight even if its
   reply has been applied already, so results do not depend on the length of the quantum. A line in flight
   is not evicted. Later loads of it wait for the same fill and request the sectors that are not in flight
   from L2. Stores write through; with gpu.l1.keep_stores L1 keeps their lines, too. Times are in cycles. */
#pragma once
#include "base/clock.h"
#include "memory/address_map.h"
#include "memory/l2_partition.h"
#include "oracle/oracle_log.h"
#include "sm/l1.h"
#include "sm/sm.h"

typedef struct gs_mem_access {
    gs_tb *tb;
    gs_scoreboard_slot *ws;
    u64 line0, c, at; /* `at`: the cycle in which the LSU takes the first line */
    u32 wi, slot, kind, copy, pool, n, sectors;
    u32 mark;             /* GS_L1_MARKED: a later kernel may overwrite the lines, else 0 */
    const gs_part *joins; /* of a store that will join this one, or NULL */
} gs_mem_access;

/* Words of each sector that a store writes, those of a store that joins it included; 0: all. */
static inline u32 gs_mem_access_words(const gs_part *part, const gs_part *joins)
{
    u32 words = part->partial;
    words += !joins ? 0 : joins->partial ? joins->partial : 8;
    return part->partial && words < 8 ? words : 0;
}

/* one of the lines */
typedef struct gs_mem_access_line {
    u64 line;
    const gs_part *part;
    u32 mask;  /* sectors that are asked of L2, or written there */
    u32 place; /* where L1 keeps the line when its fill comes; 0: nowhere */
    u32 kept;  /* where L1 keeps the `fresh` sectors of the reply, whichever request allocated the line */
    u32 fresh;
} gs_mem_access_line;

/* what L1 has served of the op */
typedef struct gs_mem_access_hits {
    u32 lines, sectors;
} gs_mem_access_hits;

/* 1: the op waits for the fill of a line that is in flight; `fill`: its cycle, if that is known. */
static inline int gs_mem_access_join_fill(gs_sm *sm, const gs_mem_access *a, u32 place, u32 fill)
{
    if (fill < GS_IN_FLIGHT) {
        a->ws->done = gs_max32(a->ws->done, fill);
        return 1;
    }
    int joined = gs_l1_join(sm, place, a->wi, a->slot);
    a->ws->count += (u16)joined;
    return joined;
}

/* A line of a load that may hit L1. 1: L1 serves it, at once or with the fill that is in flight. */
static GS_ALWAYS_INLINE int gs_mem_access_l1(gs_ctx *ctx, gs_sm *sm, const gs_mem_access *a,
                                             gs_mem_access_line *x, u32 fold, u64 looked_up,
                                             gs_mem_access_hits *hits, int oracle)
{
    const gs_clock *clock = gs_clock_of(ctx->sim, sm);
    u32 fill = 0;
    int found = gs_l1_lookup(sm, (u32)x->line, fold, a->mark, &x->mask, (u32)a->c, &x->place, &fill);
    u32 have = x->part->mask & ~x->mask; /* of a line that L1 lacks in part */
    x->fresh = x->mask;
    if (found == GS_L1_PART && have && !gs_mem_access_join_fill(sm, a, x->place, fill)) {
        x->mask = x->part->mask;
        have = 0;
    }
    if (found >= GS_L1_PART) {
        hits->sectors += gs_popcount(have);
        if (oracle && have) {
            gs_oracle_log_l1(ctx, sm, a->tb, x->line, have, gs_clock_edge(clock, a->c), x->place);
        }
        x->kept = x->place;
        x->place = found == GS_L1_PART ? 0 : x->place;
        return 0;
    }
    if (found == GS_L1_HIT || gs_mem_access_join_fill(sm, a, x->place, fill)) {
        sm->work.l1_hits += found == GS_L1_HIT;
        sm->work.l1_merged += found == GS_L1_MERGED;
        a->ws->done = gs_max32(a->ws->done, (u32)looked_up);
        if (oracle) {
            gs_oracle_log_l1(ctx, sm, a->tb, x->line, x->mask, gs_clock_edge(clock, a->c), x->place);
        }
        hits->lines++;
        hits->sectors += gs_popcount(x->mask);
        return 1;
    }
    x->kept = x->place = 0;
    return 0;
}

/* Counts what is requested of L2, or stored there. */
static inline void gs_mem_access_count(const gs_sim *sim, gs_sm *sm, const gs_mem_access *a, int load,
                                       u32 sent, u32 sectors, u64 looked_up)
{
    a->ws->count += (u16)sent;
    sm->acquired[a->pool] += sent;
    sm->work.l2_requests += sent;
    if (load) {
        sm->work.load_sectors += sectors;
        a->tb->load_sectors += sectors;
    } else {
        sm->work.store_sectors += sectors;
        a->tb->store_sectors += sectors;
        /* they have left the SM when they have passed the port and the network */
        gs_store_owner *o = &sm->owner[a->tb->owner];
        o->unacknowledged += sent;
        o->leaves_sm = (u32)gs_max(sm->port_free, looked_up + (u64)sim->params.gpu_noc.latency);
    }
}

/* Sends the lines of an op that L1 does not serve. The last three arguments are constants at each call, so
   the compiler makes a loop for each kind of access. */
static GS_ALWAYS_INLINE void gs_mem_access_lines(gs_ctx *ctx, gs_sm *sm, const gs_mem_access *a,
                                                 const gs_part *part, int load, int cached, int oracle)
{
    const gs_sim *sim = ctx->sim;
    const gs_sender sender = gs_sender_make(ctx, sm->id);
    const gs_address_map *map = &sim->map;
    const gs_clock *clock = gs_clock_of(sim, sm);
    const u64 period = clock->period, block_lines = map->block_lines;
    const u64 there = clock->origin + sim->noc; /* what the network adds to a cycle's begin */
    const u32 sm_boxes = sim->sm_boxes, sets = sim->sets, partition_boxes = sim->partition_boxes;
    const u16 *hold = sim->port_hold[sm->port_sharers][load != 0];
    const u64 common =
        gs_pay_op(a->wi, a->slot, a->kind, sm->id % GS_GROUP) | (a->copy ? GS_PAY_ASYNC_COPY : 0);
    const u32 partial = !load && a->kind == GS_MSG_STORE ? GS_PARTIAL : 0, owner = a->tb->owner;
    const int keeps = !load && sim->keep_stores && a->kind == GS_MSG_STORE;
    const gs_part *first = part;
    gs_box_row row = ctx->row;
    gs_block block = {.first = GS_NEVER - block_lines};
    gs_mem_access_hits hits = {0, 0};
    u64 port = sm->port_free, looked_up = a->at + sim->l1_latency, above = GS_NEVER;
    u32 fold = 0;
    for (const gs_part *end = part + a->n; part < end; part++, looked_up++) {
        gs_mem_access_line x = {a->line0 + (u64)(i64)part->line, part, part->mask, 0, 0, part->mask};
        if ((cached || keeps) && x.line >> 9 != above) {
            above = x.line >> 9;
            fold = gs_l1_fold(sim, (u32)x.line);
        }
        if (cached && gs_mem_access_l1(ctx, sm, a, &x, fold, looked_up, &hits, oracle)) {
            continue;
        }
        if (keeps) {
            x.kept = gs_l1_store(sm, (u32)x.line, fold, a->mark, part->partial ? 0 : x.mask, (u32)a->c);
        }
        if (x.line - block.first >= block_lines) {
            block = gs_block_of(map, x.line);
        }
        u32 slice, set, tag;
        gs_home_in(map, &block, (u32)(x.line - block.first), &slice, &set, &tag);
        u64 leave = gs_max(looked_up, port);
        port = leave + hold[x.mask | (part->partial ? partial : 0u)];
        u64 arrive = leave * period + there;
        u32 unit = slice % GS_GROUP, box = slice / GS_GROUP, whose = x.place;
        if (GS_UNLIKELY(partition_boxes) && gs_is_across_partitions(sim, sm->id, box)) {
            tag |= GS_ACROSS;
            box = load ? gs_opposite_box(sim, box) : box;
            arrive += load ? 0 : sim->fabric;
        }
        if (!load) {
            const gs_part *joins = a->joins ? a->joins + (part - first) : NULL;
            u32 words = sim->keep_partial && partial ? gs_mem_access_words(part, joins) : 0;
            whose = owner | words << GS_STORE_OWNER_BITS;
        }
        gs_send_row(ctx, &sender, &row, sm_boxes + box, arrive,
                    common | gs_pay_line(tag, unit * sets + set, x.mask, whose, unit));
        if (oracle) {
            gs_oracle_log_l2(ctx, sm, a->tb, x.line, x.fresh, arrive, a->kind, x.kept);
            if (x.mask & ~x.fresh) {
                gs_oracle_log_l2(ctx, sm, a->tb, x.line, x.mask & ~x.fresh, arrive, a->kind, 0);
            }
        }
    }
    ctx->row = row;
    sm->port_free = port;
    if (cached && hits.lines && sim->hold_late) {
        /* hits are read from the array that is shared memory, too; a miss holds it when its fill comes */
        gs_data_array_catch_up(sm, a->c);
        sm->smem_free = gs_max(sm->smem_free, a->at * 64) +
                        (a->copy ? hits.sectors * (u64)sim->params.gpu_sm.copy_hold : (u64)hits.lines * 64);
    }
    gs_mem_access_count(sim, sm, a, load, a->n - hits.lines, a->sectors - hits.sectors, looked_up);
}
