/* Queues of packets: aql_queues.c. */
#include "base/state.h"
#pragma once

void gs_aql_init(gs_sim *sim);
/* all that a kernel waits for has ended, and it sees it at time `at` */
void gs_aql_barrier_met(gs_sim *sim, u32 kernel, u64 at, u64 t);
void gs_aql_kernel_end(gs_sim *sim, u32 kernel, u64 t);
void gs_aql_quantum(gs_sim *sim, u64 t);
