/* Classes of warps with the same instructions, and rules by which the addresses of their accesses depend on
   TB and warp. An access whose rule fails is recorded from that warp on. */
#pragma once
#include "trace/convert.h"

/* The class of the current warp, by its rows and accesses; updates the rules of the accesses. */
int gs_class_of_warp(gs_convert *c, const u64 *addresses, const u32 *place, u32 *number);
