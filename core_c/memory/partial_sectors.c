/* Partially written sectors of L2: see partial_sectors.h. */
#include "memory/partial_sectors.h"

#include "memory/address_map.h"
#include "memory/dram.h"
#include "memory/l2_set.h"

/* The entries for the line in that way. Lines of one block of the address map use different entries, as they
   use different sets. Each block steps through the entries with a step of its own, so that lines at equal
   distances do not all share the same entries. */
static gs_partial_lines *lines_of(gs_sim *sim, const gs_slice *s, const gs_set *set, u32 way)
{
    u32 h = set->tag[way] * 0x9E3779B1u;
    h = (h ^ h >> 15) * 0x85EBCA6Bu;
    u32 step = sim->partial_steps[h >> 28], first = gs_scale_16_bits(h >> 8, sim->sets);
    u32 place = ((u32)(set - gs_l2_sets(sim, s->id)) * step + first) % sim->sets;
    return GS_TABLE(sim, gs_partial_lines, at_partial_lines) + (size_t)s->id * sim->sets + place;
}

/* The sectors of which words are missing. */
static u32 missing_sectors(u32 missing)
{
    u32 any = missing | missing >> 1 | missing >> 2 | missing >> 3;
    return (any & 1) | (any >> 3 & 2) | (any >> 6 & 4) | (any >> 9 & 8);
}

/* Drops entry i; the next one moves up. */
static void drop(gs_sim *sim, const gs_slice *s, gs_partial_lines *o, u32 i)
{
    gs_set *set = gs_l2_sets(sim, s->id) + (o->line[i] >> 4);
    set->partial &= (u16) ~(1u << (o->line[i] & 15));
    for (; i + 1 < GS_PARTIAL_LINES; i++) {
        o->missing[i] = o->missing[i + 1];
        o->line[i] = o->line[i + 1];
    }
    o->missing[i] = 0;
}

/* L2 reads the missing words of entry i at time t; no request waits for them. */
static void complete(gs_sim *sim, gs_slice *s, gs_partial_lines *o, u32 i, u64 t)
{
    u32 at = o->line[i] >> 4, tag = gs_l2_sets(sim, s->id)[at].tag[o->line[i] & 15];
    gs_dram_read(sim, s, t, (tag * sim->sets + at) >> sim->row_shift,
                 gs_popcount(missing_sectors(o->missing[i])));
    drop(sim, s, o, i);
}

/* The number of the entry of a way that has one. */
static u32 find(gs_sim *sim, const gs_slice *s, const gs_set *set, u32 way, const gs_partial_lines *o)
{
    u32 line = (u32)(set - gs_l2_sets(sim, s->id)) << 4 | way, i = 0;
    while (o->line[i] != line) {
        i++;
    }
    return i;
}

void gs_partial_store(gs_sim *sim, gs_slice *s, gs_set *set, u32 way, u32 had, u32 mask, u32 words, u64 t)
{
    gs_partial_lines *o = lines_of(sim, s, set, way);
    u32 known = 0, missing = 0;
    if (set->partial >> way & 1) {
        u32 i = find(sim, s, set, way, o);
        known = o->missing[i];
        drop(sim, s, o, i);
    }
    for (u32 sector = 0; sector < 4; sector++) {
        u32 lacks = known >> 4 * sector & 15;
        if (mask >> sector & 1) {
            lacks = !words ? 0 : had >> sector & 1 ? lacks - gs_min32(words, lacks) : 8 - words;
        }
        missing |= lacks << 4 * sector;
    }
    if (!missing) {
        return;
    }
    if (o->missing[GS_PARTIAL_LINES - 1]) {
        complete(sim, s, o, 0, t);
    }
    u32 i = o->missing[0] != 0;
    o->missing[i] = (u16)missing;
    o->line[i] = (u16)((u32)(set - gs_l2_sets(sim, s->id)) << 4 | way);
    set->partial |= (u16)(1u << way);
}

u32 gs_partial_load(gs_sim *sim, const gs_slice *s, gs_set *set, u32 way, u32 mask)
{
    gs_partial_lines *o = lines_of(sim, s, set, way);
    u32 i = find(sim, s, set, way, o), lacks = missing_sectors(o->missing[i]) & mask, gone = 0;
    for (u32 sector = 0; sector < 4; sector++) {
        gone |= lacks >> sector & 1 ? 15u << 4 * sector : 0;
    }
    if (o->missing[i] & ~gone) {
        o->missing[i] = (u16)(o->missing[i] & ~gone);
    } else {
        drop(sim, s, o, i);
    }
    set->mask[way] &= (u8)~lacks;
    return lacks;
}

void gs_partial_evict(gs_sim *sim, gs_slice *s, const gs_set *set, u32 way, u64 t)
{
    gs_partial_lines *o = lines_of(sim, s, set, way);
    complete(sim, s, o, find(sim, s, set, way, o), t);
}

void gs_partial_forget(gs_sim *sim, const gs_slice *s, const gs_set *set, u32 way)
{
    gs_partial_lines *o = lines_of(sim, s, set, way);
    drop(sim, s, o, find(sim, s, set, way, o));
}
