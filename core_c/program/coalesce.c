/* Coalescing of address patterns: see coalesce.h. */
#include "program/coalesce.h"

#include "base/fail.h"
#include "base/grow.h"
#include "program/program.h"

#include <stdlib.h>

/* Where an async copy puts a lane's bytes of a sector in shared memory: 8 * line + the sectors that they
   move by within a line. Bytes with different destinations become different parts. */
static i64 place_of(const gs_pattern *p, u32 lane, i64 sector)
{
    if (!p->into_pitch) {
        return 0;
    }
    i64 to = p->into + (i64)(lane / p->minor) * p->into_pitch + (i64)(lane % p->minor) * p->width;
    return (to >> 7) * 8 + (to >> 5 & 3) - (sector & 3);
}

/* Coalesces the lanes of a pattern whose base is `offset` bytes into a line. */
static int expand(gs_lowered *l, const gs_pattern *p, const gs_lanes *lanes, u32 offset, int keep_bytes)
{
    gs_template t = {(u32)l->n_parts, 0, 0};
    gs_bytes bytes[64] = {0};
    i64 place[64] = {0};
    for (u32 lane = 0; lane < 32; lane++) {
        if (!(p->lanes >> lane & 1)) {
            continue;
        }
        i64 first = (i64)offset + (lanes ? lanes->offset[lane]
                                         : (i64)(lane / p->minor) * p->s1 + (i64)(lane % p->minor) * p->s0);
        /* the bytes it touches, from the start of its first sector on: at most 16, in two sectors */
        u64 touched = ((1ull << p->width) - 1) << (first & 31);
        for (i64 sector = first >> 5; touched; sector++, touched >>= 32) {
            i32 line = (i32)(sector >> 2);
            i64 there = place_of(p, lane, sector);
            u32 bit = 1u << (sector & 3), i = t.lines;
            while (i && (l->parts[t.first + i - 1].line != line || place[i - 1] != there)) {
                i--;
            }
            if (i == 0) {
                if (!gs_grow((void **)&l->parts, &l->room_parts, l->n_parts + 1, sizeof *l->parts)) {
                    return 0;
                }
                l->parts[l->n_parts++] = (gs_part){line, 0, 0};
                i = ++t.lines;
                place[i - 1] = there;
            }
            l->parts[t.first + i - 1].mask |= (u16)bit;
            bytes[i - 1].of[sector & 3] |= (u32)touched;
        }
    }
    for (u32 i = 0; i < t.lines; i++) {
        gs_part *part = &l->parts[t.first + i];
        t.sectors = (u16)(t.sectors + gs_popcount(part->mask));
        u32 least = 32, most = 0;
        for (u32 sector = 0; sector < 4; sector++) {
            u32 touched = gs_popcount(bytes[i].of[sector]);
            least = part->mask >> sector & 1 ? gs_min32(least, touched) : least;
            most = gs_max32(most, touched);
        }
        part->partial = (u16)(least == 32 ? 0 : most == 32 ? 8 : gs_max32(least / 4, 1));
    }
    if (keep_bytes) {
        if (!gs_grow((void **)&l->bytes, &l->room_bytes, l->n_parts, sizeof *l->bytes)) {
            return 0;
        }
        for (u32 i = 0; i < t.lines; i++) {
            l->bytes[t.first + i] = bytes[i];
        }
    }
    if (!gs_grow((void **)&l->templates, &l->room_templates, l->n_templates + 1, sizeof *l->templates)) {
        return 0;
    }
    l->templates[l->n_templates++] = t;
    return 1;
}

/* 1: a distance is so large that a sum of several could overflow 64 bits. */
static int distances_overflow(const gs_pattern *p)
{
    const i64 terms[] = {p->base, p->bx, p->by, p->bz, p->warp, p->step, p->step2, p->s0, p->s1};
    for (u32 i = 0; i < sizeof terms / sizeof *terms; i++) {
        i64 most = i < 1 ? (i64)1 << 45 : i < 7 ? (i64)1 << 40 : (i64)1 << 31;
        if (terms[i] > most || terms[i] < -most) {
            return 1;
        }
    }
    return 0;
}

/* 1: a recorded pattern has terms that no index may have: an index does not depend on the TB's position or
   the lane. */
static int record_has_terms(const gs_pattern *p)
{
    return p->recorded && (p->recorded > 1 || p->bx || p->by || p->bz || p->warp || p->shape);
}

int gs_coalesce_pattern(gs_sim *sim, const gs_job *job, u64 index, gs_lowered *l)
{
    const gs_pattern *p = &job->patterns[index];
    const gs_lanes *lanes = p->shape && p->shape <= job->n_lanes ? &job->lanes[p->shape - 1] : NULL;
    if (p->align < 1 || p->align > 128 || (p->align & (p->align - 1)) || p->minor == 0 || p->width == 0 ||
        p->width > 16 || p->arg > 7 || p->level2 > 2 || p->shape > job->n_lanes || p->into > 127 ||
        p->into_pitch > 1 << 16 || distances_overflow(p) || record_has_terms(p)) {
        return gs_fail(
            sim, GS_ERR_ARG,
            "pattern %llu: align %u, minor %u, width %u, arg %u, level2 %u, shape or a distance out of range",
            (unsigned long long)index, p->align, p->minor, p->width, p->arg, p->level2);
    }
    for (u32 i = 0; lanes && i < 32; i++) {
        if (lanes->offset[i] > 1 << 30 || lanes->offset[i] < -(1 << 30)) {
            return gs_fail(sim, GS_ERR_ARG, "pattern %llu: lane %u lies %d bytes away: at most 2^30",
                           (unsigned long long)index, i, lanes->offset[i]);
        }
    }
    l->patterns[index] = (gs_ipattern){p->base,
                                       p->bx,
                                       p->by,
                                       p->bz,
                                       p->warp,
                                       p->step,
                                       p->step2,
                                       (u32)l->n_templates,
                                       (u8)gs_ctz(p->align),
                                       p->arg,
                                       p->level2,
                                       p->recorded};
    for (u32 offset = 0; !p->recorded && offset < 128; offset += p->align) {
        if (!expand(l, p, lanes, offset, sim->params.sim.oracle != 0)) {
            return gs_fail(sim, GS_ERR_MEM, "not enough memory for address templates");
        }
    }
    return GS_OK;
}
