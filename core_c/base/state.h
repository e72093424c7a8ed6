/* All state of a simulation. It lies in one block (the arena) that begins with gs_sim; parts of it are
   reached by offset, never by stored pointer, so a copy of the block is a copy of the simulation. */
#pragma once
#include "base/slice_state.h"
#include "base/sm_state.h"

/* ---- messages: 16 bytes; key = time << 20 | sender << 8 | late ----
   `late` is more the later a message was sent, counted in quanta; 0: before it was known to which box it
   goes. So a sender's order is kept whichever host threads run it in different quanta; within one its
   thread's box keeps it. */
typedef struct gs_msg {
    u64 key, pay;
} gs_msg;

_Static_assert(GS_RING < 1 << GS_LATE_BITS, "late counts quanta of mailboxes");

static inline u64 gs_key_time(u64 key)
{
    return key >> GS_KEY_TIME;
}

static inline u32 gs_key_sender(u64 key)
{
    return (u32)(key >> GS_LATE_BITS) & ((1u << GS_SENDER_BITS) - 1);
}

typedef struct gs_chunk {
    u32 next, n; /* n: not of a box's last chunk */
    u64 pad;
    gs_msg m[GS_CHUNK];
} gs_chunk;

_Static_assert(sizeof(gs_chunk) == sizeof(gs_msg) * (GS_CHUNK + 1), "a chunk's head takes a message's place");

/* `at`: where the next message goes, counted in messages from the first chunk on; a multiple of
   GS_CHUNK + 1: the last chunk is full, or there is none. The last chunk's count follows from it, so a sender
   only writes to the chunk and need not wait for it. */
typedef struct gs_box {
    u32 head, at;
} gs_box;

typedef struct gs_far_msg {
    gs_msg m;
    u32 box, pad;
} gs_far_msg;

/* ---- semaphores, see warp_sync.h ---- */
typedef struct gs_semaphore {
    u32 count, need, head, pad; /* head: first subscriber + 1 */
} gs_semaphore;

typedef struct gs_subscriber {
    u64 time, pay; /* of its first poll */
    u32 next, semaphore, sm, pad;
} gs_subscriber;

/* ---- scheduler ---- */
typedef struct gs_kernel {
    u32 unmet; /* kernel-wide conditions still open */
    u32 tbs, next_tb, dispatched, done;
    u32 ready; /* ready TBs of a kernel whose TBs have conditions of their own */
    u8 admitted, coarse, per_tb, ended;
    u8 in_memory,
        spilled;        /* 1: its nodes lie in memory, 2: and are on their way; 1: its one entry does, too */
    u32 form_requested; /* the form of its nodes that is on its way; one more than there are: the one entry */
    u32 form, unit; /* the form of its nodes that the table holds, 0: their own; TBs that share a counter */
    u32 passed_over;
    u32 cause_kernel, cause_tb;
    u32 triggered;                  /* TBs that have triggered or ended */
    u32 unended_producers;          /* kernels before an early one that have not ended */
    u32 unended_whole;              /* table: whole kernels still waited for; of those in `gate` */
    u64 conditions_met_at;          /* queues: when all that it waits for had ended, the gap included */
    u64 submitted;                  /* queues: when the host has put it there */
    u32 shape;                      /* resource class */
    u32 in_prologue, next_prologue; /* TBs that wait inside; no TB below may still be dispatched to do so */
    u32 units_left;                 /* units that have not ended, see bloom.h */
    u64 tb_conditions_at;           /* offset of its gs_tb_conditions arrays in the arena */
    gs_kernel_record record;
} gs_kernel;

/* of each TB of a kernel with conditions of its own */
typedef struct gs_tb_conditions {
    u64 ready;
    u32 cause_kernel, cause_tb;
    u32 unmet;        /* conditions still open */
    u8 entry, loaded; /* 1: holds a table entry; is in the buffer of TBs */
    u16 producer_sm;  /* where its last producer ran, or GS_NO_SM */
    u32 in_prologue;  /* see prologue.c */
} gs_tb_conditions;

typedef struct gs_node_state {
    u32 left;
    u32 done;
    u32 cause_kernel, cause_tb;
    u32 consumers, producer_sm; /* TBs or units; where the last producer ran */
    u32 form,
        whole_kernel; /* of its kernel that it belongs to, 0: none; 1: it releases the kernel as a whole */
} gs_node_state;

