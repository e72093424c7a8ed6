/* Nodes of the dependence table that are in memory, and are fetched when the first TB of a producer is
   dispatched (gs_order.fetch). */
#pragma once
#include "base/state.h"

/* A kernel is admitted. 1: its nodes stay in memory for now. */
int gs_table_stays_in_memory(gs_sim *sim, u32 kernel);
/* The first TB of a kernel is dispatched: nodes of the kernels that wait for it are fetched. */
void gs_table_fetch(gs_sim *sim, u32 kernel, u64 t);
/* A kernel's nodes have arrived. */
void gs_table_fetched(gs_sim *sim, u32 kernel, u64 t);
