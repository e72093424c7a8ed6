/* Copies from the host, as the scheduler runs them, piece by piece: see memory/host_copy.h. */
#pragma once
#include "base/mailbox.h"

/* A copy is ready at time t (ticks): plans its first piece. */
void gs_copy_engine_start(gs_sim *sim, u32 kernel, u64 t);
/* Sends a piece to the slices and plans the next; 1: the copy has ended. */
int gs_copy_engine_send(gs_ctx *ctx, u32 kernel, u32 piece, u64 t);

/* 1: the launch is a copy that takes no time. */
static inline int gs_host_copy_is_free(const gs_sim *sim, u32 kernel)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    return l->copies && !l->copy_time;
}
