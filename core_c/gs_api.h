/* The public interface of the core. cffi reads this text: plain C, fixed-size types, no macros. Times are
   ticks of 1/1024 ns unless a name says cycles. gs_create copies all tables unless their comment says
   otherwise. */
#pragma once
#include <stdint.h>

#include "gen/gs_counters.h"
#include "gen/gs_isa.h"
#include "gen/gs_params.h"
#include "gs_program.h"

/* Results of calls. */
enum {
    GS_OK = 0,
    GS_MORE = 1,     /* gs_run: the limit of this call, or a full TB buffer; call again */
    GS_DONE = 2,     /* gs_run: the job is finished */
    GS_ERR_ARG = -1, /* an input is out of range */
    GS_ERR_FIT = -2, /* a TB fits no SM */
    GS_ERR_MEM = -3, /* not enough memory */
    GS_ERR_DEADLOCK = -4,
    GS_ERR_ORACLE = -5, /* a true dependence was broken */
    GS_ERR_LIMIT = -6,  /* a documented limit of the core was reached */
    GS_ERR_TIME = -7    /* simulated time has reached its end */
};

/* One launch of a program. */
typedef struct gs_launch {
    uint64_t enqueued;    /* when the host has enqueued it, ticks */
    uint64_t arg[8];      /* base addresses, multiples of 256 */
    uint32_t bypass;      /* bit i: loads through arg i bypass L1 */
    uint32_t overwritten; /* bit i: L1 marks lines that come through arg i; see `invalidate` = 3 */
    uint32_t stale;       /* 1: marked lines may hold what was there before its producers wrote */
    uint32_t program;
    uint32_t grid[3];
    uint32_t stream;
    uint32_t rank;              /* unique; of ready kernels the lowest is dispatched first */
    uint32_t carveout;          /* shared memory an SM is configured to for this kernel, bytes */
    uint32_t first_pred, preds; /* kernels that must end first: slice of `preds` (always complete) */
    uint32_t first_out, outs;   /* nodes that each of its TBs counts down: slice of `outs` */
    uint32_t first_tb_out;      /* 0xffffffff: none; else index into tb_out_ptr, grid + 1 entries */
    uint32_t first_node, nodes; /* the nodes that its TBs wait for */
    uint32_t first_form, forms; /* coarser forms of these nodes, finest first: slice of `forms` */
    uint32_t first_link, links; /* nodes of forms that its TBs count down: slice of `links` */
    uint32_t exact;             /* table entries of these nodes, 0: it is not known */
    uint32_t shared;            /* 1: its TBs always share counters: a form, or whole kernels */
    uint32_t first_tb_row;      /* 0xffffffff: every TB has row 0; else index into tb_rows, one a TB */
    uint32_t first_block; /* 0xffffffff: nothing is recorded; else index into blocks, one a warp: TB * warps +
                             warp -> its block of accesses, from first_access on */
    uint64_t first_access, accesses; /* the slice of `accesses` that holds all blocks */
    uint32_t first_copy, copies;   /* 0: a kernel; else a copy from the host, of one TB that runs on no SM and
                                      writes this slice of `copied` */
    uint64_t copy_wait, copy_time; /* until the first byte arrives, and from there to the last; copy_time = 0:
                                      all arrives at once and its place in the order costs nothing */
    uint32_t early;                /* PDL, 1: starts when all TBs of its preds have triggered or ended */
    uint32_t whole;    /* table: it waits for the end of so many of its preds, the first ones, whatever its
                          nodes; for the others only if it does not fit the table */
    uint32_t segments; /* address ranges that are compared when it enters the window */
    uint32_t queue, packets; /* queues: its own, and barrier packets before it */
    uint32_t semaphores[4];  /* indices into needs, the bases of its POST and POLL */
    uint32_t parameters;     /* cycles that its first TB on an SM waits for its parameters */
    uint32_t refetch;        /* 1: a launch while it runs evicts the code of its TBs */
    uint32_t cooperative;    /* 1: its TBs are resident together, see placement.c */
    uint32_t cluster[2];     /* TBs of a cluster in m and in n, consecutive in x; 1, 1: there are none */
    uint32_t tiles[3];       /* tiles in m, in n, and planes, that op TURN deals to clusters; 0: none */
    uint32_t n_fast;         /* 1: the next tile is the next one in n, else in m */
    uint32_t steps[2];       /* of a tile; of one in the last plane */
    uint32_t barrier; /* table schemes, 1: admitted when all kernels before it have ended; later ones wait for
                         its end */
    uint32_t unit_tbs, units; /* TBs that share a signature, and the number of signatures; 0: none */
    uint32_t prologue;   /* table schemes, 1: its program waits inside (DEPEND), so that TBs may be dispatched
                            before their conditions are met */
    uint32_t first_unit; /* units of all launches are numbered consecutively */
    uint32_t first_set, sets; /* slice of hint_sets */
    uint64_t look_up,
        enter; /* ticks: to look up its edges, before its admission; to enter its footprint, after it */
    uint64_t
        evaluate;    /* table, ticks: to compute what the end of one of its TBs counts down; one at a time */
    uint32_t places; /* entries of the window that it takes: 1, or more if it replaces several kernels */
    uint32_t words;  /* table: words of its hints in the store; times places */
    uint32_t
        footprint; /* table: B that a TB's ranges take in memory, see learned_footprints.c; 0: not used */
    uint32_t
        recorded; /* 1: its TBs write their footprints when they end; 0: all are read before its admission */
    uint64_t first_footprint; /* byte offset of its TBs' footprints, which are consecutive */
} gs_launch;

