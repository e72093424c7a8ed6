/* Prologues: see prologue.h. */
#include "scheduler/prologue.h"

#include "base/mailbox.h"
#include "memory/semaphore.h"
#include "scheduler/scheduler.h"

enum { MET = 1u << 31, DISPATCHED = MET - 1 }; /* gs_tb_conditions.in_prologue: else 0, or its resident + 1 */

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

u32 gs_prologue_next_tb(gs_sim *sim, u32 kernel, u32 place)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    k->dispatched++;
    k->in_prologue++;
    if (!k->per_tb) {
        return k->next_tb++;
    }
    gs_tb_conditions *conditions = gs_tb_conditions_of(sim, k);
    while (conditions[k->next_prologue].in_prologue) {
        k->next_prologue++;
    }
    u32 tb = k->next_prologue++;
    u64 *word = gs_ready_bits(sim, k) + (tb >> 6), bit = 1ull << (tb & 63);
    conditions[tb].in_prologue = place + 1;
    if (*word & bit) { /* its own conditions are met, those of the kernel are not */
        *word &= ~bit;
        k->ready--;
        conditions[tb].in_prologue |= MET;
    }
    return tb;
}

void gs_prologue_skip(gs_sim *sim, u32 kernel, u32 tb)
{
    gs_tb_conditions_of(sim, &gs_kernels(sim)[kernel])[tb].in_prologue = DISPATCHED;
}

static void open_one(gs_sim *sim, u32 place, u64 t, u32 cause_kernel, u32 cause_tb)
{
    gs_resident *r = resident_at(sim, place);
    gs_kernels(sim)[r->kernel].in_prologue--;
    r->in_prologue = 0;
    r->ready = t;
    r->last_kernel = cause_kernel;
    r->last_tb = cause_tb;
    gs_ring_push(sim, &sim->sched.prologue_over, (gs_event){t, 0, place, 0, 0});
}

int gs_prologue_tb_met(gs_sim *sim, u32 kernel, u32 tb, u64 t)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    gs_tb_conditions *f = &gs_tb_conditions_of(sim, k)[tb];
    if (!f->in_prologue) {
        return 0;
    }
    if (k->unmet) {
        f->in_prologue |= MET;
    } else {
        open_one(sim, f->in_prologue - 1, t, f->cause_kernel, f->cause_tb);
        f->in_prologue = DISPATCHED;
    }
    return 1;
}

void gs_prologue_kernel_met(gs_sim *sim, u32 kernel, u64 t)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    gs_tb_conditions *conditions = k->per_tb ? gs_tb_conditions_of(sim, k) : NULL;
    for (u32 tb = 0; conditions && tb < k->next_prologue; tb++) {
        if (conditions[tb].in_prologue & MET) {
            open_one(sim, (conditions[tb].in_prologue & ~(u32)MET) - 1, t, k->cause_kernel, k->cause_tb);
            conditions[tb].in_prologue = DISPATCHED;
        }
    }
    for (u32 place = 0; !conditions && k->in_prologue && place < sim->sms * GS_TBS; place++) {
        if (resident_at(sim, place)->in_prologue && resident_at(sim, place)->kernel == kernel) {
            open_one(sim, place, t, k->cause_kernel, k->cause_tb);
        }
    }
}

void gs_prologue_send(gs_ctx *ctx)
{
    gs_sim *sim = ctx->sim;
    gs_ring *r = &sim->sched.prologue_over;
    while (r->head != r->tail) {
        gs_event e = *gs_ring_head(sim, r);
        u32 sm = e.a / GS_TBS;
        r->head++;
        gs_send_one(ctx, sm / GS_GROUP, gs_max(e.time + sim->depend_latency, resident_at(sim, e.a)->start),
                    GS_SENDER_SCHED,
                    gs_pay_op(e.a % GS_TBS, GS_SYNC_CONDITIONS_MET, GS_MSG_SYNC, sm % GS_GROUP));
    }
}
