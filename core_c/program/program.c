/* Lowering of programs: see program.h. Address patterns are coalesced in coalesce.c, and their bounds checked
   in bounds_check.c. */
#include "program/program.h"

#include "base/fail.h"
#include "program/bounds_check.h"
#include "program/coalesce.h"

#include <stdlib.h>
#include <string.h>

enum {
    GS_OP_LONGEST = 1 << 24, /* issue slots or cycles of one op */
    GS_PROGRAM_OPS = 1 << 30
};

/* 1: the loop's body has an op that takes time, and no loop with the same counter, or that goes back to
   before the body. */
static int takes_time(const gs_job *job, u64 first, u64 loop)
{
    int found = 0;
    for (u64 i = first; i < loop; i++) {
        const gs_op *op = &job->ops[i];
        int memory = op->kind == GS_OP_LOAD || op->kind == GS_OP_STORE || op->kind == GS_OP_REDUCE;
        found |= op->kind == GS_OP_COMPUTE || op->kind == GS_OP_BARRIER || op->kind == GS_OP_EXIT ||
                 op->kind == GS_OP_AWAIT || (op->kind == GS_OP_ARRIVE && op->issue) ||
                 op->kind == GS_OP_BULK_LOAD || op->kind == GS_OP_BULK_STORE || op->kind == GS_OP_RING_WAIT ||
                 op->kind == GS_OP_RING_ARRIVE || op->kind == GS_OP_MULTIPLY_WAIT || op->kind == GS_OP_POST ||
                 op->kind == GS_OP_TRIGGER || op->kind == GS_OP_DEPEND ||
                 (op->kind == GS_OP_DELAY && op->count) || (memory && op->count == 0);
        if (op->kind == GS_OP_LOOP && (op->level == job->ops[loop].level || op->target < first)) {
            return 0;
        }
    }
    return found;
}

/* 1: its ops are not the program's, or its grid has no tiles or too many. */
static int check_stage(const gs_job *job, const gs_program *p, const gs_stage *s)
{
    u64 tiles = (u64)s->grid[0] * s->grid[1], last = (u64)p->first_op + p->ops;
    if (s->first < p->first_op || s->end > last || s->first >= s->end || tiles == 0 || s->grid[2] == 0 ||
        tiles > 0x7fffffff || tiles * s->grid[2] > 0x3fffffff) {
        return 1;
    }
    for (u32 v = 0; v < 8; v++) {
        if (s->entry[v] < s->first || s->entry[v] >= s->end) {
            return 1;
        }
    }
    const gs_op *end = &job->ops[s->end - 1];
    return end->kind != GS_OP_TILE;
}

static int lower_loop(gs_sim *sim, const gs_job *job, const gs_program *program, u64 index, gs_iop *out)
{
    const gs_op *op = &job->ops[index];
    if ((op->count == 0) != (op->per_warp != 0) || op->count > 65535 || op->target < program->first_op ||
        op->target > index) {
        return gs_fail(sim, GS_ERR_ARG, "op %llu: loop of %u iterations (1 to 65535) to op %u",
                       (unsigned long long)index, op->count, op->target);
    }
    out->target = op->target - program->first_op;
    if (!takes_time(job, op->target, index)) {
        return gs_fail(sim, GS_ERR_ARG,
                       "op %llu: a loop of nothing, loops that cross, or two with one counter in each other",
                       (unsigned long long)index);
    }
    return GS_OK;
}

static int lower_memory(gs_sim *sim, const gs_job *job, const gs_program *program, u64 index, gs_iop *out)
{
    const gs_op *op = &job->ops[index];
    u64 last = (u64)op->pattern + (op->per_warp ? program->warps - 1 : 0);
    out->issue = op->issue != 0;
    if (op->pattern < 0 || (u64)op->pattern < program->first_pattern ||
        last >= (u64)program->first_pattern + program->patterns) {
        return gs_fail(sim, GS_ERR_ARG, "op %llu: pattern %d is not one of its program's",
                       (unsigned long long)index, op->pattern);
    }
    return GS_OK;
}

static int lower_tile(gs_sim *sim, const gs_job *job, const gs_program *program, u64 index, gs_iop *out)
{
    const gs_op *op = &job->ops[index];
    const gs_stage *s =
        op->pattern >= 0 && (u64)op->pattern < job->n_stages ? &job->stages[op->pattern] : NULL;
    u64 last = (u64)program->first_op + program->ops;
    /* without tiles left a stage goes forward, so a program ends */
    if (!s || check_stage(job, program, s) || op->target < s->end || op->target <= index ||
        op->target >= last || op->level > 1) {
        return gs_fail(sim, GS_ERR_ARG, "op %llu: stage %d, its ops, its grid or target %u out of range",
                       (unsigned long long)index, op->pattern, op->target);
    }
    out->target = op->target - program->first_op;
    return GS_OK;
}

