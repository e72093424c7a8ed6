/* Memory ops of warps: see lsu.h. */
#include "sm/lsu.h"

#include "base/clock.h"
#include "oracle/oracle_log.h"
#include "program/pattern.h"
#include "sm/credits.h"
#include "sm/lsu_lines.h"
#include "sm/sm.h"
#include "sm/warp_order.h"

static inline const gs_ipattern *pattern_of(const gs_sim *sim, const gs_warp *w, const gs_iop *op)
{
    return GS_CONST_TABLE(sim, gs_ipattern, at_patterns) + op->pattern + (op->per_warp ? w->index : 0);
}

/* The lines that a warp touches with a pattern, in turn k of its loop. */
static GS_ALWAYS_INLINE gs_coalesced lines_of_op(const gs_sim *sim, const gs_warp *w, const gs_tb *tb,
                                                 const gs_ipattern *p, i64 k)
{
    u64 value = (u64)(p->base + p->bx * tb->x + p->by * tb->y + p->bz * tb->z + p->warp * w->index +
                      p->step * k + p->step2 * w->k[p->level2]);
    return gs_coalesced_of(sim, p, gs_launches(sim)[tb->kernel].arg[p->arg], value, w->block);
}

/* 1: a store writes just the sectors of the warp's last store, and joins it before it leaves the SM. */
static int store_joins(const gs_sim *sim, const gs_last_store *last, const gs_coalesced *reach)
{
    if (last->line != reach->line + 1 || last->lines != reach->template->lines) {
        return 0;
    }
    const gs_part *part =
        (last->recorded ? sim->recorded_parts : GS_CONST_TABLE(sim, gs_part, at_parts)) + last->part;
    for (u32 i = 0; i < last->lines; i++) {
        if (part[i].line != reach->part[i].line || part[i].mask != reach->part[i].mask) {
            return 0;
        }
    }
    return 1;
}

/* The parts of the warp's next store, if it will join this one and only arithmetic comes before it; else
   NULL. */
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
    gs_coalesced reach = lines_of_op(sim, w, tb, pattern_of(sim, w, op), k);
    return store_joins(sim, this, &reach) ? reach.part : NULL;
}

