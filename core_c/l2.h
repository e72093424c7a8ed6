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

static inline void gs_home(const gs_map *m, u64 line, u32 *slice, u32 *set, u32 *tag)
{
    u64 rest = line;
    u32 low = 0;
    if (m->slice_odd > 1) {
        u64 q = gs_div_by(rest, m->by_slice_odd);
        low = (u32)(rest - q * m->slice_odd);
        rest = q;
    }
    u32 lo = (u32)rest & m->mask;
    rest >>= m->slice_bits + m->set_bits;
    u32 hi = 0;
    if (m->set_odd > 1) {
        u64 q = gs_div_by(rest, m->by_set_odd);
        hi = (u32)(rest - q * m->set_odd);
        rest = q;
    }
    u32 h = (u32)rest * 0x9E3779B1u ^ hi * 0x85EBCA6Bu;
    h ^= h >> 15;
    if (m->slice_bits) {
        lo ^= lo >> m->slice_bits;
    }
    lo ^= h & m->mask;
    if (m->slice_odd > 1) {
        u32 turn = low + gs_turn(m, lo, h);
        low = turn >= m->slice_odd ? turn - m->slice_odd : turn;
    }
    *slice = (lo & m->slice_mask) + (low << m->slice_bits);
    *set = (lo >> m->slice_bits) + (hi << m->set_bits);
    *tag = (u32)rest + 1;
}
