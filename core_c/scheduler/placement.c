/* Placement: the SM that the next TB goes to. With gpu.cp.place it is the least loaded SM with room, ties
   in round robin, or the SM with room for the most TBs of the kernel, ties to the first. On an empty chip
   TBs spread evenly over SMs; on a full chip the next TB goes to the SM on which one has just ended. */
#include "scheduler/placement.h"

#include "base/clock.h"
#include "scheduler/scheduler.h"

static int fits(const gs_sim *sim, const gs_sm_load *l, const gs_tb_resources *s, u32 *rotate)
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

/* About how many TBs of these resources an SM has room for; exact where their warps divide evenly. */
static u32 room_of(const gs_sm_load *l, const gs_tb_resources *s)
{
    u32 warps = l->warps[0] + l->warps[1] + l->warps[2] + l->warps[3],
        units = l->registers[0] + l->registers[1] + l->registers[2] + l->registers[3],
        n = (u32)gs_min(gs_popcount64(l->tb_free), warps / s->warps);
    n = (u32)gs_min(n, units / gs_max32(1, s->warps * s->units));
    return s->smem ? (u32)gs_min(n, ((l->tbs ? l->carveout : s->carveout) - l->smem) / s->smem) : n;
}

/* The number of SMs of the last GPC that come before all others. */
static u32 ahead_of(const gs_sim *sim)
{
    u32 last = sim->order.gpcs[(u32)sim->params.gpu.gpcs - 1];
    return (u32)gs_min((u64)sim->params.gpu_cp.together,
                       gs_gpc_first(sim, last + 1) - gs_gpc_first(sim, last));
}

/* SMs in the order in which an H200 fills an empty chip: GPC by GPC, after those that come first. */
static const u16 *first_order(const gs_sim *sim)
{
    return GS_CONST_TABLE(sim, u16, at_turns) + sim->sms;
}

/* The order of SMs: GPC by GPC in turn, and in each the first SM of every TPC before a second one, so that a
   few TBs spread over GPCs and TPCs as on an H200. After it, the order for an empty chip. */
void gs_placement_init(gs_sim *sim)
{
    u16 *turns = GS_TABLE(sim, u16, at_turns);
    u32 each = (u32)sim->params.gpu.tpc_sms, gpcs = (u32)sim->params.gpu.gpcs, n = 0;
    u32 tpcs = (sim->sms + each - 1) / each;
    for (u32 k = 0; k < (tpcs / gpcs + 1) * each; k++) {
        for (u32 g = 0; g < gpcs; g++) {
            u32 begin = gs_gpc_first(sim, g), end = gs_gpc_first(sim, g + 1), first = begin / each;
            u32 own = begin < end ? (end + each - 1) / each - first : 0;
            u32 sm = own ? (first + k % own) * each + k / own : sim->sms;
            if (k < own * each && sm < sim->sms) {
                turns[n++] = (u16)sm;
            }
        }
    }
    u32 ahead = ahead_of(sim), last = sim->order.gpcs[gpcs - 1];
    for (u32 i = 0; i < ahead; i++) {
        turns[n++] = (u16)(gs_gpc_first(sim, last) + i);
    }
    for (u32 i = 0; i < gpcs; i++) {
        u32 g = sim->order.gpcs[i], sm = gs_gpc_first(sim, g) + (g == last ? ahead : 0);
        for (; sm < gs_gpc_first(sim, g + 1); sm++) {
            turns[n++] = (u16)sm;
        }
    }
}

/* The SM of TB `at` of `rest`, fewer than there are SMs: first the SMs that come before all others, then an
   even share of each GPC, in which each TPC takes one TB before the first ones take two. */
