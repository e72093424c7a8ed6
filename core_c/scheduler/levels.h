/* TBs in a buffer, in a given order: levels.c. */
#include "base/state.h"
#pragma once

void gs_levels_fill(gs_sim *sim, u64 t);
void gs_levels_end(gs_sim *sim, u64 t);
/* TBs that come one after another in the order */
void gs_levels_loaded(gs_sim *sim, u32 first, u32 count, u64 t);
/* a TB that may not be there has been counted down */
void gs_levels_pending(gs_sim *sim, u32 kernel, u32 tb);
