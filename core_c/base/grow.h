/* Arrays that grow while a simulation is made, and in the oracle: the hot loop allocates nothing. */
#pragma once
#include "base/types.h"

#include <stdlib.h>

/* More room in an array, at least twice as much as is needed; 0: no memory. */
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
