/* From the programs alone, in launch order: how many TB ends each access of a sector must come after. */
#pragma once
#include "oracle/oracle_state.h"

/* Takes in all kernels up to one that is admitted. */
void gs_oracle_take_in(gs_sim *sim, u32 kernel);
void gs_oracle_drop_kernel(gs_oracle_kernel *k);
/* What a TB does with a sector in a phase; NULL: it does not touch it. */
gs_oracle_touch *gs_oracle_touch_of(const gs_oracle_kernel *k, u32 tb, u32 phase, u64 sector);