typedef struct gs_event {
    u64 time;
    u32 what, a, b, pad;
} gs_event;

typedef struct gs_ring {
    u64 at; /* offset of events */
    u32 head, tail, mask, pad;
} gs_ring;

typedef struct gs_sm_load {
    u32 tb_free;      /* bit a TB slot */
    u8 warps[4];      /* free warp slots a sub-core */
    u16 registers[4]; /* free register units a sub-core */
    u32 smem, carveout;
    u32 tbs, warps_used;
    u64 busy, since;
    gs_idles idle, idle_at;
    u64 begun;    /* start of its last TB */
    u64 tpc_free; /* of a TPC's first SM: when another SM than tpc_sm may begin a first TB */
    u32 tpc_sm, pad;
} gs_sm_load;

/* resources that a TB of a program takes */
typedef struct gs_tb_resources {
    u32 warps, units, smem, carveout;
    u64 checked;     /* releases seen when it last fitted nowhere; GS_NEVER: it may fit */
    u64 found;       /* 1 + releases seen when an SM with room was last found */
    u32 room, place; /* of that SM: for how many TBs, and where in the turn */
    u32 least, pad;  /* what a busy SM's carve-out must be at least */
} gs_tb_resources;

typedef struct gs_resident {
    u64 ready, dispatch, start;
    u32 kernel, tb, last_kernel, last_tb, rotate, triggered;
    u32 in_prologue, pad; /* 1: it waits inside for its conditions */
    u32 lists, missing;   /* entries for its children, and those that it found no room for */
} gs_resident;

/* see bloom.h */
enum { GS_HASHES = 16 };

typedef struct gs_unit {
    u32 kernel, unit;
    u32 left;  /* TBs that have not ended */
    u32 unmet; /* units that it waits for */
    u32 last_tb, pad;
} gs_unit;

typedef struct gs_bloom {
    u32 slots, used, alive; /* alive: units that have not ended */
    u32 hand;               /* word at which to look for a free slot */
    u32 epoch, taken[2], live[2];
    u64 rate[2]; /* of reads and of writes: sum over units that are alive */
    gs_bloom_count count;
    u64 at_hints, at_sets, at_set_units, at_unit_ptr, at_unit_sets, at_rates;
    u64 at_slot_of, at_units;
    u64 at_read, at_written; /* a row a bit of a signature, a column a slot */
    u64 at_waits;            /* a row a slot: those that wait for it */
    u64 at_found, at_truly;  /* a row a slot: what it is found to need, and what it does need */
    u64 at_alive, at_held, at_scratch;
} gs_bloom;

/* see aql_queues.c */
typedef struct gs_aql_queue {
    u32 head;    /* the kernel whose packets are next, or GS_NONE */
    u32 tail;    /* the last kernel, while the queue is laid out */
    u32 slot;    /* of the hardware, or GS_NONE */
    u32 running; /* kernels whose packet is taken and that have not ended */
    u64 waiting; /* packets in the ring */
    u64 free;    /* when the next packet may be looked at */
} gs_aql_queue;

/* what a TB that has left its SM, but is not complete, leaves with the scheduler */
typedef struct gs_departed {
    u32 sm, lists, missing; /* as of its gs_resident */
} gs_departed;

/* A run of bytes that is to be read or updated, and what waits for answers; see table_memory.c. */
typedef struct gs_table_request {
    u64 first, end;
    u32 wait, update; /* wait: 0: nobody waits */
} gs_table_request;

typedef struct gs_table_wait {
    gs_event then; /* its time: how long behind the last answer */
    u32 left, next;
} gs_table_wait;

/* where a kernel's part of the tables lies in memory */
typedef struct gs_table_region {
    u64 first, lists;
    u32 list_entries, pad; /* of a TB, at most */
} gs_table_region;

typedef struct gs_table_memory {
    u64 port, base; /* when the next request may leave; where the tables begin */
    u64 footprints; /* and footprints, from there on */
    u64 way_out, way_back;
    u64 at_pieces, at_awaited, at_kernels;
    u32 head, tail;      /* pieces */
    u32 in_flight, room; /* requests without an answer, and how many there may be */
    u32 used, free;
} gs_table_memory;

