/* Dependence chains of compute blocks: a warp alone runs its class's code with an in-order scoreboard over
   the registers, twice through each loop; the second time counts. */
#include "trace/code_chain.h"

#include "trace/code.h"
#include "trace/code_slots.h"
#include "trace/code_work.h"

#include <string.h>

enum { LONG_STALL = 8 }; /* cycles; a longer stall ends a block, so that other warps use the time */

/* Three different sources in one of the two register banks delay the pipe by a cycle. A source in the same
   operand position as in the instruction before is kept beside the pipe (.reuse, which compilers set where
   they can). */
u32 gs_lower_bank_conflict(const gs_lowering *l, u64 i)
{
    const gs_sass *s = gs_lower_row(l, i),
                  *before = i && l->items[i - 1].row != GS_LOOP_END ? gs_lower_row(l, i - 1) : NULL;
    if (gs_lower_pipe(l, s) != GS_PIPE_FP32 || s->srcs < 3) {
        return 0;
    }
    for (u32 j = 0; j < 3; j++) {
        int kept = before && before->srcs > j && before->src[j] == s->src[j] && !before->width;
        if (kept || gs_lower_register(s->src[j]) >= 255 || (s->src[j] ^ s->src[0]) & 1) {
            return 0;
        }
    }
    return s->src[0] != s->src[1] && s->src[0] != s->src[2] && s->src[1] != s->src[2];
}

/* How long an instruction holds its pipe, 64ths of a cycle. */
static u64 hold_of(const gs_lowering *l, const gs_sass *s, u32 pipe)
{
    return pipe == GS_PIPE_TENSOR ? gs_lower_tensor_work(l, s) * l->interval[pipe] / 64 : l->interval[pipe];
}

typedef struct timing {
    u64 now; /* 64ths of a cycle */
    u64 ready[GS_REGISTERS];
    u64 pipe[GS_PIPES];
    u64 begun;  /* of the current block */
    u32 block;  /* GS_NOWHERE: none */
    u32 before; /* the block that ended just before; GS_NOWHERE: something else came between */
} timing;

static u32 latency_of(const gs_lowering *l, const gs_sass *s)
{
    u32 kind = GS_OPCODE[s->opcode].kind;
    if (gs_lower_wavefronts(l, s)) {
        return l->smem_latency * 64 + (gs_lower_wavefronts(l, s) - 1) * (u32)l->params->gpu_sm.smem_interval;
    }
    if (kind == GS_KIND_CONSTANT || kind == GS_KIND_TEXTURE) {
        return l->l1_latency * 64;
    }
    u32 pipe = gs_lower_pipe(l, s);
    if (pipe == GS_PIPES) {
        return 64;
    }
    u64 hold = hold_of(l, s, pipe);
    return l->latency[pipe] * 64 + (u32)(hold > l->interval[pipe] ? hold - l->interval[pipe] : 0);
}

/* Sets the block's chain: the cycles that it took beyond its issue slots and pipes. */
static void close_block(gs_lowering *l, timing *t)
{
    if (t->block == GS_NOWHERE) {
        return;
    }
    gs_op *op = gs_lower_op(l, t->block);
    u64 late = l->params->gpu_sm.register_ports ? (u64)op->conflicts * 64 : 0,
        span = (u64)op->issue * 64 + late;
    for (u32 p = 0; p < GS_PIPES; p++) {
        u64 work = p == GS_PIPE_TENSOR ? (u64)op->count_plus : (u64)op->pipes[p] * 64;
        u64 amount = work * l->interval[p] / 64 + (p == GS_PIPE_FP32 ? late : 0),
            tail = l->interval[p] > 64 ? l->interval[p] - 64 : 0;
        span = gs_max(span, amount > tail ? amount - tail : 0);
    }
    u64 took = t->now - t->begun;
    op->chain = took > span ? (u32)((took - span) / 64) : 0;
    t->before = t->block;
    t->block = GS_NOWHERE;
}

static void forget(timing *t)
{
    for (u32 r = 0; r < GS_REGISTERS; r++) {
        t->ready[r] = 0;
    }
    t->before = GS_NOWHERE;
}

static u64 operands_ready(const timing *t, const gs_operand *o, u32 n)
{
    u64 at = t->now;
    for (u32 i = 0; i < n; i++) {
        for (u32 j = o[i].first; j < o[i].end; j++) {
            at = gs_max(at, t->ready[j]);
        }
    }
    return at;
}

/* The next op stalls until `at`: the stall is added to the chain of the block right before it, if there is
   one. A block may have several successors; the longest stall counts. Until the end, `count` of the compute
   op holds it. */
static void stall(gs_lowering *l, timing *t, u64 at)
{
    if (t->before != GS_NOWHERE) {
        gs_op *op = gs_lower_op(l, t->before);
        op->count = gs_max32(op->count, (u32)((at - t->now) / 64));
    }
    t->now = at;
    t->before = GS_NOWHERE;
}

static void time_item(gs_lowering *l, timing *t, u64 i)
{
    const gs_sass *s = gs_lower_row(l, i);
    gs_operand o[GS_OPERANDS];
    u32 reads, n = gs_lower_operands(s, o, &reads);
    int what = gs_lower_kind(l, i);
    if (l->needs[i] || l->head[i] || t->block != l->op[i]) {
        close_block(l, t);
    }
    if (l->needs[i]) {
        forget(t); /* a wait for memory is longer than any of these latencies */
    }
    if (what == GS_IS_BARRIER || what == GS_IS_END || what == GS_IS_AWAIT) {
        forget(t);
        t->now += 64;
        return;
    }
    if (gs_lower_op(l, l->op[i])->kind != GS_OP_COMPUTE) {
        stall(l, t, operands_ready(t, o, reads));
        t->now += 64;
        return;
    }
    u64 at = operands_ready(t, o, gs_lower_wavefronts(l, s) ? n : reads);
    l->cut[i] = at - t->now >= LONG_STALL * 64ull;
    if (t->block == GS_NOWHERE) {
        stall(l, t, at);
        t->block = l->op[i];
        t->begun = t->now;
        for (u32 p = 0; p < GS_PIPES; p++) {
            t->pipe[p] = t->now; /* the core counts what is left of the block before */
        }
    }
    u32 p = gs_lower_pipe(l, s);
    if (p < GS_PIPES) {
        at = gs_max(at, t->pipe[p]);
        t->pipe[p] = at + hold_of(l, s, p) +
                     (l->params->gpu_sm.register_ports ? gs_lower_bank_conflict(l, i) * 64 : 0);
    }
    t->now = at + 64;
    for (u32 d = reads; d < n; d++) {
        for (u32 j = o[d].first; j < o[d].end; j++) {
            t->ready[j] = at + latency_of(l, s);
        }
    }
}

void gs_lower_chains(gs_lowering *l, u64 first)
{
    timing t;
    memset(&t, 0, sizeof t);
    t.block = t.before = GS_NOWHERE;
    for (u64 i = 0; i < l->n; i++) {
        const gs_item *item = &l->items[i];
        if (item->row != GS_LOOP_END) {
            time_item(l, &t, i);
            continue;
        }
        close_block(l, &t);
        l->passed[i] = !l->passed[i];
        if (l->passed[i]) {
            i = item->a - 1ull; /* once more from its head */
        }
    }
    close_block(l, &t);
    for (u64 i = first; i < l->code->ops.n; i++) {
        gs_op *op = gs_lower_op(l, (u32)i);
        if (op->kind == GS_OP_COMPUTE) {
            op->chain += op->count;
            op->count = 0;
        }
    }
}
