/* Tables of hints and signatures (bloom.h): checks, and their offsets in the arena. */
#pragma once
#include "base/state.h"

/* Reserves the tables in the arena, from its end so far; returns the new end. */
u64 gs_bloom_lay_out(gs_sim *sim, const gs_job *job, u64 end);
/* Refuses hints that are out of range. */
int gs_bloom_check(gs_sim *sim, const gs_job *job);
void gs_bloom_fill(gs_sim *sim, const gs_job *job);
