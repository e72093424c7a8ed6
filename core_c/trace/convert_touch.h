/* What a TB touches, as runs of sectors: convert_touch.c. */
#pragma once
#include "trace/convert.h"

/* What an access touches is added to the runs of the TB at hand; gs_touch_end merges them. */
int gs_touch(gs_convert *c, const u64 *addresses, const gs_access *r, u32 tb);
int gs_touch_end(gs_convert *c);
