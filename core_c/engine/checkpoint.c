/* Writes the state of a simulation, and reads it back: see checkpoint.h. */
#include "engine/checkpoint.h"

#include "base/fail.h"
#include "base/mailbox.h"

#include <string.h>

const gs_span gs_own[GS_OWN] = {
    {offsetof(gs_sim, bytes), sizeof(u64)},
    {offsetof(gs_sim, error_code), sizeof(int)},
    {offsetof(gs_sim, rule), sizeof(gs_rule)},
    {offsetof(gs_sim, accesses), sizeof(const u64 *)},
    {offsetof(gs_sim, recorded_templates), sizeof(const gs_template *)},
    {offsetof(gs_sim, recorded_parts), sizeof(const gs_part *)},
    {offsetof(gs_sim, block), sizeof(void *)},
    {offsetof(gs_sim, oracle), sizeof(struct gs_oracle *)},
};

/* Copies a page, but for what belongs to the process: that is kept (`to` is the arena), or zero. */
static void copy_page(char *to, const char *from, u64 page, int keep)
{
    const u64 begin = page * GS_PAGE;
    char own[GS_PAGE] = {0};
    if (begin >= sizeof(gs_sim)) {
        memcpy(to, from, GS_PAGE);
        return;
    }
    if (keep) {
        memcpy(own, to, GS_PAGE);
    }
    memcpy(to, from, GS_PAGE);
    for (u32 i = 0; i < GS_OWN; i++) {
        u64 first = gs_max(gs_own[i].at, begin),
            end = gs_min(gs_own[i].at + gs_own[i].bytes, begin + GS_PAGE);
        if (first < end) {
            memcpy(to + (first - begin), own + (first - begin), end - first);
        }
    }
}

int gs_checkpoint_refuse(const gs_sim *sim)
{
    return sim->oracle && !sim->error_code ? GS_ERR_ARG : sim->error_code;
}

u64 gs_page_skip_unused(const gs_sim *sim, u64 page)
{
    for (u32 t = 0; t < GS_THREADS; t++) {
        const gs_thread *th = &sim->thread[t];
        u64 first = (sim->at_chunks + th->next_chunk * sizeof(gs_chunk) + GS_PAGE - 1) / GS_PAGE;
        u64 end = (sim->at_chunks + th->end_chunk * sizeof(gs_chunk)) / GS_PAGE;
        page = page >= first && page < end ? end : page;
    }
    return page;
}

int64_t gs_checkpoint_write(const gs_sim *sim, uint64_t *page, void *out, uint64_t room)
{
    const u64 pages = sim->bytes / GS_PAGE;
    char *to = out;
    u64 used = 0;
    gs_page_run run = {0, 0};
    u64 head = 0; /* where the head of the present run is */
    if (gs_checkpoint_refuse(sim)) {
        return gs_checkpoint_refuse(sim);
    }
    if (room < sizeof run + GS_PAGE) {
        return GS_ERR_ARG;
    }
    for (; *page < pages; ++*page) {
        const u64 after = gs_page_skip_unused(sim, *page);
        if (after > *page) {
            run.pages = 0;
            *page = after - 1;
            continue;
        }
        const char *from = (const char *)sim + *page * GS_PAGE;
        if (gs_page_is_zero(from)) {
            run.pages = 0;
            continue;
        }
        u64 more = GS_PAGE + (run.pages ? 0 : sizeof run);
        if (room - used < more) {
            break;
        }
        if (!run.pages) {
            run.first = *page;
            head = used;
            used += sizeof run;
        }
        run.pages++;
        memcpy(to + head, &run, sizeof run);
        copy_page(to + used, from, *page, 0);
        used += GS_PAGE;
    }
    return (int64_t)used;
}

/* Sets pages to zero; those that are zero stay untouched. */
static void clear_pages(gs_sim *sim, u64 first, u64 end)
{
    static const char zero[GS_PAGE];
    for (u64 page = first; page < end; page++) {
        char *to = (char *)sim + page * GS_PAGE;
        if (!gs_page_is_zero(to)) {
            copy_page(to, zero, page, 1);
        }
    }
}

int gs_checkpoint_read(gs_sim *sim, uint64_t *page, const void *data, uint64_t bytes)
{
    const u64 pages = sim->bytes / GS_PAGE;
    const char *from = data;
    gs_page_run run;
    if (gs_checkpoint_refuse(sim)) {
        return gs_checkpoint_refuse(sim);
    }
    while (bytes) {
        if (bytes < sizeof run) {
            return gs_fail(sim, GS_ERR_ARG, "a damaged checkpoint: %llu B are left of a run of pages",
                           (unsigned long long)bytes);
        }
        memcpy(&run, from, sizeof run);
        from += sizeof run;
        bytes -= sizeof run;
        if (run.first < *page || run.first >= pages || run.pages == 0 || run.pages > pages - run.first ||
            run.pages > bytes / GS_PAGE) {
            return gs_fail(sim, GS_ERR_ARG, "a damaged checkpoint: %llu pages from page %llu on",
                           (unsigned long long)run.pages, (unsigned long long)run.first);
        }
        clear_pages(sim, *page, run.first);
        for (u64 i = 0; i < run.pages; i++, from += GS_PAGE, bytes -= GS_PAGE) {
            copy_page((char *)sim + (run.first + i) * GS_PAGE, from, run.first + i, 1);
        }
        *page = run.first + run.pages;
    }
    return GS_OK;
}

int gs_checkpoint_end(gs_sim *sim, uint64_t page)
{
    if (gs_checkpoint_refuse(sim)) {
        return gs_checkpoint_refuse(sim);
    }
    clear_pages(sim, page, sim->bytes / GS_PAGE);
    return GS_OK;
}
