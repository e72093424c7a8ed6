/* Dependence chains of compute blocks. */
#pragma once
#include "trace/code.h"

/* 1: three of the instruction's sources are in one register bank. */
u32 gs_lower_bank_conflict(const gs_lowering *l, u64 item);
/* Sets the chains of the class's compute blocks, from op `first` on, and where to cut them. */
void gs_lower_chains(gs_lowering *l, u64 first);
