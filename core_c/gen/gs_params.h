/* Generated from pysim/params.py by build.py. Do not edit. */
#pragma once
#include <stdint.h>

typedef struct gs_gpu_params {
    /* Streaming multiprocessors. [count] */
    int64_t sms;
    /* Clusters of SMs (GPCs), numbered one after another and as even as whole TPCs allow; TBs are handed out to them in turn. [count] */
    int64_t gpcs;
    /* SMs of a TPC; each TPC gets a TB before one of its SMs gets a second share. [count] */
    int64_t tpc_sms;
    /* SM clock. [ticks a cycle] */
    int64_t clock;
    /* SM clock of a GPC while its tensor cores are busy, as a share of gpu.clock (1: it does not change). [1/65536] */
    int64_t clock_tensor;
    /* Board power that a job which goes on for long may take (sim.sustained; 0: no limit). [mW] */
    int64_t power_limit;
    /* Voltage falls with the clock: what an event of an SM or of L2 takes is in proportion to this power of the clock. [1/65536] */
    int64_t power_slope;
} gs_gpu_params;

typedef struct gs_gpu_sm_params {
    /* Resident warps an SM; a multiple of 4. [count] */
    int64_t warps;
    /* Resident thread blocks an SM. [count] */
    int64_t tbs;
    /* 32-bit registers an SM. [count] */
    int64_t registers;
    /* Registers are granted to a warp in such units. [count] */
    int64_t register_unit;
    /* Largest shared memory of an SM. [B] */
    int64_t smem;
    /* Shared memory is granted to a TB in such units. [B] */
    int64_t smem_unit;
    /* What a kernel's first TB on an SM waits for each 64 B of the kernel's parameters, of kernels that tell how many they read. [cycle] */
    int64_t parameters;
    /* A kernel that a stream launches beside others: their TBs and its own, of kernels that tell how many parameters they read, wait so long for code and parameters, which the launch has dropped (not in a graph). [cycle] */
    int64_t refetch;
    /* A busy SM takes a TB only if it is set to at least the carve-out that the TB's kernel chooses; 0: wherever the TB's own shared memory fits. [bool] */
    int64_t own_carveout;
    /* Shared memory that the system keeps of each TB. [B] */
    int64_t smem_reserved;
    /* Cycles between two warp instructions on the fp32 pipe of a sub-core (FFMA, FADD, FMUL). [1/64 cycle] */
    int64_t fp32_interval;
    /* Cycles between two warp instructions on the int pipe of a sub-core (IADD3, IMAD, LOP3, LEA, SHF, MOV). [1/64 cycle] */
    int64_t int_interval;
    /* Cycles between two warp instructions on the fp16 pipe of a sub-core (HFMA2, HADD2). [1/64 cycle] */
    int64_t fp16_interval;
    /* Cycles between two warp instructions on the fp64 pipe of a sub-core (DFMA, DADD, DMUL). [1/64 cycle] */
    int64_t fp64_interval;
    /* Cycles between two warp instructions on the sfu pipe of a sub-core (MUFU: exp2, rcp, rsqrt, tanh). [1/64 cycle] */
    int64_t sfu_interval;
    /* Cycles between two warp instructions on the tensor pipe of a sub-core (HMMA steps). [1/64 cycle] */
    int64_t tensor_interval;
    /* Cycles between two warp instructions on the control pipe of a sub-core (BRA, BAR and other control flow). [1/64 cycle] */
    int64_t control_interval;
    /* Cycles from an instruction on the fp32 pipe to one that needs its result (FFMA, FADD, FMUL). [cycle] */
    int64_t fp32_latency;
    /* Cycles from an instruction on the int pipe to one that needs its result (IADD3, IMAD, LOP3, LEA, SHF, MOV). [cycle] */
    int64_t int_latency;
    /* Cycles from an instruction on the fp16 pipe to one that needs its result (HFMA2, HADD2). [cycle] */
    int64_t fp16_latency;
    /* Cycles from an instruction on the fp64 pipe to one that needs its result (DFMA, DADD, DMUL). [cycle] */
    int64_t fp64_latency;
    /* Cycles from an instruction on the sfu pipe to one that needs its result (MUFU: exp2, rcp, rsqrt, tanh). [cycle] */
    int64_t sfu_latency;
    /* Cycles from an instruction on the tensor pipe to one that needs its result (HMMA steps). [cycle] */
    int64_t tensor_latency;
    /* Cycles from an instruction on the control pipe to one that needs its result (BRA, BAR and other control flow). [cycle] */
    int64_t control_latency;
    /* Cycles a shared-memory wavefront (128 B) holds the shared memory of the SM. [1/64 cycle] */
    int64_t smem_interval;
    /* Cycles between two wavefronts of a sub-core whose results come back to it; not below smem_interval. [1/64 cycle] */
    int64_t smem_return;
    /* Cycles more that shared memory is held for each issue slot that fp32 arithmetic loses to late operands beside its loads. [1/64 cycle] */
    int64_t smem_late;
    /* Wavefronts of shared memory that an SM queues: no warp runs further ahead of it. Where warp_order is oldest or greedy_oldest, the oldest of those that wait behind them goes first. [count] */
    int64_t smem_queue;
    /* Cycles from a copy into shared memory (cp.async) to the next op of its warp. [cycle] */
    int64_t copy_gap;
    /* Copies and loads from shared memory (blocks of nothing else, such as ldmatrix) that a sub-core queues, in the order in which they come, until their registers have been read; 0: as many as come, and copies leave when the unit begins the one before. Where warp_order is oldest or greedy_oldest. [count] */
    int64_t queue;
    /* Bytes a cycle that a sub-core reads of the registers of what it queues, 384 of a copy and 128 of a block of loads, in whole cycles. A copy leaves its queue when they have been read and the load/store unit has room for it. [count] */
    int64_t queue_read;
    /* Copies that have left their sub-core's queue and that the load/store unit has not begun. [count] */
    int64_t copy_queue;
    /* Cycles that each sector which a copy brings holds the array of L1 and shared memory. [1/64 cycle] */
    int64_t copy_hold;
    /* Lines that the load/store unit queues: no warp runs further ahead of it. [count] */
    int64_t lsu_queue;
    /* Loads from shared memory take a cycle of the load/store unit, each four wavefronts of them. [bool] */
    int64_t lsu_shared;
    /* Load to use of shared memory without conflicts; shuffles take as long. [cycle] */
    int64_t smem_latency;
    /* Wavefronts of a replayed access to shared memory: as many as some of the 32 banks holds different words of it, a wide one at least one for 8 B a lane; or counting the first word of each lane alone, whatever the width. [choice] */
    int64_t smem_conflicts;
    /* From the last arrival at a TB barrier to the next issue. [cycle] */
    int64_t barrier;
    /* Cycles that each warp takes to be counted at a barrier, one after another in an SM. [cycle] */
    int64_t barrier_warp;
    /* Behind a barrier the warps of a TB go on so many cycles one after another, in an order that is drawn for each TB (a hash of its SM and of how many came there before it) and stays, so that TBs that do the same drift apart; 0: all at once. [cycle] */
    int64_t barrier_leave;
    /* A TB gives up its place when its stores have left the SM (0: when L2 has acknowledged them). [bool] */
    int64_t leave_stores;
    /* Model issue slots lost to register-bank conflicts (0: none are lost). [bool] */
    int64_t register_ports;
    /* Which warp of a sub-core issues: the one that did last while it can and then the one that waits longest; all in turn; that of the oldest TB, also where warps wait for pipes or the load/store unit; or the one that did last while its compute blocks need not wait, nor have tensor instructions, and then that of the oldest TB. [choice] */
    int64_t warp_order;
    /* Longest compute block in instructions; kernel times stay within 2 % of length 1. [count] */
    int64_t block_max;
    /* Longest compute block in instructions of programs with tensor instructions, if less: those of older warps wait for its end. Recorded programs keep block_max. [count] */
    int64_t block_tensor;
} gs_gpu_sm_params;

