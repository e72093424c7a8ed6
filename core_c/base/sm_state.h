/* State of an SM. */
#pragma once
#include "base/sizes.h"
#include "base/types.h"
#include "gs_api.h"

/* Packed, so that a warp's state stays one host cache line. */
typedef struct __attribute__((packed, aligned(2))) gs_scoreboard_slot {
    u32 done; /* the cycle from which all that has returned is visible */
    u16 count;
} gs_scoreboard_slot;

typedef struct gs_warp {
    u64 block; /* its first recorded access */
    u32 pc;
    u32 ready, debt, since;
    u16 k[3];
    u8 wait;  /* slot + 1 that the warp waits for */
    u8 state; /* GS_WARP_* */
    u8 tb;
    u8 index; /* warp in TB */
    gs_scoreboard_slot slot[GS_SLOTS];
} gs_warp;

_Static_assert(sizeof(gs_warp) == 64, "a warp's state is one cache line");

enum {
    GS_WARP_RUNS,
    GS_WARP_IN_BLOCK, /* in a compute block, which issue debt may push back */
    GS_WARP_IN_QUEUE, /* waits for credits */
    GS_WARP_AT_BARRIER,
    GS_WARP_AT_COUNTER,     /* waits at a gs_tb_barrier */
    GS_WARP_WAITS_RESOURCE, /* waits for a pipe, an issue slot, the LSU or shared memory */
    GS_WARP_FENCES,
    GS_WARP_DEPENDS /* waits for kernels to end */
};

enum { GS_QUEUED = 8 /* see gs_subcore */, GS_COPIES = 32 /* see gs_sm */ };

typedef struct gs_subcore {
    u64 issue;  /* first free issue slot after the backlog of blocks */
    u64 single; /* first free issue slot for one-slot ops */
    u64 last;   /* the blocks' last instruction: from `issue` to there slots are free to take */
    u32 debt;
    u8 owner, owner_pipe; /* warp + 1 whose run has that pipe until it ends; 0: none */
    u8 holder, pad;       /* warp + 1 that goes on before older ones, see warp_order.h; 0: none */
    u64 waiters;          /* warps that wait for the end of the run */
    u64 pipe[GS_PIPES];   /* when free, 64ths of a cycle */
    u64 held;             /* until this cycle only `holder` issues */
    u64 copy;             /* cycle in which the LSU begins the last copy into shared memory */
    u64 left;             /* cycle in which the last copy or load leaves the queue: later loads wait for it */
    u64 leaves[GS_QUEUED]; /* the same of the last ones, a ring (gpu.sm.queue) */
    u32 queued;            /* how many have entered */
    u64 returned;          /* 64ths: when the results of its shared-memory wavefronts are back */
    u32 fills, pad2;       /* fills_seen when it last took multiplies */
} gs_subcore;

/* What warps wait for in warp_order.h: pipes, then these. */
enum { GS_RESOURCE_ISSUE = GS_PIPES, GS_RESOURCE_QUEUE, GS_RESOURCE_LSU, GS_RESOURCE_SMEM, GS_RESOURCES };
/* Oldest first, or once the warp that issues has to wait. */
enum { GS_OLDEST_FIRST = 1, GS_GREEDY_THEN_OLDEST };

/* When the results of a warp's last loads from shared memory are back, less the latency, in order. */
enum { GS_SMEM_RETURNS = 16 };

typedef struct gs_smem_returns {
    u32 done[GS_SMEM_RETURNS];
    u16 waves[GS_SMEM_RETURNS]; /* wavefronts of each */
    u8 last, count;             /* count: loads remembered, up to GS_SMEM_RETURNS */
} gs_smem_returns;

typedef struct gs_waiting {
    u64 waits[GS_RESOURCES]; /* warps */
    u8 next[GS_RESOURCES];   /* the warp that goes next */
} gs_waiting;

typedef struct gs_tb {
    _Alignas(64) u32 kernel;
    u32 tb, x, y, z, code;
    u16 live_warps, arrived;
    u8 polls; /* without an answer */
    u8 flags; /* GS_TB_* */
    u16 owner;
    u64 load_sectors, store_sectors, warps;
    gs_stalls stalls; /* `issued` counts instructions */
    u32 tile, phase;  /* phase: of the ops being run, see gs_iop */
    /* Semaphores known to be complete: as of the last barrier, so that all warps see the same; and as polled
       since then. */
    u32 ready, ready_end, polled, polled_end;
} gs_tb; /* gs_tb_start sets every member */