void gs_lsu_prefetch(const gs_sim *sim, const gs_sm *sm, u32 wi, const gs_iop *op)
{
    const gs_warp *w = &sm->warp[wi];
    i64 k = (i64)w->k[op->level] + op->count_plus;
    if (op->bypass_l1 || (op->count && k >= (i64)op->count)) {
        return;
    }
    const gs_coalesced reach = lines_of_op(sim, w, &sm->tb[w->tb], pattern_of(sim, w, op), k);
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

/* The op takes an issue slot at cycle c or after it: returns which. */
static inline u64 take_issue_slot(gs_subcore *b, u64 c)
{
    u64 issue = gs_max(c, b->single);
    b->single = issue + 1;
    gs_subcore_steal_slot(b, issue);
    return issue;
}

/* The cycle in which a copy leaves its sub-core's queue (gpu.sm.queue): its registers have been read, and the
   LSU has room for it. */
static inline u64 leaves_queue(const gs_sim *sim, const gs_sm *sm, const gs_subcore *b, u64 issue)
{
    const gs_gpu_sm_params *p = &sim->params.gpu_sm;
    u64 room = sm->copy_begins[(sm->copies_begun - (u32)p->copy_queue) % GS_COPIES];
    return gs_max(gs_max(issue + (u64)p->copy_gap, b->left) + sim->read_copy, room);
}

/* A copy into shared memory has left its sub-core's queue; the LSU begins it at cycle `begins`. */
static inline void begin_copy(gs_sm *sm, u32 wi, u64 leaves, u64 begins)
{
    gs_subcore *b = &sm->sub[wi & 3];
    if (sm->queue) {
        gs_subcore_queue_enter(sm, wi, leaves);
        sm->copy_begins[sm->copies_begun++ % GS_COPIES] = begins;
    } else {
        /* it leaves its sub-core's queue when the LSU begins the copy before it */
        b->left = b->copy;
        b->copy = begins;
    }
    sm->copy_left[wi] = (u32)b->left;
}

static inline void load_lines(gs_ctx *ctx, gs_sm *sm, gs_mem_access *a, const gs_part *part, const gs_iop *op,
                              int cached)
{
    const gs_sim *sim = ctx->sim;
    if (!sim->hold_late) {
        /* a fill holds the data array, which is also shared memory: counted here, or in gs_lsu_replies */
        gs_data_array_catch_up(sm, a->c);
        sm->smem_free = gs_max(sm->smem_free, a->at * 64) +
                        (op->smem ? (u64)a->sectors * (u64)sim->params.gpu_sm.copy_hold : (u64)a->n * 64);
    }
    a->kind = GS_MSG_LOAD;
    sm->work.l1_lines += a->n;
    if (GS_UNLIKELY(sim->oracle)) {
        gs_mem_access_lines(ctx, sm, a, part, 1, cached, 1);
    } else if (cached) {
        gs_mem_access_lines(ctx, sm, a, part, 1, 1, 0);
    } else {
        gs_mem_access_lines(ctx, sm, a, part, 1, 0, 0);
    }
}

static inline void store_lines(gs_ctx *ctx, gs_sm *sm, gs_mem_access *a, const gs_coalesced *lines,
                               const gs_iop *op, int joined)
{
    const gs_sim *sim = ctx->sim;
    const gs_part *part = lines->part;
    a->kind = op->kind == GS_OP_STORE ? GS_MSG_STORE : GS_MSG_REDUCE;
    if (sim->keep_partial && sim->join_stores && a->n && part->partial) {
        a->joins = joining(sim, &sm->warp[a->wi], a->tb, op, &sm->last_store[a->wi]);
    }
    gs_mem_access_lines(ctx, sm, a, part, 0, 0, sim->oracle != 0);
    if (GS_UNLIKELY(joined && sim->oracle)) {
        /* it is written with the store that it joined */
        u64 time = gs_clock_edge(gs_clock_of(sim, sm), a->c);
        for (u32 i = 0; i < lines->template->lines; i++) {
            gs_oracle_log_l2(ctx, sm, a->tb, lines->line + (u64)(i64)part[i].line, part[i].mask, time,
                             a->kind, 0);
        }
    }
}

/* When the warp may issue its next op, and what the op has cost it. */
static inline void end_access(const gs_sim *sim, gs_sm *sm, gs_warp *w, gs_tb *tb, const gs_iop *op, u64 c,
                              u64 issue)
{
    /* The LSU queues so many lines; beyond that the warp waits to hand over its op. Where the oldest goes
       first it has waited before. */
    u64 next = issue + (op->smem ? (u64)sim->params.gpu_sm.copy_gap : 1);
    if (!sim->oldest_first && sm->lsu_free > sm->lsu_queue) {
        next = gs_max(next, sm->lsu_free - sm->lsu_queue);
    }
    w->ready = (u32)next;
    sm->work.warp_instructions += op->issue; /* 0: a further part */
    tb->stalls.issued += op->issue;
    tb->stalls.pipe += next - c - op->issue;
    sm->warp_cycles += next - c;
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
    const gs_coalesced reach = lines_of_op(sim, w, tb, p, k);
    const u32 lines = reach.template->lines,
              pool = gs_credit_pool(sim, op->kind == GS_OP_LOAD, op->smem != 0);
    u32 n = lines;
    int joined = GS_UNLIKELY(sim->join_stores) && op->kind == GS_OP_STORE &&
                 store_joins(sim, &sm->last_store[wi], &reach);
    if (joined) {
        n = 0;
    } else if (n && !gs_credit_take(sim, sm, wi, pool, c)) {
        return 0;
    }
    if (GS_UNLIKELY(sim->join_stores)) {
        sm->last_store[wi] = (gs_last_store){op->kind == GS_OP_STORE && !joined ? reach.line + 1 : 0,
                                             reach.template->first, p->recorded, lines};
    }
    gs_subcore *b = &sm->sub[wi & 3];
    u64 issue = take_issue_slot(b, c), leaves = 0;
    if (sm->queue && op->smem) {
        leaves = leaves_queue(sim, sm, b, issue);
    }
    u32 slot = gs_scoreboard_slot_of(w, op);
    gs_mem_access a = {.tb = tb,
                       .ws = &w->slot[slot],
                       .line0 = reach.line,
                       .c = c,
                       .at = gs_max(issue, gs_max(leaves, sm->lsu_free)),
                       .wi = wi,
                       .slot = slot,
                       .copy = op->kind == GS_OP_LOAD && op->smem,
                       .pool = pool,
                       .n = n,
                       .mark = (launch->overwritten >> p->arg & 1) * GS_L1_MARKED,
                       .sectors = joined ? 0 : reach.template->sectors};
    sm->lsu_free = gs_max(issue, sm->lsu_free) + lines; /* reading a copy's registers does not hold it */
    if (GS_UNLIKELY(op->smem)) {
        begin_copy(sm, wi, leaves, a.at);
    }
    if (op->kind == GS_OP_LOAD) {
        load_lines(ctx, sm, &a, reach.part, op, !op->bypass_l1 && !(launch->bypass >> p->arg & 1));
    } else {
        store_lines(ctx, sm, &a, &reach, op, joined);
    }
    if (sm->credit_fifo_head != sm->credit_fifo_tail) {
        gs_credit_arm(sim, sm, c + 1);
    }
    end_access(sim, sm, w, tb, op, c, issue);
    return 1;
}
