/* Scoreboard slots of memory ops, and where to wait for them. */
#pragma once
#include "trace/code.h"

/* A register's index below GS_REGISTERS; GS_REGISTERS: none (RZ, URZ, PT, UPT). */
u32 gs_lower_register(u16 reg);
int gs_lower_kind(const gs_lowering *l, u64 item);
/* All registers that an instruction reads or, from *reads on, writes. */
u32 gs_lower_operands(const gs_sass *s, gs_operand *out, u32 *reads);
/* Gives memory ops their slots and finds where to wait; 0: not enough memory. */
int gs_lower_slots(gs_lowering *l, u32 loops);
/* The slot of the group `back` before the current one at an item. */
gs_async_copy_slot gs_lower_copy_slot(const gs_lowering *l, u64 item, u32 back);
