/* Threads of the host that launch a kernel each and wait for its end: host_launcher.c. */
#include "base/state.h"
#pragma once

void gs_host_launcher_take(gs_sim *sim, u32 kernel, u64 t, u32 cause_kernel, u32 cause_tb);
/* the end of a kernel has been seen */
void gs_host_launcher_release(gs_sim *sim, u32 kernel, u64 t);
