/* Bulk copies: see bulk_copy.h. */
#include "sm/bulk_copy.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/mailbox.h"
#include "memory/address_map.h"
#include "memory/l2_partition.h"
#include "memory/l2_reply.h"
#include "oracle/oracle_log.h"
#include "program/bulk_box.h"
#include "sm/credits.h"
#include "sm/ring_barrier.h"
#include "sm/sm.h"

/* The rows that an op moves. */
static gs_bulk_rows rows_of(const gs_sim *sim, const gs_sm *sm, u32 wi, const gs_iop *op)
{
    const gs_warp *w = &sm->warp[wi];
    const gs_bulk_box *box = GS_CONST_TABLE(sim, gs_bulk_box, at_boxes) + op->pattern;
    const gs_bulk_place place = gs_bulk_place_of(&sm->pipeline[wi], (i64)w->k[op->level] + op->count_plus);
    return gs_bulk_rows_of(box, gs_launches(sim)[sm->tb[w->tb].kernel].arg[box->arg], &place);
}

static u64 issue(gs_sm *sm, u32 wi, u64 c)
{
    gs_subcore *b = &sm->sub[wi & 3];
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    u64 at = gs_max(c, b->single);
    b->single = at + 1;
    gs_subcore_steal_slot(b, at);
    sm->work.warp_instructions++;
    tb->stalls.issued++;
    tb->stalls.pipe += at - c;
    sm->warp_cycles += at + 1 - c;
    w->pc++;
    gs_sm_wake(sm, wi, at + 1);
    return at;
}

/* When the unit begins with an op's lines: the descriptor of a tensor that is new to the SM is fetched first.
 */
static u64 begins(const gs_sim *sim, gs_sm *sm, const gs_tb *tb, u32 arg, u64 at, int load)
{
    const gs_gpu_bulk_params *p = &sim->params.gpu_bulk;
    at += (u64)p->latency;
    if (sm->bulk_kernel != tb->kernel + 1) {
        sm->bulk_kernel = tb->kernel + 1;
        sm->bulk_known = 0;
    }
    if (!(sm->bulk_known >> arg & 1)) {
        sm->bulk_known |= 1u << arg;
        at += (u64)p->descriptor;
    }
    return gs_max(at * 64, sm->bulk_free[load]);
}

typedef struct moved {
    u64 free; /* 64ths of a cycle: when the unit is done */
    u32 lines, sectors;
} moved;

/* What sending a line needs, copied once for many lines: the compiler would otherwise load it again after
   each store to a message. */
typedef struct way_out {
    gs_sender sender;
    u64 period, there, fabric, pay;
    u32 across, partition, boxes, sets; /* across: boxes of a partition, 0: there is one */
} way_out;

static GS_ALWAYS_INLINE void send_line(gs_ctx *ctx, gs_box_row *row, const way_out *o, u32 slice, u32 set,
                                       u32 tag, u32 mask, u64 *arrive, int load)
{
    u32 box = slice / GS_GROUP, unit = slice % GS_GROUP;
    if (GS_LIKELY(o->across) && (box >= o->across) != o->partition) {
        tag |= GS_ACROSS;
        box = load ? box >= o->across ? box - o->across : box + o->across : box;
        *arrive += load ? 0 : o->fabric;
    }
    gs_send_row(ctx, &o->sender, row, o->boxes + box, *arrive,
                o->pay | gs_pay_line(tag, unit * o->sets + set, mask, 0, unit));
}

/* Sends the lines of a copy through the SM's port; `begin` is the first line of the tensor. The unit takes
   `line` 64ths of a cycle for a line and `sector` for a sector of it. `load` is a constant at each call, and
   `whole`: all rows begin and end with a line. */
