/* The cost of one TB: a lower bound on its time, and its work. These are the public functions gs_tb_floor
   and gs_tb_work. The bound becomes an estimate if loads have a latency (gs_loads). */
#include "base/arena.h"
#include "memory/address_map.h"
#include "program/tb_walk.h"

#include <string.h>

/* A launch of the program, for addresses of which only the number counts. */
static gs_launch any_launch(u32 program)
{
    gs_launch l = {0};
    l.program = program;
    l.first_block = GS_NONE;
    return l;
}

/* A TB of a variant, without a position in the grid. */
static gs_walker walker_of_variant(const gs_sim *sim, const gs_launch *l, u32 variant)
{
    const gs_program *p = gs_programs(sim) + l->program;
    return (gs_walker){.sim = sim,
                       .launch = l,
                       .program = p,
                       .code = gs_iops(sim) + p->first_op,
                       .entry = p->entry[variant & 7]};
}

/* What an access costs, in cycles, and what warps of a TB share. */
typedef struct costs {
    const gs_loads *loads;
    /* Warps of a sub-core, and of the TB, that do the same at the same time and share a resource. 1 in a
       floor: one warp may be ahead of the others. */
    u64 subcore_warps, warps;
    u64 hit, l2_or_open_row, miss, miss_new_row; /* of a load, in a floor */
    u64 fabric, fabric_by_load; /* over the fabric and back; of a load, through the slice opposite the home */
    /* In an estimate: a load that hits L2; of what another SM has just written; from DRAM. What a store takes
       more over the fabric. What a barrier takes to count warps and let them leave. */
    u64 l2, just_written, dram, store_fabric, barrier_warps;
} costs;

static costs costs_of(const gs_walker *w, const gs_loads *loads)
{
    const gs_sim *sim = w->sim;
    const gs_params *p = &sim->params;
    u64 period = sim->period, way = sim->l1_latency + 2 * sim->noc / period;
    costs c = {.loads = loads, .subcore_warps = 1, .warps = 1};
    c.hit = way + sim->l2_latency / period;
    c.l2_or_open_row = way + gs_min(sim->l2_latency, sim->tag_latency + sim->fill_latency) / period;
    c.miss = way + (sim->tag_latency + sim->dram_slot + sim->fill_latency) / period;
    c.miss_new_row = c.miss + (u64)p->gpu_dram.row_open / period;
    c.fabric = 2 * sim->fabric / period;
    c.fabric_by_load = (sim->fabric + sim->fabric_back + sim->tag_latency) / period;
    if (loads->latency) {
        u64 warps = w->program->warps;
        int two = sim->partition_boxes != 0;
        c.subcore_warps = (warps + 3) / 4;
        c.warps = warps;
        c.l2 = loads->latency;
        /* half of the lines cross the fabric; of many the last one is waited for */
        c.just_written = loads->latency + (two ? c.fabric_by_load : 0);
        c.dram = (u64)p->gpu_dram.latency + (two ? c.fabric_by_load / 2 : 0);
        c.store_fabric = two ? c.fabric : 0;
        c.barrier_warps = warps * gs_max((u64)p->gpu_sm.barrier_warp, (u64)p->gpu_sm.barrier_leave);
    }
    return c;
}

/* 1: some line has its home across the fabric from the SMs of a side. */
static int crosses(const gs_sim *sim, const gs_coalesced *r, u32 side)
{
    for (u32 i = 0; side && sim->partition_boxes && i < r->template->lines; i++) {
        u32 slice, set, tag;
        gs_home(&sim->map, r->line + (u64)(i64)r->part[i].line, &slice, &set, &tag);
        if ((slice / GS_GROUP >= sim->partition_boxes) != (side != 1)) {
            return 1;
        }
    }
    return 0;
}

/* How long the replies to a load hold the port of its SM, in 64ths of a cycle. */
static u64 port_of(const gs_sim *sim, const gs_coalesced *r)
{
    u64 hold = 0;
    for (u32 i = 0; i < r->template->lines; i++) {
        hold += sim->reply_hold[0][r->part[i].mask];
    }
    return hold;
}

/* A warp on its way through its program, in cycles from the start of its TB. */
typedef struct warp_time {
    u64 now, done[GS_SLOTS]; /* done: when what counts on a slot has returned */
    u64 stored, loaded;      /* when its stores are seen by all, and all its loads have returned */
    u64 port;                /* 64ths */
    u32 loaded_args;         /* bit an argument: it has loaded through it */
} warp_time;

