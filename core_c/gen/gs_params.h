/* Generated from pysim/params.py by build.py. Do not edit. */
#pragma once
#include <stdint.h>

typedef struct gs_gpu_params {
    /* Streaming multiprocessors. [count] */
    int64_t sms;
    /* Clusters of SMs (GPCs), numbered in order and as even as whole TPCs allow; TBs are dispatched to them in turn. [count] */
    int64_t gpcs;
    /* SMs of a TPC; each TPC gets a TB before one of its SMs gets a second one. [count] */
    int64_t tpc_sms;
    /* SM clock. [ticks a cycle] */
    int64_t clock;
    /* SM clock of a GPC while its tensor cores are busy, as a share of gpu.clock (1: it does not change). [1/65536] */
    int64_t clock_tensor;
    /* Board power that a sustained job may take (sim.sustained; 0: no limit). [mW] */
    int64_t power_limit;
    /* Exponent: the energy of an event of an SM or of L2 is in proportion to this power of the clock, because the voltage falls with it. [1/65536] */
    int64_t power_slope;
} gs_gpu_params;

typedef struct gs_gpu_sm_params {
    /* Resident warps an SM; a multiple of 4. [count] */
    int64_t warps;
    /* Resident thread blocks an SM. [count] */
    int64_t tbs;
    /* 32-bit registers an SM. [count] */
    int64_t registers;
    /* Registers are allocated to a warp in units of this size. [count] */
    int64_t register_unit;
    /* Largest shared memory of an SM. [B] */
    int64_t smem;
    /* Shared memory is allocated to a TB in units of this size. [B] */
    int64_t smem_unit;
    /* Delay of a kernel's first TB on an SM for each 64 B of the kernel's parameters; kernels that do not state how many they read have none. [cycle] */
    int64_t parameters;
    /* A kernel that a stream launches beside running ones drops cached code and parameters: its TBs and theirs stall this long, if their kernels state how many parameters they read (not in a graph). [cycle] */
    int64_t refetch;
    /* A busy SM takes a TB only if it is set to at least the carve-out that the TB's kernel chooses (0: wherever the TB's own shared memory fits). [bool] */
    int64_t own_carveout;
    /* Shared memory of each TB that the system reserves. [B] */
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
    /* Cycles for which a shared-memory wavefront (128 B) holds the shared memory of the SM. [1/64 cycle] */
    int64_t smem_interval;
    /* Cycles between two wavefronts whose results return to a sub-core; not below smem_interval. [1/64 cycle] */
    int64_t smem_return;
    /* Extra cycles for which loads hold shared memory, for each issue slot that fp32 arithmetic beside them loses to late operands. [1/64 cycle] */
    int64_t smem_late;
    /* Wavefronts of shared memory that an SM queues; a warp stalls when the queue is full. With warp_order oldest or greedy_oldest, the oldest stalled warp goes first. [count] */
    int64_t smem_queue;
    /* Cycles from an async copy (cp.async) to the next op of its warp. [cycle] */
    int64_t copy_gap;
    /* Async copies and shared-memory loads (blocks of nothing else, such as ldmatrix) that a sub-core queues, in order, until their registers have been read (0: no limit, and an async copy leaves when the LSU begins the one before it). Needs warp_order oldest or greedy_oldest. [count] */
    int64_t queue;
    /* Register bytes a cycle that a sub-core reads for its queue: 384 for an async copy and 128 for a block of loads, in whole cycles. An async copy leaves the queue when its registers have been read and the LSU has room for it. [count] */
    int64_t queue_read;
    /* Async copies that have left their sub-core's queue and that the LSU has not begun. [count] */
    int64_t copy_queue;
    /* Cycles for which each sector that an async copy delivers holds the array of L1 and shared memory. [1/64 cycle] */
    int64_t copy_hold;
    /* Lines that the LSU queues; a warp stalls when the queue is full. [count] */
    int64_t lsu_queue;
    /* A load from shared memory takes a cycle of the LSU for each four wavefronts (0: none). [bool] */
    int64_t lsu_shared;
    /* Load to use of shared memory without conflicts; shuffles take as long. [cycle] */
    int64_t smem_latency;
    /* How wavefronts of a shared-memory access in a trace are counted. words: as many as the most different words in one of the 32 banks, at least one for each 8 B a lane; first_word: the same for the first word of each lane alone, whatever the width. [choice] */
    int64_t smem_conflicts;
    /* From the last arrival at a TB barrier to the next issue. [cycle] */
    int64_t barrier;
    /* Cycles to count each warp that arrives at a barrier, one after another in an SM. [cycle] */
    int64_t barrier_warp;
    /* After a barrier the warps of a TB resume this many cycles apart, in an order that is fixed for each TB (a hash of its SM and of its arrival number there), so that equal TBs drift apart (0: all at once). [cycle] */
    int64_t barrier_leave;
    /* A TB frees its slot when its stores have left the SM (0: when L2 has acknowledged them). [bool] */
    int64_t leave_stores;
    /* Model issue slots lost to register-bank conflicts (0: none are lost). [bool] */
    int64_t register_ports;
    /* Which warp of a sub-core issues. greedy: the last one while it can, then the one that has waited longest; round_robin: all in turn; oldest: that of the oldest TB, also among warps that wait for pipes or the LSU; greedy_oldest: the last one while its compute blocks need not wait and have no tensor instructions, then that of the oldest TB. [choice] */
    int64_t warp_order;
    /* Longest compute block in instructions; kernel times stay within 2 % of length 1. [count] */
    int64_t block_max;
    /* Longest compute block in instructions of programs with tensor instructions, if less than block_max; older warps wait for the end of a block. Programs from traces keep block_max. [count] */
    int64_t block_tensor;
} gs_gpu_sm_params;

