/* One SM. It is event-driven: a warp that runs an op reserves the resources that the op needs, and thereby
   knows the cycle in which it can continue. A timing wheel, one entry a cycle, holds the warps to wake;
   within a cycle warps run in slot order. */
#pragma once
#include "base/mailbox.h"

/* Delivers this quantum's messages to the SMs of a group and runs them. */
void gs_sms_run(gs_ctx *ctx, u32 group);
/* Time of the next event that needs no message; GS_NEVER: none. */
u64 gs_sm_next(const gs_sim *sim, const gs_sm *sm);
/* Adds what an SM counted since its last sample. */
void gs_sm_sample(gs_ctx *ctx, gs_sm *sm, u64 c);

static inline void gs_sm_wake(gs_sm *sm, u32 w, u64 c)
{
    sm->warp[w].ready = (u32)c;
    if (c < sm->cur) {
        c = sm->cur;
    }
    if (c >= sm->cur + GS_WHEEL) {
        c = sm->cur + GS_WHEEL -
            1; /* beyond the wheel: the warp wakes early, finds that its time has not come, and waits again */
    }
    u32 b = c & (GS_WHEEL - 1);
    sm->wheel[b] |= 1ull << w;
    sm->occupied[b >> 6] |= 1ull << (b & 63);
}

/* A one-slot op issues at once: it takes a free slot within the blocks' span, or delays all blocks by one
   cycle. */
static inline void gs_subcore_steal_slot(gs_subcore *b, u64 c)
{
    if (b->issue > c) {
        b->issue++;
        if (b->last < b->issue) {
            b->last = b->issue;
            b->debt++;
            for (u32 i = 0; i < GS_PIPES; i++) {
                b->pipe[i] += 64;
            }
        }
    }
}

/* The warp issues a one-slot instruction at cycle c or later. Returns when. */
static inline u64 gs_sm_issue_single(gs_sm *sm, u32 wi, u64 c)
{
    gs_subcore *b = &sm->sub[wi & 3];
    u64 at = gs_max(c, b->single);
    b->single = at + 1;
    gs_subcore_steal_slot(b, at);
    sm->work.warp_instructions++;
    sm->tb[sm->warp[wi].tb].stalls.issued++;
    return at;
}

/* A fill holds the data array, which is also shared memory, for a cycle when it arrives: fills until cycle c
   come before an access in c. */
static inline void gs_data_array_catch_up(gs_sm *sm, u64 c)
{
    while (sm->fills_applied != sm->fills_arrived) {
        u64 at = sm->fill_time[sm->fills_applied & (GS_FILLS - 1)];
        if (at > c) {
            break;
        }
        sm->smem_free = gs_max(sm->smem_free, at * 64) + sm->fill_hold[sm->fills_applied & (GS_FILLS - 1)];
        sm->fills_applied++;
        sm->fills_seen++;
    }
}

/* A fill arrives at cycle c and holds the array for so many 64ths of a cycle. */
static inline void gs_data_array_fill(gs_sm *sm, u32 c, u32 hold)
{
    if (sm->fills_arrived == sm->fills_applied) {
        sm->fills_arrived = sm->fills_applied =
            0; /* restarts at the first entries, which are in the host's caches */
    }
    if (sm->fills_arrived - sm->fills_applied == GS_FILLS) {
        /* there are more fills than can be in flight, so the oldest arrived before this quantum, and no
           access can come before it any more */
        gs_data_array_catch_up(sm, sm->fill_time[sm->fills_applied & (GS_FILLS - 1)]);
    }
    sm->fill_hold[sm->fills_arrived & (GS_FILLS - 1)] = (u16)hold;
    sm->fill_time[sm->fills_arrived++ & (GS_FILLS - 1)] = c;
}

static inline u32 gs_scoreboard_slot_of(const gs_warp *w, const gs_iop *op)
{
    return op->stages ? op->slot + (w->k[op->level] + (u32)op->count_plus) % op->stages : op->slot;
}
