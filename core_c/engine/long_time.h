/* Runs of more than a second. Where state keeps a time in 32 bits, it is a distance from a point that moves
   on with simulated time: the cycles of an SM count from one, and the fill times of L2 are near the present.
 */
#pragma once
#include "base/state.h"

/* Simulated time jumps from `before` to sim->q0; nothing happens between. Called between quanta. */
void gs_long_time_advance(gs_sim *sim, u64 before);
