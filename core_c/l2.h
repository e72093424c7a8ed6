/* L2 slices. The address map is a bijection line <-> (slice, set, tag). A block of slices * sets consecutive
   lines has one tag; within it `slices` lines after one another take one set of every slice. Slices are
   turned by a number that depends on set and tag, sets by one that depends on the tag, so strides spread too;
   without the hash (gpu.l2.hash) by none. With gpu.l2.chunked it is not lines that follow one another but
   quads: of each chunk of 8 lines those without bit 1 of their number, which take four sets of one slice, and
   those with it. */
#pragma once
#include "mail.h"

void gs_slices_run(gs_ctx *ctx, u32 box);

/* What the lines of a block have in common. */
typedef struct gs_block {
    u64 first; /* line */
    u32 tag, h, set;
} gs_block;

/* a number below n (at most 2048) from 16 bits */
static inline u32 gs_below(u32 bits, u32 n)
{
    return (bits & 0xffff) * n >> 16;
}

static inline gs_block gs_block_at(const gs_map *m, u64 block)
{
    u32 h = (u32)block * 0x9E3779B1u;
    h = (h ^ h >> 15) & m->spread;
    return (gs_block){block * m->by_block.d, (u32)block + 1, h, gs_below(h >> 16, m->rows) * m->row_sets};
}

static inline gs_block gs_block_of(const gs_map *m, u64 line)
{
    return gs_block_at(m, gs_div_by(line, m->by_block));
}

/* how far the slices are turned for the set, or the row of quads, that is `at`-th of its block */
static inline u32 gs_turn(const gs_map *m, const gs_block *b, u32 at)
{
    return gs_below(at * m->turn + b->h, m->slices);
}

/* How far slices turn behind the first half of a row of places: odd, so that even strides do not meet there,
   and so that the parity of a slice's pair and its half tell which half of the row it is of. */
static inline u32 gs_chunk_shift(u32 slices)
{
    return (slices / 16) | 1;
}

/* The slice of a quad, of the place-th in a row of as many as slices, and back. Two quads in a row lie in one
   half, the next two in the other (those of a chunk do not where its row is turned by an odd number); each
   slice of both halves has one. */
static inline u32 gs_slice_of_place(u32 slices, u32 place)
{
    u32 pairs = slices / 4, chunk = place >> 1, second = chunk >= pairs, i = chunk - second * pairs;
    u32 pair = i + second * gs_chunk_shift(slices);
    pair = pair >= pairs ? pair - pairs : pair;
    return (i & 1) * (slices / 2) + pair * 2 + (place & 1);
}

static inline u32 gs_place_of_slice(u32 slices, u32 slice)
{
    u32 pairs = slices / 4, half = slice >= slices / 2, in = slice - half * (slices / 2), pair = in >> 1;
    u32 second = (pair ^ half) & 1, back = second * gs_chunk_shift(slices);
    u32 i = pair >= back ? pair - back : pair + pairs - back;
    return (second * pairs + i) * 2 + (in & 1);
}

/* `at`: the line's place in its block */
static inline void gs_home_in(const gs_map *m, const gs_block *b, u32 at, u32 *slice, u32 *set, u32 *tag)
{
    u32 row = 0, unit = at; /* the line's set among those of its quad; the quad, or the line */
    if (m->chunked) {
        row = (at & 1) | (at >> 1 & 2);
        unit = at >> 3 << 1 | (at >> 1 & 1);
    }
    u32 x = (u32)(unit * m->slices_inverse >> 40), s = unit - x * m->slices + gs_turn(m, b, x);
    s = s >= m->slices ? s - m->slices : s;
    if (m->chunked) {
        x = x * 4 + row;
        s = gs_slice_of_place(m->slices, s);
    }
    x += b->set;
    *set = x >= m->sets ? x - m->sets : x;
    *slice = s;
    *tag = b->tag;
    if (GS_UNLIKELY(m->wraps)) {
        *slice = s >= m->wraps ? s - m->wraps : s;
        *tag = b->tag * 2 + (s >= m->wraps);
    }
}

static inline void gs_home(const gs_map *m, u64 line, u32 *slice, u32 *set, u32 *tag)
{
    gs_block b = gs_block_of(m, line);
    gs_home_in(m, &b, (u32)(line - b.first), slice, set, tag);
}
