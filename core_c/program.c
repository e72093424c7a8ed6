/* Addresses: the lanes of a pattern are coalesced into lines and sectors once for each offset that the base can have
   in a line; the hot loop then only adds. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

static int grow(void **at, u64 *room, u64 need, size_t size)
{
    if (need <= *room) {
        return 1;
    }
    u64 want = need * 2 + 256;
    void *p = realloc(*at, want * size);
    if (!p) {
        return 0;
    }
    *at = p;
    *room = want;
    return 1;
}

static int lower_op(gs_sim *sim, const gs_job *job, const gs_program *program, u64 index, gs_iop *out)
{
    const gs_op *op = &job->ops[index];
    const gs_gpu_sm_params *sm = &sim->params.gpu_sm;
    const i64 interval[GS_PIPES] = {sm->fp32_interval, sm->int_interval,    sm->fp16_interval,   sm->fp64_interval,
                                    sm->sfu_interval,  sm->tensor_interval, sm->control_interval};
    memset(out, 0, sizeof *out);
    if (op->kind >= GS_OPS || op->level > 2 || op->slot + (op->stages ? op->stages : 1) > GS_SLOTS) {
        return gs_fail(sim, GS_ERR_ARG, "op %llu: kind %u, slot %u + %u stages or level %u out of range",
                       (unsigned long long)index, op->kind, op->slot, op->stages, op->level);
    }
    out->kind = op->kind;
    out->slot = op->slot;
    out->stages = op->stages;
    out->level = op->level;
    out->bypass_l1 = op->bypass_l1;
    out->per_warp = op->per_warp;
    out->issue = op->issue;
    out->slots = op->issue + (sm->register_ports ? op->conflicts : 0);
    out->chain = op->chain;
    out->pattern = op->pattern;
    out->count_plus = op->count_plus;
    out->count = op->count;
    if (op->kind == GS_OP_LOOP) {
        if (op->count == 0 || op->count > 65535 || op->target < program->first_op || op->target > index) {
            return gs_fail(sim, GS_ERR_ARG, "op %llu: loop of %u iterations (1 to 65535) to op %u", (unsigned long long)index,
                           op->count, op->target);
        }
        out->target = op->target - program->first_op;
    }
    if (op->kind == GS_OP_LOAD || op->kind == GS_OP_STORE || op->kind == GS_OP_REDUCE) {
        u64 last = (u64)op->pattern + (op->per_warp ? program->warps - 1 : 0);
        if (op->pattern < 0 || (u64)op->pattern < program->first_pattern ||
            last >= (u64)program->first_pattern + program->patterns) {
            return gs_fail(sim, GS_ERR_ARG, "op %llu: pattern %d is not one of its program's", (unsigned long long)index,
                           op->pattern);
        }
    }
    if (op->kind == GS_OP_COMPUTE) {
        u64 sum = 0;
        for (u32 i = 0; i < GS_PIPES; i++) {
            sum += op->pipes[i];
            if (op->pipes[i]) {
                u64 amount = (u64)op->pipes[i] * (u64)interval[i];
                if (i == GS_PIPE_FP32 && sm->register_ports) {
                    amount += (u64)op->conflicts * 64; /* the pipe idles a cycle while operands are late */
                }
                if (amount > UINT32_MAX) {
                    return gs_fail(sim, GS_ERR_ARG, "op %llu: a compute block is too long", (unsigned long long)index);
                }
                out->pipe[out->npipes] = (u8)i;
                out->amount[out->npipes] = (u32)amount;
                out->tail[out->npipes++] = (u16)(interval[i] > 64 ? interval[i] - 64 : 0);
            }
        }
        if (op->smem) {
            out->pipe[out->npipes] = GS_PIPE_SMEM;
            out->amount[out->npipes] = (u32)(op->smem * sm->smem_interval);
            /* loads from shared memory are queued: a warp runs ahead of them unless it needs their results now */
            out->tail[out->npipes++] = op->chain ? 0 : GS_SMEM_AHEAD * 64;
        }
        if (sum > op->issue || op->issue == 0) {
            return gs_fail(sim, GS_ERR_ARG, "op %llu: %llu pipe instructions in %u issue slots", (unsigned long long)index,
                           (unsigned long long)sum, op->issue);
        }
    }
    return GS_OK;
}

