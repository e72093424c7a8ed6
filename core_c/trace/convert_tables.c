/* Tables of the converter: see convert_tables.h. */
#include "trace/convert_tables.h"

#include "trace/convert.h"
#include "trace/convert_far_lanes.h"

#include <stdlib.h>
#include <string.h>

void *gs_vector_room(gs_vector *v, u64 more, size_t size)
{
    if (v->n + more > v->room) {
        u64 want = v->n + more + v->room / 2 + 64;
        void *p = realloc(v->at, want * size);
        if (!p) {
            return NULL;
        }
        v->at = p;
        v->room = want;
    }
    return (char *)v->at + v->n * size;
}

u64 gs_hash_bytes(const void *p, u64 n)
{
    const char *at = p;
    u64 h = n, x;
    for (; n >= 8; n -= 8, at += 8) {
        memcpy(&x, at, 8);
        h = gs_mix(h, x);
        h ^= h >> 29;
    }
    x = 0;
    memcpy(&x, at, n);
    h = gs_mix(h, x);
    return h ^ h >> 32;
}

static u32 look(const gs_index *x, u64 hash, u64 *at)
{
    for (; x->slot[*at]; *at = (*at + 1) & (x->room - 1)) {
        if (x->hash[*at] == hash) {
            return x->slot[*at] - 1;
        }
    }
    return GS_NOWHERE;
}

u32 gs_index_find(const gs_index *x, u64 hash, u64 *at)
{
    if (!x->room) {
        return GS_NOWHERE;
    }
    *at = hash & (x->room - 1);
    return look(x, hash, at);
}

u32 gs_index_next(const gs_index *x, u64 hash, u64 *at)
{
    *at = (*at + 1) & (x->room - 1);
    return look(x, hash, at);
}

static void put(gs_index *x, u64 hash, u32 value)
{
    u64 at = hash & (x->room - 1);
    while (x->slot[at]) {
        at = (at + 1) & (x->room - 1);
    }
    x->slot[at] = value;
    x->hash[at] = hash;
}

int gs_index_add(gs_index *x, u64 hash, u32 number)
{
    if (x->n * 2 >= x->room) {
        gs_index old = *x;
        x->room = old.room ? old.room * 2 : 256;
        x->slot = calloc(x->room, sizeof *x->slot);
        x->hash = malloc(x->room * sizeof *x->hash);
        if (!x->slot || !x->hash) {
            free(x->slot);
            free(x->hash);
            *x = old;
            return 0;
        }
        for (u64 i = 0; i < old.room; i++) {
            if (old.slot[i]) {
                put(x, old.hash[i], old.slot[i]);
            }
        }
        free(old.slot);
        free(old.hash);
    }
    put(x, hash, number + 1);
    x->n++;
    return 1;
}

u32 gs_index_set(gs_index *x, u64 hash, u32 number)
{
    u64 at;
    u32 before = gs_index_find(x, hash, &at);
    if (before == GS_NOWHERE) {
        gs_index_add(x, hash, number); /* without memory for more, loops are not found */
    } else {
        x->slot[at] = number + 1;
    }
    return before;
}

void gs_index_clear(gs_index *x)
{
    if (x->slot) {
        memset(x->slot, 0, x->room * sizeof *x->slot);
    }
    x->n = 0;
}

/* Pages. */
int gs_pages_claim(gs_convert *c, u64 lo, u64 hi)
{
    u64 first = lo >> GS_PAGE_BITS, last = (hi - 1) >> GS_PAGE_BITS;
    if (c->pages.n && first >= c->last_page_lo && last <= c->last_page_hi) {
        return GS_OK;
    }
    for (u64 page = first; page <= last; page++) {
        u64 hash = gs_hash_bytes(&page, sizeof page), at;
        u32 i = gs_index_find(&c->page_index, hash, &at);
        while (i != GS_NOWHERE && ((const u64 *)c->pages.at)[i] != page) {
            i = gs_index_next(&c->page_index, hash, &at);
        }
        if (i != GS_NOWHERE) {
            continue;
        }
        u64 *to = gs_vector_room(&c->pages, 1, sizeof *to);
        if (!to || !gs_index_add(&c->page_index, hash, (u32)c->pages.n)) {
            return gs_convert_no_memory(c);
        }
        *to = page;
        c->pages.n++;
    }
    c->last_page_lo = first;
    c->last_page_hi = last;
    return GS_OK;
}

