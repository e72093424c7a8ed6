/* Twins: a line whose home is in the other partition of L2 may have a copy, its twin, in the slice opposite
   the home (see l2_partition.h). */
#pragma once
#include "base/mailbox.h"

/* A load of an SM on this side for a line whose home is opposite: answered from the twin if that has arrived,
   else forwarded to the home. */
void gs_l2_twin_load(gs_ctx *ctx, gs_slice *s, gs_set *set, const gs_sender *own, const gs_msg *m, u32 group);
/* The home sends a store on to the opposite slice. `written`: an SM there wrote these sectors, and the twin
   keeps them; else an SM of the home's partition did, and the twin is dropped. */
void gs_l2_twin_send_store(gs_ctx *ctx, u32 group, u64 start, u64 pay, int written);
/* A message of gs_l2_twin_send_store arrives. mask: the sectors that the twin keeps; 0: the twin is
   dropped. */
void gs_l2_twin_store(gs_sim *sim, gs_slice *s, gs_set *set, u32 tag, u32 mask, u64 t);
/* At the home: a load of sectors that already cross the fabric, or that joined such a load. They cross once,
   so that it holds neither port nor link here. 0: the line has been evicted and must be fetched again. */
int gs_l2_reply_in_transit(gs_ctx *ctx, gs_slice *s, gs_set *set, const gs_sender *own, const gs_msg *m,
                           u32 sm);
