/* Twins: a line whose home is in the other partition of L2 may have a copy, its twin, in the slice opposite
   the home (see l2_partition.h). */
#pragma once
#include "base/mailbox.h"

/* A load of an SM on this side for a line whose home is opposite: answered from the twin if that has arrived,
   else forwarded to the home. */
void gs_l2_twin_load(gs_ctx *ctx, gs_slice *s, gs_set *set, const gs_sender *own, const gs_msg *m, u32 group);
/* The home reports a store to the side opposite. `written`: an SM there wrote these sectors, and the twin
   keeps them; else an SM on the home's side did, and the twin is out of date. */
void gs_l2_twin_send_store(gs_ctx *ctx, u32 group, u64 start, u64 pay, int written);
/* Such a report arrives: the sectors that the twin keeps, or none if it is dropped. */
void gs_l2_twin_store(gs_sim *sim, gs_slice *s, gs_set *set, u32 tag, u32 mask, u64 t);
/* At the home: a load of sectors that cross to the partition opposite already, or that joined a load there.
   They cross once, so that it holds nothing here. 0: the line was evicted, and must be fetched again. */
int gs_l2_reply_in_transit(gs_ctx *ctx, gs_slice *s, gs_set *set, const gs_sender *own, const gs_msg *m,
                           u32 sm);