/* Granules of memory, first to end - 1, of one level below a tag (bits 48 on). Of entries in signatures:
   twice the level; one more: a mark, for granules around those that are touched. Of what is looked up: twice
   the level; one more: a granule that is touched, not one around. */
typedef struct gs_hint {
    uint64_t first, end;
} gs_hint;

/* What some units of a launch read, or write: a slice of set_units, and one of hints: `asked` to look up,
   each behind those around it, and then `hints` to put into their signatures, sorted and disjoint. */
typedef struct gs_hint_set {
    uint32_t first_hint, asked, hints;
    uint32_t first_unit, units;
    uint32_t written;
} gs_hint_set;

/* Sectors first to end - 1 that a copy writes; `before`: how many the copy's earlier rows hold. */
typedef struct gs_copy {
    uint64_t first, end, before;
} gs_copy;

/* A group node: `expect` TB ends release its ranges of consumers. */
typedef struct gs_node {
    uint32_t kernel; /* the consumer */
    uint32_t expect;
    uint32_t first_range, ranges;
} gs_node;

/* TBs start, start + stride, ... (count of them) of the node's kernel. */
typedef struct gs_range {
    uint32_t start, count, stride;
} gs_range;

/* Nodes of a kernel where `unit` consecutive TBs share a counter; ranges of such nodes count units. A node
   may release none: ranges = 0. */
typedef struct gs_form {
    uint32_t first_node, nodes, unit;
} gs_form;

/* TB t counts down node first_node + t / size, of a form of a later kernel. */
typedef struct gs_link {
    uint32_t first_node, size;
} gs_link;

