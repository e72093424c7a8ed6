/* Address patterns of programs as the hot loop reads them: coalesce.c. */
#pragma once
#include "program/program.h"

/* More room in an array that grows; 0: no memory. */
int gs_grow(void **at, u64 *room, u64 need, size_t size);
/* ---- between the files of programs ---- */
int gs_coalesce_pattern(gs_sim *sim, const gs_job *job, u64 index, gs_lowered *l);