/* What a compute block needs of shared memory. */
static void lower_smem(const gs_gpu_sm_params *sm, const gs_op *op, gs_iop *out)
{
    out->smem = (u32)(op->smem * sm->smem_interval);
    out->waves = op->smem;
    out->smem_lsu = sm->lsu_shared ? (u32)op->smem / 4 : 0;
    i64 slow = sm->smem_return - sm->smem_interval;
    out->smem_slow = slow > 0 ? (u32)slow : 0;
    out->smem_return = op->smem * out->smem_slow;
    out->smem_late = op->smem && op->pipes[GS_PIPE_FP32] && sm->register_ports
                         ? (u32)(op->conflicts * (u64)sm->smem_late)
                         : 0;
    /* Loads from shared memory are queued: a warp runs ahead of them unless it needs their results now. */
    out->smem_ahead = op->chain && !op->smem_wait ? 0 : (u32)sm->smem_queue * 64;
    if (op->smem_wait) {
        out->smem_wait = (u32)sm->smem_latency;
        out->smem_back = op->smem_wait - 1;
    }
}

static int lower_compute(gs_sim *sim, const gs_op *op, u64 index, gs_iop *out)
{
    const gs_gpu_sm_params *sm = &sim->params.gpu_sm;
    const i64 interval[GS_PIPES] = {sm->fp32_interval,   sm->int_interval, sm->fp16_interval,
                                    sm->fp64_interval,   sm->sfu_interval, sm->tensor_interval,
                                    sm->control_interval};
    u64 sum = 0;
    for (u32 i = 0; i < GS_PIPES; i++) {
        sum += op->pipes[i];
        if (op->pipes[i]) {
            u64 amount = (u64)op->pipes[i] * (u64)interval[i];
            if (i == GS_PIPE_TENSOR && out->async) {
                amount = op->count_plus > 0 ? (u64)op->count_plus : 1;
            } else if (i == GS_PIPE_TENSOR && op->count_plus > 0) {
                /* instructions of a trace may be more or less work than those of the device */
                amount = gs_max(1, (u64)op->count_plus * (u64)interval[i] / 64);
            }
            if (i == GS_PIPE_FP32 && sm->register_ports) {
                amount += (u64)op->conflicts * 64; /* the pipe idles a cycle while operands are late */
            }
            if (amount > UINT32_MAX) {
                return gs_fail(sim, GS_ERR_ARG, "op %llu: a compute block is too long",
                               (unsigned long long)index);
            }
            out->pipe[out->npipes] = (u8)i;
            out->uses |= (u8)(1u << i);
            out->amount[out->npipes] = (u32)amount;
            out->tail[out->npipes++] = (u16)(interval[i] > 64 ? interval[i] - 64 : 0);
        }
    }
    lower_smem(sm, op, out);
    if (sum > op->issue || op->issue == 0) {
        return gs_fail(sim, GS_ERR_ARG, "op %llu: %llu pipe instructions in %u issue slots",
                       (unsigned long long)index, (unsigned long long)sum, op->issue);
    }
    return GS_OK;
}

static int lower_barrier(gs_sim *sim, const gs_op *op, u64 index, gs_iop *out)
{
    u32 named = op->count < GS_NAMED_BARRIERS, copies = op->kind == GS_OP_ARRIVE && op->per_warp;
    out->waves = op->conflicts;
    if (op->count >= GS_TB_BARRIERS || (op->kind == GS_OP_BARRIER && !named) || (copies && named) ||
        (op->kind == GS_OP_AWAIT && (named || !op->chain || !op->conflicts || op->per_warp > 1))) {
        return gs_fail(sim, GS_ERR_ARG, "op %llu: barrier %u, its count %u or phases %u out of range",
                       (unsigned long long)index, op->count, op->chain, op->conflicts);
    }
    return GS_OK;
}

