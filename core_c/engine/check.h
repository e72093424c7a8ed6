/* Checks of a job: what its tables must hold before a simulation is created. */
#pragma once
#include "base/state.h"

/* Checks all tables but programs and hints. Needs the derived constants. */
int gs_check_job(gs_sim *sim, const gs_job *job);
