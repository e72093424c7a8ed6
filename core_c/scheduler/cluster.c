/* Clusters: see cluster.h. A cluster goes to the GPC with room for most of its TBs, ties to the one that is
   filled first; in it, to the SMs that are filled first. */
#include "scheduler/cluster.h"

#include "base/clock.h"
#include "scheduler/dispatch.h"
#include "scheduler/placement.h"
#include "scheduler/scheduler.h"

/* SMs of a GPC that clusters of this size may use: of the last GPC only some take more than two TBs. */
static u32 end_of(const gs_sim *sim, u32 gpc, u32 size)
{
    u32 first = gs_gpc_first(sim, gpc), end = gs_gpc_first(sim, gpc + 1),
        rest = (u32)sim->params.gpu_bulk.cluster_rest;
    int last = sim->order.gpcs[(u32)sim->params.gpu.gpcs - 1] == gpc;
    return last && size > 2 && rest ? (u32)gs_min(end, first + rest) : end;
}

/* The first SMs of a GPC that have room for a TB, at most `size`; returns how many have. */
static u32 room_in(const gs_sim *sim, u32 kernel, u32 gpc, u32 size, u32 *sms, u32 *rotates)
{
    u32 each = (u32)sim->params.gpu.tpc_sms, first = gs_gpc_first(sim, gpc), end = end_of(sim, gpc, size),
        n = 0;
    /* a TPC's first SM before its second one */
    for (u32 k = 0; k < each; k++) {
        for (u32 sm = first + k; sm < end; sm += each) {
            u32 rotate;
            if (gs_placement_fits(sim, kernel, sm, &rotate)) {
                if (n < size) {
                    sms[n] = sm;
                    rotates[n] = rotate;
                }
                n++;
            }
        }
    }
    return n;
}

/* The first TB of the first cluster whose TBs are all ready; GS_NONE: there is none. */
static u32 ready_cluster(gs_sim *sim, u32 kernel, u32 size)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    if (!k->per_tb) {
        return k->next_tb;
    }
    const u64 *bits = gs_ready_bits(sim, k);
    for (u32 tb = 0; k->ready >= size && tb + size <= k->tbs; tb += size) {
        u32 n = 0;
        while (n < size && bits[(tb + n) >> 6] >> ((tb + n) & 63) & 1) {
            n++;
        }
        if (n == size) {
            return tb;
        }
    }
    return GS_NONE;
}

int gs_cluster_dispatch(gs_ctx *ctx, u32 kernel, u64 t)
{
    gs_sim *sim = ctx->sim;
    const u32 size = gs_cluster_tbs(gs_launches(sim) + kernel), tb = ready_cluster(sim, kernel, size);
    u32 best = 0, sms[GS_CLUSTER_TBS], rotates[GS_CLUSTER_TBS], found[GS_CLUSTER_TBS], turned[GS_CLUSTER_TBS];
    for (u32 i = 0; tb != GS_NONE && i < (u32)sim->params.gpu.gpcs; i++) {
        u32 n = room_in(sim, kernel, sim->order.gpcs[i], size, found, turned);
        if (n >= size && n > best) {
            best = n;
            for (u32 j = 0; j < size; j++) {
                sms[j] = found[j];
                rotates[j] = turned[j];
            }
        }
    }
    if (!best) {
        return 0;
    }
    gs_mates mates = {.n = (u8)size};
    const gs_sm_load *loads = GS_CONST_TABLE(sim, gs_sm_load, at_sm_loads);
    for (u32 j = 0; j < size; j++) {
        mates.sm[j] = (u16)sms[j];
        mates.slot[j] = (u8)gs_ctz(loads[sms[j]].tb_free);
    }
    for (u32 j = 0; j < size; j++) {
        mates.rank = (u8)j;
        gs_mates_of(sim, sms[j])[mates.slot[j]] = mates;
        gs_dispatch_one(ctx, kernel, gs_kernels(sim)[kernel].per_tb ? tb + j : GS_NONE, sms[j], rotates[j], 0,
                        t);
    }
    return 1;
}