/* How work is ordered: the parameters that make a scheme. Times are in ticks. */
typedef struct gs_order {
    uint32_t tb_edges;   /* 0: kernels wait for preds; 1: TBs wait for nodes */
    uint32_t window;     /* kernels admitted and unfinished at once */
    uint32_t infinite;   /* 1: the table has no limit and costs no time */
    uint32_t bypass;     /* ready kernels that dispatch may pass over */
    uint32_t invalidate; /* L1: 0 never, 1 at a kernel's first TB on an SM, 2 at each TB, 3 marked lines at
                            TBs of `stale` launches, if none has been invalidated since the TB was ready */
    uint32_t prologue;   /* 1: launches may have prologues */
    uint32_t bloom;      /* 1: edges are found at admission, from hints and signatures */
    uint32_t in_flight;  /* PDL: kernels in flight before another one may start; 0: no limit */
    uint64_t launch;     /* from the first enqueue to the first dispatch */
    uint64_t gap;   /* from the last pred's release to dispatch; table schemes: to admission, at a barrier */
    uint64_t admit; /* between two admissions */
    uint64_t early; /* PDL: from the last trigger to dispatch */
    uint64_t prepare;  /* least time from a kernel's admission to that of one that waits for it */
    uint64_t beside;   /* added to `gap` while kernels of other streams run */
    uint64_t refetch;  /* cycles that TBs of launches that refetch wait for code and parameters when a kernel
                          is launched beside others */
    uint8_t gpcs[64];  /* GPCs in the order in which an empty chip is filled (gpu.cp.place = room) */
    uint32_t in_order; /* table, 1: a kernel ends only after all kernels before it have ended */
    uint32_t strict;   /* 1: no TB is dispatched before all TBs of older kernels */
    uint32_t each;  /* table, 1: it counts edge by edge; lists and counters are in memory, and those in use in
                       two buffers, see child_lists.c */
    uint32_t lists; /* entries of the buffer of lists, each of so many children, or nodes (see child_lists.c);
                       0: all lists are on the chip and cost nothing */
    uint32_t children;
    uint32_t counters;    /* entries of the buffer of counters */
    uint32_t nodes;       /* TBs in the wavefront buffer; 0: there is none */
    uint32_t pending;     /* entries for TBs that are not in it and have been counted down */
    uint64_t prelaunch;   /* table: from a kernel's admission, which does not wait for `launch` then, to its
                             first dispatch */
    uint32_t entry_bytes; /* table: its entries are in memory, too, so many bytes each, and are read and
                             updated through L2, see table_memory.c; 0: none is */
    uint32_t list_bytes;  /* the same for an entry of the buffer of lists */
    uint32_t computed;    /* 1: the scheduler computes the nodes, so it writes those that are in memory */
    uint32_t rotate;      /* 1: dispatch serves ready kernels in round robin, one TB at a time */
    uint32_t placement; /* table: 0 where a slot is free; 1 an even share of an SM, while an older kernel has
                           not ended; 2 where the last producer ran, if there is room; 3 as 1 of the oldest
                           kernel with TBs left, where it has a prologue */
    uint32_t store;     /* table: words of hints of admitted kernels; 0: no limit */
    uint32_t patience;  /* table: so many kernels are admitted in any form of their nodes, later ones in the
                           exact form; 0: all in any form */
    uint32_t affinity;  /* 2: ready TBs that are searched for one whose producer ran where a slot is free */
    uint32_t reserve; /* table: 65536ths of all warps that newer kernels leave to the oldest with TBs left */
    uint32_t queues;  /* queues of AQL packets, see aql_queues.c; 0: there are none */
    uint32_t slots;   /* queues that hardware serves at a time */
    uint32_t ring;    /* packets that a queue holds */
    uint32_t aware;   /* 1: a queue whose next packet is ready takes the slot of a blocked queue at once */
    uint64_t packet;  /* queues: time to process a packet */
    uint64_t quantum; /* queues: how often a queue without a slot may take that of an idle one */
    uint32_t ahead;   /* table: kernels from the oldest unfinished to the newest admitted; 0: no limit */
    uint64_t entries; /* of the table */
    uint32_t fetch;   /* 1: nodes are in memory and are fetched when a TB of a producer is dispatched */
    uint32_t share;   /* 65536ths of the free entries that a kernel with coarser forms may take */
    uint64_t update;  /* time of each counter update */
    uint64_t latency; /* from an update to the TBs that it frees being ready */
    uint32_t
        launchers;   /* table: kernels that are launched and whose end the host has not seen; 0: no limit */
    uint64_t check;  /* table: admission takes so much longer for each pair of segments, of the kernel and of
                        those in the window */
    uint64_t end;    /* table: time to process the end of a kernel */
    uint64_t seen;   /* table: from there until the kernels that wait for it see it, beyond the table's own
                        latency */
    uint64_t submit; /* launchers: from selecting a kernel to its dispatch */
    uint64_t footprints; /* B of memory for learned footprints; 0: none */
} gs_order;

/* `accesses` (line in the low half, template in the high half), `templates` and `parts` are large: they are
   not copied, and must not change until gs_free. */
