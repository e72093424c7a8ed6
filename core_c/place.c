/* Which SM takes the next TB: the least loaded one that has room, ties in round robin order; or the one with
   room for most TBs of the kernel, ties to the first (gpu.cp.place). An empty chip is filled evenly; a full
   one takes the next TB where one has just ended. */
#include "scheduler.h"

static int fits(const gs_sim *sim, const gs_smload *l, const gs_shape *s, u32 *rotate)
{
    if (!l->tb_free) {
        return 0;
    }
    u32 free_smem = l->tbs ? l->carveout - l->smem : s->carveout;
    if (s->smem > free_smem || (l->tbs && l->carveout < s->least)) {
        return 0;
    }
    u32 each = s->warps / 4, more = s->warps % 4, best = 0;
    for (u32 i = 1; more && i < 4; i++) {
        best = l->warps[i] > l->warps[best] ? i : best;
    }
    for (u32 i = 0; i < 4; i++) {
        u32 sub = (best + i) & 3, w = each + (i < more);
        if (l->warps[sub] < w || l->registers[sub] < w * s->units) {
            return 0;
        }
    }
    (void)sim;
    *rotate = best;
    return 1;
}

/* about how many TBs of a shape an SM has room for; exactly so where their warps share out evenly */
static u32 room_of(const gs_smload *l, const gs_shape *s)
{
    u32 warps = l->warps[0] + l->warps[1] + l->warps[2] + l->warps[3],
        units = l->registers[0] + l->registers[1] + l->registers[2] + l->registers[3],
        n = (u32)gs_min(gs_popcount64(l->tb_free), warps / s->warps);
    n = (u32)gs_min(n, units / gs_max32(1, s->warps * s->units));
    return s->smem ? (u32)gs_min(n, ((l->tbs ? l->carveout : s->carveout) - l->smem) / s->smem) : n;
}

/* SMs in turn: the clusters one after another, and in each the first SM of every TPC before a second one, so
   that a few TBs spread over clusters and TPCs as they do on an H200. */
void gs_place_init(gs_sim *sim)
{
    u16 *turns = GS_TABLE(sim, u16, at_turns);
    u32 each = (u32)sim->params.gpu.tpc_sms, gpcs = (u32)sim->params.gpu.gpcs;
    u32 tpcs = (sim->sms + each - 1) / each, size = tpcs / gpcs, longer = tpcs % gpcs, n = 0;
    for (u32 k = 0; k < (size + 1) * each; k++) {
        for (u32 g = 0; g < gpcs; g++) {
            u32 own = size + (g < longer), first = g * size + (u32)gs_min(g, longer);
            u32 sm = own ? (first + k % own) * each + k / own : sim->sms;
            if (k < own * each && sm < sim->sms) {
                turns[n++] = (u16)sm;
            }
        }
    }
}

/* 1: the SM has its even share of the kernel's TBs already */
static int has_share(const gs_sim *sim, u32 sm, u32 kernel)
{
    const gs_resident *r = GS_CONST_TABLE(sim, gs_resident, at_residents) + sm * GS_TBS;
    const gs_smload *l = GS_CONST_TABLE(sim, gs_smload, at_smloads) + sm;
    u32 all = sim->params.gpu_sm.tbs == 32 ? ~0u : (1u << sim->params.gpu_sm.tbs) - 1, n = 0;
    for (u32 left = all & ~l->tb_free; left; left &= left - 1) {
        n += r[gs_ctz(left)].kernel == kernel;
    }
    return n >= (GS_CONST_TABLE(sim, gs_kernel, at_kernels)[kernel].tbs + sim->sms - 1) / sim->sms;
}

u32 gs_place_near(gs_sim *sim, u32 kernel, u32 hint, u32 *rotate, u32 *tb)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    const gs_smload *loads = GS_CONST_TABLE(sim, gs_smload, at_smloads);
    const gs_shape *s = GS_CONST_TABLE(sim, gs_shape, at_shapes) + k->shape;
    const gs_fine *fine = gs_fine_of(sim, k);
    const u64 *bits = gs_fine_bits(sim, k);
    u32 left = sim->order.affinity;
    for (u32 w = 0; left && w <= (k->tbs - 1) / 64; w++) {
        for (u64 ready = bits[w]; left && ready; ready &= ready - 1, left--) {
            u32 i = w * 64 + gs_ctz(ready), sm = fine[i].sm;
            /* a slot has come free there; or, of the first one, anywhere */
            if (sm != GS_NO_SM && (hint == GS_NONE || sm == hint || left == sim->order.affinity) &&
                fits(sim, &loads[sm], s, rotate)) {
                *tb = i;
                return sm;
            }
        }
    }
    return GS_NONE;
}

/* The first SMs of the turn take their even share of a cooperative kernel, a TB each in turn, before others
   do (as an H200 does). */
static u32 find_together(const gs_sim *sim, u32 kernel, const gs_shape *s, u32 *rotate)
{
    const gs_smload *loads = GS_CONST_TABLE(sim, gs_smload, at_smloads);
    const u16 *turns = GS_CONST_TABLE(sim, u16, at_turns);
    u32 best = GS_NONE, load = GS_NONE, count = (u32)gs_min((u64)sim->params.gpu_cp.together, sim->sms);
    for (u32 i = 0; i < count; i++) {
        u32 sm = turns[i], r;
        if (loads[sm].warps_used < load && fits(sim, &loads[sm], s, &r) && !has_share(sim, sm, kernel)) {
            best = sm;
            load = loads[sm].warps_used;
            *rotate = r;
        }
    }
    return best;
}

