/* Load/store unit, L1 and request credits of an SM.
   A lookup reads L1 as of the op's own cycle: a line whose fill lies later counts as in flight even if its
   reply has been applied already, so the length of the quantum cannot matter. A line in flight is not
   evicted; further loads of it wait for the same fill, and ask for the sectors that are not on their way.
   Stores write through; with gpu.l1.keep_stores L1 keeps their lines, too. */
#include "sm/lsu.h"

#include "base/clock.h"
#include "base/mailbox.h"
#include "memory/address_map.h"
#include "memory/l2_partition.h"
#include "oracle/oracle_log.h"
#include "program/pattern.h"
#include "sm/l1.h"
#include "sm/sm.h"
#include "sm/tb.h"
#include "sm/warp_order.h"

/* Credits: an SM may have so many lines under way, of each pool, or of pools that share those of loads. They
   are numbered: an op may go when the release that it needs lies at or before its cycle. */
static inline u32 pool_of(const gs_sim *sim, int load, int copy)
{
    return sim->pool[!load ? GS_POOL_STORES : copy ? GS_POOL_COPIES : GS_POOL_LOADS];
}

static inline u32 *release_time(const gs_sim *sim, gs_sm *sm, u32 pool, u32 number)
{
    return &sm->release_time[pool][number & sim->credit_mask[pool]];
}

/* wakes the first of those that wait when it may go, if that is known */
static void credit_arm(const gs_sim *sim, gs_sm *sm, u64 least)
{
    if (sm->credit_fifo_head == sm->credit_fifo_tail) {
        sm->credit_armed = 0;
        return;
    }
    u32 first = sm->credit_fifo[sm->credit_fifo_head & (GS_WARPS - 1)], w = first % GS_WARPS,
        pool = first / GS_WARPS;
    if (sm->warp[w].state != GS_WARP_IN_QUEUE) {
        sm->credit_armed =
            1; /* it has them, and waits for room in its sub-core's queue: who wakes it lies there */
        return;
    }
    if (sm->acquired[pool] < sim->credits[pool]) {
        gs_sm_wake(sm, w, least);
        sm->credit_armed = 1;
        return;
    }
    u32 need = sm->acquired[pool] - sim->credits[pool] + 1;
    if ((i32)(sm->released[pool] - need) >= 0) {
        gs_sm_wake(sm, w, gs_max(*release_time(sim, sm, pool, need - 1), least));
        sm->credit_armed = 1;
    } else {
        sm->credit_armed = 0;
        sm->credit_least = least;
        sm->credit_need = need;
    }
}

static inline int credit_free(const gs_sim *sim, gs_sm *sm, u32 pool, u64 c)
{
    if (sm->acquired[pool] < sim->credits[pool]) {
        return 1;
    }
    u32 need = sm->acquired[pool] - sim->credits[pool] + 1;
    return (i32)(sm->released[pool] - need) >= 0 && *release_time(sim, sm, pool, need - 1) <= c;
}

static int credit_take(const gs_sim *sim, gs_sm *sm, u32 wi, u32 pool, u64 c)
{
    gs_warp *w = &sm->warp[wi];
    int first = sm->credit_fifo_head == sm->credit_fifo_tail;
    if (first && credit_free(sim, sm, pool, c)) {
        return 1;
    }
    if (!first && sm->credit_fifo[sm->credit_fifo_head & (GS_WARPS - 1)] % GS_WARPS == wi) {
        sm->credit_fifo_head++; /* it has waited, and runs: they are there */
        return 1;
    }
    sm->credit_fifo[sm->credit_fifo_tail++ & (GS_WARPS - 1)] = (u8)(wi | pool * GS_WARPS);
    w->state = GS_WARP_IN_QUEUE;
    w->since = (u32)c;
    if (first) {
        credit_arm(sim, sm, c + 1);
    }
    return 0;
}

static inline void credit_give(const gs_sim *sim, gs_sm *sm, u32 pool, u32 c)
{
    *release_time(sim, sm, pool, sm->released[pool]++) = c;
    if (sm->credit_fifo_head != sm->credit_fifo_tail && !sm->credit_armed) {
        u32 first = sm->credit_fifo[sm->credit_fifo_head & (GS_WARPS - 1)];
        if (first / GS_WARPS == pool && (i32)(sm->released[pool] - sm->credit_need) >= 0) {
            sm->credit_armed = 1;
            gs_sm_wake(sm, first % GS_WARPS, gs_max(c, sm->credit_least));
        }
    }
}

