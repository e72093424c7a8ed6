/* Dependences found at admission: hints of the memory that a kernel will touch are looked up in Bloom
   signatures of the TBs that have not ended. TBs that share a signature are a unit. A unit takes a slot: a
   column in two bit tables, one of reads and one of writes. A row of a table covers all slots at once; the
   conjunction of the rows that a granule hashes to shows the units that may have touched it. The units that
   wait for a unit are a row of bits, too. A false positive adds a wait and never removes one. */
#pragma once
#include "base/state.h"

/* 1: there are slots for the next kernel. */
int gs_bloom_room(const gs_sim *sim, u32 kernel);
void gs_bloom_admit(gs_sim *sim, u32 kernel, u64 t);
void gs_bloom_tb_end(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* The last TB of a unit has ended, and the scheduler has learned it. */
void gs_bloom_unit_end(gs_sim *sim, u32 slot, u64 t);
