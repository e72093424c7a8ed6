/* Links from L2 to the GPCs. Each group of slices has a link to each GPC. The GPC's clusters of SMs (CPCs)
   share it evenly. A reply for several SMs that joined passes once. A reply's delay is computed when the
   request is served: later requests of other clusters do not add to it, and a miss takes the link when it is
   looked up, not when DRAM answers. A reply that is ready before the last one that was served sees the link
   as that one left it. */
#pragma once
#include "base/state.h"

/* Advances the link to time t: clusters with queued transfers share it evenly until then. */
static inline void gs_gpc_link_advance(gs_gpc_link *link, u64 t)
{
    u64 time = t > link->at ? t - link->at : 0;
    link->at = gs_max(t, link->at);
    while (time) {
        u64 n = 0, least = GS_NEVER;
        for (u32 i = 0; i < GS_CLUSTERS; i++) {
            n += link->left[i] != 0;
            least = link->left[i] ? gs_min(least, link->left[i]) : least;
        }
        if (n == 0) {
            break;
        }
        u64 each = gs_min(least, n == 3 ? time / 3 : time >> (n - 1));
        if (each == 0) {
            link->at -= time; /* the remainder is too small to divide: the next call shares it */
            break;
        }
        for (u32 i = 0; i < GS_CLUSTERS; i++) {
            link->left[i] -= link->left[i] ? each : 0;
        }
        time -= each * n;
    }
}

/* Reserves the link for a reply to `sm` that is ready at time t; returns how long it waits for the link,
   ticks. */
static inline u64 gs_gpc_link_reserve(gs_sim *sim, u32 group, u64 t, u32 sm, u32 sectors)
{
    _Static_assert(GS_CLUSTERS == 3, "gs_gpc_link_advance shares by one, two and three");
    if (!sim->gpc_sector) {
        return 0;
    }
    gs_gpc_link *link =
        &GS_TABLE(sim, gs_gpc_link, at_gpc_links)[(size_t)group * sim->gpcs + sim->gpc_of[sm]];
    gs_gpc_link_advance(link, t);
    u64 *own = &link->left[sim->cluster_of[sm]], hold = (u64)sectors * sim->gpc_sector, wait = 0;
    *own += hold;
    for (u32 i = 0; i < GS_CLUSTERS; i++) {
        wait += gs_min(link->left[i], *own);
    }
    return wait - hold;
}
