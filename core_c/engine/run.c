/* The loop of a simulation: start reading the core here.

   The machine is cut into parts: the scheduler, slices of L2 with their DRAM channel, SMs. Each part runs
   alone for a quantum, which is not longer than any message between parts takes. So what a part sends arrives
   in a later quantum, and parts may run in any order, on any thread. */
#include "base/fail.h"
#include "base/mailbox.h"
#include "engine/quantum.h"
#include "engine/shares.h"
#include "engine/team.h"
#include "memory/l2.h"
#include "scheduler/scheduler.h"
#include "sm/sm.h"

#include <unistd.h>

static void run_slices(gs_team *t, gs_ctx *ctx);
static void run_sms(gs_team *t, gs_ctx *ctx);
static void clear(gs_ctx *ctx);

/* The loop of each thread: one quantum after another. */
static void run_quanta(gs_team *t, gs_ctx *ctx)
{
    do {
        run_slices(t, ctx); /* and the scheduler, on the first thread */
        gs_barrier_wait(t, ctx, NULL);
        run_sms(t, ctx);
        gs_barrier_wait(t, ctx, gs_end_quantum);
        clear(ctx);
    } while (t->result == GS_OK);
}

/* Slices and the scheduler run a quantum. */
static void run_slices(gs_team *t, gs_ctx *ctx)
{
    gs_sim *sim = ctx->sim;
    ctx->q0 = sim->q0;
    ctx->send0 = sim->q0 + sim->lead;
    ctx->qn = ctx->send_qn = sim->qn;
    ctx->t->events = 0;
    gs_shares_lay_out(t, GS_SHARE_SMS, ctx->id);
    if (ctx->id == 0) {
        if ((sim->qn & (GS_RING / 2 - 1)) == 0) {
            gs_mailbox_move_near(ctx);
        }
        gs_sched_run(ctx);
    }
    for (u32 g; (g = gs_steal_work(t, ctx, GS_SHARE_SLICES)) != GS_NO_BOX;) {
        if (g + 1 < sim->share[GS_SHARE_SLICES][ctx->id + 1]) {
            gs_mailbox_prefetch(ctx, sim->sm_boxes + g + 1);
        }
        gs_slices_run(ctx, g);
    }
}

/* SMs run a quantum. */
static void run_sms(gs_team *t, gs_ctx *ctx)
{
    gs_sim *sim = ctx->sim;
    if (ctx->threads > 1) {
        gs_mailbox_clear(ctx, sim->sm_boxes, sim->boxes);
    }
    gs_shares_lay_out(t, GS_SHARE_SLICES, ctx->id);
    ctx->q0 = sim->q0 + sim->lead;
    ctx->send0 = sim->q0 + sim->quantum; /* slices have run this one */
    ctx->send_qn = sim->qn + 1;
    ctx->row.begin = GS_NEVER - sim->quantum; /* before any time */
    for (u32 g; (g = gs_steal_work(t, ctx, GS_SHARE_SMS)) != GS_NO_BOX;) {
        if (g + 1 < sim->share[GS_SHARE_SMS][ctx->id + 1]) {
            gs_mailbox_prefetch(ctx, g + 1);
        }
        gs_sms_run(ctx, g);
    }
}

/* All threads have run the quantum: empties the boxes of this thread. */
static void clear(gs_ctx *ctx)
{
    const gs_sim *sim = ctx->sim;
    if (ctx->threads > 1) {
        gs_mailbox_clear(ctx, 0, sim->sm_boxes);
    }
    for (u64 q = ctx->qn; q < sim->qn && q < ctx->qn + GS_RING; q++) {
        ctx->t->any[q & (GS_RING - 1)] = 0;
    }
}

/* The number of threads is known, and none works yet. */
static void begin(gs_team *t)
{
    gs_sim *sim = t->sim;
    if (t->threads != sim->threads) {
        gs_mailbox_gather(sim);
        gs_shares_split(sim, t->threads);
        sim->threads = t->threads;
    }
    for (u32 i = 0; i < t->threads; i++) {
        gs_shares_lay_out(t, GS_SHARE_SLICES, i);
    }
}

int gs_run_until(gs_sim *sim, uint32_t threads, uint64_t max_quanta, uint64_t time)
{
    if (sim->error_code) {
        return sim->error_code;
    }
    if (sim->sched.finished) {
        return GS_DONE;
    }
    if (threads == 0 || threads > GS_THREADS) {
        return gs_fail(sim, GS_ERR_ARG, "%u threads: must be 1 to %d", threads, GS_THREADS);
    }
    if (sim->q0 >= time || sim->sched.tb_tail - sim->sched.tb_head > sim->tb_room - sim->sms * GS_TBS) {
        return GS_MORE;
    }
    gs_team t = {.sim = sim,
                 .quanta = max_quanta ? 0 - max_quanta : 1,
                 .until = time,
                 /* with more threads than processors, a spinning thread keeps the thread that it waits for
                    from running */
                 .spins = (long)threads <= sysconf(_SC_NPROCESSORS_ONLN) ? 10000 : 1,
                 .lock = PTHREAD_MUTEX_INITIALIZER,
                 .next = PTHREAD_COND_INITIALIZER};
    gs_team_run(&t, threads, begin, run_quanta);
    return t.result;
}

int gs_run(gs_sim *sim, uint32_t threads, uint64_t max_quanta)
{
    return gs_run_until(sim, threads, max_quanta, GS_NEVER);
}
