/* Generated from pysim/counters.py by build.py. Do not edit. */
#pragma once
#include <stdint.h>

typedef struct gs_stalls {
    /* Warps held an issue slot; sum over warps. [warp-cycle] */
    uint64_t issued;
    /* Warps waited for a fixed-latency result; sum over warps. [warp-cycle] */
    uint64_t scoreboard;
    /* Warps waited for an issue slot, a pipe or the LSU; sum over warps. [warp-cycle] */
    uint64_t pipe;
    /* Warps waited for loads, stores or request credits; sum over warps. [warp-cycle] */
    uint64_t memory;
    /* Warps waited at a TB barrier; sum over warps. [warp-cycle] */
    uint64_t barrier;
    /* Warps waited in the program for other TBs: at semaphores, grid barriers, for ends of kernels; sum over warps. [warp-cycle] */
    uint64_t sync;
} gs_stalls;

typedef struct gs_idles {
    /* SM time without a TB while the next TBs wait for others to end. [tick] */
    uint64_t dependence;
    /* SM time without a TB while the next kernel is on the launch path. [tick] */
    uint64_t launch;
    /* SM time without a TB while no TB is left to dispatch. [tick] */
    uint64_t no_tb;
} gs_idles;

typedef struct gs_work {
    /* Busy time of the fp32 pipes, cycles lost to late operands included; sum over sub-cores. [1/64 cycle] */
    uint64_t fp32;
    /* Busy time of the integer pipes; sum over sub-cores. [1/64 cycle] */
    uint64_t int_;
    /* Busy time of the fp16 pipes; sum over sub-cores. [1/64 cycle] */
    uint64_t fp16;
    /* Busy time of the fp64 pipes; sum over sub-cores. [1/64 cycle] */
    uint64_t fp64;
    /* Busy time of the special-function pipes; sum over sub-cores. [1/64 cycle] */
    uint64_t sfu;
    /* Busy time of the tensor pipes; sum over sub-cores. [1/64 cycle] */
    uint64_t tensor;
    /* Busy time of the control pipes; sum over sub-cores. [1/64 cycle] */
    uint64_t control;
    /* Busy time of shared memory. [1/64 cycle] */
    uint64_t smem;
    /* Warp instructions issued. [count] */
    uint64_t warp_instructions;
    /* Program ops executed. [count] */
    uint64_t ops;
    /* Lines that loads looked up in L1 or that bypassed it. [count] */
    uint64_t l1_lines;
    /* Lines that hit in L1. [count] */
    uint64_t l1_hits;
    /* Lines that merged with a miss in flight. [count] */
    uint64_t l1_merged;
    /* 32 B sectors requested from L2 by loads. [count] */
    uint64_t load_sectors;
    /* 32 B sectors sent to L2 by stores and reductions. [count] */
    uint64_t store_sectors;
    /* Line requests sent to L2. [count] */
    uint64_t l2_requests;
} gs_work;

typedef struct gs_held {
    /* Time with at least one TB, from its first issue to its end. [tick] */
    uint64_t busy;
    /* Time of all resident TBs, added up. [tick] */
    uint64_t tb_time;
    /* Time of all taken warp slots, added up; a TB keeps those of all its warps to its end. [tick] */
    uint64_t warp_time;
} gs_held;

typedef struct gs_l2 {
    /* Look-ups of lines: a load that misses here and goes on to the other L2 partition counts in both slices. [count] */
    uint64_t requests;
    /* Sectors asked for by loads. [count] */
    uint64_t sectors_read;
    /* Sectors of loads that merged with a request of another SM of the GPC. [count] */
    uint64_t joined;
    /* Sectors written by stores. [count] */
    uint64_t sectors_written;
    /* Sectors of the scheduler's tables that it read from memory; part of sectors_read. [count] */
    uint64_t table_read;
    /* Sectors of the scheduler's tables that it updated or wrote; part of sectors_written. [count] */
    uint64_t table_written;
    /* Requests that needed no read of DRAM or of the other L2 partition; stores allocate without a read. [count] */
    uint64_t hits;
    /* Hits that waited for a fill in flight; part of hits. [count] */
    uint64_t pending_hits;
    /* Time that the slice's data port was held. [tick] */
    uint64_t busy;
    /* Sectors read from the slice's DRAM channel. [count] */
    uint64_t dram_read_sectors;
    /* Sectors written back to DRAM. [count] */
    uint64_t dram_write_sectors;
    /* DRAM accesses to an open row. [count] */
    uint64_t row_hits;
    /* DRAM accesses that opened a row. [count] */
    uint64_t row_misses;
    /* Time that the channel's data bus was held. [tick] */
    uint64_t bus_busy;
} gs_l2;

typedef struct gs_banks {
    /* Reads of the bank; writes drain in batches that name no bank. [count] */
    uint64_t accesses;
    /* Rows opened. [count] */
    uint64_t activates;
} gs_banks;

/* fields of each struct: all are uint64_t, so a struct may be added up as an array */
enum {
    GS_STALLS_N = 6,
    GS_IDLES_N = 3,
    GS_WORK_N = 16,
    GS_HELD_N = 3,
    GS_L2_N = 14,
    GS_BANKS_N = 2,
};