typedef struct access {
    gs_tb *tb;
    gs_scoreboard_slot *ws;
    u64 line0, c, at; /* `at`: the cycle in which the unit takes the first line */
    u32 wi, slot, kind, copy, pool, n, sectors;
    const gs_part *joins; /* of a store that will join this one, or NULL */
} access;

/* Words of each sector that L2 is told a store writes; 0: all. What joins it on its way out comes with it. */
static inline u32 words_of(const gs_part *part, const gs_part *joins)
{
    u32 words = part->partial;
    words += !joins ? 0 : joins->partial ? joins->partial : 8;
    return part->partial && words < 8 ? words : 0;
}

/* 1: the op waits for a line of L1 that is in flight, and comes at `fill`, if that is known */
static inline int l1_wait(gs_sm *sm, const access *a, u32 place, u32 fill)
{
    if (fill < GS_IN_FLIGHT) {
        a->ws->done = gs_max32(a->ws->done, fill);
        return 1;
    }
    int joined = gs_l1_join(sm, place, a->wi, a->slot);
    a->ws->count += (u16)joined;
    return joined;
}

/* Sends the lines of an op that L1 does not have. The last three are constants where it is called, so each
   kind of access has a loop of its own. */
static inline __attribute__((always_inline)) void
access_lines(gs_ctx *ctx, gs_sm *sm, const access *a, const gs_part *part, int load, int cached, int oracle)
{
    const gs_sim *sim = ctx->sim;
    const gs_sender sender = gs_sender_make(ctx, sm->id);
    const gs_address_map *map = &sim->map;
    const gs_clock *clock = gs_clock_of(sim, sm);
    const u64 period = clock->period, block_lines = map->block_lines;
    const u64 there = clock->origin + sim->noc; /* what the network adds to a cycle's begin */
    const u32 sm_boxes = sim->sm_boxes, sets = sim->sets, n = a->n, partition_boxes = sim->partition_boxes;
    const u16 *hold = sim->port_hold[sm->port_sharers][load != 0];
    const u64 line0 = a->line0, c = a->c,
              common =
                  gs_pay_op(a->wi, a->slot, a->kind, sm->id % GS_GROUP) | (a->copy ? GS_PAY_ASYNC_COPY : 0);
    gs_box_row row = ctx->row;
    gs_block block = {.first = GS_NEVER - block_lines};
    u64 port = sm->port_free, looked_up = a->at + sim->l1_latency;
    u32 found_lines = 0, found_sectors = 0;
    const u32 partial = !load && a->kind == GS_MSG_STORE ? GS_PARTIAL : 0;
    const u32 owner = a->tb->owner;
    const gs_part *first = part;
    const int keeps = !load && sim->keep_stores && a->kind == GS_MSG_STORE;
    u64 above = GS_NEVER;
    u32 fold = 0;
    for (const gs_part *end = part + n; part < end; part++, looked_up++) {
        u64 line = line0 + (u64)(i64)part->line;
        u32 mask = part->mask, place = 0;
        u32 kept = 0, fresh = mask; /* where L1 has those sectors of what comes, whoever puts them there */
        if (cached || keeps) {
            if (line >> 9 != above) {
                above = line >> 9;
                fold = gs_l1_fold(sim, (u32)line);
            }
        }
        if (cached) {
            u32 fill = 0;
            int found = gs_l1_lookup(sm, (u32)line, fold, &mask, (u32)c, &place, &fill);
            u32 have = part->mask & ~mask; /* of a line that L1 lacks in part */
            fresh = mask;
            if (found == GS_L1_PART && have && !l1_wait(sm, a, place, fill)) {
                mask = part->mask;
                have = 0;
            }
            if (found >= GS_L1_PART) {
                found_sectors += gs_popcount(have);
                if (oracle && have) {
                    gs_oracle_log_l1(ctx, sm, a->tb, line, have, gs_clock_edge(clock, c), place);
                }
                kept = place;
                place = found == GS_L1_PART ? 0 : place;
            } else {
                if (found == GS_L1_HIT || l1_wait(sm, a, place, fill)) {
                    sm->work.l1_hits += found == GS_L1_HIT;
                    sm->work.l1_merged += found == GS_L1_MERGED;
                    a->ws->done = gs_max32(a->ws->done, (u32)looked_up);
                    if (oracle) {
                        gs_oracle_log_l1(ctx, sm, a->tb, line, mask, gs_clock_edge(clock, c), place);
                    }
                    found_lines++;
                    found_sectors += gs_popcount(mask);
                    continue;
                }
                kept = place = 0;
            }
        } else if (keeps) {
            kept = gs_l1_store(sm, (u32)line, fold, part->partial ? 0 : mask, (u32)c);
        }
        if (line - block.first >= block_lines) {
            block = gs_block_of(map, line);
        }
        u32 slice, set, tag;
        gs_home_in(map, &block, (u32)(line - block.first), &slice, &set, &tag);
        u64 leave = gs_max(looked_up, port);
        port = leave + hold[mask | (part->partial ? partial : 0u)];
        u64 arrive = leave * period + there;
        u32 unit = slice % GS_GROUP, box = slice / GS_GROUP;
        if (GS_UNLIKELY(partition_boxes) && gs_is_across_partitions(sim, sm->id, box)) {
            tag |= GS_ACROSS;
            box = load ? gs_opposite_box(sim, box) : box;
            arrive += load ? 0 : sim->fabric;
        }
        u32 whose = place;
        if (!load) {
            u32 words = sim->keep_partial && partial
                            ? words_of(part, a->joins ? a->joins + (part - first) : NULL)
                            : 0;
            whose = owner | words << GS_STORE_OWNER_BITS;
        }
        gs_send_row(ctx, &sender, &row, sm_boxes + box, arrive,
                    common | gs_pay_line(tag, unit * sets + set, mask, whose, unit));
        if (oracle) {
            gs_oracle_log_l2(ctx, sm, a->tb, line, fresh, arrive, a->kind, kept);
            if (mask & ~fresh) {
                gs_oracle_log_l2(ctx, sm, a->tb, line, mask & ~fresh, arrive, a->kind, 0);
            }
        }
    }
    u32 sent = n - found_lines, sectors = a->sectors - found_sectors;
    ctx->row = row;
    if (cached && found_lines && sim->hold_late) {
        /* they are read from the array that shared memory lives in; what does not hit holds it when it comes
         */
        gs_data_array_catch_up(sm, a->c);
        sm->smem_free = gs_max(sm->smem_free, a->at * 64) +
                        (a->copy ? found_sectors * (u64)sim->params.gpu_sm.copy_hold : (u64)found_lines * 64);
    }
    sm->port_free = port;
    a->ws->count += (u16)sent;
    sm->acquired[a->pool] += sent;
    sm->work.l2_requests += sent;
    if (load) {
        sm->work.load_sectors += sectors;
        a->tb->load_sectors += sectors;
    } else {
        sm->work.store_sectors += sectors;
        a->tb->store_sectors += sectors;
        /* they have left when the port is through with them and the network has taken them */
        gs_store_owner *o = &sm->owner[owner];
        o->unacknowledged += sent;
        o->leaves_sm = (u32)gs_max(port, looked_up + (u64)sim->params.gpu_noc.latency);
    }
}

