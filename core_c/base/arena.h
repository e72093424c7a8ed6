/* Offsets of tables in the arena. */
#pragma once
#include "base/types.h"
#include "gs_api.h"

/* Reserves n elements of `size` bytes at *end, aligned to a pair of host cache lines (128 B). Returns their
   offset in the arena and moves *end. */
static inline u64 gs_reserve(u64 *end, u64 n, u64 size)
{
    u64 at = (*end + 127) & ~127ull;
    *end = at + n * size;
    return at;
}

static inline u64 gs_tbs_of(const gs_launch *l)
{
    return (u64)l->grid[0] * l->grid[1] * l->grid[2];
}
