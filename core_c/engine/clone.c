/* The same moment under another setting: see gs_clone. The state stays as it is; the setting is exchanged. So
   the two settings may differ only in numbers that are read when an event needs them, and that no state
   keeps: gaps, periods and limits of the scheduler, and how long a request holds a port, a link or a bank.
   What is counted in units of a number, or has its size, differs in the initial state or in the layout too.
 */
#include "engine/checkpoint.h"

#include <string.h>

#define SPAN(field) {offsetof(gs_sim, field), sizeof(((gs_sim *)NULL)->field)}

/* Where the two settings may differ; which parameters may is for the caller to know. */
static const gs_span setting[] = {
    SPAN(params),      SPAN(order),      SPAN(reply_hold),  SPAN(port_hold),        SPAN(gpc_sector),
    SPAN(link_sector), SPAN(link_store), SPAN(write_ahead), SPAN(turnaround_slots), SPAN(atomic_hold),
};

/* 1: the word at this offset of gs_sim is in one of the spans. */
static int is_in(const gs_span *spans, u64 n, u64 at)
{
    for (u64 i = 0; i < n; i++) {
        if (at + 4 > spans[i].at && at < spans[i].at + spans[i].bytes) {
            return 1;
        }
    }
    return 0;
}

static int is_kept(u64 at)
{
    return at < sizeof(gs_sim) &&
           (is_in(setting, sizeof setting / sizeof *setting, at) || is_in(gs_own, GS_OWN, at));
}

static u32 word_at(const gs_sim *sim, u64 at)
{
    u32 word;
    memcpy(&word, (const char *)sim + at, sizeof word);
    return word;
}

/* 1: a page is equal in both, but for the words that a clone keeps. */
static int is_alike(const gs_sim *a, const gs_sim *b, u64 at)
{
    if (!memcmp((const char *)a + at, (const char *)b + at, GS_PAGE)) {
        return 1;
    }
    for (u64 end = at + GS_PAGE; at < end; at += 4) {
        if (word_at(a, at) != word_at(b, at) && !is_kept(at)) {
            return 0;
        }
    }
    return 1;
}

int gs_clone(gs_sim *to, const gs_sim *from, const gs_sim *fresh)
{
    const u64 bytes = from->bytes;
    if (gs_checkpoint_refuse(to) || gs_checkpoint_refuse(from) || gs_checkpoint_refuse(fresh) ||
        to->bytes != bytes || fresh->bytes != bytes) {
        return GS_ERR_ARG;
    }
    for (u64 page = 0; (page = gs_page_skip_unused(fresh, page)) < bytes / GS_PAGE; page++) {
        if (!is_alike(to, fresh, page * GS_PAGE)) {
            return GS_ERR_ARG;
        }
    }
    /* the layouts are the same, and `from` has used all pages that `to` has */
    for (u64 next = 0; (next = gs_page_skip_unused(from, next)) < bytes / GS_PAGE; next++) {
        const u64 at = next * GS_PAGE;
        char *page = (char *)to + at;
        const char *now = (const char *)from + at;
        if (gs_page_is_zero(page) && gs_page_is_zero(now)) {
            continue;
        }
        if (at >= sizeof(gs_sim)) {
            memcpy(page, now, GS_PAGE);
            continue;
        }
        for (u64 i = 0; i < GS_PAGE; i += 4) {
            if (!is_kept(at + i)) {
                memcpy(page + i, now + i, 4);
            }
        }
    }
    return GS_OK;
}
