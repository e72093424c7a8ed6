/* How the lanes of an access lie to each other: convert_shape.c. */
#pragma once
#include "trace/convert.h"

/* The shape + 1 of an access with addresses `a` of the lanes in `mask`; 0: it has none that is worth to be
   kept. `waves`: its wavefronts in shared memory in the low half, those of the lanes' first words in the high
   half. */
int gs_lane_shape(gs_convert *c, const u64 *a, u32 mask, u32 width, u32 *shape, u32 *waves);
