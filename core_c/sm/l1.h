/* L1 of an SM, as measured on an H200 (tests/hw/sm/l1.cu, keep1.cu): a segmented LRU. A set has the tags of
   four lines. The two lines that hit last are protected and evicted after all others; within each segment the
   least recently used line is evicted first. Data are kept for as many lines as the carve-out leaves: when
   those are all taken although a set has a free way, four neighbouring sets evict a line each.

   A line's key holds the part of its number that the set does not imply, whether it is marked, whether it is
   protected, its rank (how many lines of the set are evicted after it; 3: it is the next) and its sector
   mask. A marked line holds memory that a kernel overwrites (scheme.coherence = argument); marked lines are
   invalidated together, the others stay. Its fill word is the cycle from which it is valid or, while that is
   not known, GS_IN_FLIGHT + the first of the slots that wait for it. Sets count from 1: set 0 takes the fills
   of requests that no line of L1 waits for. */
#pragma once
#include "base/state.h"

#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif

enum { GS_L1_HIT, GS_L1_MERGED, GS_L1_PART, GS_L1_MISS };

enum { GS_L1_TRIES = 8 }; /* groups of sets that are tried for a line to evict */

enum {
    GS_L1_RANK = 16,
    GS_L1_RANKS = 3 * GS_L1_RANK,
    GS_L1_VALID = 64,
    GS_L1_PROTECTED = 128,
    GS_L1_TAG = 256
};

#define GS_L1_MARKED 0x80000000u
#define GS_L1_NUMBER (~GS_L1_MARKED & ~(u32)(GS_L1_TAG - 1)) /* bits of a key that say which line it is */

#define GS_IN_FLIGHT 0xffff0000u

/* What the bits of a line's number above bit 8 add to its set. */
static inline u32 gs_l1_fold(const gs_sim *sim, u32 line)
{
    return sim->l1_hash[0][line >> 9 & 255] ^ sim->l1_hash[1][line >> 17 & 255] ^ sim->l1_hash[2][line >> 25];
}

static inline u32 gs_l1_set_of(u32 line, u32 fold)
{
    return ((line ^ fold) & (GS_L1_SETS - 1)) + 1;
}

/* Ways of a set, a bit each: gs_l1_match: those that hold the line of that key; gs_l1_free: those without a
   line, or a fill in flight; gs_l1_evicted_next: the way of highest rank; gs_l1_protected: those with a
   protected line. gs_l1_evict evicts the line of highest rank whose fill has arrived; its way is the next to
   be allocated. It returns the number of lines evicted, 1 or 0. */
#if defined(__SSE4_1__)
static inline __m128i gs_l1_load(const u32 *words)
{
    return _mm_load_si128((const __m128i *)(const void *)words);
}

static inline u32 gs_l1_ways(__m128i mask)
{
    return (u32)_mm_movemask_ps(_mm_castsi128_ps(mask));
}

static inline u32 gs_l1_match(const gs_l1set *s, u32 key)
{
    __m128i keys = _mm_and_si128(gs_l1_load(s->key), _mm_set1_epi32((int)(GS_L1_NUMBER | GS_L1_VALID)));
    return gs_l1_ways(_mm_cmpeq_epi32(keys, _mm_set1_epi32((int)key)));
}

static inline __m128i gs_l1_arrived(const gs_l1set *s, u32 c)
{
    __m128i fill = gs_l1_load(s->fill);
    return _mm_cmpeq_epi32(_mm_min_epu32(fill, _mm_set1_epi32((int)c)), fill);
}

static inline u32 gs_l1_free(const gs_l1set *s, u32 c)
{
    __m128i valid = _mm_slli_epi32(gs_l1_load(s->key), 25); /* GS_L1_VALID becomes the sign */
    return gs_l1_ways(_mm_andnot_si128(valid, gs_l1_arrived(s, c)));
}

static inline u32 gs_l1_evicted_next(const gs_l1set *s)
{
    __m128i ranks = _mm_and_si128(gs_l1_load(s->key), _mm_set1_epi32(GS_L1_RANKS));
    return gs_l1_ways(_mm_cmpeq_epi32(ranks, _mm_set1_epi32(GS_L1_RANKS)));
}