typedef struct gs_gpu_l1_params {
    /* L1 and shared memory together; L1 has what the carve-out leaves. [B] */
    int64_t size;
    /* Of that, what neither L1 nor shared memory has. [B] */
    int64_t reserved;
    /* Load to use on a hit. [cycle] */
    int64_t latency;
    /* Line requests that an SM may have outstanding: of loads to registers, and of what has no limit of its own. [count] */
    int64_t in_flight;
    /* As many of copies into shared memory by themselves (0: they count among those of in_flight). Warps that wait for either go on in order. [count] */
    int64_t copies_in_flight;
    /* As many of stores and reductions by themselves (0: they count among those of in_flight). [count] */
    int64_t stores_in_flight;
    /* Lines that loads bring to registers hold the array of L1 and shared memory for a cycle each when they come (0: when they are asked for, as copies into shared memory do). [bool] */
    int64_t hold_late;
    /* L1 keeps the lines of stores, which go through to L2 all the same (0: it keeps those of loads). [bool] */
    int64_t keep_stores;
    /* A store to just the sectors of the warp's last store joins it on the way to L2; a third one does not. [bool] */
    int64_t join_stores;
} gs_gpu_l1_params;

typedef struct gs_gpu_noc_params {
    /* One way between SM and L2 slice, unloaded; bounds the quantum. [cycle] */
    int64_t latency;
    /* Cycles that replies take longer for each row of a GPC's TPCs behind its own, one of each cluster (CPC) a row; latencies of L2 and DRAM are means over all SMs. [1/64 cycle] */
    int64_t tpc_distance;
    /* Cycles that they take longer for each cluster of its GPC before its own. [1/64 cycle] */
    int64_t cluster_distance;
    /* Bytes a cycle that the reply port of an SM takes. [count] */
    int64_t reply_bytes;
    /* SMs that share a port to the network, both ways: 1, 2 or 4. [count] */
    int64_t port_sms;
    /* Cycles that each sector of a read request holds a port; a line's request holds it for one at least. [1/64 cycle] */
    int64_t read_sector;
    /* Loads of the same sectors by SMs of a GPC, or by one, that one request serves: they join the last one for the line in front of the L2 slice until its reply leaves (0 or 1: each asks for itself). [count] */
    int64_t join_loads;
    /* Bytes a cycle of L2's replies that a GPC takes from each group of four slices; its clusters of SMs (each third TPC) share them evenly (0: no limit). [count] */
    int64_t gpc_link;
    /* Bytes of store data a cycle that the request port of an SM sends. [count] */
    int64_t write_bytes;
    /* Cycles more that a line of a store holds it where bytes of the line's sectors are left out. [cycle] */
    int64_t write_partial;
} gs_gpu_noc_params;

