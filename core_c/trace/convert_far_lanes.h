/* Accesses with lanes 4 GiB or more apart. Of other accesses all pages between the lanes are laid out, so
   that lines keep their distances and the template is known at once. Here only the pages of the lanes are,
   and the template is known when all pages of the trace are. Until then the lines are kept as recorded. */
#pragma once
#include "trace/convert.h"

/* Records such an access; and the first and the last line of such a record. */
int gs_far_record(gs_convert *c, const gs_touched_line *lines, u32 n, gs_record *out);
void gs_far_span(const gs_convert *c, const gs_record *r, u64 *lo, u64 *last);
