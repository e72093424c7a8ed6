/* Forms of nodes: coarsening.c. */
#include "base/state.h"
#pragma once

int gs_coarsening_check(gs_sim *sim, const gs_job *job);
void gs_coarsening_init(gs_sim *sim);
/* form 0: the kernel's own nodes */
gs_form gs_coarsening_form(const gs_sim *sim, u32 kernel, u32 form);
