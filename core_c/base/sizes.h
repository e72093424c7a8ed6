/* Sizes of tables, and how many bits an index of each takes in a message. */
#pragma once

enum {
    GS_WARPS = 64,
    GS_TBS = 32,
    GS_SLOTS = 5,
    GS_WAYS = 16, /* L2 ways */
    GS_L1_WAYS = 4,
    GS_PARTIAL_LINES = 2, /* partially written lines that a slice keeps for each of its sets */
    GS_PARTIAL = 16,      /* flag beside a sector mask: some of their bytes are not written */
    GS_L1_SETS = 512,     /* of an L1 of 256 KiB */
    GS_L1_LEAST = 2048,   /* bytes that a carve-out leaves to L1 */
    GS_WHEEL = 256,       /* cycles that a wake-up may be ahead; a later one is looked at again then */
    GS_POLLS = 8,         /* semaphores that a TB polls at once */
    GS_NAMED_BARRIERS = 16,
    GS_TB_BARRIERS = GS_NAMED_BARRIERS + 32, /* named, and transaction barriers */
    GS_BARRIER_TIMES = 8,
    GS_RINGS = 40,      /* ring barriers of a TB */
    GS_RING_TIMES = 4,  /* phases of a ring barrier whose ends are remembered */
    GS_MULTIPLIES = 8,  /* groups of asynchronous multiplies of a warp whose ends are remembered */
    GS_CLUSTER_TBS = 8, /* TBs of a cluster (thread blocks that run on one GPC together) */
    GS_FLIGHT_BITS = 8,
    GS_FLIGHTS = 1 << GS_FLIGHT_BITS, /* bulk copies of an SM whose lines may be on their way */
    GS_BULK_LINES = 4096,             /* lines that bulk copies of an SM may have on their way */
    GS_SLOT_BULK = 7,                 /* in the place of a scoreboard slot: the line belongs to a bulk copy */
    GS_CREDITS =
        2048, /* releases that a pool of credits remembers, see credits.h: the most credits that it has */
    GS_FILLS = 4096,   /* fills that have not held the data array yet: as many as may be in flight */
    GS_POOL_LOADS = 0, /* pools of credits: loads to registers, copies into shared memory, stores */
    GS_POOL_COPIES,
    GS_POOL_STORES,
    GS_POOLS,
    GS_WAITERS = 8192, /* of L1 fills; below 65536 */
    GS_STORE_OWNER_BITS = 10,
    GS_STORE_OWNERS =
        1 << GS_STORE_OWNER_BITS, /* TBs of an SM that are resident, or have left with stores in flight */
    GS_GROUP = 4,                 /* SMs, or slices, that share a mailbox */
    GS_RING = 128,                /* quanta for which there are mailboxes */
    GS_CHUNK = 31,                /* messages in a chunk */
    GS_THREADS = 8,
    GS_SHARES = 2, /* threads share boxes of slices, and boxes of SMs */
    GS_BUS_WORDS = 64,
    GS_CLUSTERS = 3,   /* CPCs in a GPC; its TPCs are dealt to them in turn */
    GS_L2_JOINS = 256, /* requests of a slice that later ones may join; a power of two */
    GS_WOKEN = 0x80,   /* gs_warp.wait: the wait ends at `ready`; its length is counted then */
    GS_SAMPLES = 2048,
    GS_GPCS = 64,
    GS_DEFERRED_MSGS = GS_TBS * (GS_POLLS + 3) + 32, /* messages to an SM whose time has not come */
    GS_SERIES_ROWS = 1000000,                        /* of all time series of a run */
    GS_SENDER_BITS = 12,
    GS_LATE_BITS = 8,
    GS_TIME_BITS = 50, /* simulated time ends at 2^50 ticks, 1,099 s */
    GS_KEY_TIME = GS_SENDER_BITS + GS_LATE_BITS,
    GS_SENDER_SLICE = 1024,
    GS_SENDER_FORWARD = 2048, /* a load that the opposite slice forwards for an SM */
    GS_SENDER_COMPLETE =
        3072, /* the completion of a TB that has left its SM: after the message that it has left */
    GS_SENDER_SCHED = 4095,
    GS_TABLE_WAITS = 1 << 16, /* of table_memory.c */
    GS_NO_SM = 0xffff
};
