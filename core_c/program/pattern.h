/* Where a TB's warps start in the code, and which lines a memory op touches. */
#pragma once
#include "base/state.h"

/* Where the warps of a TB start, as indices into all ops; NULL: entry[variant]. */
static inline const u32 *gs_entries(const gs_sim *sim, const gs_launch *l, const gs_program *p, u32 tb)
{
    if (!p->rows) {
        return NULL;
    }
    u32 row = l->first_tb_row == GS_NONE ? 0 : GS_CONST_TABLE(sim, u32, at_tb_rows)[l->first_tb_row + tb];
    return GS_CONST_TABLE(sim, u32, at_entries) + p->first_entry + (u64)row * p->warps;
}

/* Where the recorded accesses of warps begin, from first_access on: of warp TB * warps + warp and those after
   it; NULL: nothing is recorded. */
static inline const u32 *gs_blocks(const gs_sim *sim, const gs_launch *l, u64 warp)
{
    return l->first_block == GS_NONE ? NULL : GS_CONST_TABLE(sim, u32, at_blocks) + l->first_block + warp;
}

/* The first recorded access of warp TB * warps + warp. */
static inline u64 gs_warp_block(const gs_sim *sim, const gs_launch *l, u64 warp)
{
    const u32 *blocks = gs_blocks(sim, l, warp);
    return blocks ? l->first_access + *blocks : 0;
}

typedef struct gs_coalesced {
    u64 line; /* lines of parts are relative to it */
    const gs_template *template;
    const gs_part *part;
} gs_coalesced;

/* `value`: the sum of the pattern; `block`: the warp's first recorded access. */
static inline gs_coalesced gs_coalesced_of(const gs_sim *sim, const gs_ipattern *p, u64 arg, u64 value,
                                           u64 block)
{
    if (GS_UNLIKELY(p->recorded)) {
        u64 access = sim->accesses[block + value];
        const gs_template *t = sim->recorded_templates + (access >> 32);
        return (gs_coalesced){(u32)access, t, sim->recorded_parts + t->first};
    }
    u64 base = arg + value;
    const gs_template *t =
        GS_CONST_TABLE(sim, gs_template, at_templates) + p->templates + ((base & 127) >> p->shift);
    return (gs_coalesced){base >> 7, t, GS_CONST_TABLE(sim, gs_part, at_parts) + t->first};
}