typedef struct gs_gpu_bulk_params {
    /* From the end of a ring barrier's phase, or from the test of one that has ended, until the warp goes on. 0: the GPU has no ring barriers, bulk copies and clusters (it needs compute capability 9.0). [cycle] */
    int64_t test;
    /* From a warp's arrival at a ring barrier until it counts. [cycle] */
    int64_t arrive;
    /* From a bulk copy's issue until its first request leaves the SM. [cycle] */
    int64_t latency;
    /* Cycles that the unit for bulk copies takes for each line that it loads. [1/64 cycle] */
    int64_t line;
    /* To fetch the descriptor of a tensor: the first bulk copy of a kernel's tensor on an SM starts so much later. [cycle] */
    int64_t descriptor;
    /* Bytes of shared memory a cycle that a bulk store reads. [count] */
    int64_t store_bytes;
    /* From a bulk store's last byte that is read until its warp knows it. [cycle] */
    int64_t taken;
    /* Cycles that each line that arrives in shared memory delays asynchronous multiplies, which read their operands there. [1/64 cycle] */
    int64_t fill_delay;
    /* What an arrival at a barrier of another TB of the cluster takes longer than at an own one; bounds the quantum of jobs with clusters. [cycle] */
    int64_t cluster_latency;
    /* SMs of the last GPC that take clusters of more than two TBs, a multiple of 8 (0: all). [count] */
    int64_t cluster_rest;
} gs_gpu_bulk_params;

typedef struct gs_gpu_l1_params {
    /* L1 and shared memory together; L1 gets what the carve-out leaves. [B] */
    int64_t size;
    /* Part of size that neither L1 nor shared memory gets. [B] */
    int64_t reserved;
    /* Load to use on a hit. [cycle] */
    int64_t latency;
    /* Outstanding line requests of an SM: of loads to registers, and of other accesses without a limit of their own. [count] */
    int64_t in_flight;
    /* Outstanding line requests of async copies (0: they count in in_flight). Stalled warps of either kind proceed in order. [count] */
    int64_t copies_in_flight;
    /* Outstanding line requests of stores and reductions (0: they count in in_flight). [count] */
    int64_t stores_in_flight;
    /* Lines that loads fetch into registers hold the array of L1 and shared memory for a cycle each when they arrive (0: when they are requested, as for async copies). [bool] */
    int64_t hold_late;
    /* L1 allocates the lines of stores, which still go through to L2 (0: only those of loads). [bool] */
    int64_t keep_stores;
    /* A store to exactly the sectors of the warp's last store merges with it on the way to L2; a third one does not. [bool] */
    int64_t join_stores;
} gs_gpu_l1_params;

