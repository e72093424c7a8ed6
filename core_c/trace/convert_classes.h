/* Classes of warps with the same instructions: convert_classes.c. */
#pragma once
#include "trace/convert.h"

/* The class of the warp whose rows and accesses are at hand; the accesses' rules are brought up to date. */
int gs_class_of_warp(gs_convert *c, const u64 *addresses, const u32 *place, u32 *number);