enum {
    GS_TB_CONDITIONS_MET = 1, /* the kernels that it depends on have ended */
    GS_TB_TRIGGERED = 2
};

_Static_assert(sizeof(gs_tb) == 128, "a TB's state is two cache lines");

/* see l1.h */
typedef struct gs_l1set {
    _Alignas(32) u32 key[GS_L1_WAYS];
    u32 fill[GS_L1_WAYS];
} gs_l1set;

typedef struct gs_deferred_msg {
    u64 time, pay;
} gs_deferred_msg;

typedef struct gs_waiter {
    u16 next;
    u8 warp, slot;
} gs_waiter;

/* Stores of a TB that L2 has not acknowledged. A TB frees its slot when its stores have left the SM. They
   name this entry, which stays until the last of them is acknowledged. */
typedef struct gs_store_owner {
    u32 kernel, tb;
    u32 unacknowledged;    /* lines, and posts of semaphores */
    u32 leaves_sm;         /* cycle from which all of them have left the SM */
    u32 last_acknowledged; /* cycle of the last acknowledgement so far, of the TB's flush too; 0: none */
    u16 next;              /* of the free entries */
    u16 tb_left;           /* 1: the TB has freed its slot */
} gs_store_owner;

/* A barrier of a TB that counts: see tb_barrier.c. */
typedef struct gs_tb_barrier {
    u64 waiting;                /* warps */
    u32 arrived;                /* since the TB started */
    u32 last;                   /* cycle of the latest arrival */
    u32 time[GS_BARRIER_TIMES]; /* cycles of the last arrivals, by their number */
} gs_tb_barrier;

/* A barrier that is used again and again: see ring_barrier.h. */
typedef struct gs_ring_barrier {
    u64 waiting;             /* warps */
    u32 phases;              /* that are complete */
    u32 arrived;             /* in the phase under way */
    i32 lines;               /* of bulk copies, announced less those here */
    u32 need;                /* arrivals of a phase */
    u32 last;                /* cycle of the latest arrival */
    u32 time[GS_RING_TIMES]; /* when the last phases ended, by their number */
} gs_ring_barrier;

/* Where a warp of a pipelined program is: its tile, its place in the rings, and its asynchronous multiplies.
 */
typedef struct gs_pipeline {
    u32 x, y, z, turn, steps; /* of its tile */
    u32 cursor;               /* steps that it has gone through, of all its tiles */
    u8 begun, m, n;           /* m, n: place of its TB in its cluster */
    u8 syncs;                 /* of its cluster, so far */
    u32 multiplies;           /* groups issued */
    u32 done[GS_MULTIPLIES];  /* cycles in which the last groups end */
} gs_pipeline;

/* Where the lines of a bulk copy go: TB slots of SMs, the SM that asked for them first, and those of a group
   of SMs together. It stays until GS_FLIGHTS more have been issued, and an SM never has so many on their way.
 */
typedef struct gs_flight {
    u16 sm[GS_CLUSTER_TBS];
    u8 slot[GS_CLUSTER_TBS];
    u8 n, ring;
    u16 lines; /* on their way to the SM that asked */
} gs_flight;

/* A warp's last store, if the next one may join it: its first line + 1, 0: none; its first part, of the
   recorded ones or of the others; and its lines. */
typedef struct gs_last_store {
    u64 line;
    u32 part, recorded;
    u64 lines;
} gs_last_store;

