/* Starts and ends of TBs: see tb.h. */
#include "sm/tb.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/mailbox.h"
#include "base/time_series.h"
#include "program/pattern.h"
#include "sm/l1.h"
#include "sm/ring_barrier.h"
#include "sm/sm.h"

/* Allocates an entry for the stores of a TB that starts. */
static u32 owner_take(gs_sim *sim, gs_sm *sm, u32 kernel, u32 tb)
{
    u32 i = sm->owner_free ? sm->owner_free - 1 : sm->owner_used++;
    if (i >= GS_STORE_OWNERS) {
        gs_fail(sim, GS_ERR_LIMIT, "stores of more than %d TBs of an SM are under way; please report this",
                GS_STORE_OWNERS);
        return 0;
    }
    sm->owner_free = sm->owner_free ? sm->owner[i].next : 0;
    sm->owner[i] = (gs_store_owner){.kernel = kernel, .tb = tb};
    return i;
}

static void owner_drop(gs_sm *sm, gs_store_owner *o)
{
    o->next = (u16)sm->owner_free;
    sm->owner_free = (u32)(o - sm->owner) + 1;
}

/* The cycle from which the whole GPU sees what the TB has stored. */
static u64 visible_at(const gs_sim *sim, const gs_store_owner *o)
{
    return gs_max(o->last_acknowledged ? o->last_acknowledged + (u64)sim->params.gpu_cp.tb_flush : 0,
                  o->leaves_sm);
}

static void complete(gs_ctx *ctx, gs_sm *sm, gs_store_owner *o, u64 c)
{
    const gs_sim *sim = ctx->sim;
    gs_send_one(ctx, sim->boxes - 1, gs_clock_edge(gs_clock_of(sim, sm), c) + sim->done_latency,
                GS_SENDER_COMPLETE + sm->id, gs_pay_complete(sim, o->tb, (u32)(o - sm->owner), o->kernel));
}

void gs_tb_stores_acknowledged(gs_ctx *ctx, gs_sm *sm, gs_store_owner *o, u64 c)
{
    o->last_acknowledged = gs_max32(o->last_acknowledged, (u32)c);
    if (--o->unacknowledged == 0 && o->tb_left) {
        complete(ctx, sm, o, visible_at(ctx->sim, o));
        owner_drop(sm, o);
    }
}

