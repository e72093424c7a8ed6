/* The TBs of all kernels as one graph, as in Wireframe. TBs enter a buffer level by level, as many as fit.
   A TB is dispatched only from the buffer and frees its entry when it has ended. A TB that is counted down
   before it is in the buffer takes an entry of a second buffer, the pending buffer, or is counted down in
   memory. Levels rise along every edge, so the first TB that has not ended waits for none. */
#pragma once
#include "base/state.h"

void gs_wavefront_fill(gs_sim *sim, u64 t);
void gs_wavefront_tb_end(gs_sim *sim, u64 t);
/* TBs that follow one another in the order have arrived. */
void gs_wavefront_loaded(gs_sim *sim, u32 first, u32 count, u64 t);
/* A TB that may not be in the buffer has been counted down. */
void gs_wavefront_pending(gs_sim *sim, u32 kernel, u32 tb);
