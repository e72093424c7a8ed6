/* The dependence table: dependence_table.c. */
#pragma once
#include "base/state.h"

/* whether the table can take the next kernel, if need be with whole kernels to wait for */
int gs_table_has_room(const gs_sim *sim, u32 kernel);
void gs_table_admit(gs_sim *sim, u32 kernel, u64 t);
void gs_table_tb_end(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* `last`: the kernel whose TB ended last, itself or one before it */
void gs_table_kernel_end(gs_sim *sim, u32 kernel, u32 last, u32 tb, u64 t);
void gs_table_event(gs_sim *sim, gs_event e);
/* a condition of a kernel as a whole is met */
void gs_table_kernel_condition_met(gs_sim *sim, u32 kernel, u64 t, u32 cause_kernel, u32 cause_tb);
/* a condition of a TB is met, or of the TBs that share its counter */
void gs_table_tb_condition_met(gs_sim *sim, u32 kernel, u32 unit, u64 t, u32 cause_kernel, u32 cause_tb);
/* when the table has done counter updates for the end of a TB, and who is freed by them is ready */
u64 gs_table_update_time(gs_sim *sim, u64 t, u32 updates, u32 kernel);
/* a TB of a kernel with conditions of its TBs waits for nothing more */
void gs_table_tb_ready(gs_sim *sim, u32 kernel, u32 tb, u64 t, u32 cause_kernel, u32 cause_tb);
/* the TBs of a kernel whose conditions are all met become dispatchable */
void gs_kernel_ready(gs_sim *sim, u32 kernel, u64 t, u32 cause_kernel, u32 cause_tb);
/* 1: a TB's end counts a node down in the table */
int gs_table_counts_node(const gs_sim *sim, u32 node);
/* The table takes in what a kernel waits for, in one of its forms, from `form` on: the finest that fits. */
void gs_table_take_in(gs_sim *sim, u32 kernel, u32 form, u64 t);
/* 1: its entries are counters of TBs alone, in buffers. */
int gs_table_is_of_tbs(const gs_sim *sim);
/* How many of a kernel's first `n` predecessors have not ended. */
u32 gs_unended_preds(const gs_sim *sim, u32 kernel, u32 n);