typedef struct gs_gpu_l2_params {
    /* Capacity of the L2. [B] */
    int64_t size;
    /* L2 slices; each has a DRAM channel of its own. [count] */
    int64_t slices;
    /* Slices that the address hash picks from; those beyond gpu.l2.slices wrap to the first ones, which take more then (0: as many as there are). [count] */
    int64_t hash_slices;
    /* Load to use on an L2 hit, unloaded. [cycle] */
    int64_t latency;
    /* What DRAM delivers for a missing sector: 32, the sector, or 64, the aligned pair. [B] */
    int64_t fill;
    /* Bytes a cycle that a slice delivers. [count] */
    int64_t slice_bytes;
    /* Cycles that each load takes to enter a slice, whether it joins another or not; where loads join (gpu.noc.join_loads). One of more than 64 B that joins none takes gpu.l2.request besides. [1/64 cycle] */
    int64_t enter;
    /* Cycles that a slice takes to look up a load which joins none, apart from what it sends of others meanwhile. [1/64 cycle] */
    int64_t request;
    /* L2 keeps two lines a set with sectors that stores have written in part; when a third comes, it reads the rest of the one written least lately from DRAM, as it does when such a line is pushed out or loaded (0: such sectors count as whole); not with lru replacement. [bool] */
    int64_t open_lines;
    /* Cycles that each sector of a reduction holds a slice, if longer than other sectors do. [1/64 cycle] */
    int64_t update;
    /* Turn slices and sets by a hash of the address, so that strides spread (0: slice and set are the line's number, or with gpu.l2.chunked its quad's, lowest digits first, and strides camp on a few). [bool] */
    int64_t hash;
    /* Lines lie in slices as on an H200: of each 1 KiB lines 0, 1, 4 and 5 in one and 2, 3, 6 and 7 in one, which ones the remainder of a folded address by the slices (of a half) says; not with gpu.l2.hash_slices (0: lines in a row lie in slices in a row). [bool] */
    int64_t chunked;
    /* With gpu.l2.chunked: slices of a half, or of all if there is one partition, that have a unit of the hash to themselves, at most all; the others are two a unit, one of an odd number by itself. [count] */
    int64_t single;
    /* Halves of L2: with 2, SMs of one half keep copies of lines whose home lies in the other; not with lru replacement. [count] */
    int64_t partitions;
    /* Two partitions: one way between them. [cycle] */
    int64_t fabric_latency;
    /* Two partitions: what a load whose line lies in the other one alone takes beyond a hit (0: both ways and a tag). [cycle] */
    int64_t twin_latency;
    /* Two partitions: what a hit takes beyond one of a line whose home is the reader's half; gpu.l2.latency is the mean of both. [cycle] */
    int64_t far_latency;
    /* Two partitions: what can cross between them, both ways together; a store's line is 44 B and 29 B a sector, byte mask and address included (0: no limit). [MB/s] */
    int64_t fabric_bandwidth;
    /* Victim among the 16 ways of a set: random among those not referenced of late, least recently used, or the next one in turn that was not referenced since its last turn. [choice] */
    int64_t replacement;
    /* Random replacement: of 32 new lines, how many count as referenced at once; few, and scans do not push out what is in use. [count] */
    int64_t referenced;
} gs_gpu_l2_params;

