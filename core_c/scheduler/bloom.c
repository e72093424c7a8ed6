/* Signatures of unfinished TBs: see bloom.h. */
#include "scheduler/bloom.h"

#include "scheduler/dependence_table.h"
#include "scheduler/scheduler.h"

#include <string.h>

/* Bits. */
static u64 *words(gs_sim *sim, u64 at, u64 row)
{
    return (u64 *)(void *)((char *)sim + at) + row * (sim->bloom.slots / 64);
}

static gs_unit *unit_at(gs_sim *sim, u32 slot)
{
    return GS_TABLE(sim, gs_unit, bloom.at_units) + slot;
}

/* The false positive rates that its signatures are expected to have, of reads and of writes. */
static const u32 *rates_of(const gs_sim *sim, const gs_unit *u)
{
    u64 number = (u64)gs_launches(sim)[u->kernel].first_unit + u->unit;
    return GS_CONST_TABLE(sim, u32, bloom.at_rates) + 2 * number;
}

static void bit_set(u64 *bits, u32 i)
{
    bits[i >> 6] |= 1ull << (i & 63);
}

/* Rows of a table: bits of a signature, and for each tag whether it has entries with it. */
static u32 tag_row(const gs_sim *sim, u64 entry)
{
    return (u32)sim->params.scheme_bloom.bits + (u32)(entry >> GS_HINT_TAG);
}

static u32 n_rows(const gs_sim *sim)
{
    return (u32)(sim->params.scheme_bloom.bits + 2 * sim->params.scheme_bloom.levels);
}

/* The row of hash `i` for an entry: well mixed, and the same on every machine. */
static u32 row_of(const gs_sim *sim, u64 entry, u32 i)
{
    u64 x = entry + ((u64)sim->params.sim.seed << 32) + (i + 1) * 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    x ^= x >> 31;
    return (u32)((x >> 32) * (u64)sim->params.scheme_bloom.bits >> 32);
}

/* 1: the entry is one of those of the unit. */
static int has_entry(const gs_sim *sim, const gs_unit *u, u64 entry, u32 written)
{
    const gs_launch *l = gs_launches(sim) + u->kernel;
    const u32 *ptr = GS_CONST_TABLE(sim, u32, bloom.at_unit_ptr) + l->first_unit + u->unit;
    const u32 *sets = GS_CONST_TABLE(sim, u32, bloom.at_unit_sets);
    const gs_hint *hints = GS_CONST_TABLE(sim, gs_hint, bloom.at_hints);
    for (u32 i = ptr[0]; i < ptr[1]; i++) {
        const gs_hint_set *s = GS_CONST_TABLE(sim, gs_hint_set, bloom.at_sets) + sets[i];
        u32 lo = s->first_hint + s->asked, end = lo + s->hints, hi = end;
        if (s->written != written) {
            continue;
        }
        while (lo < hi) { /* the first that ends after the entry */
            u32 mid = lo + (hi - lo) / 2;
            if (hints[mid].end <= entry) {
                lo = mid + 1;
            } else {
                hi = mid;
            }
        }
        if (lo < end && hints[lo].first <= entry) {
            return 1;
        }
    }
    return 0;
}

/* Slots. */
static u32 half(const gs_sim *sim)
{
    return sim->bloom.slots / 2;
}

int gs_bloom_room(const gs_sim *sim, u32 kernel)
{
    const gs_bloom *b = &sim->bloom;
    u32 units = gs_launches(sim)[kernel].units;
    if (sim->params.scheme_bloom.clear == GS_SCHEME_BLOOM_CLEAR_KERNEL) {
        return b->used + units <= b->slots;
    }
    return b->taken[b->epoch] + units <= half(sim) || b->live[b->epoch ^ 1] == 0;
}

