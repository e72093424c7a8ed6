/* Forms of nodes: coarsening.c. */
#include "base/state.h"
#pragma once

int gs_coarsening_check(gs_sim *sim, const gs_job *job);
void gs_coarsening_init(gs_sim *sim);
/* form 0: the kernel's own nodes */
gs_form gs_coarsening_form(const gs_sim *sim, u32 kernel, u32 form);
/* Table entries that a node takes. */
u32 gs_node_entries(const gs_sim *sim, const gs_node *n);
/* Entries that a form of a kernel's nodes takes; fills in how many conditions each unit of TBs waits for. */
u32 gs_coarsening_count(gs_sim *sim, u32 kernel, const gs_form *form);
/* Takes back what gs_coarsening_count has filled in. */
void gs_coarsening_forget(gs_sim *sim, u32 kernel);
/* Returns the finest form, from one on, that the table may take, with its conditions filled in, and the
   entries that it needs. A kernel that has coarser forms takes a share of what is free, so that kernels after
   it find room, too. One more than there are: none fits. */
u32 gs_coarsening_choose(gs_sim *sim, u32 kernel, u32 from, u32 waits, u32 *need);
