/* What a job's tables must hold before a simulation is made of them: check.c. */
#include "base/state.h"
#pragma once

/* Tables of a job, but programs and hints, refer to what there is; needs the derived constants. */
int gs_check_job(gs_sim *sim, const gs_job *job);