typedef struct gs_job {
    const gs_op *ops;
    const gs_pattern *patterns;
    const gs_program *programs;
    const gs_launch *launches;
    const uint32_t *preds;
    const uint32_t *outs;
    const uint32_t *tb_out_ptr;
    const uint32_t *tb_outs;
    const gs_node *nodes;
    const gs_range *ranges;
    const gs_form *forms;
    const gs_link *links;
    const gs_lanes *lanes;
    const uint32_t *entries;
    const uint32_t *tb_rows;
    const uint32_t *blocks;
    const uint64_t *accesses;
    const gs_template *templates;
    const gs_part *parts;
    const gs_copy *copied;
    const gs_sem *sems;
    const gs_stage *stages;
    const gs_bulk_box *boxes;
    const uint32_t *needs;    /* of each semaphore: posts that complete it */
    const uint64_t *sequence; /* kernel << 32 | TB of all TBs but copies', in the order in which the wavefront
                                 buffer takes them */
    const gs_hint *hints;
    const gs_hint_set *hint_sets;
    const uint32_t *set_units; /* of each set: numbers of units within its launch */
    const uint32_t *unit_ptr;  /* of each unit: where its sets begin in unit_sets; one more at the end */
    const uint32_t *unit_sets;
    const uint32_t *rates; /* of each unit: expected false positive rates of what it reads and of what it
                              writes, in 2^-24 */
    uint64_t n_ops, n_patterns, n_programs, n_launches, n_preds, n_outs, n_tb_out_ptr, n_tb_outs, n_nodes,
        n_ranges, n_lanes, n_entries, n_tb_rows, n_blocks, n_accesses, n_templates, n_parts, n_copied, n_sems,
        n_stages, n_boxes, n_needs, n_hints, n_hint_sets, n_set_units, n_unit_ptr, n_unit_sets, n_rates,
        n_sequence, n_forms, n_links;
    uint64_t tb_buffer; /* TB records held between two calls of gs_run */
} gs_job;

/* Times of a TB in ticks, and the SM slot that it ran in. */
typedef struct gs_tb_record {
    uint64_t ready, dispatch, start, end;
    uint32_t kernel, tb, sm, slot;
    uint32_t last_kernel, last_tb; /* the TB whose end made it ready; 0xffffffff: none */
} gs_tb_record;

/* Times, waits and work of a kernel; times are in ticks. */
typedef struct gs_kernel_record {
    uint64_t enqueued, admitted, ready, first_dispatch, last_end, released; /* released: it is complete */
    uint32_t tbs, coarse; /* coarse: 1 = did not fit the table, waited for whole kernels */
    uint32_t unit, form;  /* TBs that shared a counter; its form, 0: its own nodes */
    gs_stalls stalls;
    gs_idles idles;
    uint64_t warp_instructions, load_sectors, store_sectors, busy; /* busy: TB residence, ticks */
} gs_kernel_record;

typedef struct gs_sm_record {
    uint64_t busy; /* ticks with at least one TB */
    uint64_t tbs;
    gs_stalls stalls;
    gs_idles idles;
    gs_work work;
} gs_sm_record;

typedef struct gs_sample {
    uint64_t warp_cycles; /* resident warps x cycles */
    gs_work work;
} gs_sample;

/* A sample of a time series: counts within one interval. backlog: how long the part is booked beyond the
   end of the interval, ticks. */
typedef struct gs_sm_series {
    gs_held held;
    gs_stalls stalls;
    gs_work work;
} gs_sm_series;

typedef struct gs_slice_series {
    uint64_t backlog; /* of the data port */
    uint64_t queued;  /* sectors of reads that wait for the DRAM bus */
    gs_l2 count;
} gs_slice_series;

typedef struct gs_bank_series {
    uint64_t backlog; /* until it may open another row */
    gs_banks count;
} gs_bank_series;

/* Look-ups in signatures. tests: of a granule against a unit that does not touch it; false_hits: positives
   among them; expected: positives to be expected, in 2^-24; edges: waits of units for units; false_edges:
   waits without a true dependence. */
typedef struct gs_bloom_count {
    uint64_t tests, false_hits, expected, edges, false_edges;
} gs_bloom_count;

