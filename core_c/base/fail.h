/* How a simulation fails: the first message stays. */
#pragma once
#include "base/state.h"

/* Sets the message and returns the code; the first error stays. */
int gs_fail(gs_sim *sim, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