/* Clears the columns of the slots in `gone`. */
static void clear(gs_sim *sim, const u64 *gone)
{
    u32 n = sim->bloom.slots / 64;
    for (u32 w = 0; w < n; w++) {
        if (!gone[w]) {
            continue;
        }
        for (u32 row = 0; row < n_rows(sim); row++) {
            words(sim, sim->bloom.at_read, row)[w] &= ~gone[w];
            words(sim, sim->bloom.at_written, row)[w] &= ~gone[w];
        }
    }
}

static void next_epoch(gs_sim *sim)
{
    gs_bloom *b = &sim->bloom;
    u64 *gone = words(sim, b->at_scratch, 0);
    b->epoch ^= 1;
    memset(gone, 0, b->slots / 8);
    for (u32 i = 0; i < b->taken[b->epoch]; i++) {
        bit_set(gone, b->epoch * half(sim) + i);
    }
    clear(sim, gone);
    b->used -= b->taken[b->epoch];
    b->taken[b->epoch] = 0;
}

static u32 take_slot(gs_sim *sim, u32 kernel, u32 unit)
{
    gs_bloom *b = &sim->bloom;
    u64 *held = words(sim, b->at_held, 0);
    u32 slot;
    if (sim->params.scheme_bloom.clear == GS_SCHEME_BLOOM_CLEAR_KERNEL) {
        while (!~held[b->hand]) {
            b->hand = b->hand + 1 == b->slots / 64 ? 0 : b->hand + 1;
        }
        slot = b->hand * 64 + gs_ctz(~held[b->hand]);
        bit_set(held, slot);
    } else {
        slot = b->epoch * half(sim) + b->taken[b->epoch]++;
        b->live[b->epoch]++;
    }
    const gs_launch *l = gs_launches(sim) + kernel;
    u32 tbs = gs_kernels(sim)[kernel].tbs;
    b->used++;
    *unit_at(sim, slot) =
        (gs_unit){kernel, unit, (u32)gs_min(l->unit_tbs, tbs - (u64)unit * l->unit_tbs), 0, GS_NONE, 0};
    GS_TABLE(sim, u32, bloom.at_slot_of)[l->first_unit + unit] = slot;
    return slot;
}

/* Looks up an entry in the signatures of reads or writes: `hits`: units that may have it; of those in `among`
   that truly have it, sets bits of `truly`. */
static void look_up(gs_sim *sim, u64 entry, u32 written, u64 *hits, const u64 *among, u64 *truly)
{
    gs_bloom *b = &sim->bloom;
    const u64 at = written ? b->at_written : b->at_read, *alive = words(sim, b->at_alive, 0);
    const u64 *rows[GS_HASHES], *tagged = words(sim, at, tag_row(sim, entry));
    u32 hashes = (u32)sim->params.scheme_bloom.hashes, n = b->slots / 64;
    int exact = sim->params.scheme_bloom.signature == GS_SCHEME_BLOOM_SIGNATURE_EXACT;
    for (u32 i = 0; i < hashes; i++) {
        rows[i] = words(sim, at, row_of(sim, entry, i));
    }
    b->count.tests += b->alive;
    b->count.expected += b->rate[written];
    for (u32 w = 0; w < n; w++) {
        u64 hit = alive[w] & tagged[w];
        for (u32 i = 0; hit && i < hashes; i++) {
            hit &= rows[i][w];
        }
        hits[w] = hit;
        for (; hit; hit &= hit - 1) {
            u32 slot = w * 64 + gs_ctz(hit);
            const gs_unit *u = unit_at(sim, slot);
            u64 bit = 1ull << (slot & 63);
            if (has_entry(sim, u, entry, written)) {
                truly[w] |= bit & among[w];
                b->count.tests--;
                b->count.expected -= rates_of(sim, u)[written];
            } else {
                b->count.false_hits++;
                hits[w] &= exact ? ~bit : ~0ull;
            }
        }
    }
}

/* Looks up a granule in the signatures of reads or writes of units that have marks at all granules around
   it. */
