/* Dependence chains of compute blocks: code_chain.c. */
#pragma once
#include "trace/code.h"

/* 1: three of its sources come from one register bank. */
u32 gs_lower_bank_conflict(const gs_lowering *l, u64 item);
/* Gives the class's compute blocks, from op `first` on, their chains, and tells where to cut them. */
void gs_lower_chains(gs_lowering *l, u64 first);
