/* Accesses whose lanes lie 4 GiB and more apart: convert_far_lanes.c. */
#pragma once
#include "trace/convert.h"

/* The same for lines 4 GiB and more apart (convert_far_lanes.c), and the first and the last line of such a
 * record.
 */
int gs_far_record(gs_convert *c, const gs_touched_line *lines, u32 n, gs_record *out);
void gs_far_span(const gs_convert *c, const gs_record *r, u64 *lo, u64 *last);
