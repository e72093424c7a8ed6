/* Time series: see time_series.h. A sample is a copy of the counters, which run from the start, so two
   samples merge by dropping the first. A part in which nothing happens completes its samples with its next
   event, or at the end. */
#include "base/time_series.h"

#include "base/mailbox.h"

#include <string.h>

static gs_sm_series *sm_samples(gs_sim *sim)
{
    return GS_TABLE(sim, gs_sm_series, series.at_sms);
}

static gs_slice_series *slice_samples(gs_sim *sim)
{
    return GS_TABLE(sim, gs_slice_series, series.at_slices);
}

static gs_bank_series *bank_samples(gs_sim *sim)
{
    return GS_TABLE(sim, gs_bank_series, series.at_banks);
}

void gs_series_plan(gs_sim *sim)
{
    gs_series *s = &sim->series;
    s->interval = (u64)sim->params.sim.sample;
    if (s->interval) {
        /* a row for each SM, slice, channel and bank */
        u64 rows = (u64)sim->sms + (u64)sim->slices * (2 + sim->bank_mask + 1);
        s->limit = gs_max(GS_SERIES_ROWS / rows, 16);
        /* the interval is checked between quanta */
        s->room = s->limit + (sim->quantum + sim->lead) / s->interval + 2;
        /* Reads wait within the SMs' credits, each for a row and for the bus. Writes have no limit: as many
           again. */
        s->due_room = (u64)sim->sms * (sim->credits[GS_POOL_LOADS] + sim->credits[GS_POOL_COPIES]) * 4;
    }
}

/* Counters of an SM; resident TBs count up to `time`. */
static gs_sm_series sm_count(const gs_sim *sim, const gs_sm *sm, u64 time)
{
    gs_sm_series out = {sm->held, sm->stalls, sm->work};
    u64 warps = (u64)sim->params.gpu_sm.warps - gs_popcount64(sm->free_warps);
    out.held.busy += sm->live_tbs ? time : 0;
    out.held.tb_time += sm->live_tbs * time;
    out.held.warp_time += warps * time;
    for (u32 i = 0; i < GS_TBS && sm->live_tbs; i++) {
        const gs_tb *tb = &sm->tb[i];
        if (tb->warps) {
            u64 *to = (u64 *)&out.stalls;
            for (u32 j = 0; j < GS_STALLS_N; j++) {
                to[j] += ((const u64 *)&tb->stalls)[j];
            }
        }
    }
    return out;
}

u64 gs_series_sm(gs_sim *sim, gs_sm *sm, u64 time)
{
    u64 interval = sim->series.interval, end = (sm->series + 1) * interval;
    if (!interval) {
        return GS_NEVER;
    }
    while (end <= time && sm->series < sim->series.room) {
        sm_samples(sim)[sm->series * sim->sms + sm->id] = sm_count(sim, sm, end);
        sm->series++;
        end += interval;
    }
    return end;
}

gs_l2 gs_slice_count(const gs_sim *sim, const gs_slice *s)
{
    gs_l2 out = s->count;
    out.hits = out.requests - s->misses - s->forwarded;
    out.busy = (out.sectors_read + out.sectors_written) * sim->slice_sector[GS_MSG_LOAD];
    return out;
}

/* DRAM: a booking counts when it happens. */
static gs_channel *channels(gs_sim *sim)
{
    return GS_TABLE(sim, gs_channel, series.at_channels);
}

static gs_dram_booking *dues_of(gs_sim *sim, u32 slice)
{
    return GS_TABLE(sim, gs_dram_booking, series.at_dues) + slice * sim->series.due_room;
}

static void happen(const gs_sim *sim, gs_channel *c, const gs_dram_booking *due)
{
    c->count.bus_busy += due->slots * sim->dram_slot;
    switch (due->kind) {
    case GS_DUE_OPEN:
        c->bank[due->bank].activates++;
        return;
    case GS_DUE_WRITE:
        c->count.dram_write_sectors += due->sectors;
        return;
    default:
        c->count.dram_read_sectors += due->sectors;
        c->bank[due->bank].accesses++;
        c->count.row_hits += due->kind == GS_DUE_HIT;
        c->count.row_misses += due->kind == GS_DUE_MISS;
    }
}

static void book(gs_sim *sim, u32 slice, gs_dram_booking due)
{
    gs_channel *c = &channels(sim)[slice];
    u64 end = (GS_TABLE(sim, u64, series.at_done)[slice / GS_GROUP] + 1) * sim->series.interval;
    if (due.time < end || c->dues == sim->series.due_room) {
        happen(sim, c, &due);
    } else {
        dues_of(sim, slice)[c->dues++] = due;
    }
}

void gs_series_dram_read(gs_sim *sim, const gs_slice *s, const gs_bank *b, u64 time, u32 n)
{
    gs_channel *c = &channels(sim)[s->id];
    u8 bank = (u8)(b - s->bank), kind = GS_DUE_HIT;
    if (c->misses != s->count.row_misses) {
        c->misses = s->count.row_misses;
        kind = GS_DUE_MISS;
        u64 begun = b->active - (u64)sim->params.gpu_dram.row_open;
        book(sim, s->id, (gs_dram_booking){begun, GS_DUE_OPEN, bank, 0, 0});
    }
    book(sim, s->id, (gs_dram_booking){time, kind, bank, (u16)n, n});
}

void gs_series_dram_write(gs_sim *sim, const gs_slice *s, u64 time, u32 slots)
{
    book(sim, s->id, (gs_dram_booking){time, GS_DUE_WRITE, 0, (u16)s->writes, slots});
}