typedef struct gs_gpu_noc_params {
    /* One way between SM and L2 slice, unloaded; bounds the quantum. [cycle] */
    int64_t latency;
    /* Extra reply cycles for each row of TPCs in the GPC after the SM's own; a row has one TPC of each cluster (CPC). Latencies of L2 and DRAM are means over all SMs. [1/64 cycle] */
    int64_t tpc_distance;
    /* Extra reply cycles for each cluster (CPC) of the GPC before the SM's own. [1/64 cycle] */
    int64_t cluster_distance;
    /* Bytes a cycle that the reply port of an SM receives. [count] */
    int64_t reply_bytes;
    /* SMs that share a port to the network, both ways: 1, 2 or 4. [count] */
    int64_t port_sms;
    /* Cycles for which each sector of a read request holds a port; a line's request holds it for one at least. [1/64 cycle] */
    int64_t read_sector;
    /* Loads of the same sectors, by SMs of one GPC or by one SM, that share a request: they merge with the last request for the line at the L2 slice until its reply leaves (0 or 1: none merge). [count] */
    int64_t join_loads;
    /* Bytes a cycle of L2 replies that a GPC receives from each group of four slices; its clusters (CPCs: each third TPC) share them evenly (0: no limit). [count] */
    int64_t gpc_link;
    /* Bytes of store data a cycle that the request port of an SM sends. [count] */
    int64_t write_bytes;
    /* Extra cycles for which a store's line holds the port where the store does not write all bytes of its sectors. [cycle] */
    int64_t write_partial;
} gs_gpu_noc_params;

typedef struct gs_gpu_l2_params {
    /* Capacity of the L2. [B] */
    int64_t size;
    /* L2 slices; each has its own DRAM channel. [count] */
    int64_t slices;
    /* Slices that the address hash picks from; those beyond gpu.l2.slices wrap to the first ones, which then get more lines (0: as many as there are). [count] */
    int64_t hash_slices;
    /* Load to use on an L2 hit, unloaded. [cycle] */
    int64_t latency;
    /* Bytes that DRAM delivers for a missing sector: 32, the sector, or 64, the aligned pair. [B] */
    int64_t fill;
    /* Bytes a cycle that a slice delivers. [count] */
    int64_t slice_bytes;
    /* Cycles that each load takes to enter a slice, merged or not; only with gpu.noc.join_loads. A load of more than 64 B that merges with none also takes gpu.l2.request. [1/64 cycle] */
    int64_t enter;
    /* Cycles that a slice takes to look up a load that merges with none, while it sends other replies. [1/64 cycle] */
    int64_t request;
    /* L2 keeps two lines a set with partially written sectors. When a third comes, L2 reads the rest of the least recently written one from DRAM, as it does when such a line is evicted or loaded (0: partially written sectors count as whole); not with lru replacement. [bool] */
    int64_t open_lines;
    /* Cycles for which each sector of a reduction holds a slice, if longer than other sectors do. [1/64 cycle] */
    int64_t update;
    /* Slices and sets are chosen by a hash of the address, so that strides spread (0: by the line's number, or with gpu.l2.chunked by its quad's, lowest digits first, and strides camp on a few slices). [bool] */
    int64_t hash;
    /* Lines map to slices as on an H200: of each 1 KiB, lines 0, 1, 4 and 5 map to one slice and 2, 3, 6 and 7 to one; the slice is the remainder of a folded address by the number of slices (of a partition); not with gpu.l2.hash_slices (0: consecutive lines map to consecutive slices). [bool] */
    int64_t chunked;
    /* With gpu.l2.chunked: slices of a partition that are a unit of the hash by themselves, at most all; the others are two a unit, and one left over by itself. [count] */
    int64_t single;
    /* L2 partitions: with 2, SMs of one partition keep copies of lines whose home is the other; not with lru replacement. [count] */
    int64_t partitions;
    /* Two partitions: one way between them. [cycle] */
    int64_t fabric_latency;
    /* Two partitions: extra latency of a load whose line is cached in the other one alone, beyond a hit (0: both ways and a tag). [cycle] */
    int64_t twin_latency;
    /* Two partitions: extra latency of a hit whose home is the other partition, over one whose home is the reader's; gpu.l2.latency is the mean of both. [cycle] */
    int64_t far_latency;
    /* Two partitions: bandwidth between them, both ways together; a store's line is 44 B and 29 B a sector, byte mask and address included (0: no limit). [MB/s] */
    int64_t fabric_bandwidth;
    /* Victim among the 16 ways of a set. random: among those not recently referenced; lru: the least recently used; clock: the next in turn that was not referenced since the clock last passed it. [choice] */
    int64_t replacement;
    /* Random replacement: of 32 new lines, how many count as referenced at once; with few, scans do not evict lines in use. [count] */
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
    /* Bytes of a row in one channel; a power of two. [B] */
    int64_t row_bytes;
    /* Precharge and activate (tRP + tRCD). [tick] */
    int64_t row_open;
    /* Least time between two activates of a bank (tRC). [tick] */
    int64_t row_cycle;
    /* Least time between two activates of a channel (tRRD, or a quarter of tFAW). [tick] */
    int64_t row_gap;
    /* Refresh interval (tREFI) of a channel, or of each bank where banks are refreshed in turn. [tick] */
    int64_t refresh_period;
    /* Each refresh holds a channel's bus this long (tRFC); where banks are refreshed in turn, each bank's. [tick] */
    int64_t refresh_time;
    /* Banks are refreshed in turn: each is unavailable this long (tRFCpb) and its row is closed, while others go on (0: a channel's banks are refreshed together). [tick] */
    int64_t bank_refresh_time;
    /* Bus time lost to a batch of writes, both ways together. [tick] */
    int64_t turnaround;
    /* Further bus time lost to a batch of writes that follows reads. [tick] */
    int64_t read_turnaround;
    /* Sectors of writes that a channel may have queued; beyond that an eviction of a written line waits (0: no limit). [count] */
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
    /* Graph edge: least time from a kernel's dispatch to that of the next one. [tick] */
    int64_t graph_prepare;
    /* Pool and table schemes admit kernels this far apart. [tick] */
    int64_t admit;
    /* Time of one chip-wide server for each TB that ends. [tick] */
    int64_t tb_release;
    /* Time of one chip-wide server for each TB that starts. [tick] */
    int64_t tb_start;
    /* Time between two TB starts on SMs of one cluster (CPC, three a GPC). [tick] */
    int64_t cluster_start;
    /* Where two SMs of a TPC get their first TBs at the same time, the second one's starts this long later for each warp of the first one's. [tick] */
    int64_t tpc_start;
    /* Most warps of the first TB that gpu.cp.tpc_start counts. [count] */
    int64_t tpc_warps;
    /* No SM takes more than ceil(TBs / SMs) TBs of a kernel. [bool] */
    int64_t even_tbs;
    /* Added to the gap before a kernel that starts beside running kernels of another stream. [tick] */
    int64_t beside;
    /* SM of a TB. load: the one with the fewest warps, ties in turn; room: the one with room for most further TBs of its kernel, ties to the first, and on an empty chip as on an H200: GPC by GPC, where less than a full round is left shared evenly among GPCs. [choice] */
    int64_t place;
    /* Order in which an empty chip's GPCs are filled (gpu.cp.place = room): by number, or as measured on an H200, if there are 8 GPCs. [choice] */
    int64_t gpc_order;
    /* SMs of one GPC that get their even share of a cooperative kernel's TBs before others get one, and on an empty chip the first TBs of any kernel (gpu.cp.place = room). [count] */
    int64_t together;
    /* Programmatic dependent launch: from the last trigger to the dependent kernel's dispatch. [tick] */
    int64_t early_gap;
    /* As gpu.cp.early_gap, inside a graph. [tick] */
    int64_t early_graph_gap;
    /* Kernels of a stream's programmatic launches in flight at once. [count] */
    int64_t early_depth;
    /* As gpu.cp.early_depth, inside a graph. [count] */
    int64_t early_graph_depth;
    /* From a kernel's last release until another may be in flight in its slot. [tick] */
    int64_t early_reuse;
    /* From a kernel's last release until waits for its end return. [tick] */
    int64_t depend;
    /* From L2's acknowledgement of a TB's last store, and of the flush after it (gpu.cp.end_flush), until the store is visible to the whole GPU and the TB counts as complete. [cycle] */
    int64_t tb_flush;
    /* A TB that has stored sends a flush through L2 and back when it ends, however long ago its stores were acknowledged (0: none); not where gpu.cp.tb_flush is 0. [bool] */
    int64_t end_flush;
    /* From a TB's end on its SM to the release server, and from its completion to the scheduler. [tick] */
    int64_t tb_done_latency;
    /* From dispatch to the first issue of a TB. [tick] */
    int64_t tb_start_latency;
} gs_gpu_cp_params;

