/* When what a warp loads from shared memory is there: in order, one by one. */
#pragma once
#include "sm.h"

static inline void gs_returns_add(gs_returns *r, u32 done, u32 waves)
{
    r->last = (u8)((r->last + 1u) % GS_RETURNS);
    r->done[r->last] = done;
    r->waves[r->last] = (u16)waves; /* of an op: 16 bits, too */
}

/* when all results are there but those of the last `back` wavefronts: of one op, a cycle each */
static inline u64 gs_returns_before(const gs_returns *r, u32 back)
{
    u32 i = r->last;
    for (u32 n = 1; n < GS_RETURNS && back && back >= r->waves[i]; n++) {
        back -= r->waves[i];
        i = (i + GS_RETURNS - 1u) % GS_RETURNS;
    }
    return r->done[i] - gs_min32(r->done[i], back);
}
