/* Queues of AQL packets (HSA), of which hardware serves a limited number at a time. */
#pragma once
#include "base/state.h"

void gs_aql_init(gs_sim *sim);
/* All kernels that a kernel waits for have ended; it sees that at time `at`. */
void gs_aql_barrier_met(gs_sim *sim, u32 kernel, u64 at, u64 t);
void gs_aql_kernel_end(gs_sim *sim, u32 kernel, u64 t);
void gs_aql_quantum(gs_sim *sim, u64 t);