typedef struct gs_totals {
    uint64_t now, end, tbs_done, hash;
    uint64_t slowed; /* cycles that the GPC with the most has counted fewer than at gpu.clock */
    uint64_t quantum, quanta, sample_interval, samples;
    uint64_t table_peak_entries, table_updates, table_wait, table_coarse_kernels;
    uint64_t table_shared_kernels;           /* whose TBs shared counters */
    uint64_t table_peak_lists, table_spills; /* see child_lists.c; accesses of memory for want of an entry */
    uint64_t series_interval, series;        /* the time series: ticks a sample, samples; 0: none */
    uint64_t arena_bytes;
    gs_bloom_count bloom;
} gs_totals;

typedef struct gs_sim gs_sim;

/* A ready TB, as a user's rule sees it. A rule chooses the ready TB that is dispatched next, and the SM
   that it goes to. See gs_set_rule. */
typedef struct gs_ready_tb {
    uint64_t ready; /* ticks: when its conditions were met; for a kernel ordered by barriers, those of the
                       kernel */
    uint32_t kernel, tb;  /* a kernel whose TBs have no conditions of their own lists only its next TB */
    uint32_t producer_sm; /* the SM on which its last producer ran; 0xffff: not known */
    uint32_t rank;        /* of its kernel under scheme.priority, lowest first */
} gs_ready_tb;

typedef struct gs_free_sm {
    uint32_t sm, gpc;
    uint32_t tbs, warps; /* that are resident */
} gs_free_sm;

typedef struct gs_rule {
    /* Returns the index of the TB to dispatch next, among n of `ready`; n: none for now; below 0: the run
       ends with an error. `time`: ticks. NULL: lowest rank first. */
    int64_t (*next)(void *user, uint64_t time, uint32_t n);
    /* Returns the index of the SM that the TB goes to, among n of `sms`, all of which have room; n: none
       for now, and no other TB of its kernel is tried at this time. NULL: the placement of gpu.cp.place. */
    int64_t (*place)(void *user, uint64_t time, uint32_t kernel, uint32_t tb, uint32_t n);
    void *user;
    gs_ready_tb *ready; /* room for all TBs of the job */
    gs_free_sm *sms;    /* room for all SMs */
} gs_rule;

/* What a lower bound assumes about loads, by kernel argument (bit a: argument a). far: no L1 has the data
   when the first TB of the kernel starts, so they come from L2. cold: L2 does not have them either. own: no
   other TB loads them, so the latency counts from the TB's own first load. latency: cycles of a load that
   hits L2; if it is not 0, the result is an estimate and not a bound: loads of `far` find data that other
   SMs have just written, those of `cold` go to DRAM. For a TB with addresses (gs_tb_floor_of) also: side:
   the L2 partition that its SM is attached to, 1 or 2; 0: not known. fresh: no other TB loads from the DRAM
   rows of these arguments, which are `own` and `cold`. */
typedef struct gs_loads {
    uint32_t far, cold, own, latency, side, fresh;
} gs_loads;

/* Creates a simulation, which the caller frees with gs_free. NULL on error, with a message in `error` (size
   >= 256) and the code in *code. */
gs_sim *gs_create(const gs_params *params, const gs_order *order, const gs_job *job, int *code, char *error);
void gs_free(gs_sim *sim);
/* Runs until the job ends, `max_quanta` quanta have passed, or the TB buffer is nearly full. */
int gs_run(gs_sim *sim, uint32_t threads, uint64_t max_quanta);
/* The same, at most to the first quantum that begins at `time` (ticks) or later: a moment that depends
   neither on threads nor on the calls before. */
int gs_run_until(gs_sim *sim, uint32_t threads, uint64_t max_quanta, uint64_t time);
/* From now on the rule dispatches TBs. The thread that calls gs_run calls it. Its tables belong to the
   caller, who keeps them until gs_free. Prologues are not supported. */
