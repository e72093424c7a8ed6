/* State of the oracle: the sectors that TBs of each admitted kernel touch, the required order of the
   accesses of each sector, and the log since the last check. */
#pragma once
#include "base/grow.h"
#include "base/mailbox.h"
#include "oracle/intra_kernel.h"

typedef struct gs_oracle_touch {
    u64 sector;
    u32 required[2]; /* of its loads, of what it writes */
    u32 left;        /* accesses to come */
    u16 phase;
    u8 write, read, published, pad[3];
    u32 place; /* 1 + its place in the kernel's gs_intra_kernel; 0: no other TB of the kernel meets it */
} gs_oracle_touch;

typedef struct gs_oracle_sector {
    u64 key; /* sector + 1 */
    /* When the last store of unit `writer` arrived at L2, and of the units before it. */
    u64 written, written_before;
    u32 writer, total, epoch, done;
    u32 unit, base_total;                 /* of the kernel or stage being taken in */
    u8 read_epoch, base_read, kinds, pad; /* kinds: 1: the unit writes it, 2: and reads */
    u32 base_epoch, pad2;
} gs_oracle_sector;

typedef struct gs_oracle_access {
    u64 time, seen; /* seen: L1 served memory as of this time; GS_NEVER: as of `time` */
    u64 line;
    u32 kernel, tb, mask;
    u16 phase;
    u8 kind; /* GS_MSG_LOAD, GS_MSG_STORE or GS_MSG_REDUCE */
    u8 what; /* GS_ORACLE_*: an access; or the TB posts or polls semaphores, `mask` of them from `line` on; or
                it ends */
} gs_oracle_access;

enum { GS_ORACLE_POSTS, GS_ORACLE_POLLS, GS_ORACLE_ACCESS, GS_ORACLE_ENDS };

typedef struct gs_oracle_log {
    gs_oracle_access *at;
    u64 n, room;
} gs_oracle_log;

typedef struct gs_oracle_kernel {
    gs_oracle_touch *touches;
    u64 *first; /* of each TB, and one more */
    u8 *ended;
    gs_intra_kernel *inside; /* NULL: its TBs do not meet */
    u32 left;
    u32 first_unit; /* of its first phase */
} gs_oracle_kernel;

typedef struct gs_oracle {
    gs_oracle_log logs[GS_THREADS + 1]; /* the last: ends of TBs */
    gs_oracle_log pending;
    gs_oracle_sector *shadows;
    u64 shadows_n, shadows_room;
    gs_oracle_kernel *kernels;
    u32 next_kernel, next_unit;
    u64 *l1_time; /* of each L1 sector: when it was read from L2, or stored there by its SM */
    int failed;
} gs_oracle;

static inline gs_oracle *gs_oracle_of(const gs_sim *sim)
{
    return sim->oracle;
}

static inline int gs_oracle_push(gs_oracle_log *l, gs_oracle_access a)
{
    if (!gs_grow((void **)&l->at, &l->room, l->n + 1, sizeof a)) {
        return 0;
    }
    l->at[l->n++] = a;
    return 1;
}

/* The entry of a sector, or where it will be. */
static inline gs_oracle_sector *gs_oracle_find(gs_oracle *o, u64 sector)
{
    u64 mask = o->shadows_room - 1;
    u64 i = gs_mix(0, sector + 1) >> 20 & mask;
    while (o->shadows[i].key && o->shadows[i].key != sector + 1) {
        i = (i + 1) & mask;
    }
    return &o->shadows[i];
}
