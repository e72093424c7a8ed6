/* State of the scheduler. Times are in ticks (1/1024 ns). */
#pragma once
#include "base/sizes.h"
#include "base/types.h"
#include "gs_api.h"

/* A kernel as the scheduler sees it. */
typedef struct gs_kernel {
    u32 unmet; /* conditions of the kernel as a whole that are not met */
    u32 tbs, next_tb, dispatched, done;
    u32 ready; /* ready TBs of a kernel whose TBs have conditions of their own */
    u8 admitted, coarse, per_tb, ended;
    u8 in_memory, spilled; /* in_memory: 1: its nodes are in memory, 2: and are being fetched; spilled: its
                              one entry is in memory */
    u32 form_requested; /* the form of its nodes that is being fetched; one more than there are forms: the one
                           entry */
    u32 form, unit;     /* the form of its nodes in the table, 0: their own; TBs that share a counter */
    u32 passed_over;
    u32 cause_kernel, cause_tb;
    u32 triggered;         /* TBs that have triggered or ended */
    u32 unended_producers; /* PDL: kernels before it that have not ended */
    u32 unended_whole;     /* table: kernels that it waits for as a whole; part of `unmet` */
    u64 conditions_met_at; /* queues: when all that it waits for had ended, with the gap */
    u64 submitted;         /* queues: when the host has put it there */
    u32 shape;             /* class of resources */
    u32 in_prologue,
        next_prologue;    /* TBs that wait in their prologue; no TB below may still be dispatched to do so */
    u32 units_left;       /* units that have not ended, see bloom.h */
    u64 tb_conditions_at; /* offset of its gs_tb_conditions */
    gs_kernel_record record;
} gs_kernel;

/* Of each TB of a kernel whose TBs have conditions of their own. */
typedef struct gs_tb_conditions {
    u64 ready;
    u32 cause_kernel, cause_tb;
    u32 unmet;        /* conditions that are not met */
    u8 entry, loaded; /* entry: holds a table entry; loaded: is in the wavefront buffer */
    u16 producer_sm;  /* where its last producer ran, or GS_NO_SM */
    u32 in_prologue;  /* see prologue.c */
} gs_tb_conditions;

typedef struct gs_node_state {
    u32 left;
    u32 done;
    u32 cause_kernel, cause_tb;
    u32 consumers, producer_sm; /* TBs or units; where the last producer ran */
    u32 form, whole_kernel; /* form: of its kernel that it belongs to, 0: none; whole_kernel: it releases the
                               kernel as a whole */
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
    u8 warps[4];      /* free warp slots of each sub-core */
    u16 registers[4]; /* free register units of each sub-core */
    u32 smem, carveout;
    u32 tbs, warps_used;
    u64 busy, since;
    gs_idles idle, idle_at;
    u64 begun;    /* start of its last TB */
    u64 tpc_free; /* of a TPC's first SM: when another SM than tpc_sm may start its first TB */
    u32 tpc_sm, pad;
} gs_sm_load;

/* Resources of a TB, a class of them for each program and carve-out. */
typedef struct gs_tb_resources {
    u32 warps, units, smem, carveout;
    u64 checked;     /* releases when it last fitted nowhere; GS_NEVER: it may fit */
    u64 found;       /* 1 + releases when an SM with room was last found */
    u32 room, place; /* of that SM: for how many TBs, and its place in the order of SMs */
    u32 least, pad;  /* the least carve-out of a busy SM that may take it */
} gs_tb_resources;

typedef struct gs_resident {
    u64 ready, dispatch, start;
    u32 kernel, tb, last_kernel, last_tb, rotate, triggered;
    u32 in_prologue, pad; /* 1: it waits in its prologue */
    u32 lists, missing;   /* entries for its children, and those that found no room */
} gs_resident;

/* Where the TBs of a TB's cluster are, by rank. The scheduler writes it before they start. */
typedef struct gs_mates {
    u16 sm[GS_CLUSTER_TBS];
    u8 slot[GS_CLUSTER_TBS];
    u8 n, rank;
} gs_mates;

/* see bloom.h */
enum { GS_HASHES = 16, GS_HINT_TAG = 48 };

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
    u64 at_read, at_written; /* a row for each bit of a signature, a column for each slot */
    u64 at_waits;            /* a row for each slot: the slots that wait for it */
    u64 at_found, at_truly;  /* a row for each slot: what it is found to need, and what it does need */
    u64 at_alive, at_held, at_scratch;
    u64 at_marked; /* a row for each level: what has a mark at each granule around the one looked up */
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

