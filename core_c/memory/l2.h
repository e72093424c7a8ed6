/* L2 slices: a group of them serves the messages of a quantum. */
#pragma once
#include "base/mailbox.h"

void gs_slices_run(gs_ctx *ctx, u32 box);
