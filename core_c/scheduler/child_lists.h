/* Lists of children, or nodes, and counters of parents in buffers: child_lists.c. */
#pragma once
#include "base/state.h"

void gs_child_lists_tb_start(gs_sim *sim, gs_resident *r);
void gs_child_lists_tb_end(gs_sim *sim, const gs_departed *tb);
/* reads what of the list of the TB that ends is in memory; 1: it is counted when that has come */
int gs_child_lists_read(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* counts for a node's consumers; what `wait` names waits for those whose counters are in memory */
void gs_child_lists_count(gs_sim *sim, u32 node, u32 wait);
