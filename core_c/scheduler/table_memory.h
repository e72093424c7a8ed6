/* Tables of the scheduler in memory: entries that do not fit on the chip or have not been fetched. The
   scheduler reads and updates them through L2, as an SM does: one line request a cycle, at most
   gpu.l1.in_flight in flight, half of gpu.l2.latency in each direction. They are below the semaphores at
   the top of memory, kernel by kernel: counters or entries, then lists of TBs. The learned footprints of
   all kernels follow. Sizes are in bytes, times in ticks. */
#pragma once
#include "base/mailbox.h"

u64 gs_table_memory_lay_out(gs_sim *sim, u64 end);
void gs_table_memory_init(gs_sim *sim);
/* Registers an event that happens after the last reply to the requests made for it; then.time: ticks after
   that reply. Returns a handle for those requests, never 0. */
u32 gs_table_memory_await(gs_sim *sim, gs_event then);
/* Requests bytes of a kernel's part from the `at`-th on; wait: the event that waits for the reply, or 0. */
void gs_table_memory_request(gs_sim *sim, u32 kernel, u64 at, u64 bytes, u32 update, u32 wait);
/* The last request for the event was made at time t. */
void gs_table_memory_requested(gs_sim *sim, u32 wait, u64 t);
/* Requests `entries` entries of a TB's list, from entry `first` on. */
void gs_table_memory_request_list(gs_sim *sim, u32 kernel, u32 tb, u32 first, u32 entries, u32 wait);
/* Requests bytes of the learned footprints, from byte `at` on. */
void gs_table_memory_request_footprints(gs_sim *sim, u64 at, u64 bytes, u32 update, u32 wait);
/* Sends requests as long as there is room for replies. */
void gs_table_memory_send(gs_ctx *ctx, u64 t);
void gs_table_memory_reply(gs_sim *sim, u64 pay, u64 t);
/* 1: so many requests are queued that new ones should wait if they can. */
int gs_table_memory_is_congested(const gs_sim *sim);

/* 1: tables of the scheduler are in memory. */
static inline int gs_table_memory_is_used(const gs_sim *sim)
{
    return sim->order.entry_bytes || sim->order.footprints;
}
