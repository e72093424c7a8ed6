/* Barriers of a TB that count: named barriers, and transaction barriers that copies complete on. */
#pragma once
#include "base/state.h"

/* BARRIER with a number of warps: the warp counts at a named barrier, and waits until so many have. */
void gs_tb_barrier_sync(const gs_sim *sim, gs_sm *sm, u32 wi, const gs_iop *op, u64 c);
/* ARRIVE and AWAIT. 1: the warp goes on with its next op in this cycle. */
int gs_tb_barrier_op(const gs_sim *sim, gs_sm *sm, u32 wi, const gs_iop *op, u64 c);
/* The warp's slot is empty from cycle `done` on: its copies count at their barriers. */
void gs_tb_barrier_copied(gs_sm *sm, u32 wi, u32 slot, u32 done);
