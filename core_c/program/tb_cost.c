#include "program/tb_cost.h"

#include "base/arena.h"
#include "memory/address_map.h"
#include "memory/host_copy.h"
#include "program/pattern.h"
#include "program/sync_ops.h"

#include <string.h>

typedef struct walker {
    const gs_sim *sim;
    const gs_launch *launch;
    u32 x, y, z, warp;
    u32 k[3];
    u32 pc;
    u32 tb, tile;
    u64 block;
} walker;

static u32 variant_of(const gs_launch *l, u32 x, u32 y, u32 z)
{
    return (u32)(x + 1 == l->grid[0]) | (u32)(y + 1 == l->grid[1]) << 1 | (u32)(z + 1 == l->grid[2]) << 2;
}

static void walk_tile(walker *w, const gs_iop *op)
{
    const gs_launch *l = w->launch;
    u32 tbs = gs_max32(l->grid[0] * l->grid[1] * l->grid[2], 1), at[3] = {w->x, w->y, w->z};
    w->pc = gs_stage_next(w->sim, gs_programs(w->sim) + l->program, op, w->tb, tbs, &w->tile, at);
    w->x = at[0];
    w->y = at[1];
    w->z = at[2];
}

/* the next op that does something; loops are followed; NULL at the end */
static const gs_iop *walk_next(walker *w, const gs_iop *code)
{
    for (;;) {
        const gs_iop *op = code + w->pc;
        if (op->kind == GS_OP_EXIT) {
            return NULL;
        }
        if (op->kind == GS_OP_TILE) {
            walk_tile(w, op);
            continue;
        }
        if (op->kind != GS_OP_LOOP) {
            w->pc++;
            return op;
        }
        if (++w->k[op->level] < op->count) {
            w->pc = op->target;
        } else {
            w->k[op->level] = 0;
            w->pc++;
        }
    }
}

static int is_memory(const gs_iop *op)
{
    return op->kind == GS_OP_LOAD || op->kind == GS_OP_STORE || op->kind == GS_OP_REDUCE;
}

static int skipped(const walker *w, const gs_iop *op)
{
    return op->count && (i64)w->k[op->level] + op->count_plus >= (i64)op->count;
}

static gs_coalesced reach_of(const walker *w, const gs_iop *op)
{
    const gs_sim *sim = w->sim;
    const gs_ipattern *p =
        GS_CONST_TABLE(sim, gs_ipattern, at_patterns) + op->pattern + (op->per_warp ? w->warp : 0);
    i64 k = (i64)w->k[op->level] + op->count_plus;
    u64 value = (u64)(p->base + p->bx * w->x + p->by * w->y + p->bz * w->z + p->warp * w->warp + p->step * k +
                      p->step2 * w->k[p->level2]);
    return gs_coalesced_of(sim, p, w->launch->arg[p->arg], value, w->block);
}

/* the bytes of the parts; NULL: they are recorded, or nobody asks */
static const gs_bytes *bytes_of(const gs_sim *sim, const gs_coalesced *r)
{
    u32 first = r->template->first;
    int recorded = r->part != GS_CONST_TABLE(sim, gs_part, at_parts) + first;
    return !sim->at_bytes || recorded ? NULL : GS_CONST_TABLE(sim, gs_bytes, at_bytes) + first;
}

static walker start_at(const gs_sim *sim, const gs_launch *l, u32 tb)
{
    return (walker){.sim = sim,
                    .launch = l,
                    .tb = tb,
                    .x = tb % l->grid[0],
                    .y = tb / l->grid[0] % l->grid[1],
                    .z = tb / l->grid[0] / l->grid[1]};
}

typedef struct copied {
    gs_tb_visit visit;
    void *user;
} copied;

static void visit_copied(void *user, u64 line, u32 mask)
{
    static const gs_iop store = {.kind = GS_OP_STORE};
    copied *c = user;
    c->visit(c->user, &store, line, mask, NULL);
}