typedef struct gs_gpu_dram_params {
    /* Peak bandwidth of all channels. [MB/s] */
    int64_t bandwidth;
    /* Load to use on an L2 miss with the row closed, unloaded, in SM cycles. [cycle] */
    int64_t latency;
    /* Banks a channel; a power of two. [count] */
    int64_t banks;
    /* The bank is the row's lowest bits xor higher ones (0: the lowest bits alone, so rows a power of two apart share one). [bool] */
    int64_t bank_hash;
    /* Bytes of a row that lie in one channel; a power of two. [B] */
    int64_t row_bytes;
    /* Precharge and activate (tRP + tRCD). [tick] */
    int64_t row_open;
    /* Least time between two activates of a bank (tRC). [tick] */
    int64_t row_cycle;
    /* Least time between two activates of a channel (tRRD, or a quarter of tFAW). [tick] */
    int64_t row_gap;
    /* Refresh interval (tREFI) of a channel, or of each bank where banks take turns. [tick] */
    int64_t refresh_period;
    /* A channel's bus is busy this long with each refresh (tRFC); where banks take turns, with each bank's. [tick] */
    int64_t refresh_time;
    /* Banks take turns: each is away this long with its refresh (tRFCpb) and its row closed, others go on (0: a channel's banks are refreshed together). [tick] */
    int64_t bank_refresh_time;
    /* Bus time lost to a batch of writes, both ways together. [tick] */
    int64_t turnaround;
    /* Bus time lost on top of it by a batch of writes that comes after reads. [tick] */
    int64_t read_turnaround;
    /* Sectors of writes that a channel may be behind; beyond that a line that pushes out a written one waits (0: no limit). [count] */
    int64_t write_queue;
    /* Sectors that a channel collects before it drains them as one batch. [count] */
    int64_t write_batch;
} gs_gpu_dram_params;

typedef struct gs_gpu_cp_params {
    /* From the first enqueue to the first dispatch on an idle GPU. [tick] */
    int64_t launch;
    /* Stream order: from a kernel's last release to the next kernel's dispatch. [tick] */
    int64_t stream_gap;
    /* Graph edge: from a kernel's last release to the next kernel's dispatch. [tick] */
    int64_t graph_gap;
    /* Graph edge: a kernel's dispatch comes at least this long after that of the one before it. [tick] */
    int64_t graph_prepare;
    /* Pool and table schemes admit kernels this far apart. [tick] */
    int64_t admit;
    /* One chip-wide server takes this long for each TB that ends. [tick] */
    int64_t tb_release;
    /* One chip-wide server takes this long for each TB that starts. [tick] */
    int64_t tb_start;
    /* TBs that go to SMs of one cluster (CPC, three a GPC) start this long one behind the other. [tick] */
    int64_t cluster_start;
    /* The first TB of an idle SM starts this long for each warp behind the first one of another SM of its TPC, where both get theirs at one time. [tick] */
    int64_t tpc_start;
    /* Warps of that TB that are waited for. [count] */
    int64_t tpc_warps;
    /* No SM takes more than ceil(TBs / SMs) TBs of a kernel. [bool] */
    int64_t even_tbs;
    /* Added to the gap before a kernel that starts beside running kernels of another stream. [tick] */
    int64_t beside;
    /* A TB goes to the SM with the fewest warps, ties in turn; or to the one with room for most more TBs of its kernel, ties to the first, and on an empty chip as an H200 places them: GPC by GPC, what is less than a round shared evenly among GPCs. [choice] */
    int64_t place;
    /* The order in which an empty chip's GPCs are filled (gpu.cp.place = room): by their number, or as measured on an H200, if there are 8 GPCs. [choice] */
    int64_t gpc_order;
    /* SMs of one GPC that take their even share of a cooperative kernel's TBs before others take one, and on an empty chip the first of any (gpu.cp.place = room). [count] */
    int64_t together;
    /* Programmatic dependent launch: from the last trigger to the dependent kernel's dispatch. [tick] */
    int64_t early_gap;
    /* The same inside a graph. [tick] */
    int64_t early_graph_gap;
    /* Kernels of a stream's programmatic launches that may be in flight at once. [count] */
    int64_t early_depth;
    /* The same inside a graph. [count] */
    int64_t early_graph_depth;
    /* From a kernel's last release until another may be in flight in its place. [tick] */
    int64_t early_reuse;
    /* From a kernel's last release to the return of the waits for its end. [tick] */
    int64_t depend;
    /* From L2's acknowledgement of a TB's last store, and of the flush behind it (gpu.cp.end_flush), until all of the GPU sees it and the TB counts as complete. [cycle] */
    int64_t tb_flush;
    /* 1: a TB that has stored sends a flush when it ends, which goes through L2 and back, however long ago the stores were acknowledged; not where gpu.cp.tb_flush is 0. [bool] */
    int64_t end_flush;
    /* From a TB's end on its SM to the release server, and from its completion to the scheduler. [tick] */
    int64_t tb_done_latency;
    /* From dispatch to the first issue of a TB. [tick] */
    int64_t tb_start_latency;
} gs_gpu_cp_params;

