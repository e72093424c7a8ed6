/* Accesses with lanes 4 GiB or more apart: see convert_far_lanes.h. */
#include "trace/convert_far_lanes.h"

#include "trace/convert.h"
#include "trace/convert_tables.h"

#include <string.h>

typedef struct far_part {
    u64 line; /* relative to the line of the first address, modulo 2^64 */
    u64 mask;
} far_part;

typedef struct far_lines {
    u64 first, n; /* parts */
} far_lines;

static const far_part *parts_of(const gs_convert *c, const gs_record *r, u64 *n)
{
    const far_lines *f = (const far_lines *)c->far.at + (u32)r->template_;
    *n = f->n;
    return (const far_part *)c->far_parts.at + f->first;
}

int gs_far_record(gs_convert *c, const gs_touched_line *lines, u32 n, gs_record *out)
{
    far_part parts[GS_ACCESS_LINES];
    for (u32 i = 0; i < n; i++) {
        parts[i] = (far_part){lines[i].line - lines[0].line, lines[i].mask};
        if (gs_pages_claim(c, lines[i].line << 7, (lines[i].line + 1) << 7)) {
            return GS_ERR_MEM;
        }
    }
    *out = (gs_record){lines[0].line, 0};
    u64 hash = gs_hash_bytes(parts, n * sizeof *parts), at;
    u32 i = gs_index_find(&c->far_index, hash, &at);
    for (; i != GS_NOWHERE; i = gs_index_next(&c->far_index, hash, &at)) {
        u64 m;
        out->template_ = GS_FAR_RECORD | i;
        const far_part *known = parts_of(c, out, &m);
        if (m == n && !memcmp(known, parts, n * sizeof *parts)) {
            return GS_OK;
        }
    }
    far_lines *to = gs_vector_room(&c->far, 1, sizeof *to);
    far_part *p = gs_vector_room(&c->far_parts, n, sizeof *p);
    i = (u32)c->far.n;
    if (!to || !p || c->far.n >= GS_NOWHERE - 1 || !gs_index_add(&c->far_index, hash, i)) {
        return gs_convert_no_memory(c);
    }
    *to = (far_lines){c->far_parts.n, n};
    memcpy(p, parts, n * sizeof *parts);
    c->far.n++;
    c->far_parts.n += n;
    out->template_ = GS_FAR_RECORD | i;
    return GS_OK;
}

void gs_far_span(const gs_convert *c, const gs_record *r, u64 *lo, u64 *last)
{
    u64 n;
    const far_part *parts = parts_of(c, r, &n);
    *lo = *last = r->line;
    for (u64 i = 0; i < n; i++) {
        *lo = gs_min(*lo, r->line + parts[i].line);
        *last = gs_max(*last, r->line + parts[i].line);
    }
}

/* The line in the laid out pages; GS_NEVER: there is no such page. */
static u64 moved(u64 line, const u64 *pages, u64 n)
{
    enum { BITS = GS_PAGE_BITS - 7 };
    u64 page = line >> BITS, low = 0, high = n;
    while (low < high) {
        u64 middle = low + (high - low) / 2;
        if (pages[middle] < page) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < n && pages[low] == page ? low << BITS | (line & ((1u << BITS) - 1)) : GS_NEVER;
}

int gs_convert_far(gs_convert *c, gs_record *records, uint64_t n, const uint64_t *pages, uint64_t n_pages)
{
    for (u64 i = 0; i < n && c->far.n; i++) {
        gs_record *r = &records[i];
        gs_part out[GS_ACCESS_LINES];
        u64 lines;
        if (r->template_ < GS_FAR_RECORD) {
            continue;
        }
        const far_part *parts = parts_of(c, r, &lines);
        u64 line0 = moved(r->line, pages, n_pages);
        for (u64 j = 0; j < lines; j++) {
            u64 line = moved(r->line + parts[j].line, pages, n_pages);
            i64 apart = (i64)(line - line0);
            if (line0 == GS_NEVER || line == GS_NEVER || apart > INT32_MAX || apart < -INT32_MAX) {
                return gs_convert_fail(c, GS_ERR_LIMIT,
                                       "lanes of one access lie more than 256 GiB of touched pages apart");
            }
            out[j] = (gs_part){(i32)apart, (u16)parts[j].mask, 0};
        }
        int code = gs_template_intern(c, out, (u32)lines, &r->template_);
        if (code) {
            return code;
        }
    }
    return GS_OK;
}