void gs_tb_walk(const gs_sim *sim, u32 kernel, u32 tb, gs_tb_visit visit, void *user)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    if (l->copies) {
        copied c = {visit, user};
        gs_host_copy_all_lines(sim, kernel, visit_copied, &c);
        return;
    }
    const gs_program *program = gs_programs(sim) + l->program;
    walker w = start_at(sim, l, tb);
    const gs_iop *code = gs_iops(sim) + program->first_op;
    const u32 *entries = gs_entries(sim, l, program, tb);
    u32 entry = program->entry[variant_of(l, w.x, w.y, w.z)];
    for (w.warp = 0; w.warp < program->warps; w.warp++) {
        memset(w.k, 0, sizeof w.k);
        w.pc = (entries ? entries[w.warp] : entry) - program->first_op;
        w.block = gs_warp_block(sim, l, (u64)tb * program->warps + w.warp);
        for (const gs_iop *op; (op = walk_next(&w, code));) {
            if (!is_memory(op) || skipped(&w, op)) {
                continue;
            }
            gs_coalesced r = reach_of(&w, op);
            const gs_bytes *bytes = bytes_of(sim, &r);
            for (u32 i = 0; i < r.template->lines; i++) {
                visit(user, op, r.line + (u64)(i64)r.part[i].line, r.part[i].mask, bytes ? bytes + i : NULL);
            }
        }
    }
}

typedef struct collector {
    u64 *out;
    u64 n, room;
} collector;

static void collect(void *user, const gs_iop *op, u64 line, u32 mask, const gs_bytes *bytes)
{
    collector *c = user;
    (void)bytes;
    if (c->n < c->room) {
        c->out[c->n] = line << 4 | mask | (op->kind == GS_OP_LOAD ? 0 : 1ull << 63);
    }
    c->n++;
}

uint64_t gs_touches(const gs_sim *sim, uint32_t kernel, uint32_t tb, uint64_t *out, uint64_t room)
{
    collector c = {out, 0, room};
    gs_tb_walk(sim, kernel, tb, collect, &c);
    return c.n;
}

typedef struct passer {
    const gs_sim *sim;
    gs_passed *out;
} passer;

static void visit_passed(void *user, const gs_iop *op, u64 line, u32 mask, const gs_bytes *bytes)
{
    const passer *p = user;
    (void)bytes;
    u32 slice, set, tag;
    gs_line_home(p->sim, line, &slice, &set, &tag);
    gs_passed *s = &p->out[slice];
    if (op->kind == GS_OP_LOAD) {
        s->loaded += gs_popcount(mask);
        s->whole |= mask == 15;
    } else {
        s->now += gs_popcount(mask);
    }
}

void gs_passed_of(const gs_sim *sim, uint32_t kernel, gs_passed *out)
{
    u32 tbs = (u32)gs_tbs_of(gs_launches(sim) + kernel);
    passer p = {sim, out};
    for (u32 tb = 0; tb < tbs; tb++) {
        gs_tb_walk(sim, kernel, tb, visit_passed, &p);
        for (u32 i = 0; i < sim->slices; i++) {
            gs_passed *s = &out[i];
            s->stored += s->now;
            if (s->whole) {
                s->passed += s->now;
                s->most = gs_max(s->most, s->now);
            }
            s->now = s->whole = 0;
        }
    }
}

/* a launch of the program, for addresses that only the counts matter of */
static gs_launch any_launch(u32 program)
{
    gs_launch l = {0};
    l.program = program;
    l.first_block = GS_NONE;
    return l;
}

/* whether any line has its home across the fabric from the SMs of a side */
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

/* What an estimate goes by: warps of a TB that do the same at the same time share what there is. */
typedef struct shared_by {
    u64 sub, all; /* warps of a sub-core, of the TB; of a floor 1 each: a warp may be ahead of the others */
    u64 l2, fresh, dram; /* cycles of a load that finds L2, that another SM has just written, from DRAM */
    u64 acknowledged;    /* cycles more of a store, some line of which lies across the fabric */
    u64 arrivals;        /* cycles in which a barrier counts warps and lets them go */
} shared_by;

/* `entries`: where each warp starts; NULL: all at `entry`; `loads`: see gs_tb_floor */
static shared_by shared_of(const gs_sim *sim, const gs_program *p, const gs_loads *loads, u64 around)
{
    if (!loads->latency) {
        return (shared_by){.sub = 1, .all = 1};
    }
    /* half of the lines lie across; of many the last one is waited for */
    u64 dram = (u64)sim->params.gpu_dram.latency;
    return (shared_by){.sub = (p->warps + 3) / 4,
                       .all = p->warps,
                       .l2 = loads->latency,
                       .fresh = loads->latency + (sim->partition_boxes ? around : 0),
                       .dram = dram + (sim->partition_boxes ? around / 2 : 0),
                       .acknowledged = sim->partition_boxes ? 2 * sim->fabric / sim->period : 0,
                       .arrivals = p->warps * gs_max((u64)sim->params.gpu_sm.barrier_warp,
                                                     (u64)sim->params.gpu_sm.barrier_leave)};
}

