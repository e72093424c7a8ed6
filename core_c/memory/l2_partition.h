/* Two partitions of L2. A line has its home in one of them. Loads of SMs attached to the other partition look
   for a copy in the slice opposite the home; on a miss there they fetch one over the fabric between the
   partitions. Stores and reductions go to the home. A store that crosses the fabric leaves what it writes in
   the slice that it comes through; all others drop the copy. The opposite slice does not know when a copy
   arrives: until the latest time for that, further loads ask the home, which does. The copy is called the
   line's twin, to distinguish it from copies from the host. */
#pragma once
#include "base/mailbox.h"

/* Bit of a tag: the home is across the fabric from the sender. */
#define GS_ACROSS 0x8000u

/* The box of the opposite slices. */
static inline u32 gs_opposite_box(const gs_sim *sim, u32 box)
{
    return box >= sim->partition_boxes ? box - sim->partition_boxes : box + sim->partition_boxes;
}

/* 1: the group of slices is in the other partition than the SM. */
static inline int gs_is_across_partitions(const gs_sim *sim, u32 sm, u32 box)
{
    return (box >= sim->partition_boxes) != sim->partition_of[sm];
}

/* Takes a link to the other partition for some sectors at time t; returns how long they wait for it. The
   slices of a group share a link, so that traffic of a few slices does not wait for itself. Reductions of one
   sector pass as fast as an H200 adds to one address: they pay no line overhead. */
static inline u64 gs_partition_link_reserve(const gs_sim *sim, gs_slice *s, u64 t, u32 sectors, u32 kind)
{
    s -= s->id % GS_GROUP;
    u64 start = gs_max(t, s->partition_link_free);
    s->partition_link_free = start + (kind == GS_MSG_STORE ? sim->link_store : 0) +
                             (u64)sectors * sim->link_sector[kind == GS_MSG_LOAD];
    return start - t;
}

static inline u64 gs_pay_across(u64 pay, int to_home)
{
    return to_home ? pay & ~(u64)GS_ACROSS : pay | GS_ACROSS;
}

/* A sender from slices to slices, whose next quantum begins when this one ends. */
static inline gs_sender gs_sender_across(const gs_ctx *ctx, u32 id)
{
    const gs_sim *sim = ctx->sim;
    gs_sender s = gs_sender_make(ctx, id);
    s.q0 = ctx->q0 + sim->quantum;
    s.qn = (u32)ctx->qn + 1;
    s.far = (sim->far_limit - ctx->qn - 1) * sim->quantum;
    return s;
}