/* The SM with room for most more TBs of the kernel, the first of those. Until a TB has ended rooms only
   shrink: no SM has more than the last one that was found, and those before it have less. */
static u32 find_room(const gs_sim *sim, u32 kernel, gs_shape *s, int even, u32 *rotate)
{
    const gs_smload *loads = GS_CONST_TABLE(sim, gs_smload, at_smloads);
    const u16 *turns = GS_CONST_TABLE(sim, u16, at_turns);
    const u64 now = sim->sched.releases + 1;
    const int known = s->found == now && !even;
    u32 most = known ? s->room : GS_NONE;
    s->found = even ? 0 : now;
    for (u32 first = known ? s->place : 0;; first = 0) {
        u32 best = GS_NONE, room = 0;
        for (u32 i = first; i < sim->sms && room < most; i++) {
            const gs_smload *l = &loads[turns[i]];
            u32 turn;
            if (fits(sim, l, s, &turn) && !(even && has_share(sim, turns[i], kernel))) {
                u32 n = gs_max32(1, room_of(l, s));
                if (n > room) {
                    room = n;
                    best = i;
                    *rotate = turn;
                }
            }
        }
        if (first == 0 || room >= most) {
            s->room = room;
            s->place = best;
            return best == GS_NONE ? GS_NONE : turns[best];
        }
        most--; /* none has as much as that any more */
    }
}

u32 gs_place_find(gs_sim *sim, u32 kernel, u32 hint, u32 *rotate)
{
    const int even =
        sim->params.gpu_cp.even_tbs || (sim->order.placement == 1 && kernel > sim->sched.unfinished);
    u32 shape = gs_kernels(sim)[kernel].shape;
    gs_smload *loads = GS_TABLE(sim, gs_smload, at_smloads);
    gs_shape *s = GS_TABLE(sim, gs_shape, at_shapes) + shape;
    const u16 *turns = GS_CONST_TABLE(sim, u16, at_turns);
    gs_sched *d = &sim->sched;
    /* it fitted nowhere before the last release: only the SM of that release can have changed */
    if (s->checked == d->releases && !even) {
        return GS_NONE;
    }
    if (hint != GS_NONE && s->checked + 1 == d->releases && !even) {
        if (fits(sim, &loads[hint], s, rotate)) {
            return hint;
        }
        s->checked = d->releases;
        return GS_NONE;
    }
    if (gs_launches(sim)[kernel].cooperative) {
        u32 sm = find_together(sim, kernel, s, rotate);
        if (sm != GS_NONE) {
            return sm;
        }
    }
    if (sim->params.gpu_cp.place) {
        u32 sm = find_room(sim, kernel, s, even, rotate);
        s->checked = sm == GS_NONE && !even ? d->releases : s->checked;
        return sm;
    }
    u32 best = GS_NONE, load = GS_NONE, turn = 0, next = 0;
    for (u32 i = 0; i < sim->sms; i++) {
        u32 turned = d->round_robin + i;
        u32 sm = turns[turned >= sim->sms ? turned - sim->sms : turned], r;
        if (loads[sm].warps_used < load && fits(sim, &loads[sm], s, &r) &&
            !(even && has_share(sim, sm, kernel))) {
            best = sm;
            next = turned + 1;
            load = loads[sm].warps_used;
            turn = r;
            if (load == 0) {
                break;
            }
        }
    }
    if (best == GS_NONE) {
        s->checked = even ? s->checked : d->releases;
        return GS_NONE;
    }
    d->round_robin = next >= sim->sms ? next - sim->sms : next;
    *rotate = turn;
    return best;
}

void gs_place_take(gs_sim *sim, u32 sm, u32 shape, u32 rotate, u32 *slot, u32 *configure)
{
    gs_smload *l = GS_TABLE(sim, gs_smload, at_smloads) + sm;
    const gs_shape *s = GS_TABLE(sim, gs_shape, at_shapes) + shape;
    *configure = 0;
    if (l->tbs == 0 && l->carveout != s->carveout) {
        l->carveout = s->carveout; /* only an idle SM can change its carve-out */
        *configure = 1;
    }
    *slot = gs_ctz(l->tb_free);
    l->tb_free &= l->tb_free - 1;
    for (u32 i = 0; i < 4; i++) {
        u32 sub = (rotate + i) & 3, w = s->warps / 4 + (i < s->warps % 4);
        l->warps[sub] = (u8)(l->warps[sub] - w);
        l->registers[sub] = (u16)(l->registers[sub] - w * s->units);
    }
    l->smem += s->smem;
    l->tbs++;
    l->warps_used += s->warps;
}

void gs_place_free(gs_sim *sim, u32 sm, u32 shape, u32 rotate, u32 slot)
{
    gs_smload *l = GS_TABLE(sim, gs_smload, at_smloads) + sm;
    const gs_shape *s = GS_TABLE(sim, gs_shape, at_shapes) + shape;
    l->tb_free |= 1u << slot;
    for (u32 i = 0; i < 4; i++) {
        u32 sub = (rotate + i) & 3, w = s->warps / 4 + (i < s->warps % 4);
        l->warps[sub] = (u8)(l->warps[sub] + w);
        l->registers[sub] = (u16)(l->registers[sub] + w * s->units);
    }
    l->smem -= s->smem;
    l->tbs--;
    l->warps_used -= s->warps;
}