/* No branches here: the host cannot predict which line is evicted, or whether one is. */
static inline u32 gs_l1_evict(gs_l1set *s, u32 c)
{
    const __m128i mask = _mm_set1_epi32(GS_L1_RANKS), one = _mm_set1_epi32(GS_L1_RANK);
    __m128i all = gs_l1_load(s->key), ranks = _mm_and_si128(all, mask), keys, here, most, above;
    keys = _mm_and_si128(all, _mm_set1_epi32(GS_L1_RANKS | GS_L1_VALID));
    here = _mm_and_si128(gs_l1_arrived(s, c), _mm_cmpgt_epi32(keys, mask));
    keys = _mm_and_si128(keys, here);
    most = _mm_max_epi32(keys, _mm_shuffle_epi32(keys, 0xb1));
    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0x4e)); /* 0: there is none */
    above = _mm_and_si128(_mm_cmpgt_epi32(ranks, _mm_and_si128(most, mask)), _mm_cmpgt_epi32(most, mask));
    all = _mm_sub_epi32(all, _mm_and_si128(above, one));
    all = _mm_blendv_epi8(all, mask, _mm_and_si128(here, _mm_cmpeq_epi32(keys, most)));
    _mm_store_si128((__m128i *)(void *)s->key, all);
    return (u32)_mm_cvtsi128_si32(most) / GS_L1_VALID;
}

static inline u32 gs_l1_protected(const gs_l1set *s)
{
    return gs_l1_ways(_mm_slli_epi32(gs_l1_load(s->key), 24)); /* GS_L1_PROTECTED becomes the sign */
}

/* Ranks from `first` to below `end` go up by one. Of the protected lines the two of lowest rank stay
   protected. */
static inline void gs_l1_shift(gs_l1set *s, u32 first, u32 end)
{
    __m128i keys = gs_l1_load(s->key), ranks = _mm_and_si128(keys, _mm_set1_epi32(GS_L1_RANKS));
    __m128i moves = _mm_andnot_si128(_mm_cmplt_epi32(ranks, _mm_set1_epi32((int)first)),
                                     _mm_cmplt_epi32(ranks, _mm_set1_epi32((int)end)));
    keys = _mm_add_epi32(keys, _mm_and_si128(moves, _mm_set1_epi32(GS_L1_RANK)));
    /* the upper bit of each rank, where GS_L1_PROTECTED is */
    __m128i late = _mm_and_si128(_mm_slli_epi32(keys, 2), _mm_set1_epi32(GS_L1_PROTECTED));
    _mm_store_si128((__m128i *)(void *)s->key, _mm_andnot_si128(late, keys));
}
#else
static inline u32 gs_l1_match(const gs_l1set *s, u32 key)
{
    u32 match = 0;
    for (u32 i = 0; i < GS_L1_WAYS; i++) {
        match |= (u32)((s->key[i] & (GS_L1_NUMBER | GS_L1_VALID)) == key) << i;
    }
    return match;
}

static inline u32 gs_l1_free(const gs_l1set *s, u32 c)
{
    u32 free = 0;
    for (u32 i = 0; i < GS_L1_WAYS; i++) {
        free |= (u32)(!(s->key[i] & GS_L1_VALID) && s->fill[i] <= c) << i;
    }
    return free;
}

static inline u32 gs_l1_evicted_next(const gs_l1set *s)
{
    u32 last = 0;
    for (u32 i = 0; i < GS_L1_WAYS; i++) {
        last |= (u32)((s->key[i] & GS_L1_RANKS) == GS_L1_RANKS) << i;
    }
    return last;
}

static inline u32 gs_l1_evict(gs_l1set *s, u32 c)
{
    u32 most = 0, oldest = 0;
    for (u32 i = 0; i < GS_L1_WAYS; i++) {
        u32 key = s->key[i] & (GS_L1_RANKS | GS_L1_VALID);
        if (key > GS_L1_RANKS && s->fill[i] <= c && key > most) {
            most = key;
            oldest = i;
        }
    }
    for (u32 i = 0; most && i < GS_L1_WAYS; i++) {
        s->key[i] -= (s->key[i] & GS_L1_RANKS) > (most & GS_L1_RANKS) ? GS_L1_RANK : 0;
    }
    s->key[oldest] = most ? GS_L1_RANKS : s->key[oldest];
    return most != 0;
}

static inline u32 gs_l1_protected(const gs_l1set *s)
{
    u32 found = 0;
    for (u32 i = 0; i < GS_L1_WAYS; i++) {
        found |= (u32)((s->key[i] & GS_L1_PROTECTED) != 0) << i;
    }
    return found;
}

static inline void gs_l1_shift(gs_l1set *s, u32 first, u32 end)
{
    for (u32 i = 0; i < GS_L1_WAYS; i++) {
        u32 rank = s->key[i] & GS_L1_RANKS;
        s->key[i] += rank >= first && rank < end ? GS_L1_RANK : 0;
        s->key[i] &= s->key[i] & 2 * GS_L1_RANK ? ~(u32)GS_L1_PROTECTED : ~0u;
    }
}
#endif

