/* What a TB touches, as runs of sectors: convert_footprint.c. */
#pragma once
#include "trace/convert.h"

/* What an access touches is added to the runs of the TB at hand; gs_footprint_end merges them. */
int gs_footprint_add(gs_convert *c, const u64 *addresses, const gs_access *r, u32 tb);
int gs_footprint_end(gs_convert *c);
