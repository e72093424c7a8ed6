/* Arrays that grow while a simulation is created, and in the oracle. The hot loop allocates nothing. */
#pragma once
#include "base/types.h"

#include <stdlib.h>

/* Makes room for `need` elements of `size` bytes; the room at least doubles. Returns 0 if there is no
   memory; the array is unchanged then. The caller owns and frees it. */
static inline int gs_grow(void **at, u64 *room, u64 need, size_t size)
{
    if (need <= *room) {
        return 1;
    }
    u64 want = need * 2 + 256;
    void *p = realloc(*at, want * size);
    if (!p) {
        return 0;
    }
    *at = p;
    *room = want;
    return 1;
}
