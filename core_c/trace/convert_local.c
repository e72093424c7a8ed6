/* Local memory: see convert_local.h.

   A thread's window is 16 MiB, and stacks lie at its top. It is cut into chunks from the lowest address on
   that the first TB uses. Those that are touched are numbered in the order in which they are first used. A
   chunk of all warps comes before the next chunk. In a chunk, memory is interleaved as by the hardware: the
   same word of all lanes side by side, words one after another, then warps. A TB reuses the memory of the one
   LOCAL_SLOTS before it. */
#include "trace/convert_local.h"

#include "trace/convert_tables.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOCAL_SLOTS = 512, /* TBs after which local memory is reused */
    LEAST = 7,
    MOST = 24, /* bits of a chunk's bytes a thread: 128 B to the whole window */
    UNITS = 1 << (MOST - LEAST),
    LANES = 32
};

static u64 slots_of(const gs_convert *c)
{
    return gs_min(c->tbs, LOCAL_SLOTS) * c->warps;
}

/* 0: a TB without local memory */
static u64 size_of(const gs_convert *c)
{
    return c->local_chunks * slots_of(c) * LANES << c->local_bits;
}

void gs_local_begin(gs_convert *c)
{
    const u64 page = (u64)1 << GS_PAGE_BITS;
    u64 end = c->local_begin + c->local_bytes;
    c->local_begin = c->local_begin ? (end + page - 1) & ~(page - 1) : GS_LOCAL_FROM;
    c->local_chunks = c->local_bytes = c->local_low = 0;
    c->local_bits = 0;
}

static u64 offset_of(const gs_convert *c, u64 address, u32 width)
{
    u64 at = address >= c->header.local_base ? address - c->header.local_base : address;
    return ((at & ~(width - 1ull)) - c->local_low) & (((u64)1 << MOST) - 1);
}

/* The longest chunk with which at most half of the memory is unused, so that a stack is one chunk. */
static u32 choose_bits(const u32 *used, u32 first, u32 last)
{
    u64 units = 0;
    u32 best = LEAST;
    for (u32 i = first; i <= last; i++) {
        units += used[i];
    }
    for (u32 bits = LEAST + 1; bits <= MOST; bits++) {
        u64 chunks = 0;
        u32 before = UINT32_MAX;
        for (u32 i = first; i <= last; i++) {
            u32 chunk = (i - first) >> (bits - LEAST);
            chunks += used[i] && chunk != before;
            before = used[i] ? chunk : before;
        }
        best = chunks << bits <= units << (LEAST + 1) ? bits : best;
    }
    return best;
}

int gs_local_measure(gs_convert *c, const gs_trace_tb *tb)
{
    u32 first = UNITS, last = 0;
    if (c->local_bits) {
        return GS_OK;
    }
    for (u64 i = 0; i < tb->n_insts; i++) {
        const gs_trace_inst *t = &tb->insts[i];
        if (t->space != GS_SPACE_LOCAL || !t->width || !t->mask) {
            continue;
        }
        if (!c->local_number) {
            c->local_number = malloc(UNITS * sizeof *c->local_number);
            if (!c->local_number) {
                return gs_convert_no_memory(c);
            }
        }
        if (first == UNITS) {
            memset(c->local_number, 0, UNITS * sizeof *c->local_number);
        }
        for (u32 k = 0; k < gs_popcount(t->mask); k++) {
            u32 unit = (u32)(offset_of(c, tb->addresses[t->first + k], t->width) >> LEAST);
            c->local_number[unit] = 1;
            first = gs_min32(first, unit);
            last = gs_max32(last, unit);
        }
    }
    if (first < UNITS) {
        c->local_bits = choose_bits(c->local_number, first, last);
        c->local_low = (u64)first << LEAST;
        memset(c->local_number, 0, UNITS * sizeof *c->local_number);
    }
    return GS_OK;
}

void gs_local_place(gs_convert *c, u64 tb, u32 warp, u32 mask, u32 width, u64 *a)
{
    const u64 chunk_bytes = (u64)LANES << c->local_bits, slots = slots_of(c);
    const u64 slot = tb % LOCAL_SLOTS * c->warps + warp;
    u32 k = 0;
    for (u32 left = mask; left; left &= left - 1, k++) {
        u64 at = offset_of(c, a[k], width), within = at & (((u64)1 << c->local_bits) - 1);
        u32 *number = &c->local_number[at >> c->local_bits];
        if (!*number) {
            *number = (u32)++c->local_chunks;
            c->local_bytes = size_of(c);
        }
        a[k] = c->local_begin + ((*number - 1) * slots + slot) * chunk_bytes +
               (within >> 2) * ((u64)LANES * 4) + (u64)gs_ctz(left) * 4 + (within & 3);
    }
}
