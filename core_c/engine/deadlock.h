/* Why nothing can happen: names the first TB that waits, and what it waits for. */
#include "base/state.h"
#pragma once

/* Says in the error what the first TB that waits, waits for, if that is why nothing can happen. */
int gs_deadlock_report(gs_sim *sim);
