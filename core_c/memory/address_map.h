/* The address map: a bijection line <-> (slice, set, tag).

   A block of slices * sets consecutive lines has one tag; within it `slices` lines after one another take one
   set of every slice. Slices are turned by a number that depends on set and tag, sets by one that depends on
   the tag, so strides spread too; without the hash (gpu.l2.hash) by none.

   With gpu.l2.chunked quads have their places as on an H200 (tests/hw/memory/slices.cu): of each chunk of 8 lines
   those without bit 1 of their number, and those with it, which lie in different slices unless there are so
   few that 8 has no remainder. A quad's number beyond its lowest eight bits goes before six bits into which
   all of it is folded (xor); the remainder of that by the slices of a half is the unit of one or two slices,
   a seventh folded bit the half that is the home and, of two slices of a unit, which. An eighth tells apart
   the two quads that have all that in common.

   Where there are two partitions the slices of each begin with a group of their own, so that a few places
   may be of no use: `slice` is a place here, in gs_api.h a slice's number. Units that follow one another are
   dealt out to the groups in turn, with chunks: the remainder of 64 numbers by 47 takes 17 units in a row
   twice as often as the others, and a group has a link of its own to each GPC. That they are is assumed;
   where slices in a row are a group L2 reads too slowly (docs/validation/memory.md). */
#pragma once
#include "base/state.h"

/* What the lines of a block have in common; with gpu.l2.chunked of the 1024 whose quads have the same upper
   part of their number: that part folded, its 64-fold by the units of a half, and the tag where their places
   begin, up to `end`, and what makes a set of those. */
typedef struct gs_block {
    u64 first; /* line */
    u32 tag, h, set;
    u32 fold, quotient, rest, end;
} gs_block;

enum { GS_QUAD_LINES = 1024 };

void gs_address_map_fold(gs_address_map *m, int hash);

/* Where in its partition each unit lies: see above. */
void gs_address_map_deal(gs_address_map *m);

/* a number below n (at most 2048) from 16 bits */
static inline u32 gs_scale_16_bits(u32 bits, u32 n)
{
    return (bits & 0xffff) * n >> 16;
}

static inline gs_block gs_block_at(const gs_address_map *m, u64 block)
{
    u32 h = (u32)block * 0x9E3779B1u;
    h = (h ^ h >> 15) & m->mix_mask;
    return (gs_block){.first = block * m->by_block.d,
                      .tag = (u32)block + 1,
                      .h = h,
                      .set = gs_scale_16_bits(h >> 16, m->rows) * m->row_sets};
}

/* how far the slices are turned for the set that is `at`-th of its block */
static inline u32 gs_slice_rotation(const gs_address_map *m, const gs_block *b, u32 at)
{
    return gs_scale_16_bits(at * m->rotation + b->h, m->slices);
}

/* what the bits of a quad's number from the eighth on are folded into */
static inline u32 gs_quad_fold(const gs_address_map *m, u32 high)
{
    return m->fold[1][high & 255] ^ m->fold[2][high >> 8 & 255] ^ m->fold[3][high >> 16];
}

/* the tag of a place of those that quads have in a slice, and what makes a set of it */
static inline void gs_quad_tag(const gs_address_map *m, u32 at, gs_block *b)
{
    u32 block = (u32)gs_div_by(at, m->by_sets);
    b->tag = block + 1;
    b->end = (block + 1) * m->sets;
    b->set = gs_block_at(m, block).set - block * m->sets;
}

static inline gs_block gs_quad_block(const gs_address_map *m, u64 line)
{
    gs_block b = {.first = line & ~(u64)(GS_QUAD_LINES - 1),
                  .fold = gs_quad_fold(m, (u32)(line / GS_QUAD_LINES))};
    u32 number = (u32)(b.first >> 4);
    b.quotient = (u32)gs_div_by(number, m->by_half);
    b.rest = number - b.quotient * m->half;
    gs_quad_tag(m, b.quotient << (m->two_partitions ? 3 : 4), &b);
    return b;
}

static GS_ALWAYS_INLINE void gs_quad_home(const gs_address_map *m, const gs_block *b, u32 line, u32 *slice,
                                          u32 *set, u32 *tag)
{
    u32 fold = m->fold[0][line >> 3 << 1 | (line >> 1 & 1)] ^ b->fold, side = fold >> 6 & 1;
    u32 rest = b->rest + (fold & 63), more = rest * m->half_inverse >> 20, x = rest - more * m->half;
    x ^= x < m->paired ? side : 0;
    *slice = m->two_partitions ? side * (m->half + m->gap) + m->place[x] : x;
    u32 at = b->quotient + more;
    at = m->two_partitions ? at : at << 1 | side;
    at = at << 3 | (fold >> 7) << 2 | (line & 1) | (line >> 1 & 2);
    u32 begin = b->set;
    *tag = b->tag;
    if (GS_UNLIKELY(at >= b->end)) {
        gs_block next;
        gs_quad_tag(m, at, &next);
        begin = next.set;
        *tag = next.tag;
    }
    at += begin;
    *set = at >= m->sets ? at - m->sets : at;
}

static inline gs_block gs_block_of(const gs_address_map *m, u64 line)
{
    return m->chunked ? gs_quad_block(m, line) : gs_block_at(m, gs_div_by(line, m->by_block));
}

/* `at`: the line's place in its block */
static GS_ALWAYS_INLINE void gs_home_in(const gs_address_map *m, const gs_block *b, u32 at, u32 *slice,
                                        u32 *set, u32 *tag)
{
    if (m->chunked) {
        gs_quad_home(m, b, at, slice, set, tag);
        return;
    }
    u32 x = (u32)(at * m->slices_inverse >> 40), s = at - x * m->slices + gs_slice_rotation(m, b, x);
    s = s >= m->slices ? s - m->slices : s;
    x += b->set;
    *set = x >= m->sets ? x - m->sets : x;
    *slice = s >= m->half ? s + m->gap : s;
    *tag = b->tag;
    if (GS_UNLIKELY(m->wraps)) {
        *slice = s >= m->wraps ? s - m->wraps : s;
        *tag = b->tag * 2 + (s >= m->wraps);
    }
}

static inline void gs_home(const gs_address_map *m, u64 line, u32 *slice, u32 *set, u32 *tag)
{
    gs_block b = gs_block_of(m, line);
    gs_home_in(m, &b, (u32)(line - b.first), slice, set, tag);
}
