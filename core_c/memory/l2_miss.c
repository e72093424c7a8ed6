/* Misses in L2: see l2_miss.h. */
#include "memory/l2_miss.h"

#include "memory/l2_set.h"

/* The DRAM row of a set's line. */
static inline u32 row_of(const gs_sim *sim, u32 tag, u32 at, u32 unit)
{
    return (tag * sim->sets + at - unit * sim->sets) >> sim->row_shift;
}

/* What an update leaves modified, as in gs_set.mask. */
static inline u32 gs_l2_dirtied(u64 pay)
{
    return GS_PAY_KIND(pay) == GS_MSG_REDUCE ? GS_PAY_MASK(pay) << 4 : 0;
}

u64 gs_l2_miss(gs_sim *sim, gs_slice *s, gs_set *set, u64 pay, u32 tag, u64 start)
{
    const int lru = gs_l2_is_lru(sim);
    u32 way = gs_l2_victim(lru, sim->clock_hand, set), mask = GS_PAY_MASK(pay);
    u64 room = gs_l2_evict(sim, s, set, way, start);
    set->tag[way] = (u16)tag;
    set->pending &= (u16) ~(1u << way);
    gs_l2_insert(lru, (u32)sim->params.gpu_l2.referenced, set, way);
    if (GS_PAY_KIND(pay) == GS_MSG_STORE) {
        set->mask[way] = (u8)(mask | mask << 4);
        return gs_max(start + sim->l2_latency, room);
    }
    s->misses++;
    u32 row = row_of(sim, tag, GS_PAY_ROW(pay), GS_PAY_SLICE(pay)), fill = gs_l2_fill_mask(sim, mask);
    u64 filled = gs_dram_read(sim, s, start + sim->tag_latency, row, gs_popcount(fill));
    set->mask[way] = (u8)(fill | gs_l2_dirtied(pay));
    gs_l2_set_fill_time(set, way, filled);
    return gs_max(filled + sim->fill_latency, room);
}

u64 gs_l2_sector_miss(gs_sim *sim, gs_slice *s, gs_set *set, u64 pay, u32 tag, u64 start, u32 way)
{
    u32 fill = gs_l2_fill_mask(sim, GS_PAY_MASK(pay)), have = set->mask[way];
    s->misses++;
    u32 row = row_of(sim, tag, GS_PAY_ROW(pay), GS_PAY_SLICE(pay));
    u64 filled = gs_dram_read(sim, s, start + sim->tag_latency, row, gs_popcount(fill & ~have));
    if (set->pending >> way & 1) {
        filled = gs_max(filled, gs_l2_fill_time(set, way, start));
    }
    set->mask[way] = (u8)(have | fill | gs_l2_dirtied(pay));
    gs_l2_set_fill_time(set, way, filled);
    return filled + sim->fill_latency;
}
