/* Copies from the host as the scheduler runs them, piece by piece: see memory/copy.h. */
#pragma once
#include "base/mailbox.h"

/* Plans the first piece; kernel: a launch with copies that is ready at time t. */
void gs_copy_engine_start(gs_sim *sim, u32 kernel, u64 t);
/* Sends a piece to the slices; 1: the copy has ended, else what comes next is planned. */
int gs_copy_engine_send(gs_ctx *ctx, u32 kernel, u32 piece, u64 t);

/* whether a launch is a copy that costs nothing */
static inline int gs_host_copy_is_free(const gs_sim *sim, u32 kernel)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    return l->copies && !l->copy_time;
}
