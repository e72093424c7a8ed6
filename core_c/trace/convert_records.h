/* The end of a recorded kernel: results are handed out. Accesses whose rule failed later get the records that
   earlier warps lack, computed from the rule. */
#pragma once
#include "trace/convert.h"

/* Addresses of a fit's lanes for a warp at `place`. */
u32 gs_fit_addresses(const gs_convert *c, const gs_stream *s, const gs_fit *f, const u32 *place, u64 *out,
                     u32 *width);