typedef struct gs_gpu_sync_params {
    /* A device-wide fence, beyond the acknowledgement of the stores before it. [cycle] */
    int64_t fence;
    /* A system-wide fence, beyond the acknowledgement of the stores before it; no less than gpu.sync.fence. [cycle] */
    int64_t fence_system;
    /* Round trip of an atomic or an acquiring load within a partition of L2, no less than that of a load. [cycle] */
    int64_t latency;
    /* From a poll's reply to the next op of its warp, or its next poll. [cycle] */
    int64_t acquire;
    /* Extra latency of the acknowledgement of a post over that of a store that arrives with it; the TB of the post is not complete before. [cycle] */
    int64_t posted;
    /* Time of L2 for each atomic or poll of a line of semaphores. [tick] */
    int64_t atomic;
} gs_gpu_sync_params;

typedef struct gs_host_params {
    /* prefilled: everything is enqueued before the GPU starts; eager: each launch costs host.launch. [choice] */
    int64_t submit;
    /* Host time of one launch. [tick] */
    int64_t launch;
    /* Host time for each kernel of a graph that is made anew: to add, instantiate and upload it (measured: h200_graphs.csv, CUDA 13.0: 1.8 us on one host, 2.7 on another). [tick] */
    int64_t graph_node;
    /* Host time for each edge of such a graph (measured: h200_graphs.csv: 0.9 and 1.5 us). [tick] */
    int64_t graph_edge;
    /* Launch and synchronise: the cost of scheme host between kernels. [tick] */
    int64_t roundtrip;
    /* Bandwidth of the link for bytes from the host, where copies take time (PCIe 3.0 x16 from pinned memory: users report 11 to 12.5 of the 15.75 that the standard signals; not measured). [MB/s] */
    int64_t copy_bandwidth;
    /* Time before a copy's first byte, where copies take time (a synchronous copy is waited for as a launch is: host.roundtrip's value). [tick] */
    int64_t copy_latency;
} gs_host_params;

