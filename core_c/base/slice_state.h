/* State of an L2 slice and of its DRAM channel. Times are in ticks (1/1024 ns). */
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
        u64 order; /* lru: ways, the most recent in the lowest nibble */
        struct {
            u16 twins;   /* two partitions: ways whose line has, or had, a twin opposite */
            u16 partial; /* ways with partially written sectors: see partial_sectors.h */
        };
    };
    u32 fill[GS_WAYS]; /* fill time >> 9 */
} gs_set;

_Static_assert(sizeof(gs_set) == 128, "two cache lines a set");

/* Lines of a slice with partially written sectors, least recently written first: see partial_sectors.h. */
typedef struct gs_partial_lines {
    u16 missing[GS_PARTIAL_LINES]; /* words, 4 bits a sector; 0: no entry */
    u16 line[GS_PARTIAL_LINES];    /* set << 4 | way */
} gs_partial_lines;

typedef struct gs_bank {
    u64 active, free;
    u64 refresh; /* when the next one begins */
    u32 row, pad;
} gs_bank;

/* A load that a slice is serving, which other loads of its GPC may join: see l2_join.h. */
typedef struct gs_l2_join {
    u64 key, reply;
    u64 until;       /* loads that arrive before this time join it */
    u8 mask, served; /* served: loads that wait for the reply */
    u8 remote, pad;  /* remote: it was forwarded to the home, which knows when the reply comes */
    u32 sms;         /* SMs that the reply goes to, a bit each */
} gs_l2_join;

/* The link from a group of slices to a GPC, see gpc_link.h. left: ticks of transfer queued for each
   cluster. */
typedef struct gs_gpc_link {
    u64 at, left[GS_CLUSTERS];
} gs_gpc_link;

typedef struct gs_slice {
    u64 port_free;
    u64 entry_free, lookup_free; /* for the next load: the entry, where loads join, and the look-up */
    u64 hash;
    gs_l2 count;
    u64 bus_word, bus_hint, bus_tail;
    u64 partition_link_free; /* in a group's first slice: when the group's link to the other partition is free
                              */
    u64 misses;              /* loads that went to DRAM */
    u64 forwarded;           /* loads that miss here and go on to the other partition */
    u64 drained;             /* when the last batch of writes is done */
    u64 atomic_free;         /* when the next request for a semaphore may start */
    u64 next_activate;       /* when the channel may open its next row */
    u32 writes, id, reads_since, pad;
    u64 bus[GS_BUS_WORDS];
    gs_bank bank[32];
    gs_l2_join join[GS_L2_JOINS];
} gs_slice;
