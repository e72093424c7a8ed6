/* What a GPC takes of L2's replies. Each group of slices has a link of its own to each GPC, which the GPC's
   clusters of SMs (CPCs) share evenly, cluster by cluster. A reply for several SMs that joined passes once.
   Every byte takes its time of the link, but when a reply passes is said when it is asked for: what other
   clusters ask later does not delay it, what DRAM answers takes the link when it is looked up, and one that a
   slice has for a time before the last one that was asked for finds the link as it was left by that. */
#pragma once
#include "base/state.h"

/* Up to time t, if it is later, clusters that are still to get something share the link. */
static inline void gs_gpc_link_pass(gs_gpc_link *link, u64 t)
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
            link->at -= time; /* what cannot be shared is for the next time */
            break;
        }
        for (u32 i = 0; i < GS_CLUSTERS; i++) {
            link->left[i] -= link->left[i] ? each : 0;
        }
        time -= each * n;
    }
}

/* A reply of so many sectors is there for that SM at time t: returns how long it waits for the link. */
static inline u64 gs_gpc_link_take(gs_sim *sim, u32 group, u64 t, u32 sm, u32 sectors)
{
    _Static_assert(GS_CLUSTERS == 3, "gs_gpc_link_pass shares by one, two and three");
    if (!sim->gpc_sector) {
        return 0;
    }
    gs_gpc_link *link =
        &GS_TABLE(sim, gs_gpc_link, at_gpc_links)[(size_t)group * sim->gpcs + sim->gpc_of[sm]];
    gs_gpc_link_pass(link, t);
    u64 *own = &link->left[sim->cluster_of[sm]], wait = 0;
    *own += sectors * sim->gpc_sector;
    for (u32 i = 0; i < GS_CLUSTERS; i++) {
        wait += gs_min(link->left[i], *own);
    }
    return wait - sectors * sim->gpc_sector;
}
