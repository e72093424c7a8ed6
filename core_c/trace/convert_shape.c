/* Shapes of accesses: see convert_shape.h. */
#include "trace/convert_shape.h"

#include "trace/convert.h"
#include "trace/convert_tables.h"

#include <string.h>

/* Shared-memory wavefronts of an access: the most different words in a bank; wide accesses take at least one
   for each eight bytes a lane. */
static u32 wavefronts_of(const i64 *offset, u32 lanes, u32 width)
{
    u32 count[32] = {0}, most = width > 8 ? width / 8 : 1;
    i64 words[32][16];
    for (u32 i = 0; i < lanes; i++) {
        i64 first = offset[i] >> 2, last = (i64)((u64)offset[i] + width - 1) >> 2;
        for (i64 w = first; w <= last; w++) {
            u32 bank = (u32)w & 31, j = 0, n = count[bank] < 16 ? count[bank] : 16;
            while (j < n && words[bank][j] != w) {
                j++;
            }
            if (j < n) {
                continue;
            }
            if (count[bank] < 16) {
                words[bank][count[bank]] = w; /* beyond 16 a word may count twice */
            }
            count[bank]++;
            most = gs_max32(most, count[bank]);
        }
    }
    return most;
}

/* Wavefronts in the low half, those of the lanes' first words alone in the high half. */
static u32 wavefronts_and_first(const i64 *offset, u32 lanes, u32 width)
{
    return wavefronts_of(offset, lanes, width) | wavefronts_of(offset, lanes, 1) << 16;
}

int gs_lane_shape(gs_convert *c, const u64 *a, u32 mask, u32 width, u32 *shape, u32 *waves)
{
    gs_shape_lanes s;
    memset(&s, 0, sizeof s);
    s.lanes = mask;
    s.width = width;
    u32 k = 0, far = 0;
    i64 offset[32];
    for (u32 left = mask; left; left &= left - 1, k++) {
        offset[k] = (i64)(a[k] - a[0]);
        far |= offset[k] > (1 << 30) || offset[k] < -(1 << 30);
        s.offset[gs_ctz(left)] = (i32)offset[k];
    }
    *shape = 0;
    if (!far) {
        u64 hash = gs_hash_bytes(&s, sizeof s), at;
        const gs_shape_lanes *all = c->shapes.at;
        for (u32 i = gs_index_find(&c->shape_index, hash, &at); i != GS_NOWHERE;
             i = gs_index_next(&c->shape_index, hash, &at)) {
            if (!memcmp(&all[i], &s, sizeof s)) {
                *shape = i + 1;
                *waves = ((const u32 *)c->shape_waves.at)[i];
                return GS_OK;
            }
        }
        *waves = wavefronts_and_first(offset, k, width);
        if (c->shapes.n < GS_SHAPES) {
            gs_shape_lanes *to = gs_vector_room(&c->shapes, 1, sizeof s);
            u32 *w = gs_vector_room(&c->shape_waves, 1, sizeof *w);
            if (!to || !w || !gs_index_add(&c->shape_index, hash, (u32)c->shapes.n)) {
                return gs_convert_no_memory(c);
            }
            *to = s;
            *w = *waves;
            c->shape_waves.n++;
            *shape = (u32)++c->shapes.n;
        }
        return GS_OK;
    }
    *waves = wavefronts_and_first(offset, k, width);
    return GS_OK;
}
