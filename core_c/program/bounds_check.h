/* What a launch can reach: bounds_check.c. */
#include "base/state.h"
#pragma once

/* Addresses must lie below this. */
u64 gs_address_limit(const gs_sim *sim);
/* Refuses a launch that could leave memory or its recorded accesses; its program is checked. */
int gs_bounds_check(gs_sim *sim, const gs_job *job, u64 index);