static inline const gs_ipattern *pattern_of(const gs_sim *sim, const gs_warp *w, const gs_iop *op)
{
    return GS_CONST_TABLE(sim, gs_ipattern, at_patterns) + op->pattern + (op->per_warp ? w->index : 0);
}

/* what a warp touches with a pattern in turn k of its loop */
static inline __attribute__((always_inline)) gs_coalesced reach_of(const gs_sim *sim, const gs_warp *w,
                                                                   const gs_tb *tb, const gs_ipattern *p,
                                                                   i64 k)
{
    u64 value = (u64)(p->base + p->bx * tb->x + p->by * tb->y + p->bz * tb->z + p->warp * w->index +
                      p->step * k + p->step2 * w->k[p->level2]);
    return gs_coalesced_of(sim, p, gs_launches(sim)[tb->kernel].arg[p->arg], value, w->block);
}

/* whether a store writes just the sectors of the warp's last one, which it then joins on its way out */
static int store_joins(const gs_last_store *last, const gs_coalesced *reach)
{
    if (last->line != reach->line + 1 || last->lines != reach->template->lines) {
        return 0;
    }
    for (u32 i = 0; i < last->lines; i++) {
        if (last->part[i].line != reach->part[i].line || last->part[i].mask != reach->part[i].mask) {
            return 0;
        }
    }
    return 1;
}

