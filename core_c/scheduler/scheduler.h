/* The front end of the GPU: launch path, release and start servers, admission, dispatch and placement. It is
   one part; its events run in the order of (time, kind, arrival). */
#pragma once
#include "base/mailbox.h"

void gs_sched_init(gs_sim *sim);
void gs_sched_run(gs_ctx *ctx);
/* Time of the next event that needs no message; GS_NEVER: none. */
u64 gs_sched_next(const gs_sim *sim);

/* Declarations that the files of the scheduler share. */
enum {
    GS_EVENT_NODE,
    GS_EVENT_KERNEL_END,
    GS_EVENT_KERNEL_READY,
    GS_EVENT_COPY,
    GS_EVENT_PDL_SLOT,
    GS_EVENT_LAUNCHED,
    GS_EVENT_PRELAUNCHED,
    GS_EVENT_QUANTUM,
    GS_EVENT_LOADED,
    GS_EVENT_UNIT,
    GS_EVENT_FETCHED,
    GS_EVENT_SPILLED,
    GS_EVENT_LISTED,
    GS_EVENT_FOOTPRINTS,
    GS_EVENT_RECORDED
};

void gs_ring_push(gs_sim *sim, gs_ring *r, gs_event e);
static inline gs_event *gs_ring_head(gs_sim *sim, gs_ring *r)
{
    return (gs_event *)(void *)((char *)sim + r->at) + (r->head & r->mask);
}

static inline gs_node_state *gs_node_states(gs_sim *sim)
{
    return GS_TABLE(sim, gs_node_state, at_node_states);
}

static inline gs_tb_conditions *gs_tb_conditions_of(gs_sim *sim, const gs_kernel *k)
{
    return (gs_tb_conditions *)(void *)((char *)sim + k->tb_conditions_at);
}

/* A bit for each TB: ready and not dispatched. They follow the gs_tb_conditions. */
static inline u64 *gs_ready_bits(gs_sim *sim, const gs_kernel *k)
{
    return (u64 *)(void *)((char *)sim + k->tb_conditions_at + (u64)k->tbs * sizeof(gs_tb_conditions));
}
