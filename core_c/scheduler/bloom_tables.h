/* The tables of hints and signatures: checks, and their places in the arena: bloom_tables.c. */
#include "base/state.h"
#pragma once

/* Places the tables in the arena: the end of it so far, and after. */
u64 gs_bloom_lay_out(gs_sim *sim, const gs_job *job, u64 end);
/* Refuses hints that are out of range. */
int gs_bloom_check(gs_sim *sim, const gs_job *job);
void gs_bloom_fill(gs_sim *sim, const gs_job *job);
