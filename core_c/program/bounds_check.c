/* Bounds of a launch's accesses: see bounds_check.h. */
#include "program/bounds_check.h"

#include "base/arena.h"
#include "base/fail.h"
#include "base/grow.h"
#include "memory/address_map.h"

#include <stdlib.h>
#include <string.h>

/* Adds the range of stride * (first to last). A product that the hot loop could not hold becomes an address
   below 0, which is refused. */
static void span_add(i64 *lo, i64 *hi, i64 stride, i64 first, i64 last)
{
    __int128 a = (__int128)stride * first, b = (__int128)stride * last, most = (__int128)1 << 58;
    if (a < -most || a > most || b < -most || b > most) {
        a = b = -most;
    }
    *lo += (i64)(a < b ? a : b);
    *hi += (i64)(a < b ? b : a);
}

/* Ops first to before end, run by TBs and warps within the box. */
typedef struct gs_box3 {
    u64 first, end;
    u32 lo[4], hi[4]; /* x, y, z, warp */
} gs_box3;

static int is_memory(const gs_op *op)
{
    return op->kind == GS_OP_LOAD || op->kind == GS_OP_STORE || op->kind == GS_OP_REDUCE;
}

/* The lowest and the highest value of a pattern over the box; 0: the op is always skipped. */
static int span_of(const gs_pattern *q, const gs_op *op, const gs_box3 *box, const i64 *counter, u32 w0,
                   u32 w1, i64 *lo, i64 *hi)
{
    i64 last = counter[op->level] + op->count_plus;
    if (op->count && last >= (i64)op->count) {
        last = (i64)op->count - 1;
    }
    if (last < op->count_plus) {
        return 0; /* always skipped */
    }
    const i64 strides[] = {q->bx, q->by, q->bz};
    for (u32 i = 0; i < 3; i++) {
        span_add(lo, hi, strides[i], box->lo[i], box->hi[i]);
    }
    span_add(lo, hi, q->warp, w0, w1);
    span_add(lo, hi, q->step, op->count_plus, last);
    span_add(lo, hi, q->step2, 0, counter[q->level2]);
    return 1;
}

static void lanes_add(const gs_job *job, const gs_pattern *q, i64 *lo, i64 *hi)
{
    *hi += q->width;
    if (q->shape) {
        i64 least = 0, most = 0;
        for (u32 i = 0; i < 32; i++) {
            if (q->lanes >> i & 1) {
                i64 at = job->lanes[q->shape - 1].offset[i];
                least = at < least ? at : least;
                most = at > most ? at : most;
            }
        }
        *lo += least;
        *hi += most;
    } else {
        span_add(lo, hi, q->s0, 0, gs_min(q->minor, 32) - 1);
        span_add(lo, hi, q->s1, 0, 31 / q->minor);
    }
}

/* The tensor that a bulk copy moves boxes of lies within memory, and its launch has tiles. */
static int check_box(gs_sim *sim, const gs_job *job, u64 index, const gs_op *op)
{
    const gs_launch *l = &job->launches[index];
    const gs_bulk_box *b = &job->boxes[op->pattern];
    u64 top = gs_address_limit(sim), end = l->arg[b->arg] + (u64)b->all_bytes;
    end += b->all_rows ? (u64)(b->all_rows - 1) * (u64)b->pitch : 0;
    end += l->tiles[2] ? (u64)(l->tiles[2] - 1) * (u64)b->plane : 0;
    if (l->tiles[0] == 0 || b->arg >= job->programs[l->program].args || end > top) {
        return gs_fail(
            sim, GS_ERR_ARG,
            "launch %llu: a bulk copy without tiles, or its tensor, argument %u of %llu B, outside "
            "memory",
            (unsigned long long)index, b->arg, (unsigned long long)(end - l->arg[b->arg]));
    }
    return GS_OK;
}

/* All addresses that a launch forms with a segment of code are within memory, by the ranges of what they are
   made of; *most: one more than the highest index into a warp's block. */
