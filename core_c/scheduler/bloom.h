/* Dependences found when a kernel is admitted: hints of what it will touch, looked up in Bloom signatures of
   the TBs that have not ended. TBs that share a signature are a unit; a unit takes a slot, which is a column
   in two tables of bits, one for what units read and one for what they write: a row of a table tells of all
   slots at once, and the rows that a granule hashes to, taken together, which units may have touched it. The
   units that wait for a unit are a row of bits, too. A false answer adds a wait and never takes one away. */
#include "base/state.h"
#pragma once

/* whether there are slots for the next kernel */
int gs_bloom_room(const gs_sim *sim, u32 kernel);
void gs_bloom_admit(gs_sim *sim, u32 kernel, u64 t);
void gs_bloom_tb_end(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* the last TB of a unit has ended, and the scheduler knows */
void gs_bloom_unit_end(gs_sim *sim, u32 slot, u64 t);
