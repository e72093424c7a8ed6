/* Walks the program of one TB without timing: what it touches, how much work it is, how short it can be. */
#pragma once
#include "base/state.h"

/* bytes: those of the sectors in mask that are touched, where the oracle keeps them; NULL: all */
typedef void (*gs_tb_visit)(void *user, const gs_iop *op, u64 line, u32 mask, const gs_bytes *bytes);

/* Calls `visit` for every line that the memory ops of the TB touch, warp by warp in program order. */
void gs_tb_walk(const gs_sim *sim, u32 kernel, u32 tb, gs_tb_visit visit, void *user);
