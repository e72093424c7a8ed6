/* Copies from the host: see copy.h. */
#include "copy.h"

#include "oracle.h"
#include "scheduler.h"

enum {
    PIECE = 128, /* sectors: 4 KiB, the largest payload of a PCIe packet */
    TAIL = 8     /* times the L2: under random replacement e^-8 of what lies further back is left */
};

static const gs_copy *first_of(const gs_sim *sim, const gs_launch *l)
{
    return GS_CONST_TABLE(sim, gs_copy, at_copies) + l->first_copy;
}

static u64 sectors_of(const gs_sim *sim, const gs_launch *l)
{
    const gs_copy *last = first_of(sim, l) + l->copies - 1;
    return last->before + last->end - last->first;
}

static u32 pieces_of(const gs_sim *sim, const gs_launch *l)
{
    return l->copy_time ? (u32)((sectors_of(sim, l) + PIECE - 1) / PIECE) : 1;
}

/* when a piece has come, for a copy whose turn on the link began at `start` */
static u64 piece_time(const gs_sim *sim, const gs_launch *l, u64 start, u32 piece)
{
    u64 n = pieces_of(sim, l);
    return start + l->copy_wait + l->copy_time - (n - 1 - piece) * (l->copy_time / n);
}

void gs_copy_start(gs_sim *sim, u32 kernel, u64 t)
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

/* the lines of the sectors from the `from`-th to before the `to`-th of a copy */
static void lines(const gs_sim *sim, const gs_launch *l, u64 from, u64 to, gs_copy_visit visit, void *user)
{
    const gs_copy *all = first_of(sim, l);
    u32 low = 0, high = l->copies;
    while (high - low > 1) {
        u32 middle = low + (high - low) / 2;
        if (all[middle].before <= from) {
            low = middle;
        } else {
            high = middle;
        }
    }
    for (u32 i = low; i < l->copies && all[i].before < to; i++) {
        const gs_copy *c = &all[i];
        u64 sector = c->first + (from > c->before ? from - c->before : 0);
        u64 end = gs_min(c->end, c->first + to - c->before);
        while (sector < end) {
            u64 line = sector / 4, n = gs_min(4 - sector % 4, end - sector);
            visit(user, line, (u32)((1u << n) - 1) << sector % 4);
            sector += n;
        }
    }
}

void gs_copy_lines(const gs_sim *sim, u32 kernel, u32 piece, gs_copy_visit visit, void *user)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    u64 n = sectors_of(sim, l), tail = (u64)TAIL * sim->places * sim->sets * GS_WAYS * 4;
    u64 from = l->copy_time ? (u64)piece * PIECE : n > tail ? n - tail : 0;
    lines(sim, l, from, l->copy_time ? gs_min(n, from + PIECE) : n, visit, user);
}

void gs_copy_all(const gs_sim *sim, u32 kernel, gs_copy_visit visit, void *user)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    lines(sim, l, 0, sectors_of(sim, l), visit, user);
}

typedef struct logged {
    gs_ctx *ctx;
    gs_tb tb;
    u64 time;
} logged;

static void log_line(void *user, u64 line, u32 mask)
{
    logged *g = user;
    gs_oracle_log_l2(g->ctx, NULL, &g->tb, line, mask, g->time, GS_MSG_STORE, 0);
}

int gs_copy_piece(gs_ctx *ctx, u32 kernel, u32 piece, u64 t)
{
    gs_sim *sim = ctx->sim;
    const gs_launch *l = gs_launches(sim) + kernel;
    u32 n = pieces_of(sim, l);
    if (piece == n) {
        return 1;
    }
    if (GS_UNLIKELY(sim->oracle)) {
        logged g = {.ctx = ctx, .tb = {.kernel = kernel}, .time = t};
        gs_copy_lines(sim, kernel, piece, log_line, &g);
    }
    gs_ctx next_quantum = *ctx; /* slices have run, or run, this one */
    next_quantum.send0 = ctx->q0 + sim->quantum;
    next_quantum.send_qn = ctx->qn + 1;
    for (u32 i = 0; i < sim->slice_boxes; i++) {
        gs_send_one(&next_quantum, sim->sm_boxes + i, t + sim->copy_latency, GS_SENDER_SCHED,
                    gs_pay_copy(kernel, piece));
    }
    if (!l->copy_time) {
        return 1;
    }
    /* behind the last piece: the end, when it has reached the L2 */
    u64 next = piece + 1 == n ? t + sim->copy_latency
                              : piece_time(sim, l, gs_kernels(sim)[kernel].record.first_dispatch, piece + 1);
    gs_ring_push(sim, &sim->sched.admit, (gs_event){next, GS_EVENT_COPY, kernel, piece + 1, 0});
    return 0;
}
