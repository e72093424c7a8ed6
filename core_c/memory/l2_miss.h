/* Misses in L2. gs_l2_miss and gs_l2_sector_miss are not inlined: hits, of which there are more, keep their
   variables in registers. */
#pragma once
#include "base/mailbox.h"
#include "memory/dram.h"
#include "memory/partial_sectors.h"

/* Evicts the way's line, if there is one; returns from when on the DRAM channel has room for what is written
   back. */
static inline u64 gs_l2_evict(gs_sim *sim, gs_slice *s, gs_set *set, u32 way, u64 start)
{
    u32 dirty = (u32)set->mask[way] >> 4;
    if (!dirty) {
        return 0;
    }
    if (GS_UNLIKELY(sim->keep_partial && set->partial >> way & 1)) {
        gs_partial_evict(sim, s, set, way, start + sim->tag_latency);
    }
    gs_dram_write(sim, s, start + sim->tag_latency, gs_popcount(dirty));
    return s->drained > sim->write_ahead ? s->drained - sim->write_ahead : 0;
}

/* Allocates a way for a line that L2 does not have; returns when the reply leaves. */
u64 gs_l2_miss(gs_sim *sim, gs_slice *s, gs_set *set, u64 pay, u32 tag, u64 start);
/* The same for a load of sectors that L2 does not have of a line in `way`. */
u64 gs_l2_sector_miss(gs_sim *sim, gs_slice *s, gs_set *set, u64 pay, u32 tag, u64 start, u32 way);
