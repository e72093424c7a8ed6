/* Shapes of accesses: where the lanes are relative to each other, and how many shared-memory wavefronts that
   takes. */
#pragma once
#include "trace/convert.h"

/* The shape + 1 of an access with addresses `a` of the lanes in `mask`; 0: it is not kept. `waves`: its
   shared-memory wavefronts in the low half, those of the lanes' first words in the high half. */
int gs_lane_shape(gs_convert *c, const u64 *a, u32 mask, u32 width, u32 *shape, u32 *waves);