/* cycles for which what a load asks for holds the port of its SM, in 64ths */
static u64 port_of(const gs_sim *sim, const gs_coalesced *r)
{
    u64 hold = 0;
    for (u32 i = 0; i < r->template->lines; i++) {
        hold += sim->reply_hold[0][r->part[i].mask];
    }
    return hold;
}

static u64 floor_from(walker w, const gs_program *p, const u32 *entries, u32 entry, u64 warps,
                      const gs_loads *loads)
{
    const gs_sim *sim = w.sim;
    const gs_iop *code = gs_iops(sim) + p->first_op;
    const gs_ipattern *patterns = GS_CONST_TABLE(sim, gs_ipattern, at_patterns);
    /* to L2 and back; a row that is open may answer sooner than L2 does */
    u64 way = sim->l1_latency + 2 * sim->noc / sim->period;
    u64 hit = way + sim->l2_latency / sim->period,
        loaded = way + gs_min(sim->l2_latency, sim->tag_latency + sim->fill_latency) / sim->period,
        missed = way + (sim->tag_latency + sim->dram_slot + sim->fill_latency) / sim->period,
        opened = missed + (u64)sim->params.gpu_dram.row_open / sim->period;
    /* the way over the fabric and back, of a load through the slice that lies opposite */
    u64 over = 2 * sim->fabric / sim->period,
        around = (sim->fabric + sim->fabric_back + sim->tag_latency) / sim->period;
    const shared_by by = shared_of(sim, p, loads, around);
    u64 longest = 0, ends = 0;
    int stores = 0;
    for (w.warp = 0; w.warp < p->warps; w.warp++) {
        u64 t = 0, back[GS_SLOTS] = {0}, seen = 0, came = 0, port = 0;
        u32 before = 0;
        memset(w.k, 0, sizeof w.k);
        w.pc = (entries ? entries[w.warp] : entry) - p->first_op;
        w.block = gs_warp_block(sim, w.launch, warps + w.warp);
        for (const gs_iop *op; (op = walk_next(&w, code));) {
            u32 slot = op->stages ? op->slot + (w.k[op->level] + (u32)op->count_plus) % op->stages : op->slot;
            if (op->kind == GS_OP_COMPUTE) {
                u64 span = op->slots * by.sub * 64, smem = op->smem * by.all;
                for (u32 i = 0; i < op->npipes; i++) {
                    span = gs_max(span, op->amount[i] * by.sub - op->tail[i]);
                }
                span = gs_max(span, smem > op->smem_ahead ? smem - op->smem_ahead : 0);
                t += (span + 63) / 64 + op->chain;
            } else if (op->kind == GS_OP_DELAY) {
                t += op->count;
            } else if (op->kind == GS_OP_WAIT) {
                t = gs_max(t, back[slot]);
            } else if (op->kind == GS_OP_BARRIER || op->kind == GS_OP_POLL) {
                t += (u64)sim->params.gpu_sm.barrier + by.arrivals;
            } else if (is_memory(op) && !skipped(&w, op)) {
                gs_coalesced reach = reach_of(&w, op);
                if (reach.template->lines) {
                    /* how many lines it takes depends on the TB, so none is counted beyond the first;
                       no store is acknowledged before it has been to L2 and back, unless it joins the
                       warp's store before it; a load may hit in L1, even of what another TB has fetched
                       since this one began */
                    const gs_ipattern *q = &patterns[op->pattern + (op->per_warp ? (i32)w.warp : 0)];
                    u32 arg = q->arg;
                    u64 done = t + sim->l1_latency;
                    if (loads->latency && op->kind == GS_OP_LOAD) {
                        /* lines that all warps load come once */
                        port = gs_max(port, t * 64) +
                               port_of(sim, &reach) * (q->warp || q->recorded ? by.all : 1);
                        done = (port + 63) / 64 + (loads->cold >> arg & 1  ? by.dram
                                                   : loads->far >> arg & 1 ? by.fresh
                                                                           : by.l2);
                    } else if (op->kind != GS_OP_LOAD) {
                        u64 far = crosses(sim, &reach, loads->side) ? over : 0;
                        done = t + (sim->join_stores && seen ? 0 : hit + far) + by.acknowledged;
                        seen = gs_max(seen, done + (u64)sim->params.gpu_cp.tb_flush);
                    } else if ((loads->far | loads->cold) >> arg & 1) {
                        u64 first = (loads->own & ~before) >> arg & 1, from = first ? t : 0;
                        /* what a TB has written may lie on the side that it wrote from */
                        int fetched = first && loads->cold >> arg & 1;
                        from += fetched && crosses(sim, &reach, loads->side) ? around : 0;
                        u64 cold = first && loads->fresh >> arg & 1 ? opened : missed;
                        done = gs_max(done, from + (loads->cold >> arg & 1 ? cold : loaded));
                        before |= 1u << arg;
                    }
                    back[slot] = gs_max(back[slot], done);
                    came = op->kind == GS_OP_LOAD ? gs_max(came, done) : came;
                }
                t += 1;
            }
        }
        ends = gs_max(ends, gs_max(t, came) + 1);
        stores |= seen != 0;
        for (u32 s = 0; s < GS_SLOTS; s++) {
            t = gs_max(t, back[s]);
        }
        longest = gs_max(longest, gs_max(t + 1, seen));
    }
    /* what a TB sends behind its stores when it ends */
    return stores && sim->flush_trip
               ? gs_max(longest, ends + sim->flush_trip + (u64)sim->params.gpu_cp.tb_flush)
               : longest;
}

