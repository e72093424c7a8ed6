/* Arrays that grow while a simulation is created, and in the oracle. The hot loop allocates nothing. */
#pragma once
#include "base/types.h"

#include <stdlib.h>

/* Room for `need` elements; 0: no memory. It at least doubles. */
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