void gs_set_rule(gs_sim *sim, const gs_rule *rule);
const char *gs_error(const gs_sim *sim);
void gs_totals_get(const gs_sim *sim, gs_totals *out);
/* Copies and removes up to `room` TB records; returns how many. */
uint64_t gs_take_tbs(gs_sim *sim, gs_tb_record *out, uint64_t room);
void gs_kernels_get(const gs_sim *sim, gs_kernel_record *out);
void gs_sms_get(const gs_sim *sim, gs_sm_record *out);
void gs_slices_get(const gs_sim *sim, gs_l2 *out);
void gs_samples_get(const gs_sim *sim, gs_sample *out);
/* The time series: gs_totals.series samples of each SM, of each slice, and of each bank of each slice. */
void gs_series_get(gs_sim *sim, gs_sm_series *sms, gs_slice_series *slices, gs_bank_series *banks);
/* Where a line (128 B) maps to: slice, set and tag. */
void gs_line_home(const gs_sim *sim, uint64_t line, uint32_t *slice, uint32_t *set, uint32_t *tag);
/* Sectors that TB `tb` of launch `kernel` touches, in program order, as line << 4 | mask, with bit 63 set for
   writes. Returns how many there are; writes at most `room`. */
uint64_t gs_touches(const gs_sim *sim, uint32_t kernel, uint32_t tb, uint64_t *out, uint64_t room);
/* Lower bound on the time of a TB of a program's variant, in cycles, from its first issue until the whole GPU
   sees what it stored: no contention, and every load hits L1 but for what `loads` says. */
uint64_t gs_tb_floor(const gs_sim *sim, uint32_t program, uint32_t variant, const gs_loads *loads);
/* Work of a TB of a variant, as counters (fp32..smem in 64ths of a cycle, instructions, lines, sectors). */
void gs_tb_work(const gs_sim *sim, uint32_t program, uint32_t variant, gs_work *out);
/* The same for a TB of a launch, for programs with rows. */
uint64_t gs_tb_floor_of(const gs_sim *sim, uint32_t kernel, uint32_t tb, const gs_loads *loads);
void gs_tb_work_of(const gs_sim *sim, uint32_t kernel, uint32_t tb, gs_work *out);
/* Sectors that a launch loads and stores, by home slice. passed: stores of TBs that load a whole line of
   the slice; most: the most of one such TB; now, whole: working values of the current TB. */
typedef struct gs_passed {
    uint64_t loaded, stored, passed, most, now, whole;
} gs_passed;
/* Adds to `out`, one for each slice. */
void gs_passed_of(const gs_sim *sim, uint32_t kernel, gs_passed *out);
const char *gs_build_info(void);
uint64_t gs_tables_hash(void);
/* The inverse of gs_line_home. */
uint64_t gs_home_line(const gs_sim *sim, uint32_t slice, uint32_t set, uint32_t tag);
/* A checkpoint, written between two calls of gs_run: runs of the arena's pages of 4 KiB that are not zero,
   each as two uint64_t (the first page, how many) and the pages. Pages that were never written are skipped,
   and take no memory. Writes whole runs from page *page on into `out`, at most `room` bytes (at least 16 +
   4096), and moves *page on. Returns the bytes written; 0: all pages are written. GS_ERR_ARG: the oracle is
   on, or too little room; else the error of a run that has failed. */
int64_t gs_checkpoint_write(const gs_sim *sim, uint64_t *page, void *out, uint64_t room);
/* Reads runs that gs_checkpoint_write has written, in their order, into a simulation that gs_create has made
   from equal tables; *page begins at 0. Nothing outside the arena is written, whatever `data` holds, and
   after an error gs_run refuses the simulation. That the runs are whole and fit the tables is for the caller
   to check, by a checksum: a state that no run has reached may do anything. */
int gs_checkpoint_read(gs_sim *sim, uint64_t *page, const void *data, uint64_t bytes);
/* All runs are read: the pages from `page` on are zero. */
int gs_checkpoint_end(gs_sim *sim, uint64_t page);
/* Brings `to` to the state of `from`, so that it goes on from the same moment under its own setting. `fresh`
   and `to` are new: of the tables and the setting of `from`, and of the same tables under another setting.
   They may differ in what the core reads anew at each event (clone.c has the list). GS_ERR_ARG, and nothing
   is written: they differ in more, which the state depends on; or one of them has failed or has an oracle. */
int gs_clone(gs_sim *to, const gs_sim *from, const gs_sim *fresh);
