/* The dependence table: which conditions of kernels and TBs are met. */
#pragma once
#include "base/state.h"

/* 1: the table has room for the next kernel, at least for one entry that waits for whole kernels. */
int gs_table_has_room(const gs_sim *sim, u32 kernel);
void gs_table_admit(gs_sim *sim, u32 kernel, u64 t);
void gs_table_tb_end(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* `last`: the kernel whose TB ended last, itself or one before it. */
void gs_table_kernel_end(gs_sim *sim, u32 kernel, u32 last, u32 tb, u64 t);
void gs_table_event(gs_sim *sim, gs_event e);
/* A condition of a kernel as a whole is met. */
void gs_table_kernel_condition_met(gs_sim *sim, u32 kernel, u64 t, u32 cause_kernel, u32 cause_tb);
/* A condition is met of a TB, or of the TBs that share its counter. */
void gs_table_tb_condition_met(gs_sim *sim, u32 kernel, u32 unit, u64 t, u32 cause_kernel, u32 cause_tb);
/* When the table has finished `updates` counter updates for the end of a TB at time t, and the TBs that
   they release are ready, ticks. */
u64 gs_table_update_time(gs_sim *sim, u64 t, u32 updates, u32 kernel);
/* All conditions of a TB are met, in a kernel whose TBs have conditions of their own. */
void gs_table_tb_ready(gs_sim *sim, u32 kernel, u32 tb, u64 t, u32 cause_kernel, u32 cause_tb);
/* All conditions of the kernel are met: its ready TBs may be dispatched. */
void gs_kernel_ready(gs_sim *sim, u32 kernel, u64 t, u32 cause_kernel, u32 cause_tb);
/* 1: the end of a TB counts the node down in the table. */
int gs_table_counts_node(const gs_sim *sim, u32 node);
/* The table takes in a kernel's conditions, in the finest form that fits, from `form` on. */
void gs_table_enter_conditions(gs_sim *sim, u32 kernel, u32 form, u64 t);
/* 1: the entries are counters of TBs, in buffers. */
int gs_table_counts_tbs(const gs_sim *sim);
/* How many of a kernel's first `n` predecessors have not ended. */
u32 gs_unended_preds(const gs_sim *sim, u32 kernel, u32 n);