/* All that happens before `time`. The order does not change the sums. */
static void settle(gs_sim *sim, u32 slice, u64 time)
{
    gs_channel *c = &channels(sim)[slice];
    gs_dram_booking *dues = dues_of(sim, slice);
    for (u64 i = 0; i < c->dues;) {
        if (dues[i].time < time) {
            happen(sim, c, &dues[i]);
            dues[i] = dues[--c->dues];
        } else {
            i++;
        }
    }
}

static u64 past(u64 until, u64 time)
{
    return until > time ? until - time : 0;
}

static void slice_sample(gs_sim *sim, const gs_slice *s, u64 i, u64 time)
{
    u64 at = i * sim->slice_places + s->id, banks = sim->bank_mask + 1;
    const gs_channel *c = &channels(sim)[s->id];
    gs_slice_series *to = &slice_samples(sim)[at];
    *to = (gs_slice_series){past(s->port_free, time), s->count.dram_read_sectors - c->count.dram_read_sectors,
                            gs_slice_count(sim, s)};
    to->count.dram_read_sectors = c->count.dram_read_sectors;
    to->count.dram_write_sectors = c->count.dram_write_sectors;
    to->count.row_hits = c->count.row_hits;
    to->count.row_misses = c->count.row_misses;
    to->count.bus_busy = c->count.bus_busy;
    for (u64 b = 0; b < banks; b++) {
        bank_samples(sim)[at * banks + b] = (gs_bank_series){past(s->bank[b].free, time), c->bank[b]};
    }
}

static void group_sample(gs_sim *sim, u32 group, u64 i, u64 time)
{
    for (u32 s = group * GS_GROUP; s < sim->slice_places && s < (group + 1) * GS_GROUP; s++) {
        settle(sim, s, time);
        slice_sample(sim, &gs_slices(sim)[s], i, time);
    }
}

u64 gs_series_slices(gs_sim *sim, u32 group, u64 time)
{
    u64 *done = &GS_TABLE(sim, u64, series.at_done)[group];
    u64 end = (*done + 1) * sim->series.interval;
    while (end <= time && *done < sim->series.room) {
        group_sample(sim, group, *done, end);
        ++*done;
        end += sim->series.interval;
    }
    return end;
}

/* Merges pairs of a part's samples into the second of each. Returns how many are complete then. */
static u64 merge(char *samples, u64 bytes, u64 stride, u64 done)
{
    for (u64 i = 0; i < done / 2; i++) {
        memcpy(samples + i * stride, samples + (2 * i + 1) * stride, bytes);
    }
    return done / 2;
}

void gs_series_merge_to_fit(gs_sim *sim, u64 time)
{
    gs_series *s = &sim->series;
    u64 banks = (sim->bank_mask + 1) * sizeof(gs_bank_series);
    while (s->interval && time / s->interval >= s->limit) {
        s->interval *= 2;
        for (u32 i = 0; i < sim->sms; i++) {
            gs_sm *sm = &gs_sms(sim)[i];
            sm->series = merge((char *)(sm_samples(sim) + i), sizeof(gs_sm_series),
                               sizeof(gs_sm_series) * sim->sms, sm->series);
        }
        u64 *all_done = GS_TABLE(sim, u64, series.at_done);
        for (u32 i = 0; i < sim->slice_places; i++) {
            u64 done = all_done[i / GS_GROUP];
            merge((char *)bank_samples(sim) + i * banks, banks, banks * sim->slice_places, done);
            merge((char *)(slice_samples(sim) + i), sizeof(gs_slice_series),
                  sizeof(gs_slice_series) * sim->slice_places, done);
        }
        for (u32 i = 0; i < sim->slice_boxes; i++) {
            all_done[i] /= 2;
        }
    }
}

/* A run that has not ended counts complete samples only. */
u64 gs_series_samples(const gs_sim *sim)
{
    const gs_series *s = &sim->series;
    if (!s->interval) {
        return 0;
    }
    return sim->sched.finished ? gs_max((sim->sched.end + s->interval - 1) / s->interval, 1)
                               : sim->q0 / s->interval;
}

void gs_series_get(gs_sim *sim, gs_sm_series *sms, gs_slice_series *slices, gs_bank_series *banks)
{
    u64 n = gs_series_samples(sim), now = sim->sched.finished ? sim->sched.end : sim->q0;
    if (!n) {
        return;
    }
    /* SMs run ahead of slices */
    u64 sm_now = sim->sched.finished ? now : now + sim->lead;
    for (u32 i = 0; i < sim->sms; i++) {
        gs_sm *sm = &gs_sms(sim)[i];
        gs_series_sm(sim, sm, sm_now);
        if (sm->series < n) {
            sm_samples(sim)[(n - 1) * sim->sms + i] = sm_count(sim, sm, sm_now);
        }
    }
    for (u32 i = 0; i < sim->slice_boxes; i++) {
        gs_series_slices(sim, i, now);
    }
    for (u32 i = 0; i < sim->slice_places && sim->sched.finished; i++) {
        /* the last sample includes what is drained later, or never */
        const gs_slice *s = &gs_slices(sim)[i];
        settle(sim, i, GS_NEVER);
        slice_sample(sim, s, n - 1, GS_NEVER);
        slice_samples(sim)[(n - 1) * sim->slice_places + i].count.dram_write_sectors =
            s->count.dram_write_sectors;
    }
    memcpy(sms, sm_samples(sim), n * sim->sms * sizeof *sms);
    const u64 each = sim->bank_mask + 1;
    for (u64 i = 0; i < n * sim->slices; i++) {
        u64 from = i / sim->slices * sim->slice_places + gs_slice_place(sim, (u32)(i % sim->slices));
        slices[i] = slice_samples(sim)[from];
        memcpy(banks + i * each, bank_samples(sim) + from * each, each * sizeof *banks);
    }
}
