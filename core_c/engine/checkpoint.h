/* A checkpoint: the state between two calls of gs_run, when every part is at the end of the same quantum and
   all messages are in mailboxes of the arena. It is the arena's pages that are not zero. Tables of the caller
   and the oracle are outside the arena: the caller has the former again when he restores, and a simulation
   with an oracle has no checkpoint. */
#pragma once
#include "base/state.h"

enum { GS_PAGE = 4096 };

/* The head of a run of pages that are not zero; the pages follow it. */
typedef struct gs_page_run {
    u64 first, pages;
} gs_page_run;

/* A part of gs_sim. */
typedef struct gs_span {
    u64 at, bytes;
} gs_span;

/* What belongs to the process and not to the state: it is written as zeros, and kept when a state is read. */
enum { GS_OWN = 8 };
extern const gs_span gs_own[GS_OWN];

/* A run that has failed has no state to go on from, and the oracle's state is outside the arena: the error.
 */
int gs_checkpoint_refuse(const gs_sim *sim);

/* A page that was never written reads as zeros, which takes no memory. */
static inline int gs_page_is_zero(const char *page)
{
    const u64 *words = (const u64 *)(const void *)page;
    u64 any = 0;
    for (u32 i = 0; i < GS_PAGE / 8 && !any; i += 8) {
        any = words[i] | words[i + 1] | words[i + 2] | words[i + 3] | words[i + 4] | words[i + 5] |
              words[i + 6] | words[i + 7];
    }
    return any == 0;
}

/* The first page from `page` on that may have been written. A thread takes chunks of messages one after
   another, so those from next_chunk on are untouched: most of the arena, which is not even looked at. */
u64 gs_page_skip_unused(const gs_sim *sim, u64 page);
