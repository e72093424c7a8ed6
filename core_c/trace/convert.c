/* Conversion of a recorded kernel, TB by TB. Warps with the same instructions become a class. An address that
   depends linearly on TB and warp is kept as a rule. Held in memory: one TB, the classes, and the accesses
   without a rule that the caller has not taken yet. */
#include "trace/convert.h"

#include "gen/gs_opcodes.h"
#include "trace/convert_barriers.h"
#include "trace/convert_classes.h"
#include "trace/convert_footprint.h"
#include "trace/convert_local.h"
#include "trace/convert_shape.h"
#include "trace/convert_tables.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 4096, /* bytes of a bulk copy that become one access */
    BULK = 1 << 20
};

int gs_convert_fail(gs_convert *c, int code, const char *format, ...)
{
    if (!c->error[0]) {
        va_list args;
        va_start(args, format);
        vsnprintf(c->error, sizeof c->error, format, args);
        va_end(args);
    }
    return code;
}

gs_convert *gs_convert_open(uint32_t plain)
{
    gs_convert *c = calloc(1, sizeof *c);
    if (c) {
        c->plain = plain;
    }
    return c;
}

static void drop_streams(gs_convert *c)
{
    gs_stream *s = c->streams.at;
    for (u64 i = 0; i < c->streams.n; i++) {
        free(s[i].ids);
        free(s[i].fits);
    }
    c->streams.n = 0;
}

void gs_convert_close(gs_convert *c)
{
    if (!c) {
        return;
    }
    drop_streams(c);
    gs_vector *all[] = {&c->rows,      &c->streams, &c->shapes, &c->shape_waves, &c->entries,
                        &c->order,     &c->tb_rows, &c->items,  &c->classes,     &c->places,
                        &c->spilled,   &c->touched, &c->ids,    &c->reach,       &c->runs,
                        &c->templates, &c->parts,   &c->pages,  &c->far,         &c->far_parts};
    for (u32 i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]->at);
    }
    gs_index *indices[] = {&c->row_index,      &c->stream_index, &c->shape_index, &c->entry_index,
                           &c->template_index, &c->page_index,   &c->far_index};
    for (u32 i = 0; i < sizeof indices / sizeof *indices; i++) {
        free(indices[i]->slot);
        free(indices[i]->hash);
    }
    free(c->local_number);
    free(c);
}

const char *gs_convert_error(const gs_convert *c)
{
    return c->error;
}

int gs_convert_begin(gs_convert *c, const gs_trace_header *header)
{
    u64 tbs = (u64)header->grid[0] * header->grid[1], threads = (u64)header->block[0] * header->block[1];
    if (!header->grid[0] || !header->grid[1] || !header->grid[2] || tbs > 0x7fffffff ||
        tbs * header->grid[2] > 0x7fffffff || !header->block[0] || !header->block[1] || !header->block[2] ||
        threads > 2048 || threads * header->block[2] > 2048) {
        return gs_convert_fail(c, GS_ERR_ARG, "a grid of %u x %u x %u TBs of %u x %u x %u threads",
                               header->grid[0], header->grid[1], header->grid[2], header->block[0],
                               header->block[1], header->block[2]);
    }
    gs_local_begin(c);
    c->header = *header;
    c->tbs = tbs * header->grid[2];
    c->warps = (u32)(threads * header->block[2] + 31) / 32;
    c->came = c->instructions = c->settle_warp = c->settle_fit = c->accesses = c->settled = 0;
    c->settle_open = 0;
    drop_streams(c);
    gs_vector *vectors[] = {&c->rows,  &c->shapes,  &c->shape_waves, &c->entries, &c->order,
                            &c->items, &c->classes, &c->places,      &c->spilled, &c->touched};
    for (u32 i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        vectors[i]->n = 0;
    }
    gs_index_clear(&c->row_index);
    gs_index_clear(&c->stream_index);
    gs_index_clear(&c->shape_index);
    gs_index_clear(&c->entry_index);
    /* pages of zeros that are never touched take no memory: a header may announce more TBs than the trace
       has */
    free(c->tb_rows.at);
    c->tb_rows = (gs_vector){calloc(c->tbs, sizeof(u32)), 0, c->tbs};
    return c->tb_rows.at ? GS_OK : gs_convert_no_memory(c);
}

static int row_of(gs_convert *c, const gs_sass *s, u32 *row)
{
    u64 hash = gs_hash_bytes(s, sizeof *s), at;
    const gs_sass *all = c->rows.at;
    for (u32 i = gs_index_find(&c->row_index, hash, &at); i != GS_NOWHERE;
         i = gs_index_next(&c->row_index, hash, &at)) {
        if (!memcmp(&all[i], s, sizeof *s)) {
            *row = i;
            return GS_OK;
        }
    }
    gs_sass *to = gs_vector_room(&c->rows, 1, sizeof *to);
    if (!to || c->rows.n >= GS_NOWHERE - 1 || !gs_index_add(&c->row_index, hash, (u32)c->rows.n)) {
        return gs_convert_no_memory(c);
    }
    *to = *s;
    *row = (u32)c->rows.n++;
    return GS_OK;
}

