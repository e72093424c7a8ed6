/* The end of a recorded kernel: see convert_records.h. */
#include "trace/convert_records.h"

#include "trace/convert.h"
#include "trace/convert_far_lanes.h"
#include "trace/convert_loop.h"
#include "trace/convert_tables.h"

uint64_t gs_convert_spilled(const gs_convert *c, const gs_record **out)
{
    *out = c->spilled.at;
    return c->spilled.n;
}

uint64_t gs_convert_touched(const gs_convert *c, const gs_run_touched **out)
{
    *out = c->touched.at;
    return c->touched.n;
}

void gs_convert_drop(gs_convert *c)
{
    c->spilled.n = c->touched.n = 0;
}

int gs_convert_end(gs_convert *c)
{
    if (c->came != c->tbs) {
        return gs_convert_fail(c, GS_ERR_ARG, "%llu of the grid's %llu thread blocks",
                               (unsigned long long)c->came, (unsigned long long)c->tbs);
    }
    u32 *rows = c->tb_rows.at;
    for (c->tb_rows.n = 0; c->tb_rows.n < c->tbs; c->tb_rows.n++) {
        rows[c->tb_rows.n]--; /* rows are stored + 1; 0 meant that the TB is missing */
    }
    for (u64 i = 0; i < c->streams.n; i++) {
        gs_stream *s = (gs_stream *)c->streams.at + i;
        if (gs_convert_class(c, s)) {
            return GS_ERR_MEM;
        }
        c->accesses += s->recorded * s->warps;
    }
    for (u64 i = 0; i < c->streams.n; i++) {
        ((gs_stream *)c->streams.at)[i].warps = 0; /* gs_convert_settle counts anew */
    }
    if (c->accesses > GS_NOWHERE - 1) {
        return gs_convert_fail(c, GS_ERR_LIMIT, "more than 2^32 recorded accesses in a kernel");
    }
    return GS_OK;
}

void gs_convert_get(const gs_convert *c, gs_converted *out)
{
    *out = (gs_converted){.rows = c->rows.at,
                          .items = c->items.at,
                          .classes = c->classes.at,
                          .places = c->places.at,
                          .shapes = c->shapes.at,
                          .entries = c->entries.at,
                          .tb_rows = c->tb_rows.at,
                          .n_rows = c->rows.n,
                          .n_items = c->items.n,
                          .n_classes = c->classes.n,
                          .n_places = c->places.n,
                          .n_shapes = c->shapes.n,
                          .n_entries = c->entries.n,
                          .n_tb_rows = c->tb_rows.n,
                          .accesses = c->accesses,
                          .instructions = c->instructions,
                          .warps = c->warps};
}

/* Adds what a recorded access reaches to its place. */
static void widen(gs_place *p, const gs_convert *c, const gs_record *r)
{
    u64 lo = r->line, last = lo;
    if (GS_UNLIKELY(r->template_ >= GS_FAR_RECORD)) {
        gs_far_span(c, r, &lo, &last);
    } else {
        const gs_template *t = (const gs_template *)c->templates.at + r->template_;
        for (u32 i = 0; i < t->lines; i++) {
            u64 line = r->line + (u64)(i64)((const gs_part *)c->parts.at)[t->first + i].line;
            lo = gs_min(lo, line);
            last = gs_max(last, line);
        }
    }
    u64 hi = (last + 1) << 7 ? (last + 1) << 7 : UINT64_MAX;
    p->lo = p->hi ? gs_min(p->lo, lo << 7) : lo << 7;
    p->hi = gs_max(p->hi, hi);
}

int gs_convert_settle(gs_convert *c, const gs_record *in, uint64_t n, int last, gs_record *out, uint64_t room,
                      uint64_t *used, uint64_t *made, uint32_t *blocks)
{
    const gs_came *order = c->order.at;
    const u32 *entries = c->entries.at, *grid = c->header.grid;
    u64 total = c->came * c->warps;
    *used = *made = 0;
    for (; c->settle_warp < total; c->settle_warp++, c->settle_fit = 0, c->settle_open = 0) {
        const gs_came *came = &order[c->settle_warp / c->warps];
        u32 w = (u32)(c->settle_warp % c->warps);
        gs_stream *s = (gs_stream *)c->streams.at + entries[(u64)came->row * c->warps + w];
        const u32 place[GS_FITS] = {came->tb % grid[0], came->tb / grid[0] % grid[1],
                                    came->tb / grid[0] / grid[1], w};
        if (!c->settle_open) {
            c->settle_open = 1;
            blocks[(u64)came->tb * c->warps + w] = (u32)c->settled;
            c->settled += s->recorded;
        }
        for (; c->settle_fit < s->n_fits; c->settle_fit++) {
            const gs_fit *f = &s->fits[c->settle_fit];
            u64 lanes[32];
            u32 width, spilled = f->since != GS_NOWHERE && s->warps >= f->since;
            if ((spilled && *used == n) || (f->recorded && *made == room)) {
                return last && spilled && *used == n
                           ? gs_convert_fail(c, GS_ERR_ARG, "recorded accesses are missing")
                           : GS_OK;
            }
            if (spilled) {
                out[*made] = in[(*used)++];
            } else if (f->recorded) {
                u32 count = gs_fit_addresses(c, s, f, place, lanes, &width);
                int code = gs_record_access(c, lanes, count, width, &out[*made]);
                if (code) {
                    return code;
                }
            }
            if (f->recorded) {
                widen((gs_place *)c->places.at + f->place, c, &out[*made]);
                ++*made;
            }
        }
        s->warps++;
    }
    return GS_OK;
}

u32 gs_fit_addresses(const gs_convert *c, const gs_stream *s, const gs_fit *f, const u32 *place, u64 *out,
                     u32 *width)
{
    const gs_shape_lanes *shape = (const gs_shape_lanes *)c->shapes.at + (f->shape - 1);
    u64 base = (u64)f->address;
    u32 n = 0;
    for (u32 i = 0; i < GS_FITS; i++) {
        base += (u64)f->c[i] * ((u64)place[i] - s->first[i]);
    }
    for (u32 left = shape->lanes; left; left &= left - 1) {
        out[n++] = base + (u64)(i64)shape->offset[gs_ctz(left)];
    }
    *width = shape->width;
    return n;
}