static GS_ALWAYS_INLINE moved move_rows(gs_ctx *ctx, gs_sm *sm, const gs_tb *tb, const gs_bulk_rows *rows,
                                        u64 begin, u64 free, u64 line, u64 sector, u64 pay, int load,
                                        int whole)
{
    const gs_sim *sim = ctx->sim;
    const gs_address_map *map = &sim->map;
    const gs_clock *clock = gs_clock_of(sim, sm);
    const way_out out = {.sender = gs_sender_make(ctx, sm->id),
                         .period = clock->period,
                         .there = clock->origin + sim->noc,
                         .fabric = sim->fabric,
                         .pay = pay,
                         .across = sim->partition_boxes,
                         .partition = sim->partition_of[sm->id],
                         .boxes = sim->sm_boxes,
                         .sets = sim->sets};
    const gs_homes homes = gs_homes_make(map);
    const u64 block_lines = map->block_lines;
    const u16 *hold = sim->port_hold[sm->port_sharers][load];
    const int oracle = sim->oracle != NULL;
    gs_box_row row = ctx->row;
    gs_block block = {.first = GS_NEVER - block_lines};
    moved m = {free, 0, 0};
    u64 port = sm->port_free;
    for (u32 i = 0; i < rows->rows; i++) {
        for (gs_bulk_part x = gs_bulk_part_first(rows, i); gs_bulk_part_next(&x, whole);) {
            if (x.line - block.first >= block_lines) {
                block = gs_block_of(map, x.line);
            }
            u32 slice, set, tag, mask = whole ? 15 : x.mask, n = gs_popcount(mask);
            gs_home_by(map, &homes, &block, (u32)(x.line - block.first), &slice, &set, &tag);
            m.free += load ? 0 : sector * n; /* what is stored is read first */
            u64 leave = gs_max((m.free + 63) >> 6, port), arrive = leave * out.period + out.there;
            m.free += load ? line : 0;
            port = leave + hold[mask];
            send_line(ctx, &row, &out, slice, set, tag, mask, &arrive, load);
            if (GS_UNLIKELY(oracle)) {
                gs_oracle_log_l2(ctx, sm, tb, x.line, mask, arrive, load ? GS_MSG_LOAD : GS_MSG_STORE, 0);
            }
            m.lines++;
            m.sectors += n;
        }
    }
    /* Rows outside are zeros, and are asked for all the same: of a few lines, wherever the box lies. Measured
       with many SMs (h200_tma_rate.csv): they get seven such rows a cycle altogether. */
    for (u32 i = 0; load && i < rows->outside; i++) {
        gs_block one = gs_block_of(map, begin + (i & 3));
        u32 slice, set, tag;
        gs_home_in(map, &one, (u32)(begin + (i & 3) - one.first), &slice, &set, &tag);
        u64 leave = gs_max((m.free + 63) >> 6, port), arrive = leave * out.period + out.there;
        m.free += line;
        port = leave + hold[1];
        send_line(ctx, &row, &out, slice, set, tag, 1, &arrive, load);
        m.lines++;
        m.sectors++;
    }
    ctx->row = row;
    sm->port_free = port;
    sm->work.l2_requests += m.lines;
    return m;
}

/* 1: all rows begin and end with a line. */
static inline int are_whole(const gs_bulk_rows *rows)
{
    return !((rows->address | rows->pitch | rows->bytes) & 127);
}

static moved load_rows(gs_ctx *ctx, gs_sm *sm, const gs_tb *tb, const gs_bulk_rows *rows, u64 begin, u64 free,
                       u64 pay)
{
    const u64 line = (u64)ctx->sim->params.gpu_bulk.line;
    return are_whole(rows) ? move_rows(ctx, sm, tb, rows, begin, free, line, 0, pay, 1, 1)
                           : move_rows(ctx, sm, tb, rows, begin, free, line, 0, pay, 1, 0);
}

static moved store_rows(gs_ctx *ctx, gs_sm *sm, const gs_tb *tb, const gs_bulk_rows *rows, u64 free, u64 pay)
{
    const u64 sector = 32ull * 64 / (u64)ctx->sim->params.gpu_bulk.store_bytes;
    return are_whole(rows) ? move_rows(ctx, sm, tb, rows, 0, free, 0, sector, pay, 0, 1)
                           : move_rows(ctx, sm, tb, rows, 0, free, 0, sector, pay, 0, 0);
}

