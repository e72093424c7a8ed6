/* Derived constants of a simulation: latencies in ticks, reciprocals, the quantum. */
#pragma once
#include "base/state.h"

/* Derives them from sim->params and sim->order. On error it writes a message and returns a code. */
int gs_derive(gs_sim *sim);