typedef struct gs_gpu_sync_params {
    /* A device-wide fence, beyond the acknowledgement of the stores before it. [cycle] */
    int64_t fence;
    /* A fence of the whole system, beyond the acknowledgement of the stores before it; no less than gpu.sync.fence. [cycle] */
    int64_t fence_system;
    /* Round trip of an atomic or an acquiring load within a partition of L2, no less than that of a load. [cycle] */
    int64_t latency;
    /* From a poll's reply to the next op of its warp, or its next poll. [cycle] */
    int64_t acquire;
    /* A post is acknowledged so much later than a store that arrives when it does; its TB is not complete before. [cycle] */
    int64_t posted;
    /* L2 takes this long for each atomic or poll of a line of semaphores. [tick] */
    int64_t atomic;
} gs_gpu_sync_params;

typedef struct gs_host_params {
    /* prefilled: all is enqueued before the GPU starts; eager: each launch costs host.launch. [choice] */
    int64_t submit;
    /* Host time of one launch. [tick] */
    int64_t launch;
    /* A graph is made anew: host time for each kernel in it, to add, instantiate and upload (measured: h200_graphs.csv, CUDA 13.0: 1.8 us on one host, 2.7 on another). [tick] */
    int64_t graph_node;
    /* The same for each edge of it (measured: h200_graphs.csv: 0.9 and 1.5 us). [tick] */
    int64_t graph_edge;
    /* Launch and synchronise: what scheme host pays between kernels. [tick] */
    int64_t roundtrip;
    /* Bytes from the host that come over the link, where copies take time (PCIe 3.0 x16 from pinned memory: users report 11 to 12.5 of the 15.75 that the standard signals; not measured). [MB/s] */
    int64_t copy_bandwidth;
    /* Before a copy's first byte, where copies take time (a synchronous copy is waited for as a launch is: host.roundtrip's value). [tick] */
    int64_t copy_latency;
} gs_host_params;