static void work_from(walker w, const gs_program *p, const u32 *entries, u32 entry, u64 warps, gs_work *out)
{
    const gs_iop *code = gs_iops(w.sim) + p->first_op;
    u64 *pipes = (u64 *)(void *)out;
    memset(out, 0, sizeof *out);
    for (w.warp = 0; w.warp < p->warps; w.warp++) {
        memset(w.k, 0, sizeof w.k);
        w.pc = (entries ? entries[w.warp] : entry) - p->first_op;
        w.block = gs_warp_block(w.sim, w.launch, warps + w.warp);
        for (const gs_iop *op; (op = walk_next(&w, code));) {
            out->ops++;
            if (op->kind == GS_OP_COMPUTE) {
                out->warp_instructions += op->issue;
                for (u32 i = 0; i < op->npipes; i++) {
                    pipes[op->pipe[i]] += op->amount[i];
                }
                out->smem += op->smem;
            } else if (op->kind == GS_OP_BARRIER || op->kind == GS_OP_TRIGGER || op->kind == GS_OP_DEPEND) {
                out->warp_instructions++;
            } else if (is_memory(op) && !skipped(&w, op)) {
                const gs_template *t = reach_of(&w, op).template;
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
    const gs_program *p = gs_programs(sim) + program;
    gs_launch l = any_launch(program);
    return floor_from((walker){.sim = sim, .launch = &l}, p, NULL, p->entry[variant & 7], 0, loads);
}

void gs_tb_work(const gs_sim *sim, uint32_t program, uint32_t variant, gs_work *out)
{
    const gs_program *p = gs_programs(sim) + program;
    gs_launch l = any_launch(program);
    work_from((walker){.sim = sim, .launch = &l}, p, NULL, p->entry[variant & 7], 0, out);
}

uint64_t gs_tb_floor_of(const gs_sim *sim, uint32_t kernel, uint32_t tb, const gs_loads *loads)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    const gs_program *p = gs_programs(sim) + l->program;
    walker w = start_at(sim, l, tb);
    return floor_from(w, p, gs_entries(sim, l, p, tb), p->entry[variant_of(l, w.x, w.y, w.z)],
                      (u64)tb * p->warps, loads);
}

void gs_tb_work_of(const gs_sim *sim, uint32_t kernel, uint32_t tb, gs_work *out)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    const gs_program *p = gs_programs(sim) + l->program;
    walker w = start_at(sim, l, tb);
    work_from(w, p, gs_entries(sim, l, p, tb), p->entry[variant_of(l, w.x, w.y, w.z)], (u64)tb * p->warps,
              out);
}