/* The line of way i hits: it is protected, and evicted last. */
static inline void gs_l1_protect(gs_l1set *s, u32 i)
{
    gs_l1_shift(s, 0, s->key[i] & GS_L1_RANKS);
    s->key[i] = (s->key[i] & ~(u32)GS_L1_RANKS) | GS_L1_PROTECTED;
}

/* A line is inserted in way i, whose rank is not below those of protected lines: it is evicted before these
   and after all others. */
static inline void gs_l1_insert(gs_l1set *s, u32 i, u32 key)
{
    u32 rank = gs_popcount(gs_l1_protected(s) & ~(1u << i)) * GS_L1_RANK;
    gs_l1_shift(s, rank, s->key[i] & GS_L1_RANKS);
    s->key[i] = key | rank;
}

/* The order in which groups of sets evict: turn, turn * GS_L1_STEP + GS_L1_ADD, ... */
enum { GS_L1_STEP = 109, GS_L1_ADD = 73 };

/* The four neighbouring sets of a turn. */
static inline gs_l1set *gs_l1_evict_group(gs_sm *sm, u32 turn)
{
    return &sm->l1[1 + (turn & (GS_L1_SETS / 4 - 1)) * 4];
}

/* Four neighbouring sets evict a line each, if one has arrived. Each group of sets has its turn before any
   has it again. Returns whether a line was evicted; if almost none has arrived, the new line is not kept. */
static inline int gs_l1_evict_some(gs_sm *sm, u32 c)
{
    u32 freed = 0;
    for (u32 tries = GS_L1_TRIES; tries && !freed; tries--) {
        gs_l1set *s = gs_l1_evict_group(sm, sm->l1_evict_turn);
        sm->l1_evict_turn = sm->l1_evict_turn * GS_L1_STEP + GS_L1_ADD;
        freed = gs_l1_evict(s, c) + gs_l1_evict(s + 1, c) + gs_l1_evict(s + 2, c) + gs_l1_evict(s + 3, c);
    }
    sm->l1_lines -= freed;
    /* The sets of later turns are known, and seldom in the host's caches: they are fetched four turns
       ahead. */
    enum { STEP2 = GS_L1_STEP * GS_L1_STEP, ADD2 = GS_L1_ADD * (GS_L1_STEP + 1) };
    const gs_l1set *ahead = gs_l1_evict_group(sm, (sm->l1_evict_turn * STEP2 + ADD2) * STEP2 + ADD2);
    __builtin_prefetch(ahead, 1);
    __builtin_prefetch(ahead + 2, 1);
    return freed != 0;
}

/* Allocates a way of a set; GS_L1_WAYS: none can be allocated. */
static inline u32 gs_l1_allocate(gs_sm *sm, gs_l1set *s, u32 c)
{
    u32 free = gs_l1_free(s, c);
    if (!free) {
        u32 i = gs_ctz(gs_l1_evicted_next(s));
        return s->fill[i] <= c ? i : GS_L1_WAYS;
    }
    if (GS_UNLIKELY(sm->l1_lines >= sm->l1_room) && !gs_l1_evict_some(sm, c)) {
        return GS_L1_WAYS;
    }
    sm->l1_lines++;
    return gs_ctz(free);
}

/* Looks up a line at cycle c. GS_L1_MISS: *place is where L1 will keep the line, or 0 for nowhere. GS_L1_HIT
   and GS_L1_MERGED (in flight) set *place, and *fill to the cycle of the fill (GS_IN_FLIGHT or more: not
   known). GS_L1_PART: some sectors are in flight, and L1 lacks others, which this load has to request and
   wait for itself. Later loads see them with the fill of the former, at most the latency of L2 too early: a
   line has one fill time. *mask becomes the sectors to request. `fold`: gs_l1_fold of the line; `mark`:
   GS_L1_MARKED or 0. */
static GS_ALWAYS_INLINE int gs_l1_lookup(gs_sm *sm, u32 line, u32 fold, u32 mark, u32 *mask, u32 c,
                                         u32 *place, u32 *fill)
{
    u32 at = gs_l1_set_of(line, fold);
    gs_l1set *s = &sm->l1[at];
    u32 key = (line / GS_L1_SETS) * GS_L1_TAG | GS_L1_VALID, match = gs_l1_match(s, key);
    if (match) {
        u32 i = gs_ctz(match);
        int here = s->fill[i] <= c;
        *fill = s->fill[i];
        *place = at * GS_L1_WAYS + i;
        gs_l1_protect(s, i);
        s->key[i] |= mark;
        u32 lacks = *mask & ~s->key[i];
        if (lacks == 0) {
            return here ? GS_L1_HIT : GS_L1_MERGED;
        }
        s->key[i] |= lacks;
        s->fill[i] = here ? GS_IN_FLIGHT : s->fill[i];
        *mask = lacks;
        return here ? GS_L1_MISS : GS_L1_PART;
    }
    u32 i = gs_l1_allocate(sm, s, c);
    *place = 0;
    if (GS_LIKELY(i < GS_L1_WAYS)) {
        gs_l1_insert(s, i, key | mark | *mask);
        s->fill[i] = GS_IN_FLIGHT;
        *place = at * GS_L1_WAYS + i;
    }
    return GS_L1_MISS;
}

