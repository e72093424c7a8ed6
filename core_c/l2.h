/* L2 slices. The address map is a bijection line <-> (slice, set, tag):
     line = (((tag - 1) * set_odd + hi) << (slice_bits + set_bits) | lo) * slice_odd + low
   with slices = slice_odd << slice_bits and sets = set_odd << set_bits. Consecutive lines go to different
   slices; lo and low are rotated and xor-ed by functions of what lies above them, so strides spread too. */
#pragma once
#include "mail.h"

void gs_slices_run(gs_ctx *ctx, u32 box);

/* a number below slice_odd that depends on all of the line's upper part */
static inline u32 gs_turn(const gs_map *m, u32 lo, u32 h)
{
    return (((lo >> m->slice_bits) * 0x9E37u + (h >> 16)) & 0xffff) * m->slice_odd >> 16;
}

/* What the lines of a block (slices * 2^set_bits consecutive ones) have in common. */
typedef struct gs_block {
    u64 first; /* line */
    u32 h, set, tag;
} gs_block;

static inline gs_block gs_block_of(const gs_map *m, u64 line)
{
    u64 block = gs_div_by(line, m->by_block), rest = block;
    u32 hi = 0;
    if (m->set_odd > 1) {
        rest = gs_div_by(block, m->by_set_odd);
        hi = (u32)(block - rest * m->set_odd);
    }
    u32 h = (u32)rest * 0x9E3779B1u ^ hi * 0x85EBCA6Bu;
    h ^= h >> 15;
    return (gs_block){block * m->by_block.d, h, hi << m->set_bits, (u32)rest + 1};
}

/* `at`: the line's place in its block */
static inline void gs_home_in(const gs_map *m, const gs_block *b, u32 at, u32 *slice, u32 *set)
{
    u32 low = 0, lo = at;
    if (m->slice_odd > 1) {
        lo = (u32)((u64)at * m->slice_odd_inverse >> 40);
        low = at - lo * m->slice_odd;
    }
    u32 folded = m->slice_bits ? lo ^ lo >> m->slice_bits : lo;
    lo = folded ^ (b->h & m->mask);
    u32 set_lo = lo >> m->slice_bits;
    if (m->slice_odd > 1) {
        low += ((set_lo * 0x9E37u + (b->h >> 16)) & 0xffff) * m->slice_odd >> 16;
        low = low >= m->slice_odd ? low - m->slice_odd : low;
    }
    *slice = (lo & m->slice_mask) + (low << m->slice_bits);
    *set = set_lo + b->set;
}

static inline void gs_home(const gs_map *m, u64 line, u32 *slice, u32 *set, u32 *tag)
{
    gs_block b = gs_block_of(m, line);
    gs_home_in(m, &b, (u32)(line - b.first), slice, set);
    *tag = b.tag;
}
