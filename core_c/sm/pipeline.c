/* Ops of pipelined programs: see pipeline.h. */
#include "sm/pipeline.h"

#include "program/bulk_box.h"
#include "sm/bulk_copy.h"
#include "sm/ring_barrier.h"

int gs_pipeline_op(gs_ctx *ctx, gs_sm *sm, u32 wi, const gs_iop *op, u64 c)
{
    const gs_sim *sim = ctx->sim;
    gs_warp *w = &sm->warp[wi];
    gs_pipeline *p = &sm->pipeline[wi];
    const gs_tb *tb = &sm->tb[w->tb];
    switch (op->kind) {
    case GS_OP_TURN:
        w->pc =
            gs_turn(gs_launches(sim) + tb->kernel, tb->tb, op->level, op->count, p) ? w->pc + 1 : op->target;
        return 1;
    case GS_OP_ADVANCE:
        p->cursor += op->count + (op->per_warp ? p->steps : 0);
        w->pc++;
        return 1;
    case GS_OP_BULK_LOAD:
        gs_bulk_load(ctx, sm, wi, op, c);
        return 0;
    case GS_OP_BULK_STORE:
        gs_bulk_store(ctx, sm, wi, op, c);
        return 0;
    case GS_OP_RING_WAIT:
        return gs_ring_wait(sim, sm, wi, op, c);
    case GS_OP_RING_ARRIVE:
        return gs_ring_arrive(ctx, sm, wi, op, c);
    case GS_OP_CLUSTER:
        return gs_cluster_sync(ctx, sm, wi, c);
    default:
        return gs_multiply_wait(sm, wi, op, c);
    }
}
