/* Between the files that create a simulation: derive.c, check.c (and forms.c), program.c,
   layout.c, in this order. */
#pragma once
#include "program.h"

/* Constants that follow from sim->params and sim->order; on error a message and a code. */
int gs_derive(gs_sim *sim);
/* Tables of a job, but programs and hints, refer to what there is; needs the derived constants. */
int gs_check_job(gs_sim *sim, const gs_job *job);
/* Gives every table its place behind sim and returns the end of the last; gs_fill_tables copies the job
 * there.
 */
u64 gs_lay_out(gs_sim *sim, const gs_job *job, const gs_lowered *low, u32 shapes);
void gs_fill_tables(gs_sim *sim, const gs_job *job, const gs_lowered *low);

/* The place of n things at the end of what is laid out, on a cache line pair of its own. */
static inline u64 gs_reserve(u64 *end, u64 n, u64 size)
{
    u64 at = (*end + 127) & ~127ull;
    *end = at + n * size;
    return at;
}

/* whether tables of the scheduler lie in memory */
static inline int gs_backing_is_used(const gs_sim *sim)
{
    return sim->order.entry_bytes || sim->order.footprints;
}

static inline u64 gs_tbs_of(const gs_launch *l)
{
    return (u64)l->grid[0] * l->grid[1] * l->grid[2];
}
