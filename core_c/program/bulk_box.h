/* The rows of a bulk copy: what of its box lies inside of the tensor, and the tiles that op TURN deals. */
#pragma once
#include "base/state.h"

/* what a box's first row and byte depend on */
typedef struct gs_bulk_place {
    i64 of[7]; /* 1, x, y, z, m, n, counter */
} gs_bulk_place;

/* Rows of `bytes` from an address on; none: rows = 0. outside: rows of the box that lie outside. */
typedef struct gs_bulk_rows {
    u64 address, pitch;
    u32 rows, bytes, outside;
} gs_bulk_rows;

static inline gs_bulk_rows gs_bulk_rows_of(const gs_bulk_box *b, u64 arg, const gs_bulk_place *place)
{
    i64 row = 0, col = 0;
    for (u32 i = 0; i < 7; i++) {
        row += b->row[i] * place->of[i];
        col += b->col[i] * place->of[i];
    }
    i64 row_end = row + b->rows, col_end = col + b->bytes;
    row_end = row_end < (i64)b->all_rows ? row_end : (i64)b->all_rows;
    col_end = col_end < (i64)b->all_bytes ? col_end : (i64)b->all_bytes;
    row = row > 0 ? row : 0;
    col = col > 0 ? col : 0;
    if (row >= row_end || col >= col_end) {
        return (gs_bulk_rows){.outside = b->rows};
    }
    u64 at = (u64)(place->of[3] * b->plane + row * b->pitch + col);
    return (gs_bulk_rows){arg + at, (u64)b->pitch, (u32)(row_end - row), (u32)(col_end - col),
                          b->rows - (u32)(row_end - row)};
}

/* The lines of a row, one after another: `line`, and the sectors of it that the row touches. */
typedef struct gs_bulk_part {
    u64 line, at, end;
    u32 mask;
} gs_bulk_part;

static inline gs_bulk_part gs_bulk_part_first(const gs_bulk_rows *r, u32 row)
{
    u64 at = r->address + row * r->pitch;
    return (gs_bulk_part){.line = (at >> 7) - 1, .at = at, .end = at + r->bytes};
}

/* 1: there is another line; `whole`: of a row that begins and ends with a line, whose masks the caller knows
 */
static inline int gs_bulk_part_next(gs_bulk_part *l, int whole)
{
    l->line++;
    if (whole) {
        return l->line << 7 < l->end;
    }
    u64 first = l->line << 7, from = gs_max(l->at, first), to = gs_min(l->end, first + 128);
    if (from >= to) {
        return 0;
    }
    l->mask = (2u << ((to - 1 - first) >> 5)) - (1u << ((from - first) >> 5));
    return 1;
}

/* Lines and sectors of all rows. */
static inline void gs_bulk_count(const gs_bulk_rows *r, u64 *lines, u64 *sectors)
{
    for (u32 row = 0; row < r->rows; row++) {
        for (gs_bulk_part l = gs_bulk_part_first(r, row); gs_bulk_part_next(&l, 0);) {
            (*lines)++;
            *sectors += gs_popcount(l.mask);
        }
    }
}

/* The next tile of a warp: its first one is `start` turns after its cluster's first, others follow `step`
   turns after the one before. Clusters take tiles in turn, a TB each. 0: none is left. */
static inline int gs_turn(const gs_launch *l, u32 tb, u32 start, u32 step, gs_pipeline *p)
{
    const u32 cm = l->cluster[0], cn = l->cluster[1], size = cm * cn;
    const u32 across = (l->tiles[0] + cm - 1) / cm, down = (l->tiles[1] + cn - 1) / cn;
    const u64 tbs = (u64)l->grid[0] * l->grid[1] * l->grid[2], plane = (u64)across * down;
    p->turn = p->begun ? p->turn + step : start;
    p->begun = 1;
    p->m = (u8)(tb % size % cm);
    p->n = (u8)(tb % size / cm);
    u64 at = tb / size + p->turn * (tbs / size);
    if (at >= plane * l->tiles[2]) {
        return 0;
    }
    p->z = (u32)(at / plane);
    at %= plane;
    p->x = (u32)(l->n_fast ? at / down : at % across) * cm + p->m;
    p->y = (u32)(l->n_fast ? at % down : at / across) * cn + p->n;
    p->steps = l->steps[p->z + 1 == l->tiles[2]];
    return 1;
}

static inline gs_bulk_place gs_bulk_place_of(const gs_pipeline *p, i64 counter)
{
    return (gs_bulk_place){{1, p->x, p->y, p->z, p->m, p->n, counter}};
}
