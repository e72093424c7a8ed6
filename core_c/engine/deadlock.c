/* The message of a deadlock: see deadlock.h. */
#include "engine/deadlock.h"

#include "base/fail.h"
#include "program/sync_ops.h"
#include "scheduler/dispatch.h"

#include <stdio.h>

enum { ROOM_TEXT = 96 };

/* Writes the end of the message: how many ready TBs fit on no SM, of the oldest such kernel and of later
   ones. The TBs of the deadlock may wait for them. */
static void name_room(gs_sim *sim, char text[ROOM_TEXT])
{
    u32 kernel = GS_NONE, tbs = 0;
    u64 others = 0;
    for (u32 i = 0; i < sim->n_launches; i++) {
        u32 left = gs_ready_tbs(sim, i);
        if (tbs) {
            others += left;
        } else {
            kernel = i;
            tbs = left;
        }
    }
    text[0] = 0;
    if (others) {
        snprintf(text, ROOM_TEXT, ": %u TBs of kernel %u and %llu of later ones wait for room", tbs, kernel,
                 (unsigned long long)others);
    } else if (tbs) {
        snprintf(text, ROOM_TEXT, ": %u TB%s of kernel %u wait%s for room", tbs, tbs > 1 ? "s" : "", kernel,
                 tbs > 1 ? "" : "s");
    }
}

/* Names the kernel, TB and semaphore of a TB's first warp that is at a POLL; 0: it waits for nothing. */
static int name_wait(gs_sim *sim, const gs_sm *sm, const gs_tb *tb, u32 wi, const char *room)
{
    const gs_warp *w = &sm->warp[wi];
    const gs_iop *op = gs_iops(sim) + tb->code + w->pc - (w->state == GS_WARP_AT_BARRIER);
    if (w->state == GS_WARP_DEPENDS) {
        return gs_fail(sim, GS_ERR_DEADLOCK,
                       "deadlock at %.3f us: TB %u of kernel %u waits for the kernels before it to end, and "
                       "nothing can happen%s",
                       (double)sim->q0 / 1024e3, tb->tb, tb->kernel, room);
    }
    if (w->state == GS_WARP_AT_COUNTER) {
        return gs_fail(
            sim, GS_ERR_DEADLOCK,
            "deadlock at %.3f us: warp %u of TB %u of kernel %u waits at %s barrier %u, and nothing "
            "can happen%s",
            (double)sim->q0 / 1024e3, w->index, tb->tb, tb->kernel,
            op[-1].count < GS_NAMED_BARRIERS ? "named" : "transaction", op[-1].count % GS_NAMED_BARRIERS,
            room);
    }
    if (w->state != GS_WARP_AT_BARRIER || op->kind != GS_OP_POLL || !tb->polls) {
        return GS_OK;
    }
    u64 index = gs_semaphore_of(sim, gs_launches(sim) + tb->kernel, op, tb->x, tb->y, tb->z, w->k[op->level]);
    const gs_sem *q = GS_CONST_TABLE(sim, gs_sem, at_sems) + op->pattern;
    const gs_semaphore *s = GS_CONST_TABLE(sim, gs_semaphore, at_semaphores) + index;
    for (u32 i = 1; s->count >= s->need && i < q->times; i++) {
        index += q->apart;
        s += q->apart;
    }
    return gs_fail(sim, GS_ERR_DEADLOCK,
                   "deadlock at %.3f us: TB %u of kernel %u waits for semaphore %llu, posted %u times of %u, "
                   "and nothing can happen%s",
                   (double)sim->q0 / 1024e3, tb->tb, tb->kernel, (unsigned long long)index, s->count, s->need,
                   room);
}

int gs_deadlock_report(gs_sim *sim)
{
    char room[ROOM_TEXT];
    name_room(sim, room);
    for (u32 i = 0; i < sim->sms; i++) {
        const gs_sm *sm = &gs_sms(sim)[i];
        for (u32 slot = 0; sm->live_tbs && slot < GS_TBS; slot++) {
            const gs_tb *tb = &sm->tb[slot];
            for (u64 left = tb->live_warps ? tb->warps : 0; left; left &= left - 1) {
                u32 w = gs_ctz(left);
                if ((sm->warp[w].index == 0 || sm->warp[w].state == GS_WARP_AT_COUNTER) &&
                    sm->warp[w].tb == slot && name_wait(sim, sm, tb, w, room)) {
                    return sim->error_code;
                }
            }
        }
    }
    return GS_OK;
}
