/* Tables of the address map, and its inverse: see address_map.h. */
#include "memory/address_map.h"

/* What each bit of a quad's number changes on an H200: bits 0 to 5 are the lowest bits of the number whose
   remainder is the unit, bit 6 is the partition; bit 7 is an assumption. The first 28 are measured
   (tests/hw/memory/slices.cu, docs/validation/memory.md). The others, of which a line has one at most, are
   assumed. */
static const u8 changes[32] = {
    0x88, 0x14, 0x21, 0x48, 0x55, 0x22, 0x44, 0x1f, 0x72, 0x3e, 0x57, 0x0d, 0x75, 0x5b, 0x15, 0x5c,
    0x26, 0x5d, 0x56, 0x74, 0x51, 0x1b, 0x53, 0x36, 0x2b, 0x54, 0x6d, 0x67, 0x26, 0x5d, 0x56, 0x74,
};

/* Without the hash: lowest digits first, then partition and set. */
static const u8 plain[8] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80};

void gs_address_map_fold(gs_address_map *m, int hash)
{
    for (u32 byte = 0; byte < 4; byte++) {
        for (u32 value = 0; value < 256; value++) {
            u8 fold = 0;
            for (u32 bit = 0; bit < 8; bit++) {
                u8 of = hash ? changes[byte * 8 + bit] : byte ? 0 : plain[bit];
                fold ^= value >> bit & 1 ? of : 0;
            }
            m->fold[byte][value] = fold;
        }
    }
    for (u32 value = 0; value < 256; value++) {
        m->low[m->fold[0][value]] = (u8)value;
    }
}

void gs_address_map_deal(gs_address_map *m)
{
    const u32 groups = (m->half + GS_GROUP - 1) / GS_GROUP, full = GS_GROUP - (groups * GS_GROUP - m->half);
    for (u32 unit = 0; unit < m->half; unit++) {
        /* all groups have `full` units, all but the last one more */
        u32 more = unit >= full * groups, after = more ? unit - full * groups : unit;
        u32 to = groups - more, place = after % to * GS_GROUP + after / to + more * full;
        m->place[unit] = (u8)place;
        m->unit[place] = (u8)unit;
    }
}

static u64 quad_line(const gs_address_map *m, u32 place, u32 at)
{
    u32 second = place >= m->half + m->gap,
        x = m->two_partitions ? place - second * (m->half + m->gap) : place;
    x = m->two_partitions ? m->unit[x] : x;
    u32 row = at & 3, fold = at >> 2 & 1, side = m->two_partitions ? second : at >> 3 & 1;
    x ^= x < m->paired ? side : 0;
    u32 number = (at >> (m->two_partitions ? 3 : 4)) * m->half + x, high = number >> 6;
    u32 quad = high << 8 | m->low[((number & 63) | side << 6 | fold << 7) ^ gs_quad_fold(m, high)];
    return (u64)(quad >> 1) << 3 | (quad & 1) << 1 | (row & 1) | (row & 2) << 1;
}

uint64_t gs_home_line(const gs_sim *sim, uint32_t slice, uint32_t set, uint32_t tag)
{
    const gs_address_map *m = &sim->map;
    if (m->wraps) {
        slice += tag & 1 ? m->wraps : 0;
        tag /= 2;
    }
    gs_block b = gs_block_at(m, tag - 1);
    u32 x = set >= b.set ? set - b.set : set + m->sets - b.set;
    if (m->chunked) {
        return quad_line(m, slice >= m->half ? slice + m->gap : slice, (tag - 1) * m->sets + x);
    }
    u32 turn = gs_slice_rotation(m, &b, x);
    return b.first + (u64)x * m->slices + (slice >= turn ? slice - turn : slice + m->slices - turn);
}

void gs_line_home(const gs_sim *sim, uint64_t line, uint32_t *slice, uint32_t *set, uint32_t *tag)
{
    gs_home(&sim->map, line, slice, set, tag);
    *slice -= *slice >= sim->map.half ? sim->map.gap : 0;
}

u64 gs_address_limit(const gs_sim *sim)
{
    /* L2 tags have 16 bits, L1 keys name a line in 31. With gpu.l2.chunked, consecutive lines may be a fold
       of their address apart: 1024 lines, and a row of all slices. */
    u64 tags = sim->map.wraps || sim->partition_boxes ? 32767 : 65535;
    u64 lines = tags * sim->map.by_block.d - (sim->map.chunked ? 1024 + 16 * (u64)sim->slices : 0);
    return gs_min(lines * 128, (u64)INT32_MAX * 128);
}
