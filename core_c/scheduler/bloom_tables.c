/* Tables of hints and signatures: see bloom_tables.h. */
#include "scheduler/bloom_tables.h"

#include "base/arena.h"
#include "base/fail.h"

#include <string.h>

static int bad_hints(const gs_hint *h, u32 n, u32 levels)
{
    for (u32 i = 0; i < n; i++) {
        if (h[i].first >= h[i].end || (i && h[i].first < h[i - 1].end) ||
            (h[i].end - 1) >> GS_HINT_TAG != h[i].first >> GS_HINT_TAG ||
            h[i].first >> GS_HINT_TAG >= 2 * (u64)levels) {
            return 1;
        }
    }
    return 0;
}

static int bad_questions(const gs_hint *h, u32 n, u32 levels)
{
    u32 above = levels; /* the lowest level of a granule around the next */
    for (u32 i = 0; i < n; i++) {
        u32 level = (u32)(h[i].first >> GS_HINT_TAG) / 2, touched = h[i].first >> GS_HINT_TAG & 1;
        if (h[i].first >= h[i].end || (h[i].end - 1) >> GS_HINT_TAG != h[i].first >> GS_HINT_TAG ||
            level >= levels || level + 1 < above) {
            return 1;
        }
        above = touched ? level + 1 : level;
    }
    return 0;
}

static int bad_launch(const gs_job *job, const gs_launch *l, u64 slots, u32 levels)
{
    u64 tbs = gs_tbs_of(l);
    if (l->units == 0) {
        return !l->barrier || l->sets;
    }
    if (l->unit_tbs == 0 || (tbs + l->unit_tbs - 1) / l->unit_tbs != l->units || l->units > slots / 2 ||
        (u64)l->first_unit + l->units + 1 > job->n_unit_ptr ||
        (u64)l->first_set + l->sets > job->n_hint_sets) {
        return 1;
    }
    for (u32 i = l->first_set; i < l->first_set + l->sets; i++) {
        const gs_hint_set *s = &job->hint_sets[i];
        if (s->written > 1 || (u64)s->first_hint + s->hints + s->asked > job->n_hints ||
            (u64)s->first_unit + s->units > job->n_set_units) {
            return 1;
        }
        for (u32 j = s->first_unit; j < s->first_unit + s->units; j++) {
            if (job->set_units[j] >= l->units) {
                return 1;
            }
        }
        if (bad_questions(job->hints + s->first_hint, s->asked, levels) ||
            bad_hints(job->hints + s->first_hint + s->asked, s->hints, levels)) {
            return 1;
        }
    }
    for (u32 i = l->first_unit; i < l->first_unit + l->units; i++) {
        if (job->unit_ptr[i] > job->unit_ptr[i + 1] || job->unit_ptr[i + 1] > job->n_unit_sets) {
            return 1;
        }
        for (u32 j = job->unit_ptr[i]; j < job->unit_ptr[i + 1]; j++) {
            u32 set = job->unit_sets[j];
            if (set < l->first_set || set - l->first_set >= l->sets) {
                return 1;
            }
        }
    }
    return 0;
}

static u32 slots_of(const gs_sim *sim)
{
    return ((u32)sim->params.scheme_bloom.signatures + 63) / 64 * 64;
}

int gs_bloom_check(gs_sim *sim, const gs_job *job)
{
    u64 slots = slots_of(sim);
    if (job->n_unit_ptr == 0 || job->n_rates != 2 * (job->n_unit_ptr - 1) || job->n_unit_ptr >= GS_NONE) {
        return gs_fail(sim, GS_ERR_ARG, "hints: %llu units but %llu rates",
                       (unsigned long long)job->n_unit_ptr, (unsigned long long)job->n_rates);
    }
    for (u64 i = 0; i < job->n_launches; i++) {
        if (bad_launch(job, &job->launches[i], slots, (u32)sim->params.scheme_bloom.levels)) {
            return gs_fail(sim, GS_ERR_ARG, "launch %llu: its hints or units are out of range",
                           (unsigned long long)i);
        }
    }
    return GS_OK;
}

u64 gs_bloom_lay_out(gs_sim *sim, const gs_job *job, u64 end)
{
    gs_bloom *b = &sim->bloom;
    u32 slots = slots_of(sim), bits = (u32)sim->params.scheme_bloom.bits;
    u64 row = slots / 8, levels = (u64)sim->params.scheme_bloom.levels;
    b->slots = slots;
    b->at_hints = gs_reserve(&end, job->n_hints, sizeof(gs_hint));
    b->at_sets = gs_reserve(&end, job->n_hint_sets, sizeof(gs_hint_set));
    b->at_set_units = gs_reserve(&end, job->n_set_units, 4);
    b->at_unit_ptr = gs_reserve(&end, job->n_unit_ptr, 4);
    b->at_unit_sets = gs_reserve(&end, job->n_unit_sets, 4);
    b->at_rates = gs_reserve(&end, job->n_rates, 4);
    b->at_slot_of = gs_reserve(&end, job->n_unit_ptr, 4);
    b->at_units = gs_reserve(&end, slots, sizeof(gs_unit));
    b->at_read = gs_reserve(&end, bits + 2 * levels, row);
    b->at_written = gs_reserve(&end, bits + 2 * levels, row);
    b->at_waits = gs_reserve(&end, slots, row);
    b->at_found = gs_reserve(&end, slots, row);
    b->at_truly = gs_reserve(&end, slots, row);
    b->at_alive = gs_reserve(&end, 1, row);
    b->at_held = gs_reserve(&end, 1, row);
    b->at_scratch = gs_reserve(&end, 4, row);
    b->at_marked = gs_reserve(&end, levels + 1, row);
    return end;
}

void gs_bloom_fill(gs_sim *sim, const gs_job *job)
{
    const gs_bloom *b = &sim->bloom;
    const struct {
        u64 at;
        const void *from;
        u64 bytes;
    } copies[] = {
        {b->at_hints, job->hints, job->n_hints * sizeof(gs_hint)},
        {b->at_sets, job->hint_sets, job->n_hint_sets * sizeof(gs_hint_set)},
        {b->at_set_units, job->set_units, job->n_set_units * 4},
        {b->at_unit_ptr, job->unit_ptr, job->n_unit_ptr * 4},
        {b->at_unit_sets, job->unit_sets, job->n_unit_sets * 4},
        {b->at_rates, job->rates, job->n_rates * 4},
    };
    for (u32 i = 0; i < sizeof copies / sizeof *copies; i++) {
        if (copies[i].bytes) {
            memcpy((char *)sim + copies[i].at, copies[i].from, copies[i].bytes);
        }
    }
}
