/* Classes of warps: see convert_classes.h. */
#include "trace/convert_classes.h"

#include "trace/convert.h"
#include "trace/convert_tables.h"

#include <stdlib.h>
#include <string.h>

/* 1: the address follows the rule, or has determined a coefficient of it. */
static int fit_take(gs_fit *f, const i64 *moved, i64 address, u32 shape)
{
    /* Differences modulo 2^64: what is too far apart is found later (span_of_access) and recorded. */
    i64 rest = (i64)((u64)address - (u64)f->address);
    u32 unknown = 0, which = 0;
    if (!shape || shape != f->shape) {
        return 0;
    }
    for (u32 i = 0; i < GS_FITS; i++) {
        if (f->known >> i & 1) {
            rest = (i64)((u64)rest - (u64)f->c[i] * (u64)moved[i]);
        } else if (moved[i]) {
            unknown++;
            which = i;
        }
    }
    if (!unknown) {
        return rest == 0;
    }
    if (unknown > 1) {
        /* which coordinate moved the address is not known; if it did not move, all coefficients are 0 */
        for (u32 i = 0; rest == 0 && i < GS_FITS; i++) {
            f->known |= (u8)((moved[i] != 0) << i);
        }
        return rest == 0;
    }
    if (rest == INT64_MIN || rest % moved[which]) { /* INT64_MIN / -1 overflows */
        return 0;
    }
    i64 c = rest / moved[which];
    if (c > (i64)1 << 40 || c < -((i64)1 << 40)) {
        return 0;
    }
    f->c[which] = c;
    f->known |= (u8)(1u << which);
    return 1;
}

static int spill(gs_convert *c, const u64 *a, u32 lanes, u32 width)
{
    gs_record *to = gs_vector_room(&c->spilled, 1, sizeof *to);
    if (!to) {
        return gs_convert_no_memory(c);
    }
    c->spilled.n++;
    return gs_record_access(c, a, lanes, width, to);
}

int gs_class_of_warp(gs_convert *c, const u64 *addresses, const u32 *place, u32 *number)
{
    const u32 *ids = c->ids.at;
    const gs_access *reaches = c->reach.at;
    u64 n = c->ids.n, m = c->reach.n, hash = gs_hash_bytes(ids, n * sizeof *ids), at;
    gs_stream *s = NULL;
    for (u32 i = gs_index_find(&c->stream_index, hash, &at); i != GS_NOWHERE;
         i = gs_index_next(&c->stream_index, hash, &at)) {
        gs_stream *x = (gs_stream *)c->streams.at + i;
        if (x->n == n && !memcmp(x->ids, ids, n * sizeof *ids)) {
            s = x;
            *number = i;
            break;
        }
    }
    if (!s) {
        s = gs_vector_room(&c->streams, 1, sizeof *s);
        if (!s || c->streams.n >= GS_NOWHERE - 1 ||
            !gs_index_add(&c->stream_index, hash, (u32)c->streams.n)) {
            return gs_convert_no_memory(c);
        }
        *s = (gs_stream){.n = n, .n_fits = m, .hash = hash};
        *number = (u32)c->streams.n++;
        s->ids = malloc((n + 1) * sizeof *s->ids);
        s->fits = calloc(m + 1, sizeof *s->fits);
        if (!s->ids || !s->fits) {
            return gs_convert_no_memory(c);
        }
        memcpy(s->ids, ids, n * sizeof *s->ids);
        memcpy(s->first, place, sizeof s->first);
        memcpy(s->lo, place, sizeof s->lo);
        memcpy(s->hi, place, sizeof s->hi);
        for (u64 i = 0; i < m; i++) {
            const gs_access *r = &reaches[i];
            s->fits[i] = (gs_fit){.address = (i64)(addresses[r->first] + r->offset),
                                  .shape = r->shape,
                                  .since = r->shape && !(c->plain & 1) ? GS_NOWHERE : 0,
                                  .mode = r->mode};
        }
    }
    i64 moved[GS_FITS];
    for (u32 i = 0; i < GS_FITS; i++) {
        moved[i] = (i64)place[i] - s->first[i];
        s->lo[i] = s->lo[i] < place[i] ? s->lo[i] : place[i];
        s->hi[i] = s->hi[i] > place[i] ? s->hi[i] : place[i];
    }
    for (u64 i = 0; i < m; i++) {
        gs_fit *f = &s->fits[i];
        const gs_access *r = &reaches[i];
        u64 room[32];
        const u64 *a = gs_access_addresses(addresses, r, room);
        if (f->since == GS_NOWHERE && !fit_take(f, moved, (i64)a[0], r->shape)) {
            f->since = (u32)s->warps;
        }
        if (f->since != GS_NOWHERE && spill(c, a, r->lanes, r->width)) {
            return GS_ERR_MEM;
        }
    }
    s->warps++;
    return GS_OK;
}