/* A store writes through, and its line is allocated as a load's is: with the sectors that it writes or, if it
   writes any in part, with no more than those that were valid. Returns its place, or 0. */
static inline u32 gs_l1_store(gs_sm *sm, u32 line, u32 fold, u32 mark, u32 whole, u32 c)
{
    u32 at = gs_l1_set_of(line, fold);
    gs_l1set *s = &sm->l1[at];
    u32 key = (line / GS_L1_SETS) * GS_L1_TAG | GS_L1_VALID, match = gs_l1_match(s, key);
    u32 i = match ? gs_ctz(match) : gs_l1_allocate(sm, s, c);
    if (i == GS_L1_WAYS) {
        return 0;
    }
    if (match) {
        gs_l1_protect(s, i);
    } else {
        gs_l1_insert(s, i, key);
        s->fill[i] = c;
    }
    if (s->fill[i] > c) {
        return 0; /* the fill that is in flight will include what is stored */
    }
    s->key[i] |= mark | whole;
    return at * GS_L1_WAYS + i;
}

/* 1: the warp's slot waits for the fill of that line, whose time is not known. */
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

/* The line is valid from cycle c on. Returns the first slot that waits for it, 0 for none. */
static inline u32 gs_l1_fill(gs_sm *sm, u32 place, u32 c)
{
    u32 *fill = &sm->l1[place / GS_L1_WAYS].fill[place % GS_L1_WAYS], before = *fill;
    *fill = c;
    return before >= GS_IN_FLIGHT ? before - GS_IN_FLIGHT : 0;
}

/* A carve-out leaves L1 so many bytes. All lines must be invalid. */
static inline void gs_l1_resize(gs_sm *sm, u64 bytes)
{
    sm->l1_room = (u32)(bytes / 128);
}

/* An L1 without lines. */
static inline void gs_l1_init(gs_sm *sm)
{
    sm->l1_evict_turn = GS_L1_ADD;
    for (u32 i = 0; i < (GS_L1_SETS + 1) * GS_L1_WAYS; i++) {
        sm->l1[i / GS_L1_WAYS].key[i % GS_L1_WAYS] = i % GS_L1_WAYS * GS_L1_RANK;
    }
}

/* Lines in flight stay allocated until they arrive, but nothing hits them. */
static inline void gs_l1_invalidate(gs_sm *sm)
{
    if (!sm->l1_lines) {
        return;
    }
    for (u32 i = 1; i <= GS_L1_SETS; i++) {
        for (u32 way = 0; way < GS_L1_WAYS; way++) {
            sm->l1[i].key[way] &= GS_L1_RANKS;
        }
    }
    sm->l1_lines = 0;
}

/* Marked lines become invalid, like all lines in gs_l1_invalidate. In their sets the valid lines move before
   them in the order of eviction, so that new lines take the place of the invalid ones. */
static inline void gs_l1_invalidate_marked(gs_sm *sm)
{
    if (!sm->l1_lines) {
        return;
    }
    for (u32 i = 1; i <= GS_L1_SETS; i++) {
        u32 *key = sm->l1[i].key, marked = 0;
        for (u32 way = 0; way < GS_L1_WAYS; way++) {
            marked |= (key[way] / GS_L1_MARKED) << way;
        }
        if (!marked) {
            continue;
        }
        u32 by_rank[GS_L1_WAYS], next = 0;
        for (u32 way = 0; way < GS_L1_WAYS; way++) {
            by_rank[(key[way] & GS_L1_RANKS) / GS_L1_RANK] = way;
        }
        for (u32 last = 0; last < 2; last++) {
            for (u32 rank = 0; rank < GS_L1_WAYS; rank++) {
                u32 way = by_rank[rank];
                if ((marked >> way & 1) == last) {
                    key[way] = (last ? 0 : key[way] & ~(u32)GS_L1_RANKS) | next++ * GS_L1_RANK;
                }
            }
        }
        sm->l1_lines -= gs_popcount(marked);
    }
}