static int check_segment(gs_sim *sim, const gs_job *job, u64 index, const gs_box3 *box, u64 *most)
{
    const gs_launch *l = &job->launches[index];
    const gs_program *p = &job->programs[l->program];
    const gs_op *open[3]; /* the loops around an op, innermost last */
    u32 depth = 0;
    i64 top = (i64)gs_address_limit(sim);
    *most = 0;
    for (u64 i = box->end; i-- > box->first;) {
        const gs_op *op = &job->ops[i];
        while (depth && i < open[depth - 1]->target) {
            depth--;
        }
        if (op->kind == GS_OP_LOOP) {
            if (op->target < box->first) {
                return gs_fail(sim, GS_ERR_ARG, "op %llu: a loop goes back to before its entry",
                               (unsigned long long)i);
            }
            open[depth++] = op; /* lower_op has checked that nested loops have different counters */
        }
        if ((op->kind == GS_OP_BULK_LOAD || op->kind == GS_OP_BULK_STORE) && check_box(sim, job, index, op)) {
            return sim->error_code;
        }
        if (!is_memory(op)) {
            continue;
        }
        i64 counter[3] = {0, 0, 0};
        for (u32 j = 0; j < depth; j++) {
            u64 turns = open[j]->per_warp ? gs_max32(l->steps[0], l->steps[1]) : open[j]->count;
            counter[open[j]->level] = (i64)turns - 1;
        }
        for (u32 w = 0; w < (op->per_warp ? p->warps : 1); w++) {
            const gs_pattern *q = &job->patterns[op->pattern + (i32)w];
            i64 lo = (i64)(q->recorded ? 0 : l->arg[q->arg]) + q->base, hi = lo;
            u32 w0 = op->per_warp ? w : box->lo[3], w1 = op->per_warp ? w : box->hi[3];
            if (!span_of(q, op, box, counter, w0, w1, &lo, &hi)) {
                continue;
            }
            if (q->recorded) {
                if (lo < 0) {
                    return gs_fail(sim, GS_ERR_ARG, "launch %llu: op %llu reaches in front of its accesses",
                                   (unsigned long long)index, (unsigned long long)(i - p->first_op));
                }
                *most = gs_max(*most, (u64)hi + 1);
                continue;
            }
            lanes_add(job, q, &lo, &hi);
            if (lo < 0 || hi > top) {
                return gs_fail(sim, GS_ERR_ARG,
                               "launch %llu: op %llu reaches from %lld to %lld of argument %u at 0x%llx: "
                               "outside memory (0x%llx bytes)",
                               (unsigned long long)index, (unsigned long long)(i - p->first_op),
                               (long long)(lo - (i64)l->arg[q->arg]), (long long)(hi - (i64)l->arg[q->arg]),
                               q->arg, (unsigned long long)l->arg[q->arg], (unsigned long long)top);
            }
        }
    }
    return GS_OK;
}

/* Recorded lines are within memory. */
static int check_accesses(gs_sim *sim, const gs_job *job, const gs_launch *l, u64 index)
{
    u64 top = gs_address_limit(sim) >> 7;
    for (u64 i = l->first_access; i < l->first_access + l->accesses; i++) {
        u64 line = (u32)job->accesses[i], number = job->accesses[i] >> 32, sectors = 0;
        const gs_template *t = number < job->n_templates ? &job->templates[number] : NULL;
        int good = t && t->lines <= 64 && (u64)t->first + t->lines <= job->n_parts;
        for (u32 j = 0; good && j < t->lines; j++) {
            const gs_part *part = &job->parts[t->first + j];
            u64 at = line + (u64)(i64)part->line;
            if (at >= top) {
                return gs_fail(sim, GS_ERR_ARG,
                               "launch %llu: access %llu lies outside memory: line %lld of 0x%llx",
                               (unsigned long long)index, (unsigned long long)(i - l->first_access),
                               (long long)at, (unsigned long long)top);
            }
            good = part->mask && part->mask < 16;
            sectors += gs_popcount(part->mask);
        }
        if (!good || sectors != t->sectors) {
            return gs_fail(sim, GS_ERR_ARG, "launch %llu: access %llu is damaged", (unsigned long long)index,
                           (unsigned long long)(i - l->first_access));
        }
    }
    return GS_OK;
}

