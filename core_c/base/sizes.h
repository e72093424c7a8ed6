/* How much of each thing there is, and the bits of what names it. */
#pragma once

enum {
    GS_WARPS = 64,
    GS_TBS = 32,
    GS_SLOTS = 5,
    GS_WAYS = 16, /* L2 ways */
    GS_L1_WAYS = 4,
    GS_PARTIAL_LINES = 2, /* lines written in part that L2 keeps in a place for them */
    GS_PARTIAL = 16,      /* beside the sectors of a line: some of their bytes are left out */
    GS_L1_SETS = 512,     /* of a 256 KiB L1 */
    GS_L1_LEAST = 2048,   /* bytes that a carve-out has to leave */
    GS_WHEEL = 256,       /* cycles that a wake-up can lie ahead before it is rounded down */
    GS_POLLS = 8,         /* semaphores that a TB polls at once */
    GS_CREDITS = 2048,    /* remembered releases of each pool of credits, see lsu.c: the most that one has */
    GS_FILLS =
        4096, /* lines that come and have not held shared memory's array yet: all that may be under way */
    GS_POOL_LOADS = 0, /* pools of credits: of loads to registers, copies into shared memory, stores */
    GS_POOL_COPIES,
    GS_POOL_STORES,
    GS_POOLS,
    GS_WAITERS = 8192, /* less than 65536 */
    GS_STORE_OWNER_BITS = 10,
    GS_STORE_OWNERS =
        1 << GS_STORE_OWNER_BITS, /* TBs of an SM that are resident, or have left with stores on their way */
    GS_GROUP = 4,                 /* SMs, or slices, that share a mailbox */
    GS_RING = 128,                /* quanta of mailboxes */
    GS_CHUNK = 31,                /* messages a chunk */
    GS_THREADS = 8,
    GS_SHARES = 2, /* what threads share: boxes of slices, boxes of SMs */
    GS_BUS_WORDS = 64,
    GS_CLUSTERS = 3,   /* of SMs in a GPC (CPC): its TPCs take turns */
    GS_L2_JOINS = 256, /* requests a slice remembers for those that join them; a power of two */
    GS_WOKEN = 0x80,   /* gs_warp.wait: the wait is over at `ready`, its length is counted then */
    GS_SAMPLES = 2048,
    GS_GPCS = 64,
    GS_DEFERRED_MSGS = GS_TBS * (GS_POLLS + 3) + 32, /* messages to an SM that wait for their time */
    GS_SERIES_ROWS = 1000000,                        /* of all time series of a run together */
    GS_SENDER_BITS = 12,
    GS_LATE_BITS = 8,
    GS_KEY_TIME = GS_SENDER_BITS + GS_LATE_BITS,
    GS_SENDER_SLICE = 1024,
    GS_SENDER_FORWARD = 2048,  /* a load that the slice opposite passes on for an SM */
    GS_SENDER_COMPLETE = 3072, /* an SM, of a TB that has left: behind what it says of those that leave */
    GS_SENDER_SCHED = 4095,
    GS_TABLE_WAITS = 1 << 16, /* of table_memory.c */
    GS_NO_SM = 0xffff
};
