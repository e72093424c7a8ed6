/* A set of L2: 16 ways of sectored lines. A set is two host cache lines: tags, sector masks and reference
   bits in the first, fill times in the second. One tag compare covers all ways. */
#pragma once
#include "base/state.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#if defined(__SSE2__)
/* the ways that hold a tag, a bit each */
static inline u32 gs_l2_match(const gs_set *s, u32 tag)
{
    __m128i v = _mm_set1_epi16((short)tag);
    __m128i lo = _mm_cmpeq_epi16(v, _mm_load_si128((const __m128i *)(const void *)s->tag));
    __m128i hi = _mm_cmpeq_epi16(v, _mm_load_si128((const __m128i *)(const void *)(s->tag + 8)));
    return (u32)_mm_movemask_epi8(_mm_packs_epi16(lo, hi));
}
#else
static inline u32 gs_l2_match(const gs_set *s, u32 tag)
{
    u32 hit = 0;
    for (u32 i = 0; i < GS_WAYS; i++) {
        hit |= (u32)(s->tag[i] == tag) << i;
    }
    return hit;
}
#endif

/* a request hits the way */
static inline void gs_l2_touch(int lru, gs_set *s, u32 way)
{
    s->referenced |= (u16)(1u << way);
    if (lru) {
        u64 o = s->order;
        u32 at = 0;
        while ((o >> 4 * at & 15) != way) {
            at++;
        }
        u64 below = at ? o & ((1ull << 4 * at) - 1) : 0;
        u64 above = at < 15 ? o >> 4 * (at + 1) << 4 * (at + 1) : 0;
        s->order = above | below << 4 | way;
    }
}

/* The way that the next line takes: an empty one, or that of the line to evict. `random` is the state of a
   generator; with a clock it is 0 and the clock's hand is in the uppermost four bits. */
static inline u32 gs_l2_victim(int lru, int clock, gs_set *s)
{
    u32 empty = gs_l2_match(s, 0);
    if (empty) {
        return gs_ctz(empty);
    }
    if (lru) {
        return (u32)(s->order >> 60);
    }
    s->random = clock ? s->random : s->random * 1664525u + 1013904223u;
    u32 open = (u16)~s->referenced;
    if (!open) {
        s->referenced = 0;
        open = 0xffff;
    }
    u32 r = s->random >> 28;
    u32 turned = (open >> r | open << (16 - r)) & 0xffff;
    u32 way = (gs_ctz(turned) + r) & 15;
    s->random = clock ? (way + 1) << 28 : s->random;
    return way;
}

/* A line is allocated in the way. `often` times in 32 it counts as referenced, so that a scan does not evict
   what is in use. */
static inline void gs_l2_insert(int lru, u32 often, gs_set *s, u32 way)
{
    s->referenced &= (u16) ~(1u << way);
    if (lru) {
        gs_l2_touch(lru, s, way);
        return;
    }
    s->twins &= (u16) ~(1u << way);
    if ((s->random >> 20 & 31) < often) {
        s->referenced |= (u16)(1u << way);
    }
}

static inline void gs_l2_set_fill_time(gs_set *s, u32 way, u64 time)
{
    s->fill[way] = (u32)(time >> 9) + 1;
    s->pending |= (u16)(1u << way);
}

/* Those of pending ways are within a second of now (long_time.c), so 32 bits of 512-tick units name them. */
static inline u64 gs_l2_fill_time(const gs_set *s, u32 way, u64 now)
{
    return (u64)((i64)(now >> 9) + (i32)(s->fill[way] - (u32)(now >> 9))) << 9;
}

/* the sectors that DRAM delivers for these: gpu.l2.fill = 64 fetches pairs */
static inline u32 gs_l2_fill_mask(const gs_sim *sim, u32 mask)
{
    return sim->fill_pairs ? mask | (mask & 5) << 1 | (mask & 10) >> 1 : mask;
}

/* the sets of a group of slices, or of one slice */
static inline gs_set *gs_l2_sets(gs_sim *sim, u32 slice)
{
    return GS_TABLE(sim, gs_set, at_sets) + (size_t)slice * sim->sets;
}

static inline int gs_l2_is_lru(const gs_sim *sim)
{
    return sim->params.gpu_l2.replacement == GS_GPU_L2_REPLACEMENT_LRU;
}