/* Ops of pipelined programs. */
static int lower_pipeline(gs_sim *sim, const gs_job *job, const gs_program *program, u64 index, gs_iop *out)
{
    const gs_op *op = &job->ops[index];
    int box = op->kind == GS_OP_BULK_LOAD || op->kind == GS_OP_BULK_STORE,
        ring = op->kind == GS_OP_BULK_LOAD || op->kind == GS_OP_RING_WAIT || op->kind == GS_OP_RING_ARRIVE,
        counts = op->kind == GS_OP_BULK_LOAD || op->kind == GS_OP_RING_ARRIVE;
    u64 last = (u64)program->first_op + program->ops;
    out->waves = op->conflicts;
    out->to = op->smem;
    if ((box && (op->pattern < 0 || (u64)op->pattern >= job->n_boxes)) ||
        (ring && (!op->stages || op->count + (u64)op->stages >= GS_RINGS)) ||
        (counts && (op->conflicts == 0 || op->conflicts > 63)) || op->smem > 3 ||
        (op->kind == GS_OP_RING_WAIT && op->chain > 1) ||
        (ring && op->kind != GS_OP_BULK_LOAD && op->count_plus < 0) ||
        (op->kind == GS_OP_MULTIPLY_WAIT && op->count >= GS_MULTIPLIES)) {
        return gs_fail(sim, GS_ERR_ARG,
                       "op %llu: box %d, ring barriers %u to %u + %u, arrivals %u or TBs %u out of range",
                       (unsigned long long)index, op->pattern, op->count, op->count, op->stages,
                       op->conflicts, op->smem);
    }
    if (op->kind == GS_OP_TURN) {
        if (op->target <= index || op->target >= last || op->count == 0) {
            return gs_fail(sim, GS_ERR_ARG, "op %llu: a step of %u tiles, or target %u out of range",
                           (unsigned long long)index, op->count, op->target);
        }
        out->target = op->target - program->first_op;
    }
    return GS_OK;
}

static int is_pipeline(u32 kind)
{
    return kind == GS_OP_TURN || kind == GS_OP_BULK_LOAD || kind == GS_OP_BULK_STORE ||
           kind == GS_OP_RING_WAIT || kind == GS_OP_RING_ARRIVE || kind == GS_OP_ADVANCE ||
           kind == GS_OP_MULTIPLY_WAIT || kind == GS_OP_CLUSTER;
}

static int lower_op(gs_sim *sim, const gs_job *job, const gs_program *program, u64 index, gs_iop *out)
{
    const gs_op *op = &job->ops[index];
    const int pipeline = is_pipeline(op->kind);
    if (op->kind >= GS_OPS || op->kind == GS_OP_MARK || op->level > 2 ||
        (!pipeline && op->slot + (op->stages ? op->stages : 1) > GS_SLOTS)) {
        return gs_fail(sim, GS_ERR_ARG, "op %llu: kind %u, slot %u + %u stages or level %u out of range",
                       (unsigned long long)index, op->kind, op->slot, op->stages, op->level);
    }
    if (op->issue >= GS_OP_LONGEST || op->conflicts >= GS_OP_LONGEST || op->chain >= GS_OP_LONGEST ||
        (op->kind == GS_OP_DELAY && op->count >= 1u << 30)) {
        return gs_fail(sim, GS_ERR_ARG, "op %llu: too long", (unsigned long long)index);
    }
    *out = (gs_iop){.kind = op->kind,
                    .slot = op->slot,
                    .stages = op->stages,
                    .level = op->level,
                    .bypass_l1 = op->bypass_l1,
                    .per_warp = op->per_warp,
                    .issue = op->issue,
                    .slots = op->issue + (sim->params.gpu_sm.register_ports ? op->conflicts : 0),
                    .chain = op->chain,
                    .smem = op->kind == GS_OP_LOAD ? op->smem : 0,
                    .pattern = op->pattern,
                    .count_plus = op->count_plus,
                    .count = op->count};
    if (pipeline) {
        return lower_pipeline(sim, job, program, index, out);
    }
    switch (op->kind) {
    case GS_OP_COMPUTE:
        out->async = op->per_warp != 0;
        return lower_compute(sim, op, index, out);
    case GS_OP_LOOP:
        return lower_loop(sim, job, program, index, out);
    case GS_OP_LOAD:
    case GS_OP_STORE:
    case GS_OP_REDUCE:
        return lower_memory(sim, job, program, index, out);
    case GS_OP_POST:
    case GS_OP_POLL:
        return op->pattern >= 0 && (u64)op->pattern < job->n_sems
                   ? GS_OK
                   : gs_fail(sim, GS_ERR_ARG, "op %llu: no use of semaphores %d", (unsigned long long)index,
                             op->pattern);
    case GS_OP_TILE:
        return lower_tile(sim, job, program, index, out);
    case GS_OP_BARRIER:
    case GS_OP_ARRIVE:
    case GS_OP_AWAIT:
        return lower_barrier(sim, op, index, out);
    default:
        return GS_OK;
    }
}

/* What a warp waits for at its end: its loads; if an SM keeps a TB's slot until L2 has acknowledged its
   stores, every scoreboard slot. */
static void mark_ends(const gs_sim *sim, gs_iop *ops, u32 n)
{
    u8 loads = 0;
    for (u32 i = 0; i < n; i++) {
        if (ops[i].kind == GS_OP_LOAD) {
            loads |= (u8)(((1u << gs_max32(ops[i].stages, 1)) - 1) << ops[i].slot);
        }
    }
    for (u32 i = 0; i < n; i++) {
        if (ops[i].kind == GS_OP_EXIT) {
            ops[i].uses = sim->params.gpu_sm.leave_stores ? loads : (1u << GS_SLOTS) - 1;
        }
    }
}

