/* Prologues: TBs of a table scheme that are dispatched before what they need has ended. They run the part of
   their program that depends on nobody, wait inside for their conditions, and keep their slot. Only the
   oldest kernel with TBs left may send them: all TBs that they can wait for are dispatched then, and those of
   the oldest unfinished kernel wait for nobody, so the wait ends. And only slots that no ready TB wants are
   given to them. */
#include "scheduler/prologue.h"

#include "base/mailbox.h"
#include "memory/semaphore.h"
#include "scheduler/scheduler.h"

enum { MET = 1u << 31, DISPATCHED = MET - 1 }; /* gs_fine.gated: else 0, or its resident + 1 */

static gs_resident *resident_at(gs_sim *sim, u32 place)
{
    return GS_TABLE(sim, gs_resident, at_residents) + place;
}

u32 gs_prologue_kernel(gs_sim *sim, u32 oldest)
{
    if (oldest >= sim->n_launches || !gs_launches(sim)[oldest].prologue ||
        !gs_kernels(sim)[oldest].admitted) {
        return GS_NONE;
    }
    return oldest;
}

u32 gs_prologue_take(gs_sim *sim, u32 kernel, u32 place)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    k->dispatched++;
    k->gated++;
    if (!k->fine) {
        return k->next_tb++;
    }
    gs_fine *fine = gs_fine_of(sim, k);
    while (fine[k->next_gate].gated) {
        k->next_gate++;
    }
    u32 tb = k->next_gate++;
    u64 *word = gs_fine_bits(sim, k) + (tb >> 6), bit = 1ull << (tb & 63);
    fine[tb].gated = place + 1;
    if (*word & bit) { /* its own conditions are met, those of the kernel are not */
        *word &= ~bit;
        k->ready--;
        fine[tb].gated |= MET;
    }
    return tb;
}

void gs_prologue_passed(gs_sim *sim, u32 kernel, u32 tb)
{
    gs_fine_of(sim, &gs_kernels(sim)[kernel])[tb].gated = DISPATCHED;
}

static void open_one(gs_sim *sim, u32 place, u64 t, u32 cause_kernel, u32 cause_tb)
{
    gs_resident *r = resident_at(sim, place);
    gs_kernels(sim)[r->kernel].gated--;
    r->gated = 0;
    r->ready = t;
    r->last_kernel = cause_kernel;
    r->last_tb = cause_tb;
    gs_ring_push(sim, &sim->sched.opens, (gs_event){t, 0, place, 0, 0});
}

int gs_prologue_met(gs_sim *sim, u32 kernel, u32 tb, u64 t)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    gs_fine *f = &gs_fine_of(sim, k)[tb];
    if (!f->gated) {
        return 0;
    }
    if (k->gate) {
        f->gated |= MET;
    } else {
        open_one(sim, f->gated - 1, t, f->cause_kernel, f->cause_tb);
        f->gated = DISPATCHED;
    }
    return 1;
}

void gs_prologue_open(gs_sim *sim, u32 kernel, u64 t)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    gs_fine *fine = k->fine ? gs_fine_of(sim, k) : NULL;
    for (u32 tb = 0; fine && tb < k->next_gate; tb++) {
        if (fine[tb].gated & MET) {
            open_one(sim, (fine[tb].gated & ~(u32)MET) - 1, t, k->cause_kernel, k->cause_tb);
            fine[tb].gated = DISPATCHED;
        }
    }
    for (u32 place = 0; !fine && k->gated && place < sim->sms * GS_TBS; place++) {
        if (resident_at(sim, place)->gated && resident_at(sim, place)->kernel == kernel) {
            open_one(sim, place, t, k->cause_kernel, k->cause_tb);
        }
    }
}

void gs_prologue_send(gs_ctx *ctx)
{
    gs_sim *sim = ctx->sim;
    gs_ring *r = &sim->sched.opens;
    while (r->head != r->tail) {
        gs_event e = *gs_ring_head(sim, r);
        u32 sm = e.a / GS_TBS;
        r->head++;
        gs_send_one(ctx, sm / GS_GROUP, gs_max(e.time + sim->depend_latency, resident_at(sim, e.a)->start),
                    GS_SENDER_SCHED, gs_pay_op(e.a % GS_TBS, GS_SYNC_OPEN, GS_MSG_SYNC, sm % GS_GROUP));
    }
}