typedef struct gs_scheme_params {
    /* Kernels that table schemes admit at once. [count] */
    int64_t window;
    /* Which ready TB goes first. oldest: of the oldest kernel; newest: of the newest; critical: of the longest remaining path; round_robin: kernels in turn; consumer: of the kernel with the longest chain of kernels before it. [choice] */
    int64_t priority;
    /* SM of a TB under table schemes. first_free: any with a free slot; balanced: as before, but no SM takes more than an even share of a kernel while an older one has not ended; affinity: that of its last producer, if it has room; ahead: as balanced, but only for the oldest kernel with TBs left, where its TBs start ahead of their gate (scheme.prologue). [choice] */
    int64_t placement;
    /* Placement affinity: ready TBs of a kernel that are searched for one whose last producer ran on the SM with a free slot. [count] */
    int64_t affinity;
    /* Table schemes: share of all warps that stays free for the oldest kernel with TBs left, so that newer ones cannot starve it. [1/65536] */
    int64_t reserve;
    /* How L1 is kept from serving old data of another kernel. kernel: invalidate L1 at kernel start; bypass: read such data past L1; tb: invalidate L1 at TB start; argument: L1 marks lines of arguments whose memory is overwritten, and a TB start invalidates the marked lines where they may be older than the TB's producers. auto: argument for pool, tb_*, blockmaestro and wireframe; bypass where TBs wait inside programs; else kernel. [choice] */
    int64_t coherence;
    /* Shared-memory carve-out chosen for each kernel or once for the job. auto: kernel for barrier schemes and, with gpu.sm.own_carveout, where kernels wait inside; else job. [choice] */
    int64_t carveout;
    /* Table schemes skip at most this many ready kernels whose TBs fit nowhere (barrier schemes: none). [count] */
    int64_t bypass;
    /* Schemes with edges between TBs: a TB may be dispatched to a slot that no ready one takes, runs its part that depends on no other kernel, and then waits inside for its counter. [bool] */
    int64_t prologue;
    /* graph: the graph depends on the input, so the host makes it (host.graph_node, host.graph_edge) before its launch. [bool] */
    int64_t build;
    /* Schemes also run on GPUs whose hardware lacks what they need. [bool] */
    int64_t hypothetical;
    /* A kernel that was skipped this often is not skipped again until it fits. [count] */
    int64_t bypass_age;
} gs_scheme_params;

typedef struct gs_scheme_table_params {
    /* Entries of the dependence table. A kernel that does not fit takes one entry and waits for whole kernels; while none is free it is not admitted. [count] */
    int64_t entries;
    /* Consumer ranges that one entry holds. [count] */
    int64_t consumers;
    /* Bytes of an entry. [B] */
    int64_t entry_bytes;
    /* Consecutive TBs may share a counter where edges of single TBs need too many updates or entries (0: such kernels wait for whole kernels). [bool] */
    int64_t group;
    /* A kernel's dependences stay in memory until a TB of a producer kernel is dispatched, and are fetched then, in the form for which there is room; not with scheme.prologue (0: they come with the kernel's admission). [bool] */
    int64_t fetch;
    /* The lists of counters that each TB's end decrements are stored in memory: those of resident TBs are fetched at dispatch while there is room on the chip, others are read when the TB ends. Counters of a whole kernel, or of consecutive TBs, need no list; tb_learned computes its lists and pays for none (0: all lists are on the chip at no cost). [bool] */
    int64_t fetch_lists;
    /* With scheme.table.fetch_lists: entries on the chip for lists of resident TBs (our choice). [count] */
    int64_t lists;
    /* Counters that such an entry names, 2 B each; numbers are reused as kernels leave the window (our choice). [count] */
    int64_t references;
    /* tb_static: the graph is given after transitive reduction (where C waits for B and B for A, C need not wait for A), and nodes of the same TBs are merged. It costs the table nothing. [bool] */
    int64_t reduce;
    /* A kernel whose TBs can share counters takes at most this share of the free entries; with fewer entries, more TBs share one (our choice). [1/65536] */
    int64_t share;
    /* A kernel's edges are kept TB by TB where the updates for all resident TBs of its producers take no longer than this: the least duration assumed of a TB (a launch and a load from DRAM). [tick] */
    int64_t shortest;
    /* Time of the table for each counter that it updates (two banks that update one a nanosecond each). [tick] */
    int64_t update;
    /* From an update that frees a TB until the TB is ready. [tick] */
    int64_t latency;
} gs_scheme_table_params;

