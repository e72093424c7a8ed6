/* Writes the state of a simulation, and reads it back: see checkpoint.h. */
#include "engine/checkpoint.h"

#include "base/fail.h"

#include <string.h>

/* What belongs to the process and not to the state: it is written as zeros, and kept when a state is read. */
static const struct {
    u64 at, bytes;
} own_fields[] = {
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
    for (u32 i = 0; i < sizeof own_fields / sizeof *own_fields; i++) {
        u64 first = gs_max(own_fields[i].at, begin),
            end = gs_min(own_fields[i].at + own_fields[i].bytes, begin + GS_PAGE);
        if (first < end) {
            memcpy(to + (first - begin), own + (first - begin), end - first);
        }
    }
}

/* A page that was never written reads as zeros, which takes no memory. */
static int is_zero(const char *page)
{
    const u64 *words = (const u64 *)(const void *)page;
    u64 any = 0;
    for (u32 i = 0; i < GS_PAGE / 8 && !any; i += 8) {
        any = words[i] | words[i + 1] | words[i + 2] | words[i + 3] | words[i + 4] | words[i + 5] |
              words[i + 6] | words[i + 7];
    }
    return any == 0;
}

/* A run that has failed has no state to go on from, and the oracle's state is outside the arena. */
static int refuse(const gs_sim *sim)
{
    return sim->oracle && !sim->error_code ? GS_ERR_ARG : sim->error_code;
}

int64_t gs_checkpoint_write(const gs_sim *sim, uint64_t *page, void *out, uint64_t room)
{
    const u64 pages = sim->bytes / GS_PAGE;
    char *to = out;
    u64 used = 0;
    gs_page_run run = {0, 0};
    u64 head = 0; /* where the head of the present run is */
    if (refuse(sim)) {
        return refuse(sim);
    }
    if (room < sizeof run + GS_PAGE) {
        return GS_ERR_ARG;
    }
    for (; *page < pages; ++*page) {
        const char *from = (const char *)sim + *page * GS_PAGE;
        if (is_zero(from)) {
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
        if (!is_zero(to)) {
            copy_page(to, zero, page, 1);
        }
    }
}

int gs_checkpoint_read(gs_sim *sim, uint64_t *page, const void *data, uint64_t bytes)
{
    const u64 pages = sim->bytes / GS_PAGE;
    const char *from = data;
    gs_page_run run;
    if (refuse(sim)) {
        return refuse(sim);
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
    if (refuse(sim)) {
        return refuse(sim);
    }
    clear_pages(sim, page, sim->bytes / GS_PAGE);
    return GS_OK;
}
