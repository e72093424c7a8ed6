/* The address map: a bijection line <-> (slice, set, tag).

   A block of slices * sets consecutive lines has one tag. Within it, `slices` consecutive lines map to one
   set of each slice. Slices are rotated by a number that depends on set and tag, and sets by one that depends
   on the tag, so strides spread over both; without the hash (gpu.l2.hash) neither rotates.

   With gpu.l2.chunked, quads of lines map to slices as on an H200 (tests/hw/memory/slices.cu). A chunk of 8
   lines has two quads: the lines without bit 1 of their number, and those with it. They map to different
   slices, unless the number of slices divides 8. The unit (one slice, or a pair) is a remainder by the slices
   of a partition: of the quad's number above its lowest eight bits, followed by six bits into which the whole
   number is folded (xor). A seventh folded bit is the partition and, in a pair, which slice. An eighth tells
   apart the two quads that agree in all that.

   With two partitions the slices of each begin with a new group, so a few places are unused: `slice` is a
   place here, and a slice's number in gs_api.h. With chunks, consecutive units are dealt out to the groups in
   turn: the remainder of 64 numbers by 47 hits 17 consecutive units twice as often as the others, and a group
   has one link to each GPC. The dealing is assumed; with consecutive slices in a group, L2 reads too slowly
   (docs/validation/memory.md). */
#pragma once
#include "base/state.h"

/* What the lines of a block have in common. With gpu.l2.chunked: what the 1024 lines have in common whose
   quads share the upper part of their number. That part, folded; 64 times it, divided by the units of a
   partition; and the tag of their places up to `end`, with what makes a set of a place. */
typedef struct gs_block {
    u64 first; /* line */
    u32 tag, h, set;
    u32 fold, quotient, rest, end;
} gs_block;

enum { GS_QUAD_LINES = 1024 };

void gs_address_map_fold(gs_address_map *m, int hash);

/* Addresses in bytes must be below this. */
u64 gs_address_limit(const gs_sim *sim);

/* Deals out the units of a partition to its groups: see above. */
void gs_address_map_deal(gs_address_map *m);

/* Scales 16 bits to a number below n (at most 2048). */
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

/* How far the slices are rotated for the `at`-th set of a block. */
static inline u32 gs_slice_rotation(const gs_address_map *m, const gs_block *b, u32 at)
{
    return gs_scale_16_bits(at * m->rotation + b->h, m->slices);
}

/* The fold of a quad's number from bit 8 on. */
static inline u32 gs_quad_fold(const gs_address_map *m, u32 high)
{
    return m->fold[1][high & 255] ^ m->fold[2][high >> 8 & 255] ^ m->fold[3][high >> 16];
}

/* The tag of the `at`-th place for quads in a slice, and the offset (b->set) from a place to its set. */
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

/* What gs_quad_home needs, copied once for many lines. */
typedef struct gs_homes {
    const u8 *fold, *place;
    u32 chunked, two_partitions, half, half_inverse, second, paired, sets; /* second: its first place */
} gs_homes;

static inline gs_homes gs_homes_make(const gs_address_map *m)
{
    return (gs_homes){.fold = m->fold[0],
                      .place = m->place,
                      .chunked = m->chunked,
                      .two_partitions = m->two_partitions,
                      .half = m->half,
                      .half_inverse = m->half_inverse,
                      .second = m->half + m->gap,
                      .paired = m->paired,
                      .sets = m->sets};
}

static GS_ALWAYS_INLINE void gs_quad_home(const gs_address_map *m, const gs_homes *h, const gs_block *b,
                                          u32 line, u32 *slice, u32 *set, u32 *tag)
{
    u32 fold = h->fold[line >> 3 << 1 | (line >> 1 & 1)] ^ b->fold, side = fold >> 6 & 1;
    u32 rest = b->rest + (fold & 63), more = rest * h->half_inverse >> 20, x = rest - more * h->half;
    x ^= x < h->paired ? side : 0;
    *slice = h->two_partitions ? side * h->second + h->place[x] : x;
    u32 at = b->quotient + more;
    at = h->two_partitions ? at : at << 1 | side;
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
    *set = at >= h->sets ? at - h->sets : at;
}

static inline gs_block gs_block_of(const gs_address_map *m, u64 line)
{
    return m->chunked ? gs_quad_block(m, line) : gs_block_at(m, gs_div_by(line, m->by_block));
}

/* `at`: the line's place in its block */
static GS_ALWAYS_INLINE void gs_home_by(const gs_address_map *m, const gs_homes *h, const gs_block *b, u32 at,
                                        u32 *slice, u32 *set, u32 *tag)
{
    if (h->chunked) {
        gs_quad_home(m, h, b, at, slice, set, tag);
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

static GS_ALWAYS_INLINE void gs_home_in(const gs_address_map *m, const gs_block *b, u32 at, u32 *slice,
                                        u32 *set, u32 *tag)
{
    const gs_homes h = gs_homes_make(m);
    gs_home_by(m, &h, b, at, slice, set, tag);
}

static inline void gs_home(const gs_address_map *m, u64 line, u32 *slice, u32 *set, u32 *tag)
{
    gs_block b = gs_block_of(m, line);
    gs_home_in(m, &b, (u32)(line - b.first), slice, set, tag);
}