typedef struct gs_sched {
    u64 release_free, start_free, table_free, admit_free;
    u64 cluster_free[GS_GPCS][GS_CLUSTERS]; /* when a cluster of SMs takes the next TB */
    u64 accounted;                          /* idle time is counted up to here */
    gs_idles idle;                          /* running sums of time by reason */
    u32 idle_sms, idle_reason;
    u32 next_admit, active, oldest_undispatched, finished, kernels_done, pad;
    u64 admit_at;
    u64 barrier_lifted_at; /* not before this a kernel is admitted: the gap behind a barrier of a table scheme
                            */
    u32 barrier_running, pad2; /* 1: a kernel that runs behind barriers has not ended */
    u64 releases;
    u64 refetched;      /* 1 + when a launch beside others last dropped code */
    u64 first_releases; /* releases when a kernel found the chip empty; that kernel + 1, the TBs that it had
                           left, and the next of them */
    u32 first_kernel, first_tbs, first_at;
    u32 round_robin, table_entries, table_peak, coarse, shared;
    u64 table_updates, table_wait;
    u64 end, hash, tbs_done;
    gs_ring release, ready, admit; /* admit: kernels behind barriers, and pieces of copies */
    gs_ring complete;              /* TBs whose stores are acknowledged after they left their place */
    gs_ring waiting_kernels;       /* early kernels that wait for others in flight; or for a launcher */
    u32 oldest_unfinished;         /* table: the oldest kernel that has not ended */
    u32 busy_launchers;            /* launchers in use */
    u32 lists, lists_peak;         /* entries in use */
    u32 submitted, host_blocked, rotation,
        quantum_ticking; /* queues: launches the host has put there; 1: it waited for
            room; the queue that is next in turn; 1: quanta are counted */
    u64 queue_room_at, host_free;
    u32 next_rank, newer_warps; /* rank that is next in turn; warps of kernels newer than `oldest` */
    u32 producer_sm, pad4;      /* where what is being counted has run, or GS_NO_SM */
    u32 loaded, pending;        /* TBs in the buffer; entries for those that are not */
    u64 next_load, spills;
    u32 list_missing,
        list_held; /* entries of the list of the TB that ends: in memory; in the buffer before them */
    gs_table_memory table_memory;
    u64 segments;              /* of the kernels in the window */
    u64 footprints_checked_at; /* when the footprints of the next kernel that have come are looked up */
    u32 footprint_waits,
        footprints_here;    /* answers that are waited for, of footprints; 1: it need not ask again */
    gs_ring prologue_over;  /* TBs that wait inside no more, see prologue.c */
    u32 running;            /* kernels (not copies) that have begun and not ended, behind barriers */
    u32 in_flight, has_pdl; /* kernels in flight, see pdl.c; 1: the job has early ones */
    u64 link_free;          /* when the copies that have begun have all come */
    u32 tb_head, tb_tail;   /* TB record buffer */
} gs_sched;

/* ---- a host thread's own ---- */
typedef struct gs_thread {
    u64 at_boxes, at_kernels, at_samples, at_sort, at_count;
    u32 free_chunks, next_chunk, end_chunk, pad1;
    u8 any[GS_RING]; /* messages wait for that quantum */
    u64 events;
    /* boxes of each thread's share that this one ran, since shares were last looked at */
    u32 stolen[GS_SHARES][GS_THREADS];
    u64 pad[16]; /* whatever the alignment, no host cache line is of two threads */
} gs_thread;