/* The TBs that get the lines; returns the flight's number. */
static u32 take_flight(gs_sim *sim, gs_sm *sm, u32 tb_slot, u32 ranks, u32 rank, u32 ring)
{
    u32 number = sm->flights++ & (GS_FLIGHTS - 1);
    gs_flight *f = &sm->flight[number];
    if (f->lines) {
        gs_fail(sim, GS_ERR_LIMIT, "more than %d bulk copies of an SM are under way", GS_FLIGHTS);
    }
    *f = (gs_flight){.sm = {(u16)sm->id}, .slot = {(u8)tb_slot}, .n = 1, .ring = (u8)ring};
    for (u32 left = ranks & ~(1u << rank); left; left &= left - 1) {
        const gs_mates *mates = &gs_mates_of(sim, sm->id)[tb_slot];
        u32 i = gs_ctz(left), at = 0;
        while (at < f->n && f->sm[at] / GS_GROUP != mates->sm[i] / GS_GROUP) {
            at++;
        }
        while (at < f->n && f->sm[at] / GS_GROUP == mates->sm[i] / GS_GROUP) {
            at++;
        }
        for (u32 j = f->n++; j > at; j--) {
            f->sm[j] = f->sm[j - 1];
            f->slot[j] = f->slot[j - 1];
        }
        f->sm[at] = mates->sm[i];
        f->slot[at] = mates->slot[i];
    }
    return number;
}

void gs_bulk_load(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    gs_sim *sim = ctx->sim;
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    const gs_launch *l = gs_launches(sim) + tb->kernel;
    const gs_bulk_box *box = GS_CONST_TABLE(sim, gs_bulk_box, at_boxes) + op->pattern;
    const gs_bulk_rows rows = rows_of(sim, sm, wi, op);
    const u32 ring = gs_ring_of(sm, wi, op), rank = tb->tb % gs_cluster_tbs(l),
              ranks = gs_ring_ranks(l, rank, op->to), flight = take_flight(sim, sm, w->tb, ranks, rank, ring);
    u64 at = issue(sm, wi, c), free = begins(sim, sm, tb, box->arg, at, 1);
    const moved m =
        load_rows(ctx, sm, tb, &rows, l->arg[box->arg] >> 7, free, gs_pay_of_flight(sm->id, flight));
    sm->bulk_free[1] = m.free;
    sm->flight[flight].lines = (u16)m.lines;
    sm->bulk_lines += m.lines;
    if (sm->bulk_lines > GS_BULK_LINES) {
        gs_fail(sim, GS_ERR_LIMIT, "kernel %u: bulk copies of an SM have more than %d lines on their way",
                tb->kernel, GS_BULK_LINES);
    }
    sm->work.load_sectors += m.sectors;
    tb->load_sectors += m.sectors;
    gs_ring_count(sim, sm, w->tb, ring, op->waves, m.lines, at);
    for (u32 left = ranks & ~(1u << rank); left; left &= left - 1) {
        gs_ring_tell(ctx, sm, w->tb, gs_ctz(left), ring, op->waves, m.lines,
                     at + (u64)sim->params.gpu_bulk.cluster_latency);
    }
}

void gs_bulk_store(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    gs_sim *sim = ctx->sim;
    gs_warp *w = &sm->warp[wi];
    gs_tb *tb = &sm->tb[w->tb];
    const gs_bulk_box *box = GS_CONST_TABLE(sim, gs_bulk_box, at_boxes) + op->pattern;
    const gs_bulk_rows rows = rows_of(sim, sm, wi, op);
    gs_store_owner *o = &sm->owner[tb->owner];
    u64 at = issue(sm, wi, c), free = begins(sim, sm, tb, box->arg, at, 0);
    const u64 pay = gs_pay_op(wi, 0, GS_MSG_STORE, sm->id % GS_GROUP) | (u64)tb->owner << 45;
    const moved m = store_rows(ctx, sm, tb, &rows, free, pay);
    sm->bulk_free[0] = m.free;
    sm->copy_left[wi] = (u32)((m.free + 63) >> 6) + (u32)sim->params.gpu_bulk.taken;
    w->slot[0].count = (u16)(w->slot[0].count + m.lines);
    sm->acquired[gs_credit_pool(sim, 0, 0)] += m.lines;
    sm->work.store_sectors += m.sectors;
    tb->store_sectors += m.sectors;
    o->unacknowledged += m.lines;
    o->leaves_sm = gs_max32(
        o->leaves_sm, (u32)(gs_max(sm->port_free, (m.free + 63) >> 6) + (u64)sim->params.gpu_noc.latency));
}
