/* Copies from the host at L2 (see host_copy.h). */
#pragma once
#include "base/mailbox.h"

/* A piece of a copy reaches a group of slices: writes the lines that map to them. */
void gs_l2_host_copy(gs_ctx *ctx, u32 group, const gs_msg *m);
