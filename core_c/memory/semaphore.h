/* Semaphores at L2. A semaphore is a counter in the slice that its line maps to. It is complete when it has
   been posted as often as it needs, and stays so. A TB that finds it incomplete subscribes at the slice: its
   polls are counted, not simulated, and the first of them that finds the semaphore complete is answered. */
#pragma once
#include "base/mailbox.h"
#include "memory/l2_partition.h"

/* A message of kind GS_MSG_SYNC arrives at a slice. */
void gs_semaphore_request(gs_ctx *ctx, const gs_sender *sender, gs_slice *s, const gs_msg *m);

/* Payload: semaphore 29 bits, number of the poll 3, look ahead 1, TB slot 6, what 3, kind 3, how many are
   complete 11 (of a post: its owner 12), slice 2, SM 2. */
enum { GS_SYNC_POST, GS_SYNC_POLL, GS_SYNC_TRIGGER, GS_SYNC_CONDITIONS_MET, GS_SYNC_REFETCH, GS_SYNC_RING };
enum { GS_SEMAPHORES = 1 << 29, GS_SEMAPHORES_A_LINE = 32 };

/* 1: the slice is in the other partition of L2. */
static inline u32 gs_sync_far(const gs_sim *sim, u32 sm, u32 slice)
{
    return sim->partition_boxes && gs_is_across_partitions(sim, sm, slice / GS_GROUP);
}

#define GS_SYNC_INDEX(p)        ((u32)((p) & (GS_SEMAPHORES - 1)))
#define GS_SYNC_POLL_NUMBER(p)  ((u32)((p) >> 29 & 7))
#define GS_SYNC_LOOK_AHEAD(p)   ((u32)((p) >> 32 & 1))
#define GS_SYNC_WHAT(p)         GS_PAY_SLOT(p)
#define GS_SYNC_COMPLETE_RUN(p) GS_PAY_L1(p)