typedef struct gs_scheme_learned_params {
    /* tb_learned: ranges kept for each TB and argument, for reads and for writes. Where a TB touches more, neighbouring ranges merge with what lies between them: edges are added, none lost (our choice). [count] */
    int64_t ranges;
    /* tb_learned: a range may be a run of bytes repeated at one distance, so that a tile of a matrix is one (0: contiguous bytes only). [bool] */
    int64_t strided;
    /* tb_learned: bytes of a kept range: offset, length, distance and count (our choice). [B] */
    int64_t entry_bytes;
    /* tb_learned: time to compare each range of a launch with those in the pool, before its kernel is admitted (assumed: one a nanosecond). [tick] */
    int64_t lookup;
} gs_scheme_learned_params;

typedef struct gs_scheme_acs_params {
    /* Kernels in the window whose addresses are compared (Durvasula et al. 2024: 32, ids of 8 bits). [count] */
    int64_t window;
    /* acs_hw: most kernels from the oldest unfinished one to the newest in the window, those that the host remembers (the paper's M, which it does not state: assumed). [count] */
    int64_t list;
    /* acs_sw: threads of the host, each with a stream and a kernel in flight (the paper calls it configurable; assumed: CUDA's default number of connections). [count] */
    int64_t threads;
    /* acs_sw: host time to put a kernel into the window (with scheme.acs.check: fitted to the paper's 410 and 700 ns for 6 and 10 segments and a window of 16, 510 and 1640 ns for one of 32). [tick] */
    int64_t insert;
    /* acs_sw: host time to compare a segment of the new kernel with one of a kernel in the window. [tick] */
    int64_t check;
} gs_scheme_acs_params;

typedef struct gs_scheme_blockmaestro_params {
    /* Kernels that are launched and have not ended, running ones included (Abdolrashidi et al. 2021: two to four, told apart by two bits). [count] */
    int64_t kernels;
    /* producer: no TB of a kernel is dispatched before all TBs of older kernels; consumer: newer kernels first. [choice] */
    int64_t priority;
    /* Entries of each of the two buffers, of children and of counters (28 SMs of 32 TBs there). [count] */
    int64_t entries;
    /* Children that an entry lists. [count] */
    int64_t children;
    /* Most parents of a TB (a counter of 6 bits); with more, its kernel waits for the one before as a whole. [count] */
    int64_t parents;
    /* affine: nothing is known of a kernel with recorded addresses or addresses read from data: it waits for the kernel before as a whole, and later ones wait for it as a whole; exact: its edges are known like those of others. [choice] */
    int64_t addresses;
} gs_scheme_blockmaestro_params;

typedef struct gs_scheme_wireframe_params {
    /* TBs that the graph buffer holds, from before their dispatch to their end (2 KB for both buffers is reported of Wireframe; how they divide is assumed). [count] */
    int64_t nodes;
    /* Entries for TBs whose counters are decremented before they are in that buffer. [count] */
    int64_t pending;
    /* Bytes of an entry of either buffer (assumed). [B] */
    int64_t node_bytes;
} gs_scheme_wireframe_params;

