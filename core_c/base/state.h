/* All state of a simulation. It is one block (the arena) that begins with gs_sim. Tables in the block are
   reached by their offsets in bytes from gs_sim. */
#pragma once
#include "base/message.h"
#include "base/program_state.h"
#include "base/scheduler_state.h"
#include "base/slice_state.h"
#include "base/sm_state.h"

/* A semaphore: see memory/semaphore.h. */
typedef struct gs_semaphore {
    u32 count, need, head, pad; /* head: first subscriber + 1 */
} gs_semaphore;

typedef struct gs_subscriber {
    u64 time, pay; /* of its first poll */
    u32 next, semaphore, sm, pad;
} gs_subscriber;

/* Data of one host thread. */
typedef struct gs_thread {
    u64 at_boxes, at_kernels, at_samples, at_sort, at_count;
    u32 free_chunks, next_chunk, end_chunk, pad1;
    u8 any[GS_RING]; /* there are messages for that quantum */
    u64 events;
    /* Boxes of each thread's share that this one ran, since shares were last adapted. */
    u32 stolen[GS_SHARES][GS_THREADS];
    u64 pad[16]; /* whatever the alignment, no two threads share a host cache line */
} gs_thread;

_Static_assert(offsetof(gs_work, fp32) == 0 && offsetof(gs_work, smem) == sizeof(u64) * GS_PIPES,
               "pipe counters are an array");

typedef struct gs_kernel_count {
    gs_stalls stalls;
    u64 instructions, load_sectors, store_sectors;
} gs_kernel_count;

static inline void gs_stalls_add(gs_stalls *to, const gs_stalls *more)
{
    to->issued += more->issued;
    to->scoreboard += more->scoreboard;
    to->pipe += more->pipe;
    to->memory += more->memory;
    to->barrier += more->barrier;
    to->sync += more->sync;
}

/* SM clock of a GPC, see clock.h: cycle n begins at n * period + origin (modulo 2^64). */
typedef struct gs_clock {
    u64 period, origin;
    u64 inverse; /* 2^44 / period, rounded up: see gs_lsu_replies */
    gs_div by_period;
    u64 began;                           /* first cycle of the epoch */
    u64 since, last_period, last_origin; /* when this period began, and what it was before */
    u64 left_behind;                     /* cycles that passed before cycle 0, see long_time.c */
} gs_clock;

/* The address map: see address_map.h. */
typedef struct gs_address_map {
    u32 slices, sets; /* slices: those that the hash knows */
    u32 wraps;        /* 0, or the slices that there are */
    u32 two_partitions;
    u32 half, gap;          /* slices of a partition; unused places after those of the first */
    u32 row_sets, rows;     /* sets of a slice that a DRAM row holds, at most all; such rows of a slice */
    u32 rotation, mix_mask; /* of the hash: how far each set rotates; an all-ones mask. Both 0: no hash */
    u64 slices_inverse;     /* 2^40 / slices, rounded up: exact for places in a block, which are below 2^20 */
    gs_div by_block;
    u64 block_lines;
    u32 chunked; /* 1: four lines of a chunk of 8 map to a slice; then: */
    u32 paired;  /* of a partition: the first slices, in units of two */
    gs_div by_half, by_sets;
    u32 half_inverse; /* 2^20 / half, rounded up: exact below half + 64 */
    u8 fold[4][256];  /* what each byte of a quad's number changes */
    u8 low[256];      /* the lowest byte, by what it changes */
    u8 place[256];    /* of a unit in its partition */
    u8 unit[256];     /* and back */
} gs_address_map;

/* Time series: see time_series.c. */
typedef struct gs_series {
    u64 interval;    /* ticks; 0: none */
    u64 limit, room; /* samples: those that are kept, and those that there is room for */
    u64 at_sms, at_slices, at_banks;
    u64 at_done; /* complete samples of each group of slices */
    u64 at_channels, at_dues, due_room;
} gs_series;

/* A DRAM operation that is booked for a later time. */
typedef struct gs_dram_booking {
    u64 time;
    u8 kind, bank; /* GS_DUE_* */
    u16 sectors;
    u32 slots;
} gs_dram_booking;

enum { GS_DUE_HIT, GS_DUE_MISS, GS_DUE_OPEN, GS_DUE_WRITE };

/* Counters of a DRAM channel, and its operations that are still booked. */
typedef struct gs_channel {
    gs_l2 count;
    gs_banks bank[32];
    u64 dues;
    u64 misses; /* rows opened so far */
} gs_channel;

