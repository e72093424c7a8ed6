/* The end of a quantum: checks, samples, and when the next one begins. */
#pragma once
#include "base/mailbox.h"
#include "engine/team.h"

/* One thread calls it when all threads have run a quantum. Returns GS_OK to go on, GS_DONE, GS_MORE or an
   error. */
int gs_end_quantum(gs_team *t, gs_ctx *ctx);