typedef struct gs_scheme_bloom_params {
    /* tb_bloom: bits of a signature; each unit has two, for reads and for writes (our choice: 32 KB in all). [count] */
    int64_t bits;
    /* tb_bloom: hash functions of a signature (our choice). [count] */
    int64_t hashes;
    /* tb_bloom: memory is inserted and looked up in granules of this size, and of larger ones (our choice: a sector). [B] */
    int64_t granule;
    /* tb_bloom: sizes of granules, each four times the one before; a range is made up of the largest that fit (1: of scheme.bloom.granule alone). [count] */
    int64_t levels;
    /* tb_bloom: hash values that a signature takes at most, as a share of its bits (0.7: half of the bits are set); where a launch would enter more, gaps between its ranges are filled, the smallest first (with one size of granule: no limit; our choice). [1/65536] */
    int64_t fill;
    /* tb_bloom: the unit that has its own signatures: a kernel, a TB or a group of scheme.bloom.group consecutive TBs. A kernel that would take more than half of all signatures has larger groups. part: a kernel, or one of scheme.bloom.parts parts of its TBs where no part reads, or writes, more than half of what the kernel does. [choice] */
    int64_t per;
    /* tb_bloom: parts into which scheme.bloom.per = part cuts a kernel (our choice). [count] */
    int64_t parts;
    /* tb_bloom: TBs of a group. [count] */
    int64_t group;
    /* tb_bloom: units for which the scheduler's memory has room, rounded up to 64; a kernel that finds too few is not admitted (our choice). [count] */
    int64_t signatures;
    /* tb_bloom: when signatures are cleared. kernel: when the last TB of their kernel has ended; epoch: half of the memory at a time, when the last TB of that half has ended. [choice] */
    int64_t clear;
    /* tb_bloom: time for each entry of a signature that is made; a hint enters the signatures of all its units at once (assumed: four banks that take one a nanosecond each). [tick] */
    int64_t insert;
    /* tb_bloom: time for each entry that is looked up, in all signatures at once (assumed: four banks that take one a nanosecond each). What lies within gpu.cp.admit, in which the next launch is read, delays nothing. [tick] */
    int64_t lookup;
    /* tb_bloom: from the first kernel's first lookup to its first answer; later lookups are pipelined (assumed). [tick] */
    int64_t latency;
    /* tb_bloom: hints also name memory that the job never writes. [bool] */
    int64_t constants;
    /* tb_bloom: length of each hinted range in percent of the bytes touched; the rest is split between both sides. [count] */
    int64_t widen;
    /* tb_bloom: share of launches without a hint, chosen by sim.seed; they run after barriers. [1/65536] */
    int64_t missing;
    /* tb_bloom: Bloom signatures, or exact ones of the same cost without false positives. [choice] */
    int64_t signature;
} gs_scheme_bloom_params;

typedef struct gs_scheme_auto_params {
    /* tb_auto: TBs of a kernel wait for TBs of another only if each needs less than this share of them; else for the whole kernel (set on 22 cases: RNNs, Transformers, stencils, wavefronts, a CNN; two GPUs). [1/65536] */
    int64_t share;
    /* tb_auto: the same if less than this share of a kernel's TBs wait for any TB of the other (set as scheme.auto.share). [1/65536] */
    int64_t waiting;
    /* tb_auto: edges that others imply are left out. [bool] */
    int64_t reduce;
    /* tb_auto: words of hints a launch may have: one for each strided range, and one or two more for rows and further loops; of a launch with more, operands are stated as a whole, or joined (our choice). [count] */
    int64_t hints;
    /* tb_auto: words of hints for which the scheduler has room; a kernel that finds too few is not admitted (our choice). [count] */
    int64_t store;
    /* tb_auto: counters for which the scheduler has room (our choice). [count] */
    int64_t counters;
    /* tb_auto: rules for which the scheduler has room: two hints that conflict, from which it computes which TBs wait for one that ends; a kernel that finds too few waits for whole kernels (our choice). [count] */
    int64_t rules;
    /* tb_auto: TBs of kernels that wait by TB, or are waited for by TB, of which the scheduler keeps the state (our choice). [count] */
    int64_t tbs;
    /* tb_auto: kernels after the oldest unfinished one that are admitted whatever form of their edges there is room for; later ones when there are counters for their exact edges (0: all are admitted at once; our choice). [count] */
    int64_t ahead;
    /* tb_auto: time for each comparison of a hint of a new launch with one of an unfinished launch (assumed: sixteen comparators of one a nanosecond each). [tick] */
    int64_t compare;
    /* tb_auto: time to set up a rule and its counters (assumed: a pipelined division a nanosecond). [tick] */
    int64_t rule;
    /* tb_auto: time to compute by a rule what the end of a TB counts down (assumed: eight units of a multiplication a nanosecond each). [tick] */
    int64_t evaluate;
    /* tb_auto: from a launch's first comparison to its first answer (assumed). [tick] */
    int64_t latency;
    /* tb_auto: length of each hinted range in percent of the bytes touched; the rest is split between both sides. [count] */
    int64_t widen;
    /* tb_auto: share of launches without a hint, chosen by sim.seed; they run after barriers. [1/65536] */
    int64_t missing;
} gs_scheme_auto_params;