typedef struct gs_scheme_params {
    /* Kernels that table schemes admit at once. [count] */
    int64_t window;
    /* Among ready TBs: oldest kernel first, newest first, longest remaining path first, kernels in turn, or the kernel with most kernels one behind the other before it first. [choice] */
    int64_t priority;
    /* Table schemes: a TB goes where a slot is free; or no SM takes more than an even share of a kernel while an older one has not ended; or to the SM of its last producer where there is room. [choice] */
    int64_t placement;
    /* Placement affinity: ready TBs of a kernel that are looked at for one whose last producer ran where a slot has come free. [count] */
    int64_t affinity;
    /* Table schemes: share of all warps that stays free for the oldest kernel with TBs left, so that newer ones cannot starve it. [1/65536] */
    int64_t reserve;
    /* How data that another kernel wrote gets past L1: invalidate L1 at kernel start, read it past L1, or invalidate L1 at TB start. auto: kernel behind barriers, bypass else. [choice] */
    int64_t coherence;
    /* Shared-memory carve-out chosen a kernel or once for the job. auto: kernel behind barriers and, with gpu.sm.own_carveout, where kernels wait inside; job else. [choice] */
    int64_t carveout;
    /* Table schemes look past this many ready kernels whose TBs fit nowhere (barrier schemes: none). [count] */
    int64_t bypass;
    /* Schemes with edges of TBs: a TB may be dispatched to a slot that no ready one wants, runs what depends on no other kernel, and waits inside for its counter. [bool] */
    int64_t prologue;
    /* graph: the graph depends on the input, so the host makes it (host.graph_node, host.graph_edge) before its launch. [bool] */
    int64_t build;
    /* Schemes run on GPUs whose hardware lacks what they need, too. [bool] */
    int64_t hypothetical;
    /* A kernel passed over this often is passed over no more until it fits. [count] */
    int64_t bypass_age;
} gs_scheme_params;

typedef struct gs_scheme_table_params {
    /* Entries of the dependence table; a kernel that does not fit takes one and waits for whole kernels, and while none is free it is not admitted. [count] */
    int64_t entries;
    /* Consumer ranges that one entry holds. [count] */
    int64_t consumers;
    /* Bytes an entry. [B] */
    int64_t entry_bytes;
    /* TBs in a row may share a counter where edges of single TBs take too many updates or entries; 0: whole kernels are the only way out. [bool] */
    int64_t group;
    /* What a kernel waits for stays in memory until a TB of a kernel that it waits for is dispatched, and is brought in then, in the form for which there is room; not with scheme.prologue (0: it comes with the kernel's admission). [bool] */
    int64_t fetch;
    /* Lists of the counters that each TB's end is for lie in memory: those of resident TBs are brought in when they are dispatched, while there is room on the chip, others read when the TB ends. Counters of a whole kernel, or of TBs in a row, need no list; tb_learned, which works its lists out, pays for none (0: all lists are on the chip and cost nothing). [bool] */
    int64_t fetch_lists;
    /* With scheme.table.fetch_lists: entries on the chip for lists of resident TBs (our choice). [count] */
    int64_t lists;
    /* Counters that such an entry names, in 2 B each, used again as kernels leave the window (our choice). [count] */
    int64_t references;
    /* tb_static: the graph that is given is without edges that two others imply (where C waits for B and B for A, C need not wait for A), and nodes of the same TBs are one. It costs the table nothing. [bool] */
    int64_t reduce;
    /* A kernel whose TBs can share counters takes at most this share of the entries that are free; with fewer entries, more TBs share one (our choice). [1/65536] */
    int64_t share;
    /* A kernel's edges are kept TB by TB where the updates that all its producers' TBs on the chip ask for take no longer than this: what a TB is taken to last at least (assumed: a launch and a load from DRAM). [tick] */
    int64_t shortest;
    /* The table takes this long for each counter it updates (two banks that update one a nanosecond each). [tick] */
    int64_t update;
    /* From an update that frees a TB to the TB being ready. [tick] */
    int64_t latency;
} gs_scheme_table_params;

typedef struct gs_scheme_learned_params {
    /* tb_learned: ranges kept for each TB and argument, of reads and of writes; where a TB touches more, neighbours share one that holds all between them, too: edges are added, none lost (our choice). [count] */
    int64_t ranges;
    /* tb_learned: a range may be a run of bytes repeated at one distance, so that a tile of a matrix is one (0: runs of bytes alone). [bool] */
    int64_t strided;
    /* tb_learned: bytes of a range that is kept: offset, length, distance and count (our choice). [B] */
    int64_t entry_bytes;
    /* tb_learned: each range of a launch takes this long to compare with those in the pool, before its kernel is admitted (assumed: one a nanosecond). [tick] */
    int64_t lookup;
} gs_scheme_learned_params;

typedef struct gs_scheme_acs_params {
    /* Kernels in the window whose addresses are compared (Durvasula et al. 2024: 32, ids of 8 bits). [count] */
    int64_t window;
    /* acs_hw: from the oldest unfinished kernel to the newest in the window there are at most this many, those that the host remembers (the paper's M, which it does not state: assumed). [count] */
    int64_t list;
    /* acs_sw: threads of the host, each with a stream and a kernel in flight (the paper says configurable: assumed, CUDA's default number of connections). [count] */
    int64_t threads;
    /* acs_sw: the host puts a kernel into the window (with scheme.acs.check: through the paper's 410 and 700 ns for 6 and 10 segments and a window of 16, 510 and 1640 ns for one of 32). [tick] */
    int64_t insert;
    /* acs_sw: the host compares two segments, of the new kernel and of one in the window. [tick] */
    int64_t check;
} gs_scheme_acs_params;

