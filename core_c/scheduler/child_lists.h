/* Buffers for lists of children, or of nodes, and for counters of parents, that are in memory. */
#pragma once
#include "base/state.h"

void gs_child_lists_tb_start(gs_sim *sim, gs_resident *r);
void gs_child_lists_tb_end(gs_sim *sim, const gs_departed *tb);
/* A TB has ended: reads what is missing of its list. 1: it is counted when that has arrived. */
int gs_child_lists_read(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* Counts down a node's consumers; `wait` names what waits for counters that are in memory. */
void gs_child_lists_count(gs_sim *sim, u32 node, u32 wait);
