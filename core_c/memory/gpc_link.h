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
    u64 a = link->left[0], b = link->left[1], c = link->left[2], time = t - link->at;
    if (t <= link->at) {
        return;
    }
    link->at = t;
    if (!(a | b | c)) {
        return;
    }
    while (time) {
        u64 n = (u64)(a != 0) + (b != 0) + (c != 0);
        if (n == 0) {
            break;
        }
        /* of 0 less 1 is the greatest number: who has nothing queued is not the least */
        u64 least = gs_min(gs_min(a - 1, b - 1), c - 1) + 1, each = n == 3 ? time / 3 : time >> (n - 1);
        each = gs_min(least, each);
        if (each == 0) {
            link->at -= time; /* the remainder is too small to divide: the next call shares it */
            break;
        }
        a -= a ? each : 0;
        b -= b ? each : 0;
        c -= c ? each : 0;
        time -= each * n;
    }
    link->left[0] = a;
    link->left[1] = b;
    link->left[2] = c;
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
