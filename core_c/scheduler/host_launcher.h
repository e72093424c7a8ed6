/* Host threads that launch kernels (gs_order.launchers). Each takes the oldest kernel whose conditions are
   met, launches it, and waits until it observes its end. Their number limits the kernels in flight, and
   each kernel pays its launch latency. */
#pragma once
#include "base/state.h"

void gs_host_launcher_take(gs_sim *sim, u32 kernel, u64 t, u32 cause_kernel, u32 cause_tb);
/* A host thread has seen the end of a kernel. */
void gs_host_launcher_release(gs_sim *sim, u32 kernel, u64 t);
