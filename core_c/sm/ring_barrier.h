/* Barriers of pipelined programs (Hopper's mbarriers in a ring of stages). A phase ends when as many have
   arrived as the barrier waits for, and all lines of the bulk copies among them. A warp's cursor says which
   barrier of a ring it means, and which phase. Times are in cycles. */
#pragma once
#include "base/mailbox.h"

/* RING_ARRIVE at cycle c, at the barriers of the TBs that the op names. 1: the warp goes on at once. */
int gs_ring_arrive(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c);
/* RING_WAIT at cycle c. */
int gs_ring_wait(const gs_sim *sim, gs_sm *sm, u32 wi, const gs_iop *op, u64 c);
/* MULTIPLY_WAIT at cycle c: until at most `count` groups of the warp's multiplies are under way. 1: it goes
   on at once. */
int gs_multiply_wait(gs_sm *sm, u32 wi, const gs_iop *op, u64 c);
/* CLUSTER at cycle c: a barrier of all warps of all TBs of the cluster. */
int gs_cluster_sync(gs_ctx *ctx, gs_sm *sm, u32 wi, u64 c);
/* Of a TB: one more has arrived at cycle `at`, and it announces so many lines; a phase has `need` arrivals.
 */
void gs_ring_count(const gs_sim *sim, gs_sm *sm, u32 slot, u32 ring, u32 need, u32 lines, u64 at);
/* Ends the phase if nothing is missing, and wakes who waits for it. */
void gs_ring_settle(const gs_sim *sim, gs_sm *sm, gs_ring_barrier *b);
/* Tells the barrier of another TB of the cluster, `rank`, the same; it hears at cycle `at`. */
void gs_ring_tell(gs_ctx *ctx, gs_sm *sm, u32 tb_slot, u32 rank, u32 ring, u32 need, u32 lines, u64 at);
/* A message of gs_ring_tell arrives. */
void gs_ring_told(const gs_sim *sim, gs_sm *sm, u64 pay, u64 c);
/* Ranks of the cluster that `to` (GS_TO_*) names, a bit each. */
u32 gs_ring_ranks(const gs_launch *l, u32 rank, u32 to);
/* A TB of a pipelined program starts. */
void gs_ring_start(gs_sm *sm, u32 slot, u64 warps);

/* The barrier that the op names, for the warp's cursor. */
static inline u32 gs_ring_of(const gs_sm *sm, u32 wi, const gs_iop *op)
{
    return op->count + (sm->pipeline[wi].cursor + (u32)op->count_plus) % op->stages;
}

/* A line that was announced, or will be, is here at cycle `at`. */
static inline void gs_ring_line(const gs_sim *sim, gs_sm *sm, u32 slot, u32 ring, u32 at)
{
    gs_ring_barrier *b = &sm->ring[slot][ring];
    b->last = gs_max32(b->last, at);
    if (--b->lines == 0) {
        gs_ring_settle(sim, sm, b);
    }
}