typedef struct gs_scheme_blockmaestro_params {
    /* Kernels that are launched and have not ended, running ones included (Abdolrashidi et al. 2021: two to four, told apart by two bits). [count] */
    int64_t kernels;
    /* producer: no TB of a kernel is dispatched before all of older ones are; consumer: newer kernels first. [choice] */
    int64_t priority;
    /* Entries of the buffer of children and of that of counters, each (28 SMs of 32 TBs there). [count] */
    int64_t entries;
    /* Children that an entry lists. [count] */
    int64_t children;
    /* Parents that a TB may have: a counter of 6 bits; beyond, its kernel waits for the one before as a whole. [count] */
    int64_t parents;
    /* affine: of a kernel with addresses that were read from data (recorded ones) nothing is known: it waits for the kernel before, and those behind it for it, as a whole; exact: its edges are known as those of the others. [choice] */
    int64_t addresses;
} gs_scheme_blockmaestro_params;

typedef struct gs_scheme_wireframe_params {
    /* TBs that the buffer of the graph holds, from before their dispatch to their end (2 KB for both buffers is what is reported of Wireframe; how they divide is assumed). [count] */
    int64_t nodes;
    /* Entries for TBs that are counted down before they are in that buffer. [count] */
    int64_t pending;
    /* Bytes an entry of either (assumed). [B] */
    int64_t node_bytes;
} gs_scheme_wireframe_params;

typedef struct gs_scheme_bloom_params {
    /* tb_bloom: bits of a signature; each unit has two, of what it reads and of what it writes (our choice). [count] */
    int64_t bits;
    /* tb_bloom: hash functions of a signature (our choice). [count] */
    int64_t hashes;
    /* tb_bloom: memory is entered and looked up in such pieces (our choice). [B] */
    int64_t granule;
    /* tb_bloom: what has a signature of its own (a unit): a TB, scheme.bloom.group TBs one after another, or a kernel. A kernel that would take more than half of all signatures has larger groups. [choice] */
    int64_t per;
    /* tb_bloom: TBs of a group. [count] */
    int64_t group;
    /* tb_bloom: units that the scheduler's memory has room for, rounded up to 64; a kernel that finds too few is not admitted (our choice). [count] */
    int64_t signatures;
    /* tb_bloom: signatures are cleared when the last TB of their kernel has ended; or halves of the memory in turn, each when its last TB has ended. [choice] */
    int64_t clear;
    /* tb_bloom: time for each granule of a hint that is entered; one hint is entered for all its units at once (assumed: four banks that take one a nanosecond each). [tick] */
    int64_t insert;
    /* tb_bloom: time for each granule of a hint that is looked up, in all signatures at once (assumed: four banks that take one a nanosecond each). [tick] */
    int64_t lookup;
    /* tb_bloom: from a kernel's first look-up to its first answer (assumed). [tick] */
    int64_t latency;
    /* tb_bloom: hints name memory that the job never writes, too. [bool] */
    int64_t constants;
    /* tb_bloom: length of each hinted range in percent of what is touched; the rest lies on both sides. [count] */
    int64_t widen;
    /* tb_bloom: share of launches without a hint, picked by sim.seed; they run behind barriers. [1/65536] */
    int64_t missing;
    /* tb_bloom: bloom, or signatures of the same cost without false answers. [choice] */
    int64_t signature;
} gs_scheme_bloom_params;

typedef struct gs_scheme_queues_params {
    /* queues: the graph of kernels laid into queues, a kernel behind one that it needs or else into the next queue in turn; or a queue for each stream of the job, in order, with barrier packets for its events. [choice] */
    int64_t map;
    /* queues: queues that a graph is laid into. [count] */
    int64_t count;
    /* queues: queues that hardware looks at (gem5: 10). [count] */
    int64_t hardware;
    /* queues: packets that a queue holds; the host waits for room, in launch order (our choice; a power of two on real ones). [count] */
    int64_t ring;
    /* queues: the command processor takes this long for each packet of a queue, kernel or barrier (gpu.cp.admit of an H200 as a stand-in; gem5: 4400, measured on a Kaveri). [tick] */
    int64_t packet;
    /* queues: while there are more queues than hardware looks at, at such times one gets the place of one that has no kernel under way (gem5, after Puthoor et al. 2018: 100). [tick] */
    int64_t quantum;
    /* queues: one that can go on gets the place of one that cannot at once (what Puthoor et al. propose, in its simplest form). [bool] */
    int64_t aware;
} gs_scheme_queues_params;