/* A launch of a program with rows: each entry in use, with the box of the warps that use it. */
static int check_rows(gs_sim *sim, const gs_job *job, u64 index)
{
    const gs_launch *l = &job->launches[index];
    const gs_program *p = &job->programs[l->program];
    u64 tbs = gs_tbs_of(l), warps = tbs * p->warps, length = 0, most;
    if ((l->first_tb_row != GS_NONE && (u64)l->first_tb_row + tbs > job->n_tb_rows) ||
        (l->first_block != GS_NONE && (u64)l->first_block + warps > job->n_blocks) ||
        l->first_access > job->n_accesses || l->accesses > job->n_accesses - l->first_access) {
        return gs_fail(sim, GS_ERR_ARG, "launch %llu: rows, blocks or accesses lie outside the tables",
                       (unsigned long long)index);
    }
    const u32 *blocks = l->first_block == GS_NONE ? NULL : job->blocks + l->first_block;
    gs_box3 *boxes = NULL;
    u32 *at = calloc(p->ops, sizeof *at); /* entry -> its box + 1 */
    u64 n = 0, room = 0, *reach = NULL;
    int code = at ? GS_OK : gs_fail(sim, GS_ERR_MEM, "not enough memory for entries");
    for (u64 i = 0; at && !code && i < warps; i++) {
        u32 tb = (u32)(i / p->warps),
            row = l->first_tb_row == GS_NONE ? 0 : job->tb_rows[l->first_tb_row + tb];
        u32 entry = row < p->rows ? job->entries[p->first_entry + (u64)row * p->warps + i % p->warps] : 0;
        if (row >= p->rows || entry < p->first_op || entry - p->first_op >= p->ops) {
            code = gs_fail(sim, GS_ERR_ARG, "launch %llu: row %u or entry %u of TB %u lies outside",
                           (unsigned long long)index, row, entry, tb);
            break;
        }
        u32 *box = &at[entry - p->first_op];
        const u32 place[4] = {tb % l->grid[0], tb / l->grid[0] % l->grid[1], tb / l->grid[0] / l->grid[1],
                              (u32)(i % p->warps)};
        if (!*box) {
            if (!gs_grow((void **)&boxes, &room, n + 1, sizeof *boxes)) {
                code = gs_fail(sim, GS_ERR_MEM, "not enough memory for entries");
                break;
            }
            gs_box3 *b = &boxes[n++];
            *b = (gs_box3){entry, entry, {0}, {0}};
            memcpy(b->lo, place, sizeof place);
            memcpy(b->hi, place, sizeof place);
            *box = (u32)n;
            while (b->end < (u64)p->first_op + p->ops && job->ops[b->end].kind != GS_OP_EXIT) {
                b->end++;
            }
            length += b->end - b->first + 1;
            if (length > p->ops || b->end == (u64)p->first_op + p->ops) {
                code = gs_fail(sim, GS_ERR_ARG, "launch %llu: entry %u has no EXIT or overlaps another",
                               (unsigned long long)index, entry);
            }
        }
        gs_box3 *b = &boxes[*box - 1];
        for (u32 j = 0; j < 4; j++) {
            b->lo[j] = b->lo[j] < place[j] ? b->lo[j] : place[j];
            b->hi[j] = b->hi[j] > place[j] ? b->hi[j] : place[j];
        }
    }
    reach = code ? NULL : calloc(n + 1, sizeof *reach);
    if (!code && !reach) {
        code = gs_fail(sim, GS_ERR_MEM, "not enough memory for entries");
    }
    for (u64 i = 0; reach && !code && i < n; i++) {
        code = check_segment(sim, job, index, &boxes[i], &most);
        reach[i] = most;
    }
    for (u64 i = 0; at && reach && !code && i < warps; i++) {
        u32 row = l->first_tb_row == GS_NONE ? 0 : job->tb_rows[l->first_tb_row + i / p->warps];
        u32 entry = job->entries[p->first_entry + (u64)row * p->warps + i % p->warps];
        u64 need = reach[at[entry - p->first_op] - 1];
        if (need && (!blocks || blocks[i] + need > l->accesses)) {
            code = gs_fail(sim, GS_ERR_ARG, "launch %llu: warp %llu reaches past its accesses",
                           (unsigned long long)index, (unsigned long long)i);
        }
    }
    free(at);
    free(boxes);
    free(reach);
    return code ? code : check_accesses(sim, job, l, index);
}

/* The stage whose ops begin here. */
static const gs_stage *stage_at(const gs_job *job, u64 op)
{
    for (u64 i = 0; i < job->n_stages; i++) {
        if (job->stages[i].first == op) {
            return &job->stages[i];
        }
    }
    return NULL;
}

int gs_bounds_check(gs_sim *sim, const gs_job *job, u64 index)
{
    const gs_launch *l = &job->launches[index];
    const gs_program *p = &job->programs[l->program];
    if (p->rows) {
        return check_rows(sim, job, index);
    }
    u64 most = 0, end = (u64)p->first_op + p->ops;
    for (u64 first = p->first_op; first < end;) {
        gs_box3 box = {first, first, {0}, {0}};
        const u32 *grid = l->grid;
        const gs_stage *s = stage_at(job, first);
        if (s) {
            box.end = s->end;
            grid = s->grid;
        }
        while (!s && box.end < end && !stage_at(job, box.end)) {
            box.end++;
        }
        for (u32 i = 0; i < 3; i++) {
            box.hi[i] = grid[i] - 1;
        }
        box.hi[3] = p->warps - 1;
        if (check_segment(sim, job, index, &box, &most)) {
            return sim->error_code;
        }
        first = box.end;
    }
    if (most || l->first_block != GS_NONE) {
        return gs_fail(sim, GS_ERR_ARG, "launch %llu: recorded accesses need a program with rows",
                       (unsigned long long)index);
    }
    return GS_OK;
}