/* What every event touches comes first, together; what grows with warps, TBs and lines follows. */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): fields are in the order of their use */
typedef struct gs_sm {
    _Alignas(64) u64 occupied[GS_WHEEL / 64];
    u64 cur;                   /* cycle being simulated */
    u64 lsu_free, port_free;   /* cycles */
    u64 barrier_counted;       /* until then the barriers of the SM count warps */
    u64 reply_port, smem_free; /* 64ths of a cycle: when the reply port and shared memory are free */
    u32 acquired[GS_POOLS], released[GS_POOLS], credit_need,
        credit_armed; /* credit_need: the release that the first warp in the queue needs */
    u32 credit_fifo_head, credit_fifo_tail;
    u64 credit_least;
    u32 l1_lines, l1_room,
        l1_evict_turn; /* lines that L1 holds and has room for; the group of sets that evicts next */
    u32 port_sharers;  /* SMs with TBs on this SM's port */
    u32 live_tbs;
    u32 deferred_n;
    u64 l1_fresh_since; /* when marked lines were last invalidated, ticks */
    u64 warp_cycles,
        next_due; /* next_due: no later than the end of the sample, and of that of the time series */
    gs_work work;
    u32 waiter_free, waiter_used;
    u32 id, last_kernel;
    u32 parameters_ready; /* cycle from which the kernel's parameters are in the constant cache */
    u32 code_ready; /* cycle from which code and parameters are back after a concurrent launch evicted them */
    u32 gpc;
    u32 smem_queue, lsu_queue, queue; /* gpu.sm */
    _Alignas(64) gs_subcore sub[4];
    _Alignas(64) gs_warp warp[GS_WARPS];
    u64 wheel[GS_WHEEL];
    gs_last_store last_store[GS_WARPS];
    u32 shared_done[GS_WARPS];          /* cycle in which a warp's last wavefront has passed shared memory */
    gs_waiting waiting[5];              /* of the four sub-cores, and of what they share */
    u32 warp_age[GS_WARPS], warps_born; /* a warp's place among all that have started */
    u32 slack[GS_WARPS];                /* cycles that a warp may begin before what it waits for is free */
    u8 waits_for[GS_WARPS];             /* GS_RESOURCE_*, or a pipe */
    u32 queued_since[GS_WARPS]; /* cycle + 1 since which it waits for its sub-core's queue; 0: it does not */
    gs_tb tb[GS_TBS];
    u32 release_time[GS_POOLS][GS_CREDITS];
    u16 fill_hold[GS_FILLS];
    u32 fill_time[GS_FILLS]; /* cycles of fills; the last ones have not held the data array yet */
    u32 fills_arrived, fills_applied;
    u32 fills_seen;          /* of all that have held the array */
    u32 copy_left[GS_WARPS]; /* cycle in which its last copy has left its sub-core's queue: its registers have
                                been read */
    gs_smem_returns smem_returns[GS_WARPS];
    u64 copy_begins[GS_COPIES]; /* cycles in which the LSU begins the last copies, a ring */
    u32 copies_begun;           /* how many there were */
    u8 credit_fifo[GS_WARPS];   /* warp + pool * GS_WARPS */
    _Alignas(64) u64 free_warps;
    u64 sampled_warp_cycles, next_sample, sample;
    gs_l1set l1[GS_L1_SETS + 1]; /* one more, so that sets from 1 on share host cache lines in pairs */
    u64 series;                  /* complete samples of the time series */
    gs_held held;                /* less what is still to come of resident TBs: see time_series.c */
    gs_work sampled;
    gs_stalls stalls;
    u64 tbs_done, hash_end;
    gs_deferred_msg deferred[GS_DEFERRED_MSGS];
    u32 owner_free, owner_used;
    gs_store_owner owner[GS_STORE_OWNERS];
    gs_waiter waiter[GS_WAITERS];
    /* Barriers that count: see tb_barrier.c. Named ones come first. */
    u32 barrier_need[GS_WARPS];               /* count that the warp waits for */
    u32 copies_count_at[GS_WARPS * GS_SLOTS]; /* barriers that a slot's copies count at */
    u16 copies[GS_WARPS * GS_SLOTS][GS_TB_BARRIERS - GS_NAMED_BARRIERS]; /* how many at each */
    u16 awaited[GS_WARPS][GS_TB_BARRIERS - GS_NAMED_BARRIERS];           /* the warp's waits so far */
    u8 tb_barriers_used[GS_TBS];
    gs_tb_barrier tb_barrier[GS_TBS][GS_TB_BARRIERS];
    /* Pipelined programs: see bulk_copy.h. */
    gs_pipeline pipeline[GS_WARPS];
    gs_ring_barrier ring[GS_TBS][GS_RINGS];
    gs_flight flight[GS_FLIGHTS];
    u32 flights, bulk_lines; /* bulk copies issued; lines on their way to this SM that it has asked for */
    u64 bulk_free[2]; /* 64ths of a cycle: when the unit that copies tiles is free for stores, for loads */
    u32 bulk_kernel,
        bulk_known; /* arguments whose descriptors the SM has fetched for that kernel + 1, a bit each */
} gs_sm;

_Static_assert(offsetof(gs_sm, l1) % 64 == 32, "four neighbouring sets are two cache lines");
