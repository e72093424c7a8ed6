/* Coalescing: the lanes of an address pattern become lines and sectors once, for each offset that the base
   can have in a line. The hot loop then only adds the base. */
#pragma once
#include "program/program.h"

/* Checks a pattern and coalesces its lanes. */
int gs_coalesce_pattern(gs_sim *sim, const gs_job *job, u64 index, gs_lowered *l);