typedef struct gs_scheme_sync_params {
    /* Semaphores: one a tile of what a kernel makes, one a row of tiles, one for tiles that are read together although they lie apart, or one for the tiles that a convolution reads. [choice] */
    int64_t policy;
    /* How kernels that wait inside the program overlap: two streams with gate kernels, programmatic dependent launch, or that inside a graph. [choice] */
    int64_t launch;
    /* Programmatic launch: a TB triggers at its start, or after its main loop. [choice] */
    int64_t trigger;
    /* Two streams: the gate before a kernel waits until all TBs of the kernel before have started, until the first has, or there is none. [choice] */
    int64_t gate;
    /* Each TB asks a counter and a table which tile is its own before it begins (the order is that of the grid). [bool] */
    int64_t order;
    /* A TB waits just before it loads what other kernels make, or before its first load of anything. [choice] */
    int64_t wait;
    /* A poll shows which semaphores behind its own are complete, and they are not polled again, or each is polled where it is first needed. [choice] */
    int64_t poll;
    /* What a TB fences before it posts: the device, or the whole system. [choice] */
    int64_t fence;
    /* Pad shared memory so that no SM holds more than an even share of a kernel's TBs. [bool] */
    int64_t spread;
    /* Stream order, and yet each TB polls and posts: the cost of the synchronisation code. [bool] */
    int64_t code;
    /* One persistent kernel: a grid barrier between stages, or semaphores of tiles. [choice] */
    int64_t fused;
} gs_scheme_sync_params;

typedef struct gs_sim_params {
    /* Parts run this long alone; 0: the smallest latency between parts. Results do not depend on it. [cycle] */
    int64_t quantum;
    /* Check every access against the exact footprints; stop at the first broken dependence. [bool] */
    int64_t oracle;
    /* The job is one of many like it, sim.pause between two: SM clocks are what gpu.power_limit leaves (pysim/results/power.py). A job that would take more is simulated again, up to three times. [bool] */
    int64_t sustained;
    /* Between two runs of a sustained job the board does nothing for so long. [tick] */
    int64_t pause;
    /* What a power limit leaves of the clocks of all SMs, those with busy tensor cores included; network, L2 and DRAM keep theirs. Chosen by the run where sim.sustained is set. [1/65536] */
    int64_t clock_share;
    /* Time series for each SM, L2 slice, DRAM channel and bank: length of an interval, at least 0.001 (0: none). Doubled as often as needed to stay within a million rows a run. [tick] */
    int64_t sample;
    /* Seed of everything random (L2 victims, when banks are refreshed, periods that replay simulates). [count] */
    int64_t seed;
    /* period: of a run of equal periods of kernels some are simulated, and the others take what their neighbours took; the error that adds is reported. [choice] */
    int64_t replay;
    /* Where replay may add more than this share to the time, as measured in the run, the whole job is simulated instead. [1/65536] */
    int64_t replay_error;
} gs_sim_params;

typedef struct gs_params {
    gs_gpu_params gpu;
    gs_gpu_sm_params gpu_sm;
    gs_gpu_l1_params gpu_l1;
    gs_gpu_noc_params gpu_noc;
    gs_gpu_l2_params gpu_l2;
    gs_gpu_dram_params gpu_dram;
    gs_gpu_cp_params gpu_cp;
    gs_gpu_sync_params gpu_sync;
    gs_host_params host;
    gs_scheme_params scheme;
    gs_scheme_table_params scheme_table;
    gs_scheme_learned_params scheme_learned;
    gs_scheme_acs_params scheme_acs;
    gs_scheme_blockmaestro_params scheme_blockmaestro;
    gs_scheme_wireframe_params scheme_wireframe;
    gs_scheme_bloom_params scheme_bloom;
    gs_scheme_queues_params scheme_queues;
    gs_scheme_sync_params scheme_sync;
    gs_sim_params sim;
} gs_params;