static u32 spread(const gs_sim *sim, u32 at, u32 rest)
{
    const u16 *order = first_order(sim);
    u32 each = (u32)sim->params.gpu.tpc_sms, gpcs = (u32)sim->params.gpu.gpcs, ahead = ahead_of(sim);
    if (at < ahead) {
        return order[at];
    }
    rest -= (u32)gs_min(rest, ahead);
    /* the level to which GPCs are filled; of the TBs left, those with most SMs take one more each */
    u32 level = 0, size[64], share[64], full = 0, most = 0;
    for (u32 i = 0; i < gpcs; i++) {
        u32 g = sim->order.gpcs[i];
        size[i] = gs_gpc_first(sim, g + 1) - gs_gpc_first(sim, g) - (i + 1 == gpcs ? ahead : 0);
        most = gs_max32(most, size[i]);
        share[i] = 0;
    }
    for (u32 filled = 0; level < most; level++, filled = full) {
        full = 0;
        for (u32 i = 0; i < gpcs; i++) {
            full += (u32)gs_min(size[i], level + 1);
        }
        if (full > rest) {
            full = filled;
            break;
        }
    }
    u32 more = rest - full;
    for (u32 i = 0; i < gpcs; i++) {
        share[i] = (u32)gs_min(size[i], level);
    }
    for (u32 want = most; more && want > level; want--) {
        for (u32 i = 0; more && i < gpcs; i++) {
            if (size[i] == want) {
                share[i]++;
                more--;
            }
        }
    }
    at -= ahead;
    u32 first = ahead;
    for (u32 i = 0; i < gpcs; first += size[i++]) {
        if (at < share[i]) {
            u32 tpcs = (size[i] + each - 1) / each, twice = share[i] > tpcs ? share[i] - tpcs : 0;
            u32 place = at < twice * each || each != 2 ? at : (twice + (at - twice * each)) * each;
            return order[first + (u32)gs_min(place, size[i] - 1)];
        }
        at -= share[i];
    }
    return GS_NONE;
}

/* The SM of the next TB of a kernel that found the chip empty, while nothing else has happened (measured on
   an H200, h200_first.csv): whole rounds over all SMs, then the rest spread. */
static u32 find_first(gs_sim *sim, u32 kernel, const gs_tb_resources *s, u32 *rotate)
{
    gs_sched *d = &sim->sched;
    const gs_sm_load *loads = GS_CONST_TABLE(sim, gs_sm_load, at_sm_loads);
    if (d->idle_sms == sim->sms) {
        const gs_kernel *k = gs_kernels(sim) + kernel;
        d->first_kernel = kernel + 1;
        d->first_at = 0;
        d->first_tbs = k->tbs - k->dispatched;
        d->first_releases = d->releases;
    } else if (d->first_kernel != kernel + 1 || d->first_releases != d->releases) {
        return GS_NONE;
    }
    u32 at = d->first_at++, tbs = d->first_tbs;
    u32 whole = tbs / sim->sms * sim->sms;
    u32 sm = at < whole ? first_order(sim)[at % sim->sms]
             : at < tbs ? spread(sim, at - whole, tbs - whole)
                        : GS_NONE;
    if (sm == GS_NONE || !fits(sim, &loads[sm], s, rotate)) {
        d->first_kernel = 0;
        return GS_NONE;
    }
    return sm;
}

/* 1: the SM has its even share of the kernel's TBs. */
static int has_share(const gs_sim *sim, u32 sm, u32 kernel)
{
    const gs_resident *r = GS_CONST_TABLE(sim, gs_resident, at_residents) + (size_t)sm * GS_TBS;
    const gs_sm_load *l = GS_CONST_TABLE(sim, gs_sm_load, at_sm_loads) + sm;
    u32 all = sim->params.gpu_sm.tbs == 32 ? ~0u : (1u << sim->params.gpu_sm.tbs) - 1, n = 0;
    for (u32 left = all & ~l->tb_free; left; left &= left - 1) {
        n += r[gs_ctz(left)].kernel == kernel;
    }
    return n >= (GS_CONST_TABLE(sim, gs_kernel, at_kernels)[kernel].tbs + sim->sms - 1) / sim->sms;
}

u32 gs_placement_near_producer(gs_sim *sim, u32 kernel, u32 hint, u32 *rotate, u32 *tb)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    const gs_sm_load *loads = GS_CONST_TABLE(sim, gs_sm_load, at_sm_loads);
    const gs_tb_resources *s = GS_CONST_TABLE(sim, gs_tb_resources, at_tb_resources) + k->shape;
    const gs_tb_conditions *conditions = gs_tb_conditions_of(sim, k);
    const u64 *bits = gs_ready_bits(sim, k);
    u32 left = sim->order.affinity;
    for (u32 w = 0; left && w <= (k->tbs - 1) / 64; w++) {
        for (u64 ready = bits[w]; left && ready; ready &= ready - 1, left--) {
            u32 i = w * 64 + gs_ctz(ready), sm = conditions[i].producer_sm;
            /* a slot became free there; or, for the first TB, anywhere */
            if (sm != GS_NO_SM && (hint == GS_NONE || sm == hint || left == sim->order.affinity) &&
                fits(sim, &loads[sm], s, rotate)) {
                *tb = i;
                return sm;
            }
        }
    }
    return GS_NONE;
}

/* The first SMs in order take their even share of a cooperative kernel, a TB each in turn, before others do
   (as an H200 does). */
