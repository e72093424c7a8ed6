/* Bounds of a launch's accesses: every address that its warps may form is within memory, so the hot loop need
   not check. */
#pragma once
#include "base/state.h"

/* Refuses a launch that could access beyond memory, or beyond its recorded accesses. Its program is
   checked. */
int gs_bounds_check(gs_sim *sim, const gs_job *job, u64 index);