struct gs_sim {
    gs_params params;
    gs_order order;
    u64 bytes;
    int error_code;
    char error[256];
    gs_rule rule; /* the caller's; all NULL: there is none */

    u32 sms, sm_boxes, slice_boxes, boxes; /* the last box is the scheduler's */
    u32 slices, slice_places; /* slices, and places of slices, a few of which are unused: see address_map.h */
    u32 n_launches;
    u32 tb_bits; /* of a TB's number in its kernel, see gs_pay_start */
    u32 sort_room, far_room, tb_room;

    /* Constants of the device in ticks, cycles or 64ths of a cycle. */
    u64 period;        /* of the SM clock without load */
    u64 sm_period;     /* of all GPCs: longer than `period` where power is limited */
    u64 tensor_period; /* of a GPC whose tensor cores are busy; 0: the same */
    u64 last_shift;    /* when the origins of cycles moved on, see long_time.c */
    u64 epoch;         /* when the SMs' next epoch begins; GS_NEVER: clocks do not change */
    gs_clock clock[GS_GPCS];
    gs_div by_period, by_slot;
    u64 quantum, q0, qn, quanta, far_limit;
    u64 lead;            /* the SMs' quantum begins so much later than that of slices and scheduler */
    u64 copy_latency;    /* of host copies, from the scheduler to slices: a quantum at least */
    u64 quantum_inverse; /* see gs_box_of */
    gs_div by_quantum;
    u64 noc, l2_latency, tag_latency, fill_latency, dram_slot, done_latency, start_latency;
    u32 oldest_first;         /* gpu.sm.warp_order: 0, GS_OLDEST_FIRST or GS_GREEDY_THEN_OLDEST */
    u32 read_copy, read_load; /* cycles in which a sub-core reads the registers of one */
    u32 l1_latency, port_sms, keep_stores;
    u32 credits[GS_POOLS];     /* lines of each pool that an SM may have in flight; 0: they count as loads */
    u32 pool[GS_POOLS];        /* the pool that they count for */
    u32 credit_mask[GS_POOLS]; /* of the numbers of releases that are remembered */
    u32 in_flight;             /* of all pools */
    u16 l1_hash[3][256];       /* what each byte of a line number above bit 8 adds to its set in L1 */
    u16 reply_hold[2][16]; /* 64ths of a cycle that a reply with these sectors holds a port: loads, others */
    /* Cycles that a request with these sectors holds its SM's port, by SMs that share the port now: stores,
       loads. */
    u16 port_hold[5][2][2 * GS_PARTIAL];
    u32 slice_sector[3]; /* ticks that a sector of a load, a store, a reduction holds a slice's port */
    int clock_hand;      /* 1: L2 picks victims by a clock */
    u32 join_stores, join_loads, fill_pairs, hold_late;
    u16 copy_hold[5]; /* 64ths of a cycle that so many sectors of an async copy hold the data array */
    u32 lookup_hold;  /* ticks that a look-up of a load takes */
    u32 entry_hold;   /* ticks that a load holds a slice's entry, whether it joins another or not */
    u32 gpcs;
    u32 gpc_sector;        /* ticks that a sector holds a link to a GPC; 0: no limit */
    u32 keep_partial;      /* 1: L2 reads the rest of sectors that are written in part */
    u16 partial_steps[16]; /* numbers coprime to `sets` */
    /* Two partitions: boxes of slices of the first, 0: there is one partition; ticks that a sector of a
       store, of a load holds a link, and a store beyond its sectors. */
    u32 partition_boxes, link_sector[2], link_store;
    u64 fabric, fabric_back; /* latency: one way; back, for what a load fetches */
    u64 fabric_mean;         /* mean over all lines, there and back, less what an L2 hit pays of it */
    u64 twin_latency;
    u64 far_latency;                          /* what a hit in a twin takes more than one at home */
    u32 flush_trip;                           /* cycles to the farthest slice and back; 0: no flush is sent */
    u32 sets, row_shift, turnaround_slots[2]; /* of a batch of writes after writes, after reads */
    u64 write_ahead;                          /* ticks that a channel may be behind with writes */
    u64 bus_refresh, bus_refresh_length; /* ticks between refreshes that take a channel's bus, and of each */
    u32 bank_mask;                       /* bits of a row's number that name a bank */
    u32 bank_fold;                       /* bits that higher ones are folded into */
    u64 l1_total;
    gs_address_map map;

