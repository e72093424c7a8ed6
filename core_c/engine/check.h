/* Checks of a job, before a simulation is created from it. */
#pragma once
#include "base/state.h"

/* Checks all tables but programs and hints. Needs the derived constants. */
int gs_check_job(gs_sim *sim, const gs_job *job);