void gs_tb_start(gs_ctx *ctx, gs_sm *sm, gs_deferred_msg s)
{
    gs_sim *sim = ctx->sim;
    u64 c = gs_clock_cycle(gs_clock_of(sim, sm), s.time);
    u32 at = GS_START_SLOT(s.pay), kernel = gs_start_kernel(sim, s.pay), id = gs_start_tb(sim, s.pay);
    const gs_launch *launch = gs_launches(sim) + kernel;
    const gs_program *program = gs_programs(sim) + launch->program;
    gs_tb *tb = &sm->tb[at];
    u32 rest = id / launch->grid[0];
    /* member by member: of a memset of two cache lines gcc makes a slow string instruction */
    tb->kernel = kernel;
    tb->tb = id;
    tb->x = id % launch->grid[0];
    tb->y = rest % launch->grid[1];
    tb->z = rest / launch->grid[1];
    tb->arrived = 0;
    sm->tb_barriers_used[at] = 0;
    tb->polls = 0;
    tb->load_sectors = tb->store_sectors = tb->warps = 0;
    tb->stalls = (gs_stalls){0};
    tb->tile = tb->phase = 0;
    tb->ready = tb->ready_end = tb->polled = tb->polled_end = 0;
    u32 variant = (u32)(tb->x + 1 == launch->grid[0]) | (u32)(tb->y + 1 == launch->grid[1]) << 1 |
                  (u32)(tb->z + 1 == launch->grid[2]) << 2;
    tb->code = program->first_op;
    /* entries and blocks of recorded programs, one for each warp */
    const u32 *entries = gs_entries(sim, launch, program, id);
    const u32 *blocks = gs_blocks(sim, launch, (u64)id * program->warps);
    u32 pc = program->entry[variant] - program->first_op;
    tb->live_warps = (u16)program->warps;
    tb->owner = (u16)owner_take(sim, sm, kernel, id);
    tb->flags = (u8)(GS_START_CONDITIONS_MET(s.pay) ? GS_TB_CONDITIONS_MET : 0);
    if (GS_START_CONFIGURE(s.pay)) {
        gs_l1_invalidate(sm);
        gs_l1_resize(sm, sim->l1_total - launch->carveout);
        sm->l1_fresh_since = s.time;
    } else if (sim->order.invalidate == 2 || (sim->order.invalidate == 1 && sm->last_kernel != kernel)) {
        gs_l1_invalidate(sm);
    } else if (sim->order.invalidate == 3 && launch->stale &&
               gs_residents_of(sim, sm->id)[at].ready > sm->l1_fresh_since) {
        /* the scheduler wrote this entry before it sent the message, and leaves it until the TB ends */
        gs_l1_invalidate_marked(sm);
        sm->l1_fresh_since = s.time;
    }
    if (sm->last_kernel != kernel) {
        sm->parameters_ready = (u32)c + launch->parameters;
    }
    sm->last_kernel = kernel;
    const u64 begin = gs_max(c, sm->parameters_ready), wait = (begin - c) * program->warps;
    tb->stalls.memory += wait;
    sm->warp_cycles += wait;
    gs_series_residence(sim, sm, program->warps, 0 - gs_clock_edge(gs_clock_of(sim, sm), c));
    sm->live_tbs++;
    for (u32 i = 0; i < program->warps; i++) {
        u32 sub = (i + GS_START_ROTATE(s.pay)) & 3;
        u64 open = sm->free_warps & 0x1111111111111111ull << sub;
        if (!open) {
            gs_fail(sim, GS_ERR_LIMIT, "an SM got more warps than it has room for; please report this");
            return;
        }
        u32 wi = gs_ctz(open);
        sm->free_warps &= ~(1ull << wi);
        gs_warp *w = &sm->warp[wi];
        memset(w, 0, sizeof *w);
        sm->shared_done[wi] = sm->copy_left[wi] = 0;
        sm->smem_returns[wi].count = 0;
        sm->last_store[wi].line = 0;
        w->pc = GS_UNLIKELY(entries != NULL) ? entries[i] - program->first_op : pc;
        w->block = GS_UNLIKELY(blocks != NULL) ? launch->first_access + blocks[i] : 0;
        w->tb = (u8)at;
        w->index = (u8)i;
        sm->warp_age[wi] = sm->warps_born + i;
        tb->warps |= 1ull << wi;
        gs_sm_wake(sm, wi, begin);
    }
    sm->warps_born += GS_WARPS;
    if (GS_UNLIKELY(launch->tiles[0])) {
        gs_ring_start(sm, at, tb->warps);
    }
}

void gs_tb_end(gs_ctx *ctx, gs_sm *sm, u32 at, u64 c)
{
    gs_sim *sim = ctx->sim;
    gs_tb *tb = &sm->tb[at];
    gs_kernel_count *k = &ctx->kernels[tb->kernel];
    gs_stalls_add(&k->stalls, &tb->stalls);
    k->instructions += tb->stalls.issued; /* each holds one slot */
    k->load_sectors += tb->load_sectors;
    k->store_sectors += tb->store_sectors;
    gs_stalls_add(&sm->stalls, &tb->stalls);
    sm->free_warps |= tb->warps;
    gs_store_owner *o = &sm->owner[tb->owner];
    if (o->leaves_sm && sim->flush_trip) {
        /* a flush follows the TB's stores to L2, also if they have been acknowledged long before */
        o->last_acknowledged = gs_max32(o->last_acknowledged, (u32)c + sim->flush_trip);
    }
    const gs_clock *clock = gs_clock_of(sim, sm);
    u64 left = gs_max(c, o->leaves_sm), seen = gs_max(c, visible_at(sim, o)), end = gs_clock_edge(clock, c),
        free = gs_clock_edge(clock, left);
    u32 whole = o->unacknowledged == 0 && seen == left;
    sm->live_tbs--;
    gs_series_residence(sim, sm, gs_popcount64(tb->warps), end);
    tb->warps = 0;
    sm->tbs_done++;
    sm->hash_end = gs_mix(sm->hash_end, c ^ (u64)tb->kernel << 40 ^ tb->tb);
    gs_send_one(ctx, sim->boxes - 1, free + sim->done_latency, sm->id,
                gs_pay_op(at, whole, GS_MSG_DONE, 0) | gs_pay_line(0, 0, 0, tb->owner, 0) |
                    gs_min(free - end, (1u << 29) - 1));
    if (o->unacknowledged) {
        o->tb_left = 1;
        return;
    }
    if (!whole) {
        complete(ctx, sm, o, seen);
    }
    owner_drop(sm, o);
}
