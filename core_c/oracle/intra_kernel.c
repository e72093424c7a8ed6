/* Vector clocks of the TBs of a kernel: see intra_kernel.h. */
#include "oracle/intra_kernel.h"

#include "base/mailbox.h"

#include <stdlib.h>
#include <string.h>

typedef struct spot {
    u32 tb, first, end; /* keys of the same sector are first to end - 1 */
    u32 at[3],
        bytes[3]; /* of each kind of access: the TB's clock at the last one (0: none), what it touches */
    u64 written;  /* when the last of its stores arrived at L2 */
} spot;

struct gs_intra_kernel {
    u32 tbs, semaphores;
    u32 *clock;  /* of each TB: 1 + its posts */
    u32 *known;  /* a row for each TB: the clocks of other TBs that it has learned */
    u32 **given; /* of each semaphore that was posted: the merged clocks of its posts; owned */
    spot *spots;
};

static int by_sector(const void *x, const void *y)
{
    const gs_intra_kernel_key *a = x, *b = y;
    if (a->phase != b->phase) {
        return a->phase < b->phase ? -1 : 1;
    }
    if (a->sector != b->sector) {
        return a->sector < b->sector ? -1 : 1;
    }
    return a->tb < b->tb ? -1 : a->tb > b->tb;
}

gs_intra_kernel *gs_intra_kernel_create(u32 tbs, u32 semaphores, gs_intra_kernel_key *keys, u64 n)
{
    gs_intra_kernel *in = calloc(1, sizeof *in);
    if (!in) {
        return NULL;
    }
    in->tbs = tbs;
    in->semaphores = semaphores;
    in->clock = calloc(tbs, sizeof *in->clock);
    in->known = calloc((u64)tbs * tbs, sizeof *in->known);
    in->given = (u32 **)calloc((u64)semaphores + 1, sizeof *in->given);
    in->spots = calloc(n + 1, sizeof *in->spots);
    if (!in->clock || !in->known || !in->given || !in->spots) {
        gs_intra_kernel_free(in);
        return NULL;
    }
    for (u32 i = 0; i < tbs; i++) {
        in->clock[i] = 1;
    }
    qsort(keys, n, sizeof *keys, by_sector);
    for (u64 first = 0, end; first < n; first = end) {
        for (end = first + 1;
             end < n && keys[end].sector == keys[first].sector && keys[end].phase == keys[first].phase;
             end++) {
        }
        for (u64 i = first; i < end; i++) {
            in->spots[i] = (spot){keys[i].tb, (u32)first, (u32)end, {0}, {0}, 0};
            memcpy(in->spots[i].bytes, keys[i].bytes, sizeof keys[i].bytes);
        }
    }
    return in;
}

void gs_intra_kernel_free(gs_intra_kernel *in)
{
    if (!in) {
        return;
    }
    for (u32 i = 0; in->given && i < in->semaphores; i++) {
        free(in->given[i]);
    }
    free(in->clock);
    free(in->known);
    free((void *)in->given);
    free(in->spots);
    free(in);
}

gs_intra_kernel_found gs_intra_kernel_access(gs_intra_kernel *in, u32 place, u32 kind, u64 time, u64 seen)
{
    spot *own = &in->spots[place];
    const u32 *known = in->known + (u64)own->tb * in->tbs;
    own->at[kind] = in->clock[own->tb];
    if (kind != GS_MSG_LOAD) {
        own->written = gs_max(own->written, time);
    }
    for (u32 i = own->first; i < own->end; i++) {
        const spot *s = &in->spots[i];
        for (u32 k = GS_MSG_LOAD; k <= GS_MSG_REDUCE; k++) {
            int in_any_order = k == kind && kind != GS_MSG_STORE;
            if (s == own || in_any_order || !s->at[k] || !(s->bytes[k] & own->bytes[kind])) {
                continue;
            }
            if (s->at[k] > known[s->tb]) {
                return (gs_intra_kernel_found){s->tb, k, 0};
            }
            if (k != GS_MSG_LOAD && seen < s->written) {
                return (gs_intra_kernel_found){s->tb, k, 1};
            }
        }
    }
    return (gs_intra_kernel_found){GS_NONE, 0, 0};
}

int gs_intra_kernel_post(gs_intra_kernel *in, u32 tb, u32 semaphore)
{
    const u32 *known = in->known + (u64)tb * in->tbs;
    if (semaphore >= in->semaphores) {
        return 1;
    }
    if (!in->given[semaphore]) {
        in->given[semaphore] = calloc(in->tbs, sizeof(u32));
    }
    u32 *given = in->given[semaphore];
    if (!given) {
        return 0;
    }
    for (u32 i = 0; i < in->tbs; i++) {
        given[i] = gs_max32(given[i], known[i]);
    }
    given[tb] = gs_max32(given[tb], in->clock[tb]++);
    return 1;
}

void gs_intra_kernel_poll(gs_intra_kernel *in, u32 tb, u32 semaphore, u32 count)
{
    u32 *known = in->known + (u64)tb * in->tbs;
    for (u32 s = semaphore; s < semaphore + count && s < in->semaphores; s++) {
        for (u32 i = 0; in->given[s] && i < in->tbs; i++) {
            known[i] = gs_max32(known[i], in->given[s][i]);
        }
    }
}