/* The parts of the warp's next store, if nothing but arithmetic comes before it and it will join this one. */
static __attribute__((noinline)) const gs_part *joining(const gs_sim *sim, const gs_warp *w, const gs_tb *tb,
                                                        const gs_iop *op, const gs_last_store *this)
{
    do {
        op++;
    } while (op->kind == GS_OP_COMPUTE);
    i64 k = (i64)w->k[op->level] + op->count_plus;
    if (op->kind != GS_OP_STORE || (op->count && k >= (i64)op->count)) {
        return NULL;
    }
    gs_coalesced reach = reach_of(sim, w, tb, pattern_of(sim, w, op), k);
    return store_joins(this, &reach) ? reach.part : NULL;
}

void gs_lsu_prefetch(const gs_sim *sim, const gs_sm *sm, u32 wi, const gs_iop *op)
{
    const gs_warp *w = &sm->warp[wi];
    i64 k = (i64)w->k[op->level] + op->count_plus;
    if (op->bypass_l1 || (op->count && k >= (i64)op->count)) {
        return;
    }
    const gs_coalesced reach = reach_of(sim, w, &sm->tb[w->tb], pattern_of(sim, w, op), k);
    u64 above = GS_NEVER;
    u32 fold = 0;
    for (const gs_part *part = reach.part, *end = part + reach.template->lines; part < end; part++) {
        u64 line = reach.line + (u64)(i64)part->line;
        if (line >> 9 != above) {
            above = line >> 9;
            fold = gs_l1_fold(sim, (u32)line);
        }
        __builtin_prefetch(&sm->l1[gs_l1_set_of((u32)line, fold)], 1);
    }
}

int gs_lsu_access(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    gs_sim *sim = ctx->sim;
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    i64 k = (i64)w->k[op->level] + op->count_plus;
    if (op->count && k >= (i64)op->count) {
        return 1;
    }
    const gs_ipattern *p = pattern_of(sim, w, op);
    const gs_launch *launch = gs_launches(sim) + tb->kernel;
    const gs_coalesced reach = reach_of(sim, w, tb, p, k);
    const gs_part *part = reach.part;
    const u32 lines = reach.template->lines;
    u32 n = lines;
    const u32 pool = pool_of(sim, op->kind == GS_OP_LOAD, op->smem != 0);
    int joins =
        GS_UNLIKELY(sim->join_stores) && op->kind == GS_OP_STORE && store_joins(&sm->last_store[wi], &reach);
    if (joins) {
        n = 0;
    } else if (n && !credit_take(sim, sm, wi, pool, c)) {
        return 0;
    }
    if (GS_UNLIKELY(sim->join_stores)) {
        sm->last_store[wi] =
            (gs_last_store){op->kind == GS_OP_STORE && !joins ? reach.line + 1 : 0, part, lines};
    }
    gs_subcore *b = &sm->sub[wi & 3];
    u64 issue = gs_max(c, b->single);
    b->single = issue + 1;
    gs_subcore_steal_slot(b, issue);
    u32 slot = gs_scoreboard_slot_of(w, op);
    u64 leaves = 0;
    if (sm->queue && op->smem) {
        u64 room = sm->copy_begins[(sm->copies_begun - (u32)sim->params.gpu_sm.copy_queue) % GS_COPIES];
        leaves = gs_max(issue + (u64)sim->params.gpu_sm.copy_gap, b->left) + sim->read_copy;
        leaves = gs_max(leaves, room);
    }
    access a = {.tb = tb,
                .ws = &w->slot[slot],
                .line0 = reach.line,
                .c = c,
                .at = gs_max(issue, gs_max(leaves, sm->lsu_free)),
                .wi = wi,
                .slot = slot,
                .copy = op->kind == GS_OP_LOAD && op->smem,
                .pool = pool,
                .n = n,
                .sectors = joins ? 0 : reach.template->sectors};
    sm->lsu_free = gs_max(issue, sm->lsu_free) + lines; /* it is not kept while a copy's registers are read */
    if (GS_UNLIKELY(op->smem)) {
        if (sm->queue) {
            gs_subcore_queue_enter(sm, wi, leaves);
            sm->copy_begins[sm->copies_begun++ % GS_COPIES] = a.at;
        } else {
            /* it leaves its sub-core's queue when the unit begins the one before */
            b->left = b->copy;
            b->copy = a.at;
        }
        sm->copy_left[wi] = (u32)b->left;
    }
    if (op->kind == GS_OP_LOAD) {
        if (!sim->hold_late) {
            /* what comes holds the array that shared memory lives in: counted here, or in gs_lsu_replies */
            gs_data_array_catch_up(sm, c);
            sm->smem_free = gs_max(sm->smem_free, a.at * 64) +
                            (op->smem ? (u64)a.sectors * (u64)sim->params.gpu_sm.copy_hold : (u64)n * 64);
        }
        int cached = !op->bypass_l1 && !(launch->bypass >> p->arg & 1);
        a.kind = GS_MSG_LOAD;
        sm->work.l1_lines += n;
        if (GS_UNLIKELY(sim->oracle)) {
            access_lines(ctx, sm, &a, part, 1, cached, 1);
        } else if (cached) {
            access_lines(ctx, sm, &a, part, 1, 1, 0);
        } else {
            access_lines(ctx, sm, &a, part, 1, 0, 0);
        }
    } else {
        a.kind = op->kind == GS_OP_STORE ? GS_MSG_STORE : GS_MSG_REDUCE;
        if (sim->keep_partial && sim->join_stores && n && part->partial) {
            a.joins = joining(sim, w, tb, op, &sm->last_store[wi]);
        }
        access_lines(ctx, sm, &a, part, 0, 0, sim->oracle != 0);
        if (GS_UNLIKELY(joins && sim->oracle)) {
            /* what joins is written with the store before it */
            u64 time = gs_clock_edge(gs_clock_of(sim, sm), c);
            for (u32 i = 0; i < lines; i++) {
                gs_oracle_log_l2(ctx, sm, tb, reach.line + (u64)(i64)part[i].line, part[i].mask, time, a.kind,
                                 0);
            }
        }
    }
    if (sm->credit_fifo_head != sm->credit_fifo_tail) {
        credit_arm(sim, sm, c + 1);
    }
    sm->work.warp_instructions += op->issue; /* 0: a further part */
    /* the unit queues so many lines; beyond that the warp waits to hand over its op: where the oldest goes
       first, it has waited before it did */
    u64 next = issue + (op->smem ? (u64)sim->params.gpu_sm.copy_gap : 1);
    if (!sim->oldest_first && sm->lsu_free > sm->lsu_queue) {
        next = gs_max(next, sm->lsu_free - sm->lsu_queue);
    }
    w->ready = (u32)next;
    tb->stalls.issued += op->issue;
    tb->stalls.pipe += next - c - op->issue;
    sm->warp_cycles += next - c;
    return 1;
}