static void look_up_granule(gs_sim *sim, u64 granule, u32 written, u64 *found, u64 *truly)
{
    gs_bloom *b = &sim->bloom;
    u64 touched = granule >> GS_HINT_TAG & 1, entry = granule & ~(1ull << GS_HINT_TAG);
    u32 level = (u32)(granule >> GS_HINT_TAG) / 2, n = b->slots / 64, more = level || !touched;
    const u64 *around = words(sim, b->at_marked, level + 1);
    u64 *marked = words(sim, b->at_marked, level), *hits = words(sim, b->at_scratch, 2);
    look_up(sim, entry, written, hits, around, truly);
    for (u32 w = 0; w < n; w++) {
        found[w] |= hits[w] & around[w];
    }
    if (more) {
        u64 *ignored = words(sim, b->at_scratch, 3);
        look_up(sim, entry | 1ull << GS_HINT_TAG, written, hits, around, touched ? truly : ignored);
        for (u32 w = 0; w < n; w++) {
            marked[w] = hits[w] & around[w];
            found[w] |= touched ? marked[w] : 0;
        }
    }
}

/* Looks up a set of hints: reads are ordered after writers, writes after readers and writers. */
static void look_up_set(gs_sim *sim, const gs_launch *l, const gs_hint_set *s)
{
    gs_bloom *b = &sim->bloom;
    u32 n = b->slots / 64;
    u64 *found = words(sim, b->at_scratch, 0), *truly = words(sim, b->at_scratch, 1);
    const gs_hint *hints = GS_CONST_TABLE(sim, gs_hint, bloom.at_hints);
    const u32 *units = GS_CONST_TABLE(sim, u32, bloom.at_set_units) + s->first_unit;
    memset(found, 0, b->slots / 8);
    memset(truly, 0, b->slots / 8);
    memcpy(words(sim, b->at_marked, (u64)sim->params.scheme_bloom.levels), words(sim, b->at_alive, 0),
           b->slots / 8);
    for (u32 written = !s->written; written < 2; written++) {
        for (u32 i = s->first_hint; i < s->first_hint + s->asked; i++) {
            for (u64 g = hints[i].first; g < hints[i].end; g++) {
                look_up_granule(sim, g, written, found, truly);
            }
        }
    }
    for (u32 i = 0; i < s->units; i++) {
        u32 slot = GS_TABLE(sim, u32, bloom.at_slot_of)[l->first_unit + units[i]];
        u64 *mine = words(sim, b->at_found, slot), *sure = words(sim, b->at_truly, slot);
        for (u32 w = 0; w < n; w++) {
            mine[w] |= found[w];
            sure[w] |= truly[w];
        }
    }
}

static void enter_set(gs_sim *sim, const gs_launch *l, const gs_hint_set *s)
{
    gs_bloom *b = &sim->bloom;
    const gs_hint *hints = GS_CONST_TABLE(sim, gs_hint, bloom.at_hints);
    const u32 *units = GS_CONST_TABLE(sim, u32, bloom.at_set_units) + s->first_unit;
    const u32 *slot_of = GS_CONST_TABLE(sim, u32, bloom.at_slot_of) + l->first_unit;
    u64 *mask = words(sim, b->at_scratch, 0), at = s->written ? b->at_written : b->at_read;
    u32 first = b->slots / 64, last = 0, hashes = (u32)sim->params.scheme_bloom.hashes;
    memset(mask, 0, b->slots / 8);
    for (u32 i = 0; i < s->units; i++) {
        u32 slot = slot_of[units[i]];
        bit_set(mask, slot);
        first = (u32)gs_min(first, slot >> 6);
        last = gs_max32(last, slot >> 6);
    }
    for (u32 i = s->first_hint + s->asked; i < s->first_hint + s->asked + s->hints; i++) {
        u64 *tagged = words(sim, at, tag_row(sim, hints[i].first));
        for (u32 w = first; w <= last; w++) {
            tagged[w] |= mask[w];
        }
        for (u64 g = hints[i].first; g < hints[i].end; g++) {
            for (u32 h = 0; h < hashes; h++) {
                u64 *row = words(sim, at, row_of(sim, g, h));
                for (u32 w = first; w <= last; w++) {
                    row[w] |= mask[w];
                }
            }
        }
    }
}

