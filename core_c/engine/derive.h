/* Constants of a simulation that follow from its parameters: derive.c. */
#include "base/state.h"
#pragma once

/* Constants that follow from sim->params and sim->order; on error a message and a code. */
int gs_derive(gs_sim *sim);
