/* Layout of the arena: the offset of every table in bytes, and the copy of the job's tables. */
#pragma once
#include "program/program.h"

/* Sets the offset of every table from sim, and returns the end of the last. gs_arena_fill copies the job
   there. */
u64 gs_arena_lay_out(gs_sim *sim, const gs_job *job, const gs_lowered *low, u32 shapes);
void gs_arena_fill(gs_sim *sim, const gs_job *job, const gs_lowered *low);
