/* Computes from the programs, in launch order, how many TB ends each access of a sector must follow. */
#pragma once
#include "oracle/oracle_state.h"

/* Adds the accesses of all kernels up to and including `kernel`, which is being admitted. */
void gs_oracle_add_kernels(gs_sim *sim, u32 kernel);
void gs_oracle_drop_kernel(gs_oracle_kernel *k);
/* A TB's accesses of a sector in a phase; NULL: it has none. */
gs_oracle_touch *gs_oracle_touch_of(const gs_oracle_kernel *k, u32 tb, u32 phase, u64 sector);