static int by_number(const void *x, const void *y)
{
    u64 a = *(const u64 *)x, b = *(const u64 *)y;
    return a < b ? -1 : a > b;
}

uint64_t gs_convert_pages(gs_convert *c, uint64_t *out, uint64_t room)
{
    u64 n = c->pages.n;
    if (n && n <= room) {
        memcpy(out, c->pages.at, n * sizeof *out);
        qsort(out, n, sizeof *out, by_number);
    }
    return n;
}

/* Templates. */
int gs_template_intern(gs_convert *c, const gs_part *parts, u32 n, u64 *number)
{
    u64 hash = gs_hash_bytes(parts, n * sizeof *parts), at;
    u32 i = gs_index_find(&c->template_index, hash, &at), sectors = 0;
    for (; i != GS_NOWHERE; i = gs_index_next(&c->template_index, hash, &at)) {
        const gs_template *t = (const gs_template *)c->templates.at + i;
        if (t->lines == n && !memcmp((const gs_part *)c->parts.at + t->first, parts, n * sizeof *parts)) {
            *number = i;
            return GS_OK;
        }
    }
    gs_template *t = gs_vector_room(&c->templates, 1, sizeof *t);
    gs_part *p = gs_vector_room(&c->parts, n, sizeof *p);
    i = (u32)c->templates.n;
    if (!t || !p || c->parts.n + n >= GS_NOWHERE || !gs_index_add(&c->template_index, hash, i)) {
        return gs_convert_fail(c, GS_ERR_MEM, "not enough memory for templates of recorded accesses");
    }
    for (u32 j = 0; j < n; j++) {
        sectors += gs_popcount(parts[j].mask);
    }
    *t = (gs_template){(u32)c->parts.n, (u16)n, (u16)sectors};
    memcpy(p, parts, n * sizeof *parts);
    c->templates.n++;
    c->parts.n += n;
    *number = i;
    return GS_OK;
}

int gs_record_access(gs_convert *c, const u64 *from, u32 lanes, u32 width, gs_record *out)
{
    gs_touched_line lines[GS_ACCESS_LINES];
    gs_part parts[GS_ACCESS_LINES];
    u32 n = 0;
    u64 line0 = from[0] >> 7, lo = from[0], last = from[0];
    for (u32 i = 0; i < lanes; i++) {
        u64 end = from[i] + width - 1;
        lo = gs_min(lo, from[i]);
        last = gs_max(last, end);
        if (end < from[i]) {
            return gs_convert_fail(c, GS_ERR_LIMIT, "one access reaches from 0x%llx past the end of 64 bits",
                                   (unsigned long long)from[i]);
        }
        for (u64 sector = from[i] >> 5; sector <= end >> 5; sector++) {
            u64 line = sector >> 2;
            u32 j = n;
            while (j && lines[j - 1].line != line) {
                j--;
            }
            if (!j) {
                if (n == GS_ACCESS_LINES) {
                    return gs_convert_fail(c, GS_ERR_LIMIT, "one access touches more than %d lines",
                                           GS_ACCESS_LINES);
                }
                lines[n] = (gs_touched_line){line, 0};
                j = ++n;
            }
            lines[j - 1].mask |= 1u << (sector & 3);
        }
    }
    if (GS_UNLIKELY(last - lo >= ((u64)1 << GS_SPAN_BITS) - 1)) {
        return gs_far_record(c, lines, n, out);
    }
    for (u32 i = 0; i < n; i++) {
        parts[i] = (gs_part){(i32)(i64)(lines[i].line - line0), (u16)lines[i].mask, 0};
    }
    out->line = line0;
    int code = gs_template_intern(c, parts, n, &out->template_);
    return code ? code : gs_pages_claim(c, lo, last + 1);
}

uint64_t gs_convert_templates(const gs_convert *c, const gs_template **templates, const gs_part **parts,
                              uint64_t *n_parts)
{
    *templates = c->templates.at;
    *parts = c->parts.at;
    *n_parts = c->parts.n;
    return c->templates.n;
}