/* When a load returns that L1 may not serve. */
static u64 load_time(const gs_sim *sim, const costs *c, warp_time *t, u32 arg, const gs_coalesced *r)
{
    const gs_loads *loads = c->loads;
    int first = (loads->own & ~t->loaded_args) >> arg & 1, cold = loads->cold >> arg & 1;
    u64 from = first ? t->now : 0;
    /* what a TB has written may be cached on the side that it wrote from */
    from += first && cold && crosses(sim, r, loads->side) ? c->fabric_by_load : 0;
    u64 miss = first && loads->fresh >> arg & 1 ? c->miss_new_row : c->miss;
    t->loaded_args |= 1u << arg;
    return from + (cold ? miss : c->l2_or_open_row);
}

/* How many lines an access has depends on the TB, so none is counted beyond the first. No store is
   acknowledged before it has been to L2 and back, unless it joins the warp's store before it. A load may hit
   L1, even what another TB has fetched since this one began. */
static void access_time(const gs_walker *w, const costs *c, warp_time *t, const gs_iop *op, u32 slot)
{
    const gs_sim *sim = w->sim;
    const gs_coalesced r = gs_walker_lines(w, op);
    if (r.template->lines) {
        const gs_ipattern *q = gs_walker_pattern(w, op);
        const gs_loads *loads = c->loads;
        u32 arg = q->arg;
        u64 done = t->now + sim->l1_latency;
        if (op->kind != GS_OP_LOAD) {
            u64 far = crosses(sim, &r, loads->side) ? c->fabric : 0;
            done = t->now + (sim->join_stores && t->stored ? 0 : c->hit + far) + c->store_fabric;
            t->stored = gs_max(t->stored, done + (u64)sim->params.gpu_cp.tb_flush);
        } else if (loads->latency) {
            /* lines that all warps load are fetched once */
            t->port =
                gs_max(t->port, t->now * 64) + port_of(sim, &r) * (q->warp || q->recorded ? c->warps : 1);
            done = (t->port + 63) / 64 + (loads->cold >> arg & 1  ? c->dram
                                          : loads->far >> arg & 1 ? c->just_written
                                                                  : c->l2);
        } else if ((loads->far | loads->cold) >> arg & 1) {
            done = gs_max(done, load_time(sim, c, t, arg, &r));
        }
        t->done[slot] = gs_max(t->done[slot], done);
        t->loaded = op->kind == GS_OP_LOAD ? gs_max(t->loaded, done) : t->loaded;
    }
    t->now += 1;
}

/* A bulk copy keeps the unit that copies tiles busy; in an estimate also the port of the SM. */
static void move_time(const gs_walker *w, const costs *c, warp_time *t, const gs_iop *op)
{
    const gs_sim *sim = w->sim;
    const gs_gpu_bulk_params *p = &sim->params.gpu_bulk;
    const gs_bulk_rows rows = gs_walker_rows(w, op);
    u64 lines = 0, sectors = 0;
    gs_bulk_count(&rows, &lines, &sectors);
    t->now++;
    if (!lines) {
        return;
    }
    if (op->kind == GS_OP_BULK_LOAD) {
        u64 each = c->loads->latency ? gs_max((u64)p->line, sim->reply_hold[0][15]) : (u64)p->line;
        t->port = gs_max(t->port, t->now * 64) + lines * each;
        t->loaded = gs_max(t->loaded, t->port / 64 + c->loads->latency);
    } else {
        t->port = gs_max(t->port, t->now * 64) + sectors * (32ull * 64 / (u64)p->store_bytes);
        t->stored = gs_max(t->stored, t->port / 64 + c->hit + (u64)sim->params.gpu_cp.tb_flush);
    }
}

static u64 block_time(const costs *c, const gs_iop *op)
{
    u64 span = op->slots * c->subcore_warps * 64, smem = op->smem * c->warps;
    for (u32 i = 0; i < op->npipes; i++) {
        span = gs_max(span, op->amount[i] * c->subcore_warps - op->tail[i]);
    }
    span = gs_max(span, smem > op->smem_ahead ? smem - op->smem_ahead : 0);
    return (span + 63) / 64 + op->chain;
}

