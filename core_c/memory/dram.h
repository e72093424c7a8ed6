/* A DRAM channel: banks with row buffers, and a data bus of sector slots. Requests open their rows in arrival
   order and take the bus slots that are free from then on. Activates of a channel keep a distance. Refreshes
   take their slots out of the bus as time advances. With refresh by bank, one bank at a time is away for
   longer and closes its row. Writes are collected and drained in batches that pay one bus turnaround; their
   queue is limited, and a full one holds up evictions from L2. */
#pragma once
#include "base/time_series.h"

/* Slots of word w of the bus map that refreshes take. Channels refresh one after another, and a refresh may
   have begun before time 0. */
static inline u64 gs_bus_refreshed(const gs_sim *sim, const gs_slice *s, u64 w)
{
    u64 map = 0, slot = sim->dram_slot;
    u64 period = sim->bus_refresh, busy = sim->bus_refresh_length;
    if (!busy) {
        return 0;
    }
    /* Times count from one period before 0 on. */
    u64 from = w * 64 * slot + period, to = from + 64 * slot, phase = period * s->id / sim->slice_places;
    for (u64 r = (from - phase) / period * period + phase; r < to; r += period) {
        /* slots that begin within the refresh and within this word */
        u64 past = r < from ? (from - r + slot - 1) / slot : 0;
        u64 all = (gs_min(r + busy, to) - r + slot - 1) / slot;
        if (all > past) {
            u64 n = all - past, run = n >= 64 ? ~0ull : (1ull << n) - 1;
            map |= run << (r < from ? 0 : (r - from) / slot);
        }
    }
    return map;
}

/* The initial state of a channel: its bus map, and when its banks are refreshed, spread over a period; some
   refreshes have begun before time 0. */
static inline void gs_dram_begin(const gs_sim *sim, gs_slice *s)
{
    const gs_gpu_dram_params *p = &sim->params.gpu_dram;
    for (u64 w = 0; w < GS_BUS_WORDS; w++) {
        s->bus[w] = gs_bus_refreshed(sim, s, w);
    }
    u64 period = (u64)p->refresh_period, busy = (u64)p->bank_refresh_time;
    u64 phase = (gs_mix(gs_mix((u64)sim->params.sim.seed, s->id + 1), 1) >> 24) % period;
    for (u32 b = 0; b <= sim->bank_mask; b++) {
        u64 first = (phase + period * b / (sim->bank_mask + 1)) % period;
        s->bank[b].refresh = busy ? first : GS_NEVER;
        s->bank[b].free = busy && first + busy > period ? first + busy - period : 0;
    }
}

/* Moves the bus map on by a word. Slots of refreshes are taken from the start. */
static inline void gs_bus_advance(const gs_sim *sim, gs_slice *s)
{
    u64 w = s->bus_word + GS_BUS_WORDS;
    u64 map = gs_bus_refreshed(sim, s, w);
    if (s->bus_tail > w * 64) {
        u64 taken = s->bus_tail - w * 64;
        map = taken >= 64 ? ~0ull : map | ((1ull << taken) - 1);
    }
    s->bus[w & (GS_BUS_WORDS - 1)] = map;
    s->bus_word++;
}

/* Refreshes of a channel that begin before a time. */
static inline u64 gs_refreshes(const gs_sim *sim, const gs_slice *s, u64 time)
{
    u64 period = sim->bus_refresh, phase = period * s->id / sim->slice_places;
    return time <= phase ? 0 : (time - phase + period - 1) / period;
}

/* Takes n slots after the end of the bus map, in arrival order. Refreshes take slots here, too. Returns the
   end of the last, ticks. */
static GS_COLD u64 gs_bus_take_beyond_map(const gs_sim *sim, gs_slice *s, u64 slot, u32 n)
{
    u64 map = (s->bus_word + GS_BUS_WORDS) * 64, start = gs_max(gs_max(s->bus_tail, map), slot);
    u64 width = sim->dram_slot, done = 0, end = start + n;
    u64 busy = sim->bus_refresh_length < sim->bus_refresh ? sim->bus_refresh_length : 0;
    /* a refresh that the end of the map cuts has not been counted yet */
    u64 from = start * width - (start > s->bus_tail ? gs_min(busy, start * width) : 0);
    u64 before = gs_refreshes(sim, s, from), now;
    while (busy && (now = gs_refreshes(sim, s, end * width) - before) > done) {
        end += (now - done) * ((busy + width - 1) / width);
        done = now;
    }
    s->bus_tail = end;
    return end * width;
}

