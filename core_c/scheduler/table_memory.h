/* Tables of the scheduler in memory: table_memory.c. */
#pragma once
#include "base/mailbox.h"

u64 gs_table_memory_lay_out(gs_sim *sim, u64 end);
void gs_table_memory_init(gs_sim *sim);
/* what is to happen behind the last answer to what is asked for it; its time: how long behind */
u32 gs_table_memory_await(gs_sim *sim, gs_event then);
/* Asks for bytes of a kernel's part from the `at`-th on; wait: 0, or whom the answer is for. */
void gs_table_memory_request(gs_sim *sim, u32 kernel, u64 at, u64 bytes, u32 update, u32 wait);
/* all has been asked for it at time t */
void gs_table_memory_requested(gs_sim *sim, u32 wait, u64 t);
/* the same of part of a TB's list */
void gs_table_memory_request_list(gs_sim *sim, u32 kernel, u32 tb, u32 first, u32 entries, u32 wait);
/* the same of footprints */
void gs_table_memory_request_footprints(gs_sim *sim, u64 at, u64 bytes, u32 update, u32 wait);
/* sends requests as long as there is room for answers */
void gs_table_memory_send(gs_ctx *ctx, u64 t);
void gs_table_memory_reply(gs_sim *sim, u64 pay, u64 t);
/* 1: so much waits to be sent that nobody should ask for more who can wait */
int gs_table_memory_is_congested(const gs_sim *sim);

/* whether tables of the scheduler lie in memory */
static inline int gs_table_memory_is_used(const gs_sim *sim)
{
    return sim->order.entry_bytes || sim->order.footprints;
}