/* A TB that has left its SM and whose stores L2 has not all acknowledged. */
typedef struct gs_departed {
    u32 sm, lists, missing; /* as in its gs_resident */
} gs_departed;

/* Bytes to read or update, and the event that waits for the replies: see table_memory.c. */
typedef struct gs_table_request {
    u64 first, end;
    u32 wait, update; /* wait: 0: nothing waits */
} gs_table_request;

typedef struct gs_table_wait {
    gs_event then; /* its time: how long after the last reply */
    u32 left, next;
} gs_table_wait;

/* Where a kernel's part of the tables is in memory. */
typedef struct gs_table_region {
    u64 first, lists;
    u32 list_entries, pad; /* of a TB, at most */
} gs_table_region;

typedef struct gs_table_memory {
    u64 port, base; /* when the next request may leave; where the tables begin */
    u64 footprints; /* where footprints begin */
    u64 way_out, way_back;
    u64 at_pieces, at_awaited, at_kernels;
    u32 head, tail;      /* of the queue of gs_table_request */
    u32 in_flight, room; /* requests without a reply, and how many there may be */
    u32 used, free;
} gs_table_memory;

typedef struct gs_sched {
    u64 release_free, start_free, table_free, admit_free;
    u64 evaluate_free; /* when the unit that computes what an end counts down takes the next one */
    u64 cluster_free[GS_GPCS][GS_CLUSTERS]; /* when a cluster of SMs takes the next TB */
    u64 accounted;                          /* idle time is counted up to here */
    gs_idles idle;                          /* sums of idle time by reason */
    u32 idle_sms, idle_reason;
    u32 next_admit, active, oldest_undispatched, finished, kernels_done;
    u32 words; /* of hints of admitted kernels that have not ended */
    u64 admit_at;
    u64 barrier_lifted_at; /* no kernel is admitted before: the gap after a barrier of a table scheme */
    u32 barrier_running;   /* 1: a kernel after a barrier has not ended */
    u32 partly; /* 1 + the cooperative kernel of which some TBs, but not all, are dispatched; or 0 */
    u64 releases;
    u64 refetched;      /* 1 + when a concurrent launch last evicted code */
    u64 first_releases; /* a kernel found the chip empty: releases then; that kernel + 1, the TBs that it had
                           left, and the next of them */
    u32 first_kernel, first_tbs, first_at;
    u32 round_robin, table_entries, table_peak, coarse, shared;
    u64 table_updates, table_wait;
    u64 end, hash, tbs_done;
    gs_ring release, ready, admit; /* admit: kernels after barriers, and pieces of host copies */
    gs_ring complete;              /* TBs whose stores are acknowledged after they have left their SM */
    gs_ring waiting_kernels;       /* PDL kernels that wait for others in flight; or for a launcher */
    u32 oldest_unfinished;         /* table: the oldest kernel that has not ended */
    u32 busy_launchers;            /* launchers in use */
    u32 lists, lists_peak;         /* entries in use */
    u32 submitted, host_blocked, rotation,
        quantum_ticking; /* queues: launches that the host has enqueued; 1: it waited for room; the next queue
                            in round robin; 1: quanta are counted */
    u64 queue_room_at, host_free;
    u32 next_rank,
        newer_warps; /* the next rank in round robin; warps of kernels newer than `oldest_undispatched` */
    u32 producer_sm, pad4; /* where the TB ran whose end is being counted, or GS_NO_SM */
    u32 loaded, pending;   /* TBs in the wavefront buffer; entries of TBs that are not */
    u64 next_load, spills;
    u32 list_missing, list_held; /* entries of the ending TB's list: in memory; in the buffer before them */
    gs_table_memory table_memory;
    u64 segments;              /* of the kernels in the window */
    u64 footprints_checked_at; /* when the comparison of the next kernel's footprints that have arrived ends
                                */
    u32 footprint_waits,
        footprints_here;    /* replies with footprints that are waited for; 1: the next kernel has them all */
    gs_ring prologue_over;  /* TBs whose prologue ends, see prologue.c */
    u32 running;            /* kernels (not copies) after barriers that have begun and not ended */
    u32 in_flight, has_pdl; /* kernels in flight, see pdl.c; 1: the job has PDL kernels */
    u64 link_free;          /* when the host link is free */
    u32 tb_head, tb_tail;   /* ring of TB records */
} gs_sched;