/* Takes n sector slots from time t on; returns the end of the last. */
static GS_ALWAYS_INLINE u64 gs_bus_reserve(const gs_sim *sim, gs_slice *s, u64 now, u64 t, u32 n)
{
    u64 first = gs_div_by(now, sim->by_slot) >> 6;
    if (GS_UNLIKELY(first > s->bus_word + 2ull * GS_BUS_WORDS)) {
        /* all words of the old map are past: only those in view are built anew */
        s->bus_word = first - GS_BUS_WORDS;
    }
    while (s->bus_word < first) {
        gs_bus_advance(sim, s);
    }
    u64 slot = gs_div_by(t, sim->by_slot) + 1;
    if (s->bus_hint < s->bus_word) {
        s->bus_hint = s->bus_word;
    }
    if (slot >> 6 < s->bus_hint) {
        slot = s->bus_hint << 6;
    }
    s->count.bus_busy += n * sim->dram_slot;
    u64 last = slot;
    while (n) {
        u64 w = slot >> 6;
        if (GS_UNLIKELY(w >= s->bus_word + GS_BUS_WORDS)) {
            return gs_bus_take_beyond_map(sim, s, slot, n);
        }
        u64 *map = &s->bus[w & (GS_BUS_WORDS - 1)];
        u64 open = ~*map & (~0ull << (slot & 63));
        if (!open) {
            if (w == s->bus_hint && *map == ~0ull) {
                s->bus_hint++;
            }
            slot = (w + 1) << 6;
            continue;
        }
        u64 bit = open & (0 - open);
        u32 at = gs_ctz(bit);
        u64 run = n < 32 ? ((1ull << n) - 1) << at : 0;
        if (run && at + n <= 64 && (open & run) == run) {
            *map |= run;
            last = (w << 6 | at) + n - 1;
            break;
        }
        *map |= bit;
        last = w << 6 | at;
        slot = last + 1;
        n--;
    }
    return (last + 1) * sim->dram_slot;
}

/* A bank's refresh is due by a time. It begins when the bank has finished what it does, and closes the
   row. */
static inline void gs_bank_refresh(const gs_gpu_dram_params *p, gs_bank *b, u64 t)
{
    u64 due = t - (t - b->refresh) % (u64)p->refresh_period;
    b->free = gs_max(b->free, due) + (u64)p->bank_refresh_time;
    b->refresh = due + (u64)p->refresh_period;
    b->row = 0;
}

static GS_ALWAYS_INLINE u64 gs_dram_read(gs_sim *sim, gs_slice *s, u64 t, u32 row, u32 n)
{
    const gs_gpu_dram_params *p = &sim->params.gpu_dram;
    gs_bank *b = &s->bank[(row & sim->bank_mask) ^ ((row >> 5 ^ row >> 10) & sim->bank_fold)];
    u64 from;
    if (GS_UNLIKELY(t >= b->refresh)) {
        gs_bank_refresh(p, b, t);
    }
    if (b->row == row + 1) {
        from = gs_max(t, b->active);
        s->count.row_hits++;
    } else {
        u64 turn = gs_max(t, s->next_activate), start = gs_max(turn, b->free);
        if (GS_UNLIKELY(start >= b->refresh)) {
            gs_bank_refresh(p, b, start);
            start = gs_max(start, b->free);
        }
        s->next_activate = turn + (u64)p->row_gap;
        from = start + (u64)p->row_open;
        b->free = start + (u64)p->row_cycle;
        b->active = from;
        b->row = row + 1;
        s->count.row_misses++;
    }
    s->count.dram_read_sectors += n;
    s->reads_since = 1;
    u64 end = gs_bus_reserve(sim, s, t, from, n);
    if (GS_UNLIKELY(sim->series.interval != 0)) {
        gs_series_dram_read(sim, s, b, end, n);
    }
    return end;
}

/* Drains a batch of writes. */
static __attribute__((noinline)) void gs_dram_drain(gs_sim *sim, gs_slice *s, u64 t)
{
    u32 slots = s->writes + sim->turnaround_slots[s->reads_since];
    s->drained = gs_bus_reserve(sim, s, t, t, slots);
    if (GS_UNLIKELY(sim->series.interval != 0)) {
        gs_series_dram_write(sim, s, s->drained, slots);
    }
    s->writes = s->reads_since = 0;
}

static inline void gs_dram_write(gs_sim *sim, gs_slice *s, u64 t, u32 n)
{
    s->count.dram_write_sectors += n;
    s->writes += n;
    if (s->writes >= (u32)sim->params.gpu_dram.write_batch) {
        gs_dram_drain(sim, s, t);
    }
}
