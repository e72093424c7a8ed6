/* Runs the program of one TB without timing: visits the ops of its warps and the lines that they touch. */
#pragma once
#include "base/state.h"
#include "program/bulk_box.h"
#include "program/pattern.h"
#include "program/sync_ops.h"

#include <string.h>

/* bytes: those of the sectors in mask that are touched, if the oracle keeps them; NULL: all. */
typedef void (*gs_tb_visit)(void *user, const gs_iop *op, u64 line, u32 mask, const gs_bytes *bytes);

/* Calls `visit` for every line that the memory ops of the TB touch, warp by warp in program order. */
void gs_tb_walk(const gs_sim *sim, u32 kernel, u32 tb, gs_tb_visit visit, void *user);

static inline int gs_is_load(const gs_iop *op)
{
    return op->kind == GS_OP_LOAD || op->kind == GS_OP_BULK_LOAD;
}

/* Where a TB is in its program. One warp runs after the other; loops and tiles are followed. */
typedef struct gs_walker {
    const gs_sim *sim;
    const gs_launch *launch;
    const gs_program *program;
    const gs_iop *code;
    const u32 *entries; /* where each warp starts; NULL: all at `entry` */
    u32 entry;
    u32 tb, tile;
    u32 x, y, z, warp;
    u32 k[3], pc;
    u64 block; /* the warp's first recorded access */
    gs_pipeline pipeline;
} gs_walker;

static inline u32 gs_variant_of(const gs_launch *l, u32 x, u32 y, u32 z)
{
    return (u32)(x + 1 == l->grid[0]) | (u32)(y + 1 == l->grid[1]) << 1 | (u32)(z + 1 == l->grid[2]) << 2;
}

static inline gs_walker gs_walker_of_tb(const gs_sim *sim, const gs_launch *l, u32 tb)
{
    const gs_program *p = gs_programs(sim) + l->program;
    u32 x = tb % l->grid[0], y = tb / l->grid[0] % l->grid[1], z = tb / l->grid[0] / l->grid[1];
    return (gs_walker){.sim = sim,
                       .launch = l,
                       .program = p,
                       .code = gs_iops(sim) + p->first_op,
                       .entries = gs_entries(sim, l, p, tb),
                       .entry = p->entry[gs_variant_of(l, x, y, z)],
                       .tb = tb,
                       .x = x,
                       .y = y,
                       .z = z};
}

static inline void gs_walker_begin_warp(gs_walker *w, u32 warp)
{
    w->warp = warp;
    memset(w->k, 0, sizeof w->k);
    memset(&w->pipeline, 0, sizeof w->pipeline);
    w->pc = (w->entries ? w->entries[warp] : w->entry) - w->program->first_op;
    w->block = gs_warp_block(w->sim, w->launch, (u64)w->tb * w->program->warps + warp);
}

static inline void gs_walker_take_tile(gs_walker *w, const gs_iop *op)
{
    const u32 *grid = w->launch->grid;
    u32 tbs = gs_max32(grid[0] * grid[1] * grid[2], 1), at[3] = {w->x, w->y, w->z};
    w->pc = gs_stage_next(w->sim, w->program, op, w->tb, tbs, &w->tile, at);
    w->x = at[0];
    w->y = at[1];
    w->z = at[2];
}

/* The warp's next op that is neither loop nor tile; NULL at its end. */
static inline const gs_iop *gs_walker_next(gs_walker *w)
{
    for (;;) {
        const gs_iop *op = w->code + w->pc;
        if (op->kind == GS_OP_EXIT) {
            return NULL;
        }
        if (op->kind == GS_OP_TILE) {
            gs_walker_take_tile(w, op);
            continue;
        }
        if (op->kind == GS_OP_TURN) {
            w->pc = gs_turn(w->launch, w->tb, op->level, op->count, &w->pipeline) ? w->pc + 1 : op->target;
            continue;
        }
        if (op->kind != GS_OP_LOOP) {
            w->pc++;
            return op;
        }
        if (++w->k[op->level] < (op->per_warp ? w->pipeline.steps : op->count)) {
            w->pc = op->target;
        } else {
            w->k[op->level] = 0;
            w->pc++;
        }
    }
}

/* 1: the op moves a box of a tensor */
static inline int gs_walker_moves(const gs_iop *op)
{
    return op->kind == GS_OP_BULK_LOAD || op->kind == GS_OP_BULK_STORE;
}

/* The rows that it moves. */
static inline gs_bulk_rows gs_walker_rows(const gs_walker *w, const gs_iop *op)
{
    const gs_bulk_box *box = GS_CONST_TABLE(w->sim, gs_bulk_box, at_boxes) + op->pattern;
    const gs_bulk_place place = gs_bulk_place_of(&w->pipeline, (i64)w->k[op->level] + op->count_plus);
    return gs_bulk_rows_of(box, w->launch->arg[box->arg], &place);
}

/* 1: the op accesses memory in this turn of its loop */
static inline int gs_walker_accesses(const gs_walker *w, const gs_iop *op)
{
    int memory = op->kind == GS_OP_LOAD || op->kind == GS_OP_STORE || op->kind == GS_OP_REDUCE;
    return memory && !(op->count && (i64)w->k[op->level] + op->count_plus >= (i64)op->count);
}

static inline const gs_ipattern *gs_walker_pattern(const gs_walker *w, const gs_iop *op)
{
    return GS_CONST_TABLE(w->sim, gs_ipattern, at_patterns) + op->pattern + (op->per_warp ? w->warp : 0);
}

/* The lines that the op touches. */
static inline gs_coalesced gs_walker_lines(const gs_walker *w, const gs_iop *op)
{
    const gs_ipattern *p = gs_walker_pattern(w, op);
    i64 k = (i64)w->k[op->level] + op->count_plus;
    u64 value = (u64)(p->base + p->bx * w->x + p->by * w->y + p->bz * w->z + p->warp * w->warp + p->step * k +
                      p->step2 * w->k[p->level2]);
    return gs_coalesced_of(w->sim, p, w->launch->arg[p->arg], value, w->block);
}
