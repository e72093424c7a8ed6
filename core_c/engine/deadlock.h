/* The message of a deadlock: the first TB that waits, and what it waits for. */
#pragma once
#include "base/state.h"

/* If TBs wait for semaphores or kernels, fails with a message that names the first. 0: none does. */
int gs_deadlock_report(gs_sim *sim);
