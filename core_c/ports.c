/* What a GPC takes of L2's replies: see ports.h. */
#include "ports.h"

/* The clusters that still have to get something share the port for so long. */
static void pass(gs_port *port, u64 time)
{
    while (time) {
        u64 n = 0, least = GS_NEVER;
        for (u32 i = 0; i < GS_CLUSTERS; i++) {
            n += port->left[i] != 0;
            least = port->left[i] ? gs_min(least, port->left[i]) : least;
        }
        if (n == 0) {
            break;
        }
        u64 each = gs_min(least, (time + n - 1) / n);
        for (u32 i = 0; i < GS_CLUSTERS; i++) {
            port->left[i] -= port->left[i] ? each : 0;
        }
        time -= gs_min(time, each * n);
    }
}

/* The turn that has begun at `turned` is over. Returns 1 if anything was asked for in it or is left. */
static int turn_over(gs_sim *sim)
{
    gs_asked *asked = GS_TABLE(sim, gs_asked, at_asked);
    u64 busy = 0;
    sim->turned += sim->port_turn;
    for (u32 gpc = 0; gpc < sim->gpcs; gpc++) {
        gs_port *port = &sim->port[gpc];
        u64 all[GS_CLUSTERS] = {0};
        for (u32 i = gpc; i < sim->slice_boxes * sim->gpcs; i += sim->gpcs) {
            for (u32 j = 0; j < GS_CLUSTERS; j++) {
                all[j] += asked[i].of[j] * sim->port_sector >> 8;
            }
            asked[i] = (gs_asked){0};
        }
        for (u32 j = 0; j < GS_CLUSTERS; j++) {
            port->left[j] += all[j];
            busy |= port->left[j];
        }
        pass(port, sim->port_turn);
        for (u32 own = 0; own < GS_CLUSTERS; own++) {
            port->done[own] = sim->turned;
            port->rate[own] = 0;
            for (u32 j = 0; j < GS_CLUSTERS; j++) {
                port->done[own] += gs_min(port->left[j], port->left[own]);
                port->rate[own] += (gs_min(all[j], all[own]) << 16) / sim->port_turn;
            }
        }
    }
    return busy != 0;
}

void gs_ports_turn(gs_sim *sim, u64 now)
{
    while (sim->port_sector && now >= sim->turned + sim->port_turn) {
        if (!turn_over(sim)) {
            /* time has jumped, and nothing was asked for meanwhile */
            sim->turned = now - now % sim->port_turn;
        }
    }
}