/* 0 reads, 1 writes, 2 updates; 4: none of these */
static u32 mode_of(u32 kind)
{
    switch (kind) {
    case GS_KIND_LOAD:
    case GS_KIND_ASYNC_COPY:
    case GS_KIND_BULK_LOAD:
    case GS_KIND_BULK_PREFETCH:
        return 0;
    case GS_KIND_STORE:
    case GS_KIND_BULK_STORE:
        return 1;
    case GS_KIND_ATOMIC:
    case GS_KIND_REDUCE:
    case GS_KIND_BULK_REDUCE:
        return 2;
    default:
        return 4;
    }
}

/* A bulk copy becomes pieces of at most 64 lines: up to 32 of its addresses, or a part of the bytes at one.
   Returns the number of pieces. */
static int take_bulk(gs_convert *c, const gs_trace_inst *t, u64 first, u8 mode, u32 *pieces)
{
    u32 n = (u32)t->imm, width = gs_max32(1, t->bytes / n);
    u32 each = width >= PIECE ? 1 : gs_max32(1, PIECE / width), lanes = each < 32 ? each : 32;
    *pieces = 0;
    if (t->bytes > BULK || n > BULK) {
        return gs_convert_fail(c, GS_ERR_LIMIT,
                               "line %u: a bulk copy of %u bytes at %u addresses: at most 2^20", t->line,
                               t->bytes, n);
    }
    for (u32 i = 0; i < n; i += lanes) {
        for (u32 offset = 0; offset < width; offset += PIECE) {
            gs_access *r = gs_vector_room(&c->reach, 1, sizeof *r);
            if (!r) {
                return gs_convert_no_memory(c);
            }
            *r = (gs_access){first + i, lanes < n - i ? lanes : n - i,
                             0,         width - offset < PIECE ? width - offset : PIECE,
                             offset,    mode};
            c->reach.n++;
            ++*pieces;
        }
    }
    return GS_OK;
}

/* One instruction: its row, and the addresses that it accesses. `a`: a copy of its addresses. */
static int take_inst(gs_convert *c, const gs_trace_tb *tb, u64 number, u32 warp, const gs_trace_inst *t,
                     gs_barrier_walk *walk, u64 *a, u64 first, u32 *row)
{
    gs_sass s;
    memset(&s, 0, sizeof s);
    s.pc = t->pc;
    s.mask = t->mask;
    s.opcode = t->opcode;
    s.variant = t->variant;
    s.dsts = t->dsts;
    s.srcs = t->srcs;
    s.imm = t->imm;
    memcpy(s.dst, t->dst, t->dsts * sizeof *s.dst);
    memcpy(s.src, t->src, t->srcs * sizeof *s.src);
    memcpy(s.dst_size, t->dst_size, t->dsts);
    memcpy(s.src_size, t->src_size, t->srcs);
    s.fma = t->fma;
    s.math = t->math;
    u32 kind = GS_OPCODE[t->opcode].kind, mode = mode_of(kind);
    s.bytes = t->bytes;
    s.space = t->space;
    gs_barriers_row(c, tb, t, walk, &s);
    if (gs_is_bulk(kind)) {
        u32 pieces = 0;
        s.width = 16;
        int code = t->imm > 0 && t->mask ? take_bulk(c, t, first, (u8)mode, &pieces) : GS_OK;
        if (code) {
            return code;
        }
        s.imm = (i32)pieces;
        s.space = pieces ? s.space : GS_SPACE_NONE;
        return row_of(c, &s, row);
    }
    s.width = t->width;
    if (t->width && t->mask && t->space != GS_SPACE_NONE && mode < 4) {
        u32 shape, waves, lanes = gs_popcount(t->mask);
        memcpy(a, tb->addresses + t->first, lanes * sizeof *a);
        if (t->space == GS_SPACE_LOCAL) {
            gs_local_place(c, number, warp, t->mask, t->width, a);
        }
        u32 pieces = gs_accesses_of(&s), width = t->width / pieces;
        if (gs_lane_shape(c, a, t->mask, width, &shape, &waves)) {
            return GS_ERR_MEM;
        }
        if (t->space == GS_SPACE_SHARED) {
            s.wavefronts = (u16)waves;
            s.first_words = (u16)(waves >> 16);
        } else {
            gs_access *r = gs_vector_room(&c->reach, pieces, sizeof *r);
            if (!r) {
                return gs_convert_no_memory(c);
            }
            for (u32 i = 0; i < pieces; i++) {
                u8 how = (u8)(t->space == GS_SPACE_LOCAL ? 3 : mode);
                r[i] = (gs_access){first, lanes, shape, width, i * 128, how};
            }
            c->reach.n += pieces;
        }
    } else if (t->space == GS_SPACE_GLOBAL || t->space == GS_SPACE_LOCAL) {
        s.space = GS_SPACE_NONE; /* predicated off: it only issues */
    }
    return row_of(c, &s, row);
}