/* Waits. */
static void unit_ready(gs_sim *sim, const gs_unit *u, u64 t, u32 cause_kernel, u32 cause_tb)
{
    gs_kernel *k = &gs_kernels(sim)[u->kernel];
    const gs_launch *l = gs_launches(sim) + u->kernel;
    if (!k->per_tb) {
        k->unmet = 0;
        gs_kernel_ready(sim, u->kernel, t, cause_kernel, cause_tb);
        return;
    }
    u64 end = gs_min(((u64)u->unit + 1) * l->unit_tbs, k->tbs);
    for (u32 tb = u->unit * l->unit_tbs; tb < end; tb++) {
        gs_table_tb_ready(sim, u->kernel, tb, t, cause_kernel, cause_tb);
    }
}

/* Leaves out of `found` each unit for which another of them waits. */
static void drop_implied(gs_sim *sim, u64 *found)
{
    gs_bloom *b = &sim->bloom;
    u64 *kept = words(sim, b->at_scratch, 0);
    memcpy(kept, found, b->slots / 8);
    for (u32 w = 0; w < b->slots / 64; w++) {
        for (u64 left = found[w]; left; left &= left - 1) {
            u32 slot = w * 64 + gs_ctz(left);
            const u64 *later = words(sim, b->at_waits, slot);
            for (u32 i = 0; i < b->slots / 64; i++) {
                if (later[i] & found[i]) {
                    kept[w] &= ~(1ull << (slot & 63));
                    break;
                }
            }
        }
    }
    memcpy(found, kept, b->slots / 8);
}

/* Turns the hits of a unit's look-up into waits. From then on later units may wait for this one. */
static void settle(gs_sim *sim, u32 slot)
{
    gs_bloom *b = &sim->bloom;
    gs_unit *u = unit_at(sim, slot);
    u64 *mine = words(sim, b->at_found, slot), *sure = words(sim, b->at_truly, slot);
    const u32 *rate = rates_of(sim, u);
    drop_implied(sim, mine);
    for (u32 w = 0; w < b->slots / 64; w++) {
        b->count.edges += gs_popcount64(mine[w]);
        b->count.false_edges += gs_popcount64(mine[w] & ~sure[w]);
        for (u64 left = mine[w]; left; left &= left - 1) {
            bit_set(words(sim, b->at_waits, w * 64 + gs_ctz(left)), slot);
            u->unmet++;
        }
        mine[w] = sure[w] = 0;
    }
    b->rate[0] += rate[0];
    b->rate[1] += rate[1];
    b->alive++;
    bit_set(words(sim, b->at_alive, 0), slot);
}

void gs_bloom_admit(gs_sim *sim, u32 kernel, u64 t)
{
    gs_bloom *b = &sim->bloom;
    const gs_launch *l = gs_launches(sim) + kernel;
    const gs_hint_set *sets = GS_CONST_TABLE(sim, gs_hint_set, bloom.at_sets) + l->first_set;
    const u32 *slot_of = GS_CONST_TABLE(sim, u32, bloom.at_slot_of) + l->first_unit;
    gs_kernel *k = &gs_kernels(sim)[kernel];
    k->admitted = 1;
    if (l->units == 0) { /* a barrier */
        gs_kernel_ready(sim, kernel, t, GS_NONE, GS_NONE);
        return;
    }
    if (sim->params.scheme_bloom.clear == GS_SCHEME_BLOOM_CLEAR_EPOCH &&
        b->taken[b->epoch] + l->units > half(sim)) {
        next_epoch(sim);
    }
    for (u32 i = 0; i < l->units; i++) {
        take_slot(sim, kernel, i);
    }
    k->units_left = l->units;
    sim->sched.table_entries = b->used;
    sim->sched.table_peak = gs_max32(sim->sched.table_peak, b->used);
    for (u32 i = 0; i < l->sets; i++) {
        look_up_set(sim, l, &sets[i]);
    }
    for (u32 i = 0; i < l->sets; i++) {
        enter_set(sim, l, &sets[i]);
    }
    k->unmet = !k->per_tb;
    for (u32 i = 0; i < l->units; i++) {
        settle(sim, slot_of[i]);
    }
    for (u32 i = 0; i < l->units; i++) {
        const gs_unit *u = unit_at(sim, slot_of[i]);
        if (u->unmet == 0) {
            unit_ready(sim, u, t, GS_NONE, GS_NONE);
        }
    }
    if (k->per_tb) {
        gs_kernel_ready(sim, kernel, t, GS_NONE, GS_NONE);
    }
}

