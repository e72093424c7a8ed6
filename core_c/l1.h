/* L1 of an SM: sets of four lines in half a host cache line. A line's key (what of its number the set does
   not tell) shares a word with its sector mask; its fill word holds the cycle from which it is valid, or,
   while the fill time is not known, GS_IN_FLIGHT + the first of those that wait for it. The victim is the
   line filled longest ago. Sets count from 1: set 0 takes the fills of requests that no line of L1 waits for.
 */
#pragma once
#include "state.h"

#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif

enum { GS_L1_HIT, GS_L1_MERGED, GS_L1_PART, GS_L1_MISS };

#define GS_IN_FLIGHT 0xffff0000u

#if defined(__SSE4_1__)
static inline u32 gs_l1_match(const gs_l1set *s, u32 key)
{
    __m128i keys = _mm_and_si128(_mm_load_si128((const __m128i *)(const void *)s->key), _mm_set1_epi32(~15));
    return (u32)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(keys, _mm_set1_epi32((int)key))));
}

static inline u32 gs_l1_victim(const gs_l1set *s)
{
    __m128i fill = _mm_load_si128((const __m128i *)(const void *)s->fill);
    __m128i least = _mm_min_epu32(fill, _mm_shuffle_epi32(fill, 0xb1));
    least = _mm_min_epu32(least, _mm_shuffle_epi32(least, 0x4e));
    return gs_ctz((u32)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(fill, least))));
}
#else
static inline u32 gs_l1_match(const gs_l1set *s, u32 key)
{
    u32 match = 0;
    for (u32 i = 0; i < GS_L1_WAYS; i++) {
        match |= (u32)((s->key[i] & ~15u) == key) << i;
    }
    return match;
}

static inline u32 gs_l1_victim(const gs_l1set *s)
{
    u32 best = 0;
    for (u32 i = 1; i < GS_L1_WAYS; i++) {
        best = s->fill[i] < s->fill[best] ? i : best;
    }
    return best;
}
#endif

/* Looks up a line at cycle c. GS_L1_MISS: *place is where L1 will keep it, or 0 for nowhere. GS_L1_HIT and
   GS_L1_MERGED (in flight) set *place, and *fill to when the data are there (GS_IN_FLIGHT or more: not
   known). GS_L1_PART: some sectors are in flight, as with GS_L1_MERGED, and L1 lacks others, which this load
   has to ask for and wait for itself; to later loads they are there when the former are (up to the latency of
   L2 too early: a line has one fill time). *mask becomes what to ask for: the sectors that L1 lacks. */
static inline int gs_l1_lookup(gs_sm *sm, u32 hash, u32 line, u32 *mask, u64 c, u32 *place, u32 *fill)
{
    u32 h = (line ^ line >> 8 ^ line >> 16) & hash, at = (h * sm->l1_scale >> 16) + 1;
    gs_l1set *s = &sm->l1[at];
    /* a set has lines of at most 16 neighbouring h, so h mod 16 and the upper part name one; never 0 */
    u32 key = ((line >> 8 << 4 | (h & 15)) + 1) << 4, match = gs_l1_match(s, key);
    if (match) {
        u32 i = gs_ctz(match);
        int here = s->fill[i] <= c;
        *fill = s->fill[i];
        *place = at * GS_L1_WAYS + i;
        u32 lacks = *mask & ~s->key[i];
        if (lacks == 0) {
            return here ? GS_L1_HIT : GS_L1_MERGED;
        }
        s->key[i] |= lacks;
        s->fill[i] = here ? GS_IN_FLIGHT : s->fill[i];
        *mask = lacks;
        return here ? GS_L1_MISS : GS_L1_PART;
    }
    u32 i = gs_l1_victim(s);
    *place = 0;
    if (GS_LIKELY(s->fill[i] <= c)) {
        s->key[i] = key | *mask;
        s->fill[i] = GS_IN_FLIGHT;
        *place = at * GS_L1_WAYS + i;
    }
    return GS_L1_MISS;
}

/* 1: the warp's slot now waits for the fill of that line, whose time is not known yet */
static inline int gs_l1_join(gs_sm *sm, u32 place, u32 wi, u32 slot)
{
    u32 n = sm->waiter_free;
    if (n) {
        sm->waiter_free = sm->waiter[n].next;
    } else if (sm->waiter_used + 1 < GS_WAITERS) {
        n = ++sm->waiter_used;
    } else {
        return 0;
    }
    u32 *fill = &sm->l1[place / GS_L1_WAYS].fill[place % GS_L1_WAYS];
    sm->waiter[n] = (gs_waiter){(u16)(*fill - GS_IN_FLIGHT), (u8)wi, (u8)slot};
    *fill = GS_IN_FLIGHT + n;
    return 1;
}

/* The line is valid from cycle c on. Returns the first of those that wait, 0 for none. */
static inline u32 gs_l1_fill(gs_sm *sm, u32 place, u32 c)
{
    u32 *fill = &sm->l1[place / GS_L1_WAYS].fill[place % GS_L1_WAYS], before = *fill;
    *fill = c;
    return before >= GS_IN_FLIGHT ? before - GS_IN_FLIGHT : 0;
}

/* A carve-out leaves L1 that many bytes. Whatever L1 holds must be invalid. */
static inline void gs_l1_resize(const gs_sim *sim, gs_sm *sm, u64 bytes)
{
    sm->l1_sets = (u32)(bytes / (GS_L1_WAYS * 128));
    sm->l1_scale = sm->l1_sets * (65536 / (sim->l1_hash + 1));
}

/* Lines in flight stay until they arrive, but nobody hits them. */
static inline void gs_l1_invalidate(gs_sm *sm)
{
    for (u32 i = 1; i <= sm->l1_sets; i++) {
        for (u32 way = 0; way < GS_L1_WAYS; way++) {
            sm->l1[i].key[way] = 0;
        }
    }
}