    u64 sample_cycles;
    gs_series series;
    u32 threads; /* of the last gs_run */
    /* Boxes share[kind][t] to before share[kind][t + 1] are thread t's, unless another thread steals them. */
    u32 share[GS_SHARES][GS_THREADS + 1];
    u64 shares_checked;     /* quanta when shares were last adapted */
    u8 gpc_of[1024];        /* of each SM */
    u8 partition_of[1024];  /* the partition that its GPC is attached to */
    u8 join_group_of[1024]; /* SMs with equal numbers (one GPC, one partition) merge their loads */
    u8 cluster_of[1024];    /* of an SM in its GPC */
    u16 distance[1024];     /* of each SM, 64ths of a cycle that its replies take longer than the shortest */
    u64 mean_distance;      /* ticks */

    /* Offsets of tables and state. */
    u64 at_ops, at_patterns, at_programs, at_launches, at_templates, at_parts;
    u64 at_bytes; /* of each part; 0: no oracle asks for them */
    u64 at_preds, at_succ_ptr, at_succs, at_outs, at_tb_out_ptr, at_tb_outs, at_nodes, at_ranges,
        at_node_states;
    u64 at_forms, at_links;
    u64 at_kernels, at_tb_resources, at_rank, at_ready_words, at_ready_summary, at_sm_loads, at_turns,
        at_residents, at_departed, at_tb_records;
    u64 at_sms, at_slices, at_sets, at_partial_lines, at_chunks, at_far, at_gpc_links;
    u32 far_n, far_lock; /* messages beyond the ring; 1: a thread adds one */
    u64 at_entries, at_tb_rows, at_blocks, at_copies, copies; /* copies: host copies, 0: the job has none */
    u64 at_sequence, n_sequence;
    u64 at_queues, at_queue_next, at_queue_slots;
    u64 at_sems, at_stages, at_boxes, at_semaphores, at_subscribers;
    u64 at_mates;               /* of each TB slot of each SM; only if has_clusters */
    u32 has_clusters, has_bulk; /* 1: a launch of the job has clusters; tiles for bulk copies */
    u32 n_sems, n_semaphores;
    u64 atomic_hold, depend_latency;
    u64 sync_extra[2][2]; /* what atomics take longer than loads: near, far; to L2, back */
    u64 poll_period[2];   /* ticks between two polls of a waiting TB, near and far */
    u64 acquire, posted;  /* cycles */
    /* Tables of the caller, who keeps them until gs_free. */
    const u64 *accesses;
    const gs_template *recorded_templates;
    const gs_part *recorded_parts;
    gs_sched sched;
    gs_bloom bloom;
    gs_thread thread[GS_THREADS];
    void *block;              /* the allocation that holds this struct; gs_free frees it */
    struct gs_oracle *oracle; /* owned; NULL: off */
};

#define GS_TABLE(sim, type, field)       ((type *)(void *)((char *)(sim) + (sim)->field))
#define GS_CONST_TABLE(sim, type, field) ((const type *)(const void *)((const char *)(sim) + (sim)->field))

static inline gs_sm *gs_sms(gs_sim *sim)
{
    return GS_TABLE(sim, gs_sm, at_sms);
}

/* The place of the n-th slice. */
static inline u32 gs_slice_place(const gs_sim *sim, u32 n)
{
    return n >= sim->map.half ? n + sim->map.gap : n;
}

static inline gs_slice *gs_slices(gs_sim *sim)
{
    return GS_TABLE(sim, gs_slice, at_slices);
}

/* Where the clusters of the TBs on an SM are, by slot. */
static inline gs_mates *gs_mates_of(gs_sim *sim, u32 sm)
{
    return GS_TABLE(sim, gs_mates, at_mates) + (size_t)sm * GS_TBS;
}

static inline u32 gs_cluster_tbs(const gs_launch *l)
{
    return l->cluster[0] * l->cluster[1];
}

/* The TBs that are resident on an SM, by slot. */
static inline gs_resident *gs_residents_of(gs_sim *sim, u32 sm)
{
    return GS_TABLE(sim, gs_resident, at_residents) + (size_t)sm * GS_TBS;
}

static inline gs_kernel *gs_kernels(gs_sim *sim)
{
    return GS_TABLE(sim, gs_kernel, at_kernels);
}

static inline const gs_launch *gs_launches(const gs_sim *sim)
{
    return GS_CONST_TABLE(sim, gs_launch, at_launches);
}

static inline const gs_program *gs_programs(const gs_sim *sim)
{
    return GS_CONST_TABLE(sim, gs_program, at_programs);
}

static inline const gs_iop *gs_iops(const gs_sim *sim)
{
    return GS_CONST_TABLE(sim, gs_iop, at_ops);
}
