/* TBs in a buffer, in a given order: wavefront_buffer.c. */
#include "base/state.h"
#pragma once

void gs_wavefront_fill(gs_sim *sim, u64 t);
void gs_wavefront_tb_end(gs_sim *sim, u64 t);
/* TBs that come one after another in the order */
void gs_wavefront_loaded(gs_sim *sim, u32 first, u32 count, u64 t);
/* a TB that may not be there has been counted down */
void gs_wavefront_pending(gs_sim *sim, u32 kernel, u32 tb);
