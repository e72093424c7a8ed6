/* Address patterns of programs as the hot loop reads them: coalesce.c. */
#pragma once
#include "program/program.h"

/* Checks a pattern and coalesces its lanes, once for each offset that the base can have in a line. */
int gs_coalesce_pattern(gs_sim *sim, const gs_job *job, u64 index, gs_lowered *l);
