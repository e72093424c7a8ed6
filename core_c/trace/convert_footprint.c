/* Footprints of TBs: see convert_footprint.h. */
#include "trace/convert_footprint.h"

#include "trace/convert.h"
#include "trace/convert_tables.h"

#include <stdlib.h>
#include <string.h>

static int touch(gs_convert *c, u64 lo, u64 hi, u32 tb, u32 mode)
{
    gs_run_touched *all = c->runs.at;
    lo &= ~31ull;
    hi = (hi + 31) & ~31ull;
    u64 oldest = c->runs.n > 4 ? c->runs.n - 4 : 0;
    for (u64 i = c->runs.n; i-- > oldest;) { /* most accesses continue where one of the last ones ended */
        if (all[i].mode == mode && lo <= all[i].end && hi >= all[i].start) {
            all[i].start = gs_min(all[i].start, lo);
            all[i].end = gs_max(all[i].end, hi);
            return GS_OK;
        }
    }
    gs_run_touched *to = gs_vector_room(&c->runs, 1, sizeof *to);
    if (!to) {
        return gs_convert_no_memory(c);
    }
    *to = (gs_run_touched){lo, hi, tb, mode};
    c->runs.n++;
    return GS_OK;
}

static int by_start(const void *x, const void *y)
{
    const gs_run_touched *a = x, *b = y;
    if (a->mode != b->mode) {
        return a->mode < b->mode ? -1 : 1;
    }
    return a->start < b->start ? -1 : a->start > b->start;
}

int gs_footprint_end(gs_convert *c)
{
    gs_run_touched *all = c->runs.at;
    u64 n = c->runs.n, kept = 0;
    if (!n) {
        return GS_OK;
    }
    qsort(all, n, sizeof *all, by_start);
    for (u64 i = 0; i < n; i++) {
        if (kept && all[kept - 1].mode == all[i].mode && all[i].start <= all[kept - 1].end) {
            all[kept - 1].end = gs_max(all[kept - 1].end, all[i].end);
        } else {
            all[kept++] = all[i];
        }
    }
    gs_run_touched *to = gs_vector_room(&c->touched, kept, sizeof *to);
    if (!to) {
        return gs_convert_no_memory(c);
    }
    memcpy(to, all, kept * sizeof *all);
    c->touched.n += kept;
    c->runs.n = 0;
    return GS_OK;
}

int gs_footprint_add(gs_convert *c, const u64 *a, const gs_access *r, u32 tb)
{
    if (r->mode > 2) {
        return GS_OK;
    }
    u32 width = r->width;
    u64 lo = a[0], hi = a[0] + width;
    for (u32 i = 1; i < r->lanes; i++) {
        if (a[i] >= lo && a[i] >> 5 <= ((hi - 1) >> 5) + 1) {
            hi = gs_max(hi, a[i] + width);
            continue;
        }
        if (touch(c, lo, hi, tb, r->mode)) {
            return GS_ERR_MEM;
        }
        lo = a[i];
        hi = a[i] + width;
    }
    return touch(c, lo, hi, tb, r->mode);
}