/* Compute ops without a wait between them are one run. Its main pipe is the one that it keeps busy
   longest. */
static void mark_runs(gs_iop *ops, u32 n)
{
    for (u32 i = 0; i < n;) {
        u64 busy[GS_PIPES] = {0};
        u32 end = i, best = 0;
        while (end < n && ops[end].kind == GS_OP_COMPUTE) {
            for (u32 j = 0; j < ops[end].npipes; j++) {
                busy[ops[end].pipe[j]] += ops[end].amount[j];
            }
            const gs_iop *op = &ops[end++];
            if (op->chain || (op->smem_wait && op->smem_back != GS_UNNEEDED)) {
                break;
            }
        }
        if (end == i) {
            i++;
            continue;
        }
        for (u32 p = 1; p < GS_PIPES; p++) {
            best = busy[p] > busy[best] ? p : best;
        }
        for (; i + 1 < end; i++) {
            ops[i].run = busy[best] ? (u8)(best + 1) : 0;
        }
        i = end;
    }
}

static int check_program(gs_sim *sim, const gs_job *job, u64 index)
{
    const gs_program *p = &job->programs[index];
    if ((u64)p->first_op + p->ops > job->n_ops || (u64)p->first_pattern + p->patterns > job->n_patterns ||
        p->ops == 0 || p->ops >= GS_PROGRAM_OPS || p->warps == 0 || p->warps > GS_WARPS || p->args > 8 ||
        (p->rows && (u64)p->first_entry + (u64)p->rows * p->warps > job->n_entries)) {
        return gs_fail(
            sim, GS_ERR_ARG,
            "program %llu: %u ops (below 2^30), %u warps (1 to 64), %u arguments (at most 8) or %u "
            "rows of entries out of range",
            (unsigned long long)index, p->ops, p->warps, p->args, p->rows);
    }
    for (u32 v = 0; !p->rows && v < 8; v++) {
        u64 at = p->entry[v];
        if (at < p->first_op || at >= (u64)p->first_op + p->ops) {
            return gs_fail(sim, GS_ERR_ARG, "program %llu: entry %u lies outside", (unsigned long long)index,
                           v);
        }
        while (at < (u64)p->first_op + p->ops && job->ops[at].kind != GS_OP_EXIT) {
            at++;
        }
        if (at == (u64)p->first_op + p->ops) {
            return gs_fail(sim, GS_ERR_ARG, "program %llu: variant %u has no EXIT", (unsigned long long)index,
                           v);
        }
    }
    return GS_OK;
}

int gs_program_lower(gs_sim *sim, const gs_job *job, gs_lowered *out)
{
    memset(out, 0, sizeof *out);
    out->ops = calloc(job->n_ops + 1, sizeof *out->ops);
    out->patterns = calloc(job->n_patterns + 1, sizeof *out->patterns);
    if (!out->ops || !out->patterns) {
        return gs_fail(sim, GS_ERR_MEM, "not enough memory for programs");
    }
    for (u64 i = 0; i < job->n_patterns; i++) {
        if (gs_coalesce_pattern(sim, job, i, out)) {
            return sim->error_code;
        }
    }
    u64 end = 0;
    for (u64 i = 0; i < job->n_programs; i++) {
        if (check_program(sim, job, i)) {
            return sim->error_code;
        }
        const gs_program *p = &job->programs[i];
        if (p->first_op < end) {
            return gs_fail(sim, GS_ERR_ARG, "program %llu: its ops overlap those of another",
                           (unsigned long long)i);
        }
        end = (u64)p->first_op + p->ops;
        for (u64 op = p->first_op; op < (u64)p->first_op + p->ops; op++) {
            if (lower_op(sim, job, p, op, &out->ops[op])) {
                return sim->error_code;
            }
        }
        mark_ends(sim, out->ops + p->first_op, p->ops);
        if (sim->params.gpu_sm.warp_order == GS_GPU_SM_WARP_ORDER_GREEDY) {
            mark_runs(out->ops + p->first_op, p->ops);
        }
    }
    for (u64 i = 0; i < job->n_stages; i++) {
        const gs_stage *s = &job->stages[i];
        for (u64 op = s->first; op < s->end && op < job->n_ops; op++) {
            out->ops[op].phase = (u16)(i + 1);
        }
    }
    for (u64 i = 0; i < job->n_launches; i++) {
        if (gs_bounds_check(sim, job, i)) {
            return sim->error_code;
        }
    }
    return GS_OK;
}

void gs_program_drop(gs_lowered *l)
{
    free(l->ops);
    free(l->patterns);
    free(l->templates);
    free(l->parts);
    free(l->bytes);
}
