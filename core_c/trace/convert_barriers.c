/* Barriers of a TB: see convert_barriers.h.

   A trace does not say which phase of a transaction barrier a wait is for. All copies on the barrier are
   shared evenly over its phases: as many as its producer expects bytes (arrives), or as the warp with the
   most waits waits. A warp's j-th wait is for the first j phases. A barrier that nothing is copied to counts
   arrivals in the same way, a phase later. A spin loop of tests is one wait. */
#include "trace/convert_barriers.h"

#include <string.h>

enum { SPIN = 8 /* instructions between two tests of a spin loop, at most */ };

static u64 in_window(const gs_convert *c, u64 address)
{
    u64 base = c->header.shared_base;
    return base && address >= base && address - base < (u64)1 << 24 ? address - base : address;
}

/* Its number; GS_NOWHERE: unknown or one too many. */
static u32 find(const gs_barriers *b, u64 address)
{
    for (u32 i = 0; i < b->n; i++) {
        if (b->address[i] == address) {
            return i;
        }
    }
    return GS_NOWHERE;
}

static u32 enter(gs_barriers *b, u64 address)
{
    u32 i = find(b, address);
    if (i == GS_NOWHERE && b->n < GS_TRANSACTION_BARRIERS) {
        i = b->n++;
        b->address[i] = address;
    }
    return i;
}

/* 1: the instruction names a transaction barrier. */
static int names_barrier(const gs_convert *c, const gs_trace_tb *tb, const gs_trace_inst *t, u64 *address)
{
    u32 kind = GS_OPCODE[t->opcode].kind;
    if (!t->mask) {
        return 0;
    }
    if (kind == GS_KIND_BULK_LOAD && t->imm > 0) {
        *address = in_window(c, t->barrier);
        return 1;
    }
    if ((kind == GS_KIND_MBARRIER_ARRIVE || kind == GS_KIND_MBARRIER_WAIT) && t->width) {
        *address = in_window(c, tb->addresses[t->first]);
        return 1;
    }
    return 0;
}

/* 1: the same test as the last one, a few instructions of arithmetic and control flow ago */
static int is_spin(gs_barrier_walk *walk, const gs_trace_inst *t, u64 address, int waits)
{
    u32 kind = GS_OPCODE[t->opcode].kind;
    if (waits) {
        int again = walk->since <= SPIN && walk->pc == t->pc && walk->address == address;
        *walk = (gs_barrier_walk){address, t->pc, 0};
        return again;
    }
    int light =
        kind == GS_KIND_ALU || kind == GS_KIND_BRANCH || kind == GS_KIND_NOP || kind == GS_KIND_CONSTANT;
    walk->since = light || !t->mask ? walk->since + 1 : SPIN + 1;
    return 0;
}

static void scan_named(gs_barriers *b, const gs_trace_inst *t, u32 warp)
{
    u32 id = (u32)t->imm & 15;
    b->users[id] |= 1u << warp;
    b->arrives_at[id] |= (t->variant & GS_VARIANT_ARRIVE) != 0;
    b->threads[id] = gs_max32(b->threads[id], t->bytes);
}

static void scan_warp(gs_convert *c, const gs_trace_tb *tb, u32 warp)
{
    gs_barriers *b = &c->barriers;
    u32 waits[GS_TRANSACTION_BARRIERS] = {0}, arrives[GS_TRANSACTION_BARRIERS] = {0}, copied = 0;
    gs_barrier_walk walk = {0, 0, SPIN + 1};
    for (u32 i = 0; i < tb->warp[warp].count; i++) {
        const gs_trace_inst *t = &tb->insts[tb->warp[warp].first + i];
        u32 kind = GS_OPCODE[t->opcode].kind, number = GS_NOWHERE;
        u64 address = 0;
        if (kind == GS_KIND_BARRIER && t->mask) {
            scan_named(b, t, warp);
        }
        if (names_barrier(c, tb, t, &address)) {
            number = enter(b, address);
        }
        int wait = kind == GS_KIND_MBARRIER_WAIT && number != GS_NOWHERE,
            again = is_spin(&walk, t, address, wait);
        if (number == GS_NOWHERE) {
            continue;
        }
        if (wait) {
            waits[number] += !again;
        } else if (kind == GS_KIND_BULK_LOAD) {
            b->copies[number]++;
            copied |= 1u << number;
        } else {
            b->arrivals[number]++;
            arrives[number]++;
        }
    }
    for (u32 i = 0; i < b->n; i++) {
        b->waits[i] = gs_max32(b->waits[i], waits[i]);
        b->expected[i] = gs_max32(b->expected[i], copied >> i & 1 ? arrives[i] : 0);
    }
}

void gs_barriers_scan(gs_convert *c, const gs_trace_tb *tb)
{
    memset(&c->barriers, 0, sizeof c->barriers);
    for (u32 w = 0; w < c->warps && w < 32; w++) {
        scan_warp(c, tb, w);
    }
}

/* A barrier of all warps whose number does not matter stays a plain one. */
static void named_row(const gs_convert *c, const gs_trace_inst *t, gs_sass *s)
{
    const gs_barriers *b = &c->barriers;
    u32 id = (u32)t->imm & 15;
    u32 warps = b->threads[id] ? (b->threads[id] + 31) / 32 : gs_popcount(b->users[id]);
    s->imm = 0;
    s->bytes = 0;
    if (!b->arrives_at[id] && (b->threads[id] ? warps >= c->warps : id == 0 || warps == c->warps)) {
        return;
    }
    s->barrier = (u16)(id + 1);
    s->counted = warps;
}

void gs_barriers_row(const gs_convert *c, const gs_trace_tb *tb, const gs_trace_inst *t,
                     gs_barrier_walk *walk, gs_sass *s)
{
    const gs_barriers *b = &c->barriers;
    u32 kind = GS_OPCODE[t->opcode].kind, number = GS_NOWHERE;
    u64 address = 0;
    if (kind == GS_KIND_BARRIER && t->mask) {
        named_row(c, t, s);
    }
    if (names_barrier(c, tb, t, &address)) {
        number = find(b, address);
    }
    int wait = kind == GS_KIND_MBARRIER_WAIT && number != GS_NOWHERE, again = is_spin(walk, t, address, wait);
    if (number == GS_NOWHERE) {
        return;
    }
    u32 copies = b->copies[number], comes = copies ? copies : b->arrivals[number];
    if (kind == GS_KIND_BULK_LOAD || (kind == GS_KIND_MBARRIER_ARRIVE && !copies)) {
        s->barrier = (u16)(GS_FIRST_TRANSACTION + number + 1);
    } else if (wait && again) {
        s->variant |= GS_VARIANT_AGAIN;
    } else if (wait && comes) {
        s->barrier = (u16)(GS_FIRST_TRANSACTION + number + 1);
        s->variant |= copies ? 0 : GS_VARIANT_LATE;
        s->counted = comes;
        s->phases = copies && b->expected[number] ? gs_max32(b->expected[number], b->waits[number])
                                                  : b->waits[number];
    }
}
