/* When the results of a warp's loads from shared memory return, in order. Times are in cycles and leave out
   the latency of shared memory. */
#pragma once
#include "base/sm_state.h"

static inline void gs_smem_returns_add(gs_smem_returns *r, u32 done, u32 waves)
{
    r->last = (u8)((r->last + 1u) % GS_SMEM_RETURNS);
    r->count = (u8)gs_min32(r->count + 1u, GS_SMEM_RETURNS);
    r->done[r->last] = done;
    r->waves[r->last] = (u16)waves; /* an op's count has 16 bits, too */
}

/* When all results have returned except those of the last `back` wavefronts; wavefronts of one op return
   one a cycle. 0: the warp has no others. */
static inline u64 gs_smem_returns_before(const gs_smem_returns *r, u32 back)
{
    u32 i = r->last, n = 1;
    for (; n < GS_SMEM_RETURNS && n <= r->count && back && back >= r->waves[i]; n++) {
        back -= r->waves[i];
        i = (i + GS_SMEM_RETURNS - 1u) % GS_SMEM_RETURNS;
    }
    return n > r->count ? 0 : r->done[i] - gs_min32(r->done[i], back);
}