/* lanes of a pattern whose base lies `offset` bytes into a line */
static int expand(gs_lowered *l, const gs_pattern *p, u32 offset)
{
    gs_template t = {(u32)l->n_parts, 0, 0};
    for (u32 lane = 0; lane < 32; lane++) {
        if (!(p->lanes >> lane & 1)) {
            continue;
        }
        i64 first = (i64)offset + (i64)(lane / p->minor) * p->s1 + (i64)(lane % p->minor) * p->s0;
        for (i64 sector = first >> 5; sector <= (first + p->width - 1) >> 5; sector++) {
            i32 line = (i32)(sector >> 2);
            u32 bit = 1u << (sector & 3), i = t.lines;
            while (i && l->parts[t.first + i - 1].line != line) {
                i--;
            }
            if (i == 0) {
                if (!grow((void **)&l->parts, &l->room_parts, l->n_parts + 1, sizeof *l->parts)) {
                    return 0;
                }
                l->parts[l->n_parts++] = (gs_part){line, 0};
                i = ++t.lines;
            }
            l->parts[t.first + i - 1].mask |= bit;
        }
    }
    for (u32 i = 0; i < t.lines; i++) {
        t.sectors = (u16)(t.sectors + gs_popcount(l->parts[t.first + i].mask));
    }
    if (!grow((void **)&l->templates, &l->room_templates, l->n_templates + 1, sizeof *l->templates)) {
        return 0;
    }
    l->templates[l->n_templates++] = t;
    return 1;
}

static int lower_pattern(gs_sim *sim, const gs_job *job, u64 index, gs_lowered *l)
{
    const gs_pattern *p = &job->patterns[index];
    if (p->align < 2 || p->align > 128 || (p->align & (p->align - 1)) || p->minor == 0 || p->width == 0 || p->width > 16 ||
        p->arg > 7 || p->level2 > 2) {
        return gs_fail(sim, GS_ERR_ARG, "pattern %llu: align %u, minor %u, width %u, arg %u or level2 %u out of range",
                       (unsigned long long)index, p->align, p->minor, p->width, p->arg, p->level2);
    }
    l->patterns[index] = (gs_ipattern){p->base, p->bx,   p->by,    p->bz,
                                       p->warp, p->step, p->step2, (u32)l->n_templates,
                                       (u8)gs_ctz(p->align), p->arg, p->level2, 0};
    for (u32 offset = 0; offset < 128; offset += p->align) {
        if (!expand(l, p, offset)) {
            return gs_fail(sim, GS_ERR_MEM, "not enough memory for address templates");
        }
    }
    return GS_OK;
}

static int check_program(gs_sim *sim, const gs_job *job, u64 index)
{
    const gs_program *p = &job->programs[index];
    if ((u64)p->first_op + p->ops > job->n_ops || (u64)p->first_pattern + p->patterns > job->n_patterns || p->ops == 0 ||
        p->ops > 65535 || p->warps == 0 || p->warps > GS_WARPS || p->args > 8) {
        return gs_fail(sim, GS_ERR_ARG, "program %llu: %u ops (at most 65535), %u warps (1 to 64) or %u arguments (at most 8)",
                       (unsigned long long)index, p->ops, p->warps, p->args);
    }
    for (u32 v = 0; v < 8; v++) {
        u64 at = p->entry[v];
        if (at < p->first_op || at >= (u64)p->first_op + p->ops) {
            return gs_fail(sim, GS_ERR_ARG, "program %llu: entry %u lies outside", (unsigned long long)index, v);
        }
        while (at < (u64)p->first_op + p->ops && job->ops[at].kind != GS_OP_EXIT) {
            at++;
        }
        if (at == (u64)p->first_op + p->ops) {
            return gs_fail(sim, GS_ERR_ARG, "program %llu: variant %u has no EXIT", (unsigned long long)index, v);
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
        if (lower_pattern(sim, job, i, out)) {
            return sim->error_code;
        }
    }
    for (u64 i = 0; i < job->n_programs; i++) {
        if (check_program(sim, job, i)) {
            return sim->error_code;
        }
        const gs_program *p = &job->programs[i];
        for (u64 op = p->first_op; op < (u64)p->first_op + p->ops; op++) {
            if (lower_op(sim, job, p, op, &out->ops[op])) {
                return sim->error_code;
            }
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
}