static void op_time(const gs_walker *w, const costs *c, warp_time *t, const gs_iop *op)
{
    u32 slot = op->stages ? op->slot + (w->k[op->level] + (u32)op->count_plus) % op->stages : op->slot;
    switch (op->kind) {
    case GS_OP_COMPUTE:
        t->now += block_time(c, op);
        return;
    case GS_OP_DELAY:
        t->now += op->count;
        return;
    case GS_OP_WAIT:
        t->now = gs_max(t->now, t->done[slot]);
        return;
    case GS_OP_BARRIER:
    case GS_OP_POLL:
        t->now += (u64)w->sim->params.gpu_sm.barrier +
                  (op->kind == GS_OP_BARRIER && op->chain ? 0 : c->barrier_warps);
        return;
    case GS_OP_ARRIVE:
    case GS_OP_AWAIT:
        t->now += op->issue;
        return;
    case GS_OP_BULK_LOAD:
    case GS_OP_BULK_STORE:
        move_time(w, c, t, op);
        return;
    default:
        if (gs_walker_accesses(w, op)) {
            access_time(w, c, t, op, slot);
        }
    }
}

static u64 floor_of(gs_walker w, const gs_loads *loads)
{
    const gs_sim *sim = w.sim;
    const costs c = costs_of(&w, loads);
    u64 longest = 0, ends = 0;
    int stores = 0;
    for (u32 warp = 0; warp < w.program->warps; warp++) {
        warp_time t = {0};
        gs_walker_begin_warp(&w, warp);
        for (const gs_iop *op; (op = gs_walker_next(&w));) {
            op_time(&w, &c, &t, op);
        }
        ends = gs_max(ends, gs_max(t.now, t.loaded) + 1);
        stores |= t.stored != 0;
        u64 all = t.now;
        for (u32 s = 0; s < GS_SLOTS; s++) {
            all = gs_max(all, t.done[s]);
        }
        longest = gs_max(longest, gs_max(all + 1, t.stored));
    }
    /* the flush that a TB sends after its stores when it ends */
    return stores && sim->flush_trip
               ? gs_max(longest, ends + sim->flush_trip + (u64)sim->params.gpu_cp.tb_flush)
               : longest;
}

static void work_of(gs_walker w, gs_work *out)
{
    u64 *pipes = (u64 *)(void *)out;
    memset(out, 0, sizeof *out);
    for (u32 warp = 0; warp < w.program->warps; warp++) {
        gs_walker_begin_warp(&w, warp);
        for (const gs_iop *op; (op = gs_walker_next(&w));) {
            out->ops++;
            if (op->kind == GS_OP_COMPUTE) {
                out->warp_instructions += op->issue;
                for (u32 i = 0; i < op->npipes; i++) {
                    pipes[op->pipe[i]] += op->amount[i];
                }
                out->smem += op->smem;
            } else if (op->kind == GS_OP_ARRIVE || op->kind == GS_OP_AWAIT) {
                out->warp_instructions += op->issue;
            } else if (gs_walker_moves(op)) {
                const gs_bulk_rows rows = gs_walker_rows(&w, op);
                u64 lines = 0, sectors = 0;
                gs_bulk_count(&rows, &lines, &sectors);
                out->warp_instructions++;
                *(op->kind == GS_OP_BULK_LOAD ? &out->load_sectors : &out->store_sectors) += sectors;
            } else if (op->kind == GS_OP_BARRIER || op->kind == GS_OP_TRIGGER || op->kind == GS_OP_DEPEND ||
                       op->kind == GS_OP_RING_WAIT || op->kind == GS_OP_RING_ARRIVE ||
                       op->kind == GS_OP_MULTIPLY_WAIT || op->kind == GS_OP_CLUSTER) {
                out->warp_instructions++;
            } else if (gs_walker_accesses(&w, op)) {
                const gs_template *t = gs_walker_lines(&w, op).template;
                out->warp_instructions += op->issue;
                if (op->kind == GS_OP_LOAD) {
                    out->l1_lines += t->lines;
                    out->load_sectors += t->sectors;
                } else {
                    out->store_sectors += t->sectors;
                }
            }
        }
        out->warp_instructions++; /* EXIT */
    }
}

uint64_t gs_tb_floor(const gs_sim *sim, uint32_t program, uint32_t variant, const gs_loads *loads)
{
    gs_launch l = any_launch(program);
    return floor_of(walker_of_variant(sim, &l, variant), loads);
}

void gs_tb_work(const gs_sim *sim, uint32_t program, uint32_t variant, gs_work *out)
{
    gs_launch l = any_launch(program);
    work_of(walker_of_variant(sim, &l, variant), out);
}

uint64_t gs_tb_floor_of(const gs_sim *sim, uint32_t kernel, uint32_t tb, const gs_loads *loads)
{
    return floor_of(gs_walker_of_tb(sim, gs_launches(sim) + kernel, tb), loads);
}

void gs_tb_work_of(const gs_sim *sim, uint32_t kernel, uint32_t tb, gs_work *out)
{
    work_of(gs_walker_of_tb(sim, gs_launches(sim) + kernel, tb), out);
}
