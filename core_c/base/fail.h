/* Errors of a simulation: the first error is kept. */
#pragma once
#include "base/state.h"

/* Sets the message and returns the code, unless an error is set already. */
int gs_fail(gs_sim *sim, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
