/* Copies from the host, as the scheduler runs them: see copy_engine.h. */
#include "scheduler/copy_engine.h"

#include "base/mailbox.h"
#include "memory/host_copy.h"
#include "oracle/oracle_log.h"
#include "scheduler/scheduler.h"

/* When a piece arrives of a copy that has the link from `start` on, ticks. */
static u64 piece_time(const gs_sim *sim, const gs_launch *l, u64 start, u32 piece)
{
    u64 n = gs_host_copy_pieces(sim, l);
    return start + l->copy_wait + l->copy_time - (n - 1 - piece) * (l->copy_time / n);
}

void gs_copy_engine_start(gs_sim *sim, u32 kernel, u64 t)
{
    gs_sched *d = &sim->sched;
    gs_kernel *k = &gs_kernels(sim)[kernel];
    const gs_launch *l = gs_launches(sim) + kernel;
    u64 start = t;
    if (l->copy_time) {
        start = gs_max(t, d->link_free);
        d->link_free = start + l->copy_wait + l->copy_time;
    }
    k->dispatched = k->next_tb = k->tbs;
    k->record.first_dispatch = start;
    gs_ring_push(sim, &d->admit, (gs_event){piece_time(sim, l, start, 0), GS_EVENT_COPY, kernel, 0, 0});
}

typedef struct logged {
    gs_tb tb;
    gs_ctx *ctx;
    u64 time;
} logged;

static void log_line(void *user, u64 line, u32 mask)
{
    logged *g = user;
    gs_oracle_log_l2(g->ctx, NULL, &g->tb, line, mask, g->time, GS_MSG_STORE, 0);
}

int gs_copy_engine_send(gs_ctx *ctx, u32 kernel, u32 piece, u64 t)
{
    gs_sim *sim = ctx->sim;
    const gs_launch *l = gs_launches(sim) + kernel;
    u32 n = gs_host_copy_pieces(sim, l);
    if (piece == n) {
        return 1;
    }
    if (GS_UNLIKELY(sim->oracle)) {
        logged g = {.ctx = ctx, .tb = {.kernel = kernel}, .time = t};
        gs_host_copy_lines(sim, kernel, piece, log_line, &g);
    }
    gs_ctx next_quantum = *ctx; /* the slices run this quantum now or have run it */
    next_quantum.send0 = ctx->q0 + sim->quantum;
    next_quantum.send_qn = ctx->qn + 1;
    for (u32 i = 0; i < sim->slice_boxes; i++) {
        gs_send_one(&next_quantum, sim->sm_boxes + i, t + sim->copy_latency, GS_SENDER_SCHED,
                    gs_pay_host_copy(kernel, piece));
    }
    if (!l->copy_time) {
        return 1;
    }
    /* after the last piece: the end, when it has reached L2 */
    u64 next = piece + 1 == n ? t + sim->copy_latency
                              : piece_time(sim, l, gs_kernels(sim)[kernel].record.first_dispatch, piece + 1);
    gs_ring_push(sim, &sim->sched.admit, (gs_event){next, GS_EVENT_COPY, kernel, piece + 1, 0});
    return 0;
}
