/* Placement: which SM takes the next TB. `hint`: the SM on which a TB has just ended, or GS_NONE. */
#pragma once
#include "base/state.h"

void gs_placement_init(gs_sim *sim);
u32 gs_placement_find(gs_sim *sim, u32 kernel, u32 hint, u32 *rotate);
/* Returns an SM with room on which the last producer of a ready TB ran, and sets *tb to that TB; or
   GS_NONE. */
u32 gs_placement_near_producer(gs_sim *sim, u32 kernel, u32 hint, u32 *rotate, u32 *tb);
void gs_placement_take(gs_sim *sim, u32 sm, u32 shape, u32 rotate, u32 *slot, u32 *configure);
void gs_placement_free(gs_sim *sim, u32 sm, u32 shape, u32 rotate, u32 slot);

/* Lists the SMs that have room for a TB of the kernel, in the order in which an empty chip is filled. */
u32 gs_placement_list(const gs_sim *sim, u32 kernel, gs_free_sm *out);
/* 1: the SM has room for a TB of the kernel, whose first warp sub-core *rotate takes. */
int gs_placement_fits(const gs_sim *sim, u32 kernel, u32 sm, u32 *rotate);