static u32 find_together(const gs_sim *sim, u32 kernel, const gs_tb_resources *s, u32 *rotate)
{
    const gs_sm_load *loads = GS_CONST_TABLE(sim, gs_sm_load, at_sm_loads);
    const u16 *order = first_order(sim);
    u32 best = GS_NONE, load = GS_NONE, count = (u32)gs_min((u64)sim->params.gpu_cp.together, sim->sms);
    for (u32 i = 0; i < count; i++) {
        u32 sm = order[i], r;
        if (loads[sm].warps_used < load && fits(sim, &loads[sm], s, &r) && !has_share(sim, sm, kernel)) {
            best = sm;
            load = loads[sm].warps_used;
            *rotate = r;
        }
    }
    return best;
}

/* The first of the SMs with room for most TBs of the kernel. Until a TB ends rooms only shrink: no SM has
   more than the last one found, and those before it have less. */
static u32 find_room(const gs_sim *sim, u32 kernel, gs_tb_resources *s, int even, u32 *rotate)
{
    const gs_sm_load *loads = GS_CONST_TABLE(sim, gs_sm_load, at_sm_loads);
    const u16 *turns = GS_CONST_TABLE(sim, u16, at_turns);
    const u64 now = sim->sched.releases + 1;
    const int known = s->found == now && !even;
    u32 most = known ? s->room : GS_NONE;
    s->found = even ? 0 : now;
    for (u32 first = known ? s->place : 0;; first = 0) {
        u32 best = GS_NONE, room = 0;
        for (u32 i = first; i < sim->sms && room < most; i++) {
            const gs_sm_load *l = &loads[turns[i]];
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
        most--; /* no SM has room for as many TBs any more */
    }
}

u32 gs_placement_find(gs_sim *sim, u32 kernel, u32 hint, u32 *rotate)
{
    const gs_sched *q = &sim->sched;
    const int even = sim->params.gpu_cp.even_tbs ||
                     (sim->order.placement == 1 && kernel > q->oldest_unfinished) ||
                     (sim->order.placement == 3 && kernel == q->oldest_undispatched &&
                      kernel > q->oldest_unfinished && gs_launches(sim)[kernel].prologue);
    u32 shape = gs_kernels(sim)[kernel].shape;
    gs_sm_load *loads = GS_TABLE(sim, gs_sm_load, at_sm_loads);
    gs_tb_resources *s = GS_TABLE(sim, gs_tb_resources, at_tb_resources) + shape;
    const u16 *turns = GS_CONST_TABLE(sim, u16, at_turns);
    gs_sched *d = &sim->sched;
    /* it fitted on no SM before the last release, so only the SM of that release can have room now */
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
        u32 sm = even ? GS_NONE : find_first(sim, kernel, s, rotate);
        if (sm != GS_NONE) {
            s->found = 0;
            return sm;
        }
        sm = find_room(sim, kernel, s, even, rotate);
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

int gs_placement_fits(const gs_sim *sim, u32 kernel, u32 sm, u32 *rotate)
{
    u32 shape = GS_CONST_TABLE(sim, gs_kernel, at_kernels)[kernel].shape;
    const gs_tb_resources *s = GS_CONST_TABLE(sim, gs_tb_resources, at_tb_resources) + shape;
    return fits(sim, GS_CONST_TABLE(sim, gs_sm_load, at_sm_loads) + sm, s, rotate);
}

u32 gs_placement_list(const gs_sim *sim, u32 kernel, gs_free_sm *out)
{
    const gs_sm_load *loads = GS_CONST_TABLE(sim, gs_sm_load, at_sm_loads);
    const u16 *turns = GS_CONST_TABLE(sim, u16, at_turns);
    u32 n = 0, rotate;
    for (u32 i = 0; i < sim->sms; i++) {
        u32 sm = turns[i];
        if (gs_placement_fits(sim, kernel, sm, &rotate)) {
            out[n++] = (gs_free_sm){sm, sim->gpc_of[sm], loads[sm].tbs, loads[sm].warps_used};
        }
    }
    return n;
}

void gs_placement_take(gs_sim *sim, u32 sm, u32 shape, u32 rotate, u32 *slot, u32 *configure)
{
    gs_sm_load *l = GS_TABLE(sim, gs_sm_load, at_sm_loads) + sm;
    const gs_tb_resources *s = GS_TABLE(sim, gs_tb_resources, at_tb_resources) + shape;
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

void gs_placement_free(gs_sim *sim, u32 sm, u32 shape, u32 rotate, u32 slot)
{
    gs_sm_load *l = GS_TABLE(sim, gs_sm_load, at_sm_loads) + sm;
    const gs_tb_resources *s = GS_TABLE(sim, gs_tb_resources, at_tb_resources) + shape;
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