void gs_bloom_tb_end(gs_sim *sim, u32 kernel, u32 tb, u64 t)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    u32 counted = l->units > 1, updates = 0; /* a kernel's ends are counted in any case */
    if (l->units == 0) {
        return;
    }
    u32 slot = GS_CONST_TABLE(sim, u32, bloom.at_slot_of)[l->first_unit + tb / l->unit_tbs];
    gs_unit *u = unit_at(sim, slot);
    if (--u->left) {
        if (counted) {
            gs_table_update_time(sim, t, 1, kernel);
        }
        return;
    }
    const u64 *waits = words(sim, sim->bloom.at_waits, slot);
    for (u32 w = 0; w < sim->bloom.slots / 64; w++) {
        updates += gs_popcount64(waits[w]);
    }
    updates = counted ? updates + 1 : gs_max32(updates, 1);
    u->last_tb = tb;
    gs_ring_push(sim, &sim->sched.ready,
                 (gs_event){gs_table_update_time(sim, t, updates, kernel), GS_EVENT_UNIT, slot, 0, 0});
}

static void free_slots(gs_sim *sim, u32 kernel)
{
    gs_bloom *b = &sim->bloom;
    const gs_launch *l = gs_launches(sim) + kernel;
    const u32 *slot_of = GS_CONST_TABLE(sim, u32, bloom.at_slot_of) + l->first_unit;
    u64 *gone = words(sim, b->at_scratch, 0), *held = words(sim, b->at_held, 0);
    memset(gone, 0, b->slots / 8);
    for (u32 i = 0; i < l->units; i++) {
        bit_set(gone, slot_of[i]);
    }
    clear(sim, gone);
    for (u32 w = 0; w < b->slots / 64; w++) {
        held[w] &= ~gone[w];
    }
    b->used -= l->units;
    sim->sched.table_entries = b->used;
}

void gs_bloom_unit_end(gs_sim *sim, u32 slot, u64 t)
{
    gs_bloom *b = &sim->bloom;
    gs_unit *u = unit_at(sim, slot);
    u64 *waits = words(sim, b->at_waits, slot), *alive = words(sim, b->at_alive, 0);
    const u32 *rate = rates_of(sim, u);
    alive[slot >> 6] &= ~(1ull << (slot & 63));
    b->alive--;
    b->rate[0] -= rate[0];
    b->rate[1] -= rate[1];
    for (u32 w = 0; w < b->slots / 64; w++) {
        for (u64 left = waits[w]; left; left &= left - 1) {
            gs_unit *later = unit_at(sim, w * 64 + gs_ctz(left));
            if (--later->unmet == 0) {
                unit_ready(sim, later, t, u->kernel, u->last_tb);
            }
        }
        waits[w] = 0;
    }
    if (sim->params.scheme_bloom.clear == GS_SCHEME_BLOOM_CLEAR_EPOCH) {
        b->live[slot >= half(sim)]--;
    } else if (--gs_kernels(sim)[u->kernel].units_left == 0) {
        free_slots(sim, u->kernel);
    }
}
