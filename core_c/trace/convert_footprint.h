/* Footprints of TBs, as runs of sectors, for dependences between TBs. */
#pragma once
#include "trace/convert.h"

/* Adds what an access touches to the runs of the current TB; gs_footprint_end merges them. */
int gs_footprint_add(gs_convert *c, const u64 *addresses, const gs_access *r, u32 tb);
int gs_footprint_end(gs_convert *c);
