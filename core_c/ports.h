/* What a GPC takes of L2's replies. It has one port for all slices, which its clusters of SMs (CPCs) share
   evenly. Slices are simulated in groups, each alone for a quantum, so that a group knows of the port what
   all had asked for up to its last turn, and takes it that they go on as in that turn: the first requests
   after a pause never wait. A turn is as long as a quantum may be on the device, some hundred cycles,
   whatever sim.quantum. */
#pragma once
#include "mail.h"

/* A reply of so many sectors goes to that SM: returns how long it waits at time t. */
static inline u64 gs_port_take(gs_sim *sim, u32 group, u64 t, u32 sm, u32 sectors)
{
    if (!sim->port_sector) {
        return 0;
    }
    const u32 gpc = sim->gpc_of[sm], cluster = sim->cluster_of[sm];
    const gs_port *port = &sim->port[gpc];
    const u64 done = port->done[cluster] + (port->rate[cluster] * (t - sim->turned) >> 16);
    GS_TABLE(sim, gs_asked, at_asked)[(size_t)group * sim->gpcs + gpc].of[cluster] += sectors;
    return done > t ? done - t : 0;
}

/* Between quanta, the next of which begins at `now`: ports learn what was asked for in turns that are over.
 */
void gs_ports_turn(gs_sim *sim, u64 now);
