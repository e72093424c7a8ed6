/* Which semaphore an op means, and which tile a TB of a persistent kernel takes next. */
#pragma once
#include "base/state.h"

/* The semaphore that an op names, for a TB at x, y, z; it may be out of range. */
u64 gs_semaphore_of(const gs_sim *sim, const gs_launch *l, const gs_iop *op, u32 x, u32 y, u32 z, u32 k);
/* The index, from the program's first op, at which the TB's next tile begins; sets *tile and its position. */
u32 gs_stage_next(const gs_sim *sim, const gs_program *p, const gs_iop *op, u32 tb, u32 tbs, u32 *tile,
                  u32 at[3]);