static int entry_of(gs_convert *c, const u32 *row, u32 *number)
{
    u64 hash = gs_hash_bytes(row, c->warps * sizeof *row), at;
    const u32 *all = c->entries.at;
    for (u32 i = gs_index_find(&c->entry_index, hash, &at); i != GS_NOWHERE;
         i = gs_index_next(&c->entry_index, hash, &at)) {
        if (!memcmp(all + (u64)i * c->warps, row, c->warps * sizeof *row)) {
            *number = i;
            return GS_OK;
        }
    }
    u32 *to = gs_vector_room(&c->entries, c->warps, sizeof *to);
    *number = (u32)(c->entries.n / c->warps);
    if (!to || !gs_index_add(&c->entry_index, hash, *number)) {
        return gs_convert_no_memory(c);
    }
    memcpy(to, row, c->warps * sizeof *row);
    c->entries.n += c->warps;
    return GS_OK;
}

int gs_convert_tb(gs_convert *c, const gs_trace_tb *tb)
{
    const u32 *grid = c->header.grid;
    if (tb->x >= grid[0] || tb->y >= grid[1] || tb->z >= grid[2] || tb->warps != c->warps || c->warps > 64) {
        return gs_convert_fail(c, GS_ERR_ARG,
                               "thread block %u,%u,%u of %u warps: the grid is %u x %u x %u, a TB has %u",
                               tb->x, tb->y, tb->z, tb->warps, grid[0], grid[1], grid[2], c->warps);
    }
    u64 number = tb->x + (u64)grid[0] * (tb->y + (u64)grid[1] * tb->z);
    u32 *tb_rows = c->tb_rows.at, row[64], which;
    if (tb_rows[number]) {
        return gs_convert_fail(c, GS_ERR_ARG, "thread block %u,%u,%u comes twice", tb->x, tb->y, tb->z);
    }
    if (gs_local_measure(c, tb)) {
        return GS_ERR_MEM;
    }
    gs_barriers_scan(c, tb);
    /* the addresses as they are used: local ones are moved */
    u64 *addresses = malloc((tb->n_addresses + 32) * sizeof *addresses);
    if (!addresses) {
        return gs_convert_no_memory(c);
    }
    int code = GS_OK;
    for (u32 w = 0; !code && w < c->warps; w++) {
        const gs_trace_warp *from = &tb->warp[w];
        const u32 place[GS_FITS] = {tb->x, tb->y, tb->z, w};
        gs_barrier_walk walk = {0, 0, UINT32_MAX / 2};
        c->ids.n = c->reach.n = 0;
        u32 *ids = gs_vector_room(&c->ids, from->count, sizeof *ids);
        code = ids ? GS_OK : gs_convert_no_memory(c);
        for (u32 i = 0; ids && !code && i < from->count; i++) {
            const gs_trace_inst *t = &tb->insts[from->first + i];
            u32 bulk = gs_is_bulk(GS_OPCODE[t->opcode].kind);
            if (bulk && t->imm > 0) {
                memcpy(addresses + t->first, tb->addresses + t->first, (u64)t->imm * sizeof *addresses);
            }
            code = take_inst(c, tb, number, w, t, &walk, addresses + t->first, t->first, &ids[i]);
        }
        c->ids.n = from->count;
        for (u64 i = 0; !code && i < c->reach.n; i++) {
            const gs_access *r = (const gs_access *)c->reach.at + i;
            u64 room[32];
            code = gs_footprint_add(c, gs_access_addresses(addresses, r, room), r, (u32)number);
        }
        code = code ? code : gs_class_of_warp(c, addresses, place, &row[w]);
        c->instructions += from->count;
    }
    free(addresses);
    code = code ? code : gs_footprint_end(c);
    code = code ? code : entry_of(c, row, &which);
    gs_came *came = gs_vector_room(&c->order, 1, sizeof *came);
    code = code || came ? code : gs_convert_no_memory(c);
    if (!code && came) {
        *came = (gs_came){(u32)number, which};
        c->order.n++;
        c->came++;
        tb_rows[number] = which + 1;
    }
    return code;
}