_Static_assert(offsetof(gs_work, fp32) == 0 && offsetof(gs_work, smem) == 8 * GS_PIPES,
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

/* SM clock of a GPC, see clock.h: cycle n begins at n * period + origin (modulo 2^64) */
typedef struct gs_clock {
    u64 period, origin;
    u64 inverse; /* 2^44 / period, rounded up: see gs_lsu_replies */
    gs_div by_period;
    u64 began;                           /* first cycle of the epoch */
    u64 since, last_period, last_origin; /* when this period came, and what was before */
} gs_clock;

/* the address map, see address_map.h */
typedef struct gs_address_map {
    u32 slices, sets;       /* slices: those that the hash knows */
    u32 wraps;              /* 0, or the slices that there are */
    u32 two_partitions;     /* 1: two partitions */
    u32 half, gap;          /* slices of a partition; places of no use behind those of the first */
    u32 row_sets, rows;     /* sets of a slice that a DRAM row holds, at most all; such rows of a slice */
    u32 rotation, mix_mask; /* of the hash: how far each set turns on; an all-ones mask. Both 0: no hash */
    u64 slices_inverse;     /* 2^40 / slices, rounded up: exact for places in a block, which are below 2^20 */
    gs_div by_block;
    u64 block_lines;
    u32 chunked; /* 1: four lines of a chunk of 8 take a slice; then: */
    u32 paired;  /* slices of a half, the first ones, in units of two */
    gs_div by_half, by_sets;
    u32 half_inverse; /* 2^20 / half, rounded up: exact below half + 64 */
    u8 fold[4][256];  /* what the bytes of a quad's number change */
    u8 low[256];      /* the lowest byte, by what it changes */
    u8 place[256];    /* of a unit, among its partition's */
    u8 unit[256];     /* and back */
} gs_address_map;

/* time series, see time_series.c */
typedef struct gs_series {
    u64 interval;    /* ticks; 0: none */
    u64 limit, room; /* samples: those that are kept, and those that there is room for */
    u64 at_sms, at_slices, at_banks;
    u64 at_done; /* samples that are complete, a group of slices */
    u64 at_channels, at_dues, due_room;
} gs_series;

/* what a DRAM channel will do at a time that is known ahead */
typedef struct gs_dram_booking {
    u64 time;
    u8 kind, bank; /* GS_DUE_* */
    u16 sectors;
    u32 slots;
} gs_dram_booking;

enum { GS_DUE_HIT, GS_DUE_MISS, GS_DUE_OPEN, GS_DUE_WRITE };

/* what it has done, and how much is still due */
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
    u32 slices,
        slice_places; /* slices, and places of slices, of which a few are of no use: see address_map.h */
    u32 n_launches;
    u32 sort_room, far_room, tb_room;

    /* device constants in ticks, cycles or 64ths */
    u64 period;        /* of the SM clock where nothing slows it down */
    u64 sm_period;     /* of all GPCs' clocks: longer than period where power is limited */
    u64 tensor_period; /* of a GPC whose tensor cores are busy; 0: as without them */
    u64 epoch;         /* when the SMs' next epoch begins; GS_NEVER: clocks do not change */
    gs_clock clock[GS_GPCS];
    gs_div by_period, by_slot;
    u64 quantum, q0, qn, quanta, far_limit;
    u64 lead;            /* the quantum of SMs begins this much later than that of slices and scheduler */
    u64 copy_latency;    /* from the scheduler to slices, a quantum at least */
    u64 quantum_inverse; /* see gs_box_of */
    gs_div by_quantum;
    u64 noc, l2_latency, tag_latency, fill_latency, dram_slot, done_latency, start_latency;
    u32 oldest_first;         /* gpu.sm.warp_order: 0 or GS_OLDEST_FIRST, GS_GREEDY_THEN_OLDEST */
    u32 read_copy, read_load; /* cycles in which a sub-core reads the registers of one */
    u32 l1_latency, port_sms, keep_stores;
    u32 credits[GS_POOLS];     /* lines that an SM may have under way of each pool; 0: they count as loads */
    u32 pool[GS_POOLS];        /* the one that they count for */
    u32 credit_mask[GS_POOLS]; /* of the numbers of releases that are remembered */
    u32 in_flight;             /* of all pools */
    u16 l1_hash[3][256];       /* what each byte of a line number above bit 8 adds to its set in L1 */
    u16 reply_hold[2][16]; /* 64ths of a cycle that a reply with these sectors holds a port: loads, others */
    /* cycles that a request with these sectors holds its SM's port, by SMs that share it now: stores, loads
     */
    u16 port_hold[5][2][2 * GS_PARTIAL];
    u32 slice_sector[3]; /* ticks a sector of a load, a store, a reduction holds a slice's port */
    int clock_hand;      /* victims are picked by a clock */
    u32 join_stores, join_loads, fill_pairs, hold_late;
    u16 copy_hold[5]; /* 64ths of a cycle that so many sectors of a copy hold the array */
    u32 lookup_hold;  /* ticks that the look-up of a load takes */
    u32 entry_hold;   /* ticks that a load holds the way in, whether it joins another or not */
    u32 gpcs;
    u32 gpc_sector;        /* ticks that a sector holds a link to a GPC; 0: no limit */
    u32 keep_partial;      /* L2 reads the rest of sectors that are written in part */
    u16 partial_steps[16]; /* numbers that have no divisor in common with `sets` */
    /* two partitions: boxes of slices of the first, 0: there is one partition; ticks that a sector of a
       store, of a load holds a link; ticks until a copy must have come */
    u32 partition_boxes, link_sector[2], link_store;
    u64 fabric, fabric_back; /* one way; the way back of what a load fetches */
    u64 fabric_mean;         /* over all lines, there and back, less what an L2 hit takes of it */
    u64 twin_latency;
    u64 far_latency;                          /* what a hit of a twin takes beyond one at home */
    u32 flush_trip;                           /* cycles: to the farthest slice and back; 0: none is sent */
    u32 sets, row_shift, turnaround_slots[2]; /* of a batch of writes after writes, after reads */
    u64 write_ahead;                          /* ticks that a channel may be behind with writes */
    u64 bus_refresh, bus_away;                /* ticks between refreshes that take a channel's bus, of each */
    u32 bank_mask;                            /* bits of a row's number that name a bank */
    u32 bank_fold;                            /* and that higher ones are folded into */
    u64 l1_total;
    gs_address_map map;

    u64 sample_cycles;
    gs_series series;
    u32 threads; /* of the last gs_run */
    /* boxes share[kind][t] to before share[kind][t + 1] of slices, of SMs are thread t's to run, unless
       another one has nothing left to do */
    u32 share[GS_SHARES][GS_THREADS + 1];
    u64 shares_checked;     /* quanta when that was last looked at */
    u8 gpc_of[1024];        /* of each SM */
    u8 partition_of[1024];  /* the half of L2 that its GPC lies at */
    u8 join_group_of[1024]; /* SMs of one number join each other's loads: those of a GPC, at one half */
    u8 cluster_of[1024];    /* of an SM in its GPC */
    u16 distance[1024];     /* of each SM, 64ths of a cycle that its replies take longer than the shortest */
    u64 mean_distance;      /* ticks */

    /* offsets of tables and state */
    u64 at_ops, at_patterns, at_programs, at_launches, at_templates, at_parts;
    u64 at_bytes; /* of each part; 0: no oracle asks for them */
    u64 at_preds, at_succ_ptr, at_succs, at_outs, at_tb_out_ptr, at_tb_outs, at_nodes, at_ranges,
        at_node_states;
    u64 at_forms, at_links;
    u64 at_kernels, at_tb_resources, at_rank, at_ready_words, at_ready_summary, at_sm_loads, at_turns,
        at_residents, at_departed, at_tb_records;
    u64 at_sms, at_slices, at_sets, at_partial_lines, at_chunks, at_far, at_gpc_links;
    u32 far_n, far_lock; /* messages beyond the ring; 1: a thread adds one */
    u64 at_entries, at_tb_rows, at_blocks, at_copies, copies; /* copies: 0: the job has none */
    u64 at_sequence, n_sequence;
    u64 at_queues, at_queue_next, at_queue_slots;
    u64 at_sems, at_stages, at_semaphores, at_subscribers;
    u32 n_sems, n_semaphores;
    u64 atomic_hold, depend_latency;
    u64 sync_extra[2][2]; /* what atomics take longer than loads: near, far; to L2, back */
    u64 poll_period[2];   /* between two polls of a TB that waits, near and far, ticks */
    u64 acquire, posted;  /* cycles */
    u64 accesses, recorded_templates, recorded_parts; /* addresses of the caller's tables */
    gs_sched sched;
    gs_bloom bloom;
    gs_thread thread[GS_THREADS];
    u64 block;  /* what free() takes */
    u64 oracle; /* address of the tables of oracle.c; 0: off */
};

#define GS_TABLE(sim, type, field)       ((type *)(void *)((char *)(sim) + (sim)->field))
#define GS_CONST_TABLE(sim, type, field) ((const type *)(const void *)((const char *)(sim) + (sim)->field))

static inline gs_sm *gs_sms(gs_sim *sim)
{
    return GS_TABLE(sim, gs_sm, at_sms);
}

/* the place of the n-th slice */
static inline u32 gs_slice_place(const gs_sim *sim, u32 n)
{
    return n >= sim->map.half ? n + sim->map.gap : n;
}

static inline gs_slice *gs_slices(gs_sim *sim)
{
    return GS_TABLE(sim, gs_slice, at_slices);
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
