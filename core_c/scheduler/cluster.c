/* Clusters: see cluster.h.

   As on an H200 (h200_place.csv): a GPC has units of eight SMs, and TPCs that are left over. Clusters of more
   than two TBs run in units alone. One GPC, here the last, has a single unit (gpu.bulk.cluster_rest). On an
   empty chip clusters go to the TPCs that it has left over, then to the first unit of each GPC in turn, then
   to the second ones, then to the other TPCs. */
#include "scheduler/cluster.h"

#include "base/clock.h"
#include "scheduler/dispatch.h"
#include "scheduler/placement.h"
#include "scheduler/scheduler.h"

#include <string.h>

enum { UNIT = 8 };

/* SMs first to before end, a unit or the TPCs left over of a GPC. */
typedef struct range {
    u32 first, end;
} range;

/* The SMs of a GPC that are filled in a phase, 0 to 3. */
static range range_of(const gs_sim *sim, u32 gpc, u32 phase)
{
    u32 first = gs_gpc_first(sim, gpc), end = gs_gpc_first(sim, gpc + 1),
        rest = (u32)sim->params.gpu_bulk.cluster_rest;
    int last = sim->order.gpcs[(u32)sim->params.gpu.gpcs - 1] == gpc && rest;
    u32 units = last ? rest / UNIT : (end - first) / UNIT, left = first + units * UNIT;
    if (phase == 0) {
        return last ? (range){left, end} : (range){0, 0};
    }
    if (phase == 3) {
        return last ? (range){0, 0} : (range){left, end};
    }
    /* more than two units are filled with the second ones */
    u32 from = first + (phase - 1) * UNIT;
    return from < left ? (range){from, phase == 1 ? from + UNIT : left} : (range){0, 0};
}

/* The first SMs of a range that have room for a TB, at most `size`; returns how many have. */
static u32 room_in(const gs_sim *sim, u32 kernel, range in, u32 size, u32 *sms, u32 *rotates)
{
    u32 n = 0;
    for (u32 sm = in.first; sm < in.end; sm++) {
        u32 rotate;
        if (gs_placement_fits(sim, kernel, sm, &rotate)) {
            if (n < size) {
                sms[n] = sm;
                rotates[n] = rotate;
            }
            n++;
        }
    }
    return n;
}

/* Where a cluster goes: in the first phase with room to the GPC with most of it, ties to the one that is
   filled first. 1: it has found room. */
static int find(const gs_sim *sim, u32 kernel, u32 size, u32 *sms, u32 *rotates)
{
    u32 best = 0, found[GS_CLUSTER_TBS], turned[GS_CLUSTER_TBS];
    for (u32 phase = size > 2; phase < (size > 2 ? 3 : 4) && !best; phase++) {
        for (u32 i = 0; i < (u32)sim->params.gpu.gpcs; i++) {
            u32 n = room_in(sim, kernel, range_of(sim, sim->order.gpcs[i], phase), size, found, turned);
            if (n >= size && n > best) {
                best = n;
                memcpy(sms, found, size * sizeof *sms);
                memcpy(rotates, turned, size * sizeof *rotates);
            }
        }
    }
    return best != 0;
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
    u32 sms[GS_CLUSTER_TBS], rotates[GS_CLUSTER_TBS];
    if (tb == GS_NONE || !find(sim, kernel, size, sms, rotates)) {
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