/* one line fewer for a warp's slot to wait for; it is there from cycle c on */
static inline void slot_done(gs_sm *sm, u32 wi, u32 slot, u32 c)
{
    gs_warp *w = &sm->warp[wi];
    gs_scoreboard_slot *ws = &w->slot[slot];
    ws->done = gs_max32(ws->done, c);
    if (--ws->count == 0 && w->wait == slot + 1) {
        w->wait = GS_WOKEN;
        gs_sm_wake(sm, wi, ws->done);
    }
}

int gs_lsu_replies(gs_ctx *ctx, gs_sm *sms, const gs_msg *m, u32 n)
{
    const gs_sim *sim = ctx->sim;
    /* a port's time is counted in 64ths of a cycle: those of a message from those of the quantum's begin */
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
        /* (64 * (time - q0) + rest) * inverse; the parts may wrap around, the sum comes out right */
        u64 rest = from - begin * clock->period;
        at[i].add = (rest - 64 * ctx->q0) * clock->inverse;
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
        u64 there = at[who].begin + ((gs_key_time(m->key) * at[who].inverse + at[who].add) >> 44);
        u64 taken = gs_max(*port, there) + sim->reply_hold[kind != GS_MSG_LOAD][GS_PAY_MASK(pay)];
        *port = taken;
        u32 c = (u32)((taken + 63) >> 6), place = GS_PAY_L1(pay);
        const u32 pool = pool_of(sim, kind == GS_MSG_LOAD, (pay & GS_PAY_ASYNC_COPY) != 0);
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
            if (!o->tb_left) { /* else the warp's place may be another TB's */
                slot_done(sm, GS_PAY_WARP(pay), GS_PAY_SLOT(pay), c);
            }
            gs_tb_stores_acknowledged(ctx, sm, o, c);
        }
        credit_give(sim, sm, pool, c);
    }
    return others;
}
