/* What a slice of L2 keeps, its DRAM channel included; see state.h. */
#pragma once
#include "base/sizes.h"
#include "base/types.h"
#include "gs_api.h"

typedef struct gs_set {
    u16 tag[GS_WAYS]; /* 0: empty */
    u8 mask[GS_WAYS]; /* valid sectors | dirty sectors << 4 */
    u16 referenced, pending;
    u32 random;
    union {
        u64 order; /* lru: ways, most recent in the lowest nibble */
        struct {
            u16 twins;   /* two partitions: ways of which the other side has, or had, a copy */
            u16 partial; /* ways with sectors that were written in part: see partial_sectors.h */
        };
    };
    u32 fill[GS_WAYS]; /* fill time >> 9 */
} gs_set;

_Static_assert(sizeof(gs_set) == 128, "two cache lines a set");

/* lines of a slice with sectors that were written in part, the least lately written one first: see
 * partial_sectors.h */
typedef struct gs_partial_lines {
    u16 missing[GS_PARTIAL_LINES]; /* words, 4 bits a sector; 0: no entry */
    u16 line[GS_PARTIAL_LINES];    /* set << 4 | way */
} gs_partial_lines;

typedef struct gs_bank {
    u64 active, free;
    u64 refresh; /* when its next one begins */
    u32 row, pad;
} gs_bank;

/* a load of a GPC that is being served: other loads of the GPC join it, see l2_join.h */
typedef struct gs_l2_join {
    u64 key, reply;
    u64 until;       /* when the last load comes that joins it */
    u8 mask, served; /* served: loads that wait for the reply */
    u8 remote, pad;  /* remote: it was forwarded over the fabric, and the home knows when its reply comes */
    u32 sms;         /* SMs that the reply goes to, a bit each */
} gs_l2_join;

/* from a group of slices to a GPC, see gpc_link.h: ticks of it that each cluster is still to get at a time */
typedef struct gs_gpc_link {
    u64 at, left[GS_CLUSTERS];
} gs_gpc_link;

typedef struct gs_slice {
    u64 port_free;
    u64 entry_free, lookup_free; /* when the next load is let in, where some join, and looked up */
    u64 hash;
    gs_l2 count;
    u64 bus_word, bus_hint, bus_tail;
    u64 partition_link_free; /* of the first one of a group: theirs to the other partition, when free */
    u64 misses;              /* loads that went to DRAM */
    u64 drained;             /* when the last batch of writes is done */
    u64 atomic_free;         /* when it is free for the next request of a semaphore */
    u64 next_activate;       /* when the channel may open its next row */
    u32 writes, id, reads_since, pad;
    u64 bus[GS_BUS_WORDS];
    gs_bank bank[32];
    gs_l2_join join[GS_L2_JOINS];
} gs_slice;
