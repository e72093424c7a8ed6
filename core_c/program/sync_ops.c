/* Semaphores and tiles that ops name: see sync_ops.h. */
#include "program/sync_ops.h"

static i64 place_of(const int32_t *term, u32 x, u32 y, u32 z, i64 k)
{
    return term[0] + (i64)term[1] * x + (i64)term[2] * y + (i64)term[3] * z + term[4] * k;
}

u64 gs_semaphore_of(const gs_sim *sim, const gs_launch *l, const gs_iop *op, u32 x, u32 y, u32 z, u32 k)
{
    const gs_sem *s = GS_CONST_TABLE(sim, gs_sem, at_sems) + op->pattern;
    i64 at = (i64)k + op->count_plus, row = place_of(s->row, x, y, z, at),
        col = place_of(s->col, x, y, z, at);
    if (row < 0 || col < 0) {
        return GS_NEVER;
    }
    u64 across = s->wrap ? (u64)col % s->wrap : (u64)col;
    return l->semaphores[s->base] + (u64)s->first + (u64)row / s->rows * s->stride + across / s->cols;
}

u32 gs_stage_next(const gs_sim *sim, const gs_program *p, const gs_iop *op, u32 tb, u32 tbs, u32 *tile,
                  u32 at[3])
{
    const gs_stage *s = GS_CONST_TABLE(sim, gs_stage, at_stages) + op->pattern;
    const u32 *grid = s->grid;
    *tile = op->level ? *tile + tbs : tb;
    if (*tile >= grid[0] * grid[1] * grid[2]) {
        return op->target;
    }
    at[0] = *tile % grid[0];
    at[1] = *tile / grid[0] % grid[1];
    at[2] = *tile / grid[0] / grid[1];
    u32 variant =
        (u32)(at[0] + 1 == grid[0]) | (u32)(at[1] + 1 == grid[1]) << 1 | (u32)(at[2] + 1 == grid[2]) << 2;
    return s->entry[variant] - p->first_op;
}