typedef struct gs_scheme_queues_params {
    /* queues: how kernels map to queues. graph: a kernel goes into the queue of one that it depends on, else into the next queue in turn; stream: a queue for each stream of the job, in order, with barrier packets for its events. [choice] */
    int64_t map;
    /* queues: queues that a graph is mapped to. [count] */
    int64_t count;
    /* queues: queues that hardware processes at once (gem5: 10). [count] */
    int64_t hardware;
    /* queues: packets that a queue holds; the host waits for room, in launch order (our choice; a power of two on real ones). [count] */
    int64_t ring;
    /* queues: time of the command processor for each packet of a queue, kernel or barrier (gpu.cp.admit of an H200 as a stand-in; gem5: 4400, measured on a Kaveri). [tick] */
    int64_t packet;
    /* queues: with more queues than hardware processes at once, the period at which a waiting queue replaces one that has no kernel in flight (gem5, after Puthoor et al. 2018: 100). [tick] */
    int64_t quantum;
    /* queues: a queue that can proceed replaces one that cannot at once (the simplest form of what Puthoor et al. propose). [bool] */
    int64_t aware;
} gs_scheme_queues_params;

typedef struct gs_scheme_sync_params {
    /* Semaphores of a kernel's output. tile: one a tile; row: one a row of tiles; strided: one for tiles that are read together although they are apart; conv: one for the tiles that a convolution reads. [choice] */
    int64_t policy;
    /* How kernels that wait inside the program overlap. streams: two streams with gate kernels; pdl: programmatic dependent launch; graph: that inside a graph. [choice] */
    int64_t launch;
    /* Programmatic launch: a TB triggers at its start, or late, after its main loop. [choice] */
    int64_t trigger;
    /* Two streams: the gate before a kernel waits until all TBs of the kernel before have started, until the first has, or there is no gate (none). [choice] */
    int64_t gate;
    /* Each TB reads its tile from a counter and a table before it begins (the order is that of the grid). [bool] */
    int64_t order;
    /* late: a TB waits just before it loads the output of other kernels; early: before its first load of anything. [choice] */
    int64_t wait;
    /* run: a poll also returns which of the following semaphores are complete, and those are not polled; each: each is polled where it is first needed. [choice] */
    int64_t poll;
    /* Scope of the fence of a TB before it posts: the device, or the whole system. [choice] */
    int64_t fence;
    /* Pad shared memory so that no SM holds more than an even share of a kernel's TBs. [bool] */
    int64_t spread;
    /* Stream order in which each TB still polls and posts: the cost of the synchronisation code. [bool] */
    int64_t code;
    /* One persistent kernel: a grid barrier between stages, or semaphores of tiles. [choice] */
    int64_t fused;
} gs_scheme_sync_params;

typedef struct gs_sim_params {
    /* Parts run this long alone (0: the smallest latency between parts). Results do not depend on it. [cycle] */
    int64_t quantum;
    /* Check every access against the exact footprints; stop at the first broken dependence. [bool] */
    int64_t oracle;
    /* The job repeats with sim.pause between two runs: SM clocks are what gpu.power_limit leaves (pysim/results/power.py). A job above the limit is simulated again, up to three times. [bool] */
    int64_t sustained;
    /* Idle time of the board between two runs of a sustained job. [tick] */
    int64_t pause;
    /* Share of the clocks of all SMs that a power limit leaves, those with busy tensor cores included; network, L2 and DRAM keep theirs. The run chooses it where sim.sustained is set. [1/65536] */
    int64_t clock_share;
    /* Interval of the time series of each SM, L2 slice, DRAM channel and bank, at least 0.001 (0: none). It is doubled as often as needed for at most a million rows a run. [tick] */
    int64_t sample;
    /* Seed of everything random (L2 victims, when banks are refreshed, periods that replay simulates). [count] */
    int64_t seed;
    /* period: where a job repeats equal periods of kernels, some are simulated, and the others take the times of their neighbours; the error that this adds is reported. [choice] */
    int64_t replay;
    /* Where replay may add more than this share to the time, as measured in the run, the whole job is simulated instead. [1/65536] */
    int64_t replay_error;
} gs_sim_params;

typedef struct gs_params {
    gs_gpu_params gpu;
    gs_gpu_sm_params gpu_sm;
    gs_gpu_bulk_params gpu_bulk;
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
    gs_scheme_auto_params scheme_auto;
    gs_scheme_queues_params scheme_queues;
    gs_scheme_sync_params scheme_sync;
    gs_sim_params sim;
} gs_params;
