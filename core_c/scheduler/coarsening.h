/* Forms of a kernel's nodes: the kernel's own, with a counter for each TB, or coarser forms in which
   consecutive TBs share a counter, with fewer entries and updates. Admission chooses the form that the
   table holds; until then the nodes of all forms are counted down. */
#pragma once
#include "base/state.h"

int gs_coarsening_check(gs_sim *sim, const gs_job *job);
void gs_coarsening_init(gs_sim *sim);
/* Form 0: the kernel's own nodes. */
gs_form gs_coarsening_form(const gs_sim *sim, u32 kernel, u32 form);
/* Table entries that a node takes. */
u32 gs_node_entries(const gs_sim *sim, const gs_node *n);
/* Entries that a form of a kernel's nodes takes; fills in how many conditions each unit of TBs waits for. */
u32 gs_coarsening_count(gs_sim *sim, u32 kernel, const gs_form *form);
/* Undoes gs_coarsening_count. */
void gs_coarsening_forget(gs_sim *sim, u32 kernel);
/* Returns the finest form that fits the table, from form `from` on, and fills in its conditions. *need: the
   table entries that it takes. A kernel with coarser forms gets only a share of the free entries
   (gs_order.share), so that later kernels find room. If no form fits it returns the number of forms + 1. */
u32 gs_coarsening_choose(gs_sim *sim, u32 kernel, u32 from, u32 waits, u32 *need);
