/* Addresses: the lanes of a pattern are coalesced into lines and sectors once for each offset that the base
   can have in a line; the hot loop then only adds. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

enum { GS_OP_LONGEST = 1 << 24 }; /* issue slots or cycles of one op */

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

/* a loop's body has an op that takes time and no loop that counts with the same counter */
static int takes_time(const gs_job *job, u64 first, u64 loop)
{
    int found = 0;
    for (u64 i = first; i < loop; i++) {
        const gs_op *op = &job->ops[i];
        int memory = op->kind == GS_OP_LOAD || op->kind == GS_OP_STORE || op->kind == GS_OP_REDUCE;
        found |= op->kind == GS_OP_COMPUTE || op->kind == GS_OP_BARRIER || op->kind == GS_OP_EXIT ||
                 (op->kind == GS_OP_DELAY && op->count) || (memory && op->count == 0);
        if (op->kind == GS_OP_LOOP && op->level == job->ops[loop].level) {
            return 0;
        }
    }
    return found;
}

static int lower_op(gs_sim *sim, const gs_job *job, const gs_program *program, u64 index, gs_iop *out)
{
    const gs_op *op = &job->ops[index];
    const gs_gpu_sm_params *sm = &sim->params.gpu_sm;
    const i64 interval[GS_PIPES] = {sm->fp32_interval,   sm->int_interval, sm->fp16_interval,
                                    sm->fp64_interval,   sm->sfu_interval, sm->tensor_interval,
                                    sm->control_interval};
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
    if (op->issue >= GS_OP_LONGEST || op->conflicts >= GS_OP_LONGEST || op->chain >= GS_OP_LONGEST ||
        (op->kind == GS_OP_DELAY && op->count >= 1u << 30)) {
        return gs_fail(sim, GS_ERR_ARG, "op %llu: too long", (unsigned long long)index);
    }
    out->pattern = op->pattern;
    out->count_plus = op->count_plus;
    out->count = op->count;
    if (op->kind == GS_OP_LOOP) {
        if (op->count == 0 || op->count > 65535 || op->target < program->first_op || op->target > index) {
            return gs_fail(sim, GS_ERR_ARG, "op %llu: loop of %u iterations (1 to 65535) to op %u",
                           (unsigned long long)index, op->count, op->target);
        }
        out->target = op->target - program->first_op;
        if (!takes_time(job, op->target, index)) {
            return gs_fail(sim, GS_ERR_ARG,
                           "op %llu: a loop of nothing, or two loops with one counter in each other",
                           (unsigned long long)index);
        }
    }
    if (op->kind == GS_OP_LOAD || op->kind == GS_OP_STORE || op->kind == GS_OP_REDUCE) {
        u64 last = (u64)op->pattern + (op->per_warp ? program->warps - 1 : 0);
        if (op->pattern < 0 || (u64)op->pattern < program->first_pattern ||
            last >= (u64)program->first_pattern + program->patterns) {
            return gs_fail(sim, GS_ERR_ARG, "op %llu: pattern %d is not one of its program's",
                           (unsigned long long)index, op->pattern);
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
                    return gs_fail(sim, GS_ERR_ARG, "op %llu: a compute block is too long",
                                   (unsigned long long)index);
                }
                out->pipe[out->npipes] = (u8)i;
                out->uses |= (u8)(1u << i);
                out->amount[out->npipes] = (u32)amount;
                out->tail[out->npipes++] = (u16)(interval[i] > 64 ? interval[i] - 64 : 0);
            }
        }
        if (op->smem) {
            out->pipe[out->npipes] = GS_PIPE_SMEM;
            out->amount[out->npipes] = (u32)(op->smem * sm->smem_interval);
            /* loads from shared memory are queued: a warp runs ahead of them unless it needs their results
             * now */
            out->tail[out->npipes++] = op->chain ? 0 : GS_SMEM_AHEAD * 64;
        }
        if (sum > op->issue || op->issue == 0) {
            return gs_fail(sim, GS_ERR_ARG, "op %llu: %llu pipe instructions in %u issue slots",
                           (unsigned long long)index, (unsigned long long)sum, op->issue);
        }
    }
    return GS_OK;
}

/* Compute ops without a wait between them are one run: its main pipe is the one that it keeps busy longest.
 */
static void mark_runs(gs_iop *ops, u32 n)
{
    for (u32 i = 0; i < n;) {
        u64 busy[GS_PIPES] = {0};
        u32 end = i, best = 0;
        while (end < n && ops[end].kind == GS_OP_COMPUTE) {
            for (u32 j = 0; j < ops[end].npipes; j++) {
                if (ops[end].pipe[j] < GS_PIPES) {
                    busy[ops[end].pipe[j]] += ops[end].amount[j];
                }
            }
            if (ops[end++].chain) {
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

/* distances are small enough that no sum of them leaves 64 bits */
static int too_far(const gs_pattern *p)
{
    const i64 terms[] = {p->base, p->bx, p->by, p->bz, p->warp, p->step, p->step2, p->s0, p->s1};
    for (u32 i = 0; i < sizeof terms / sizeof *terms; i++) {
        i64 most = i < 1 ? (i64)1 << 45 : i < 7 ? (i64)1 << 40 : (i64)1 << 31;
        if (terms[i] > most || terms[i] < -most) {
            return 1;
        }
    }
    return 0;
}

static int lower_pattern(gs_sim *sim, const gs_job *job, u64 index, gs_lowered *l)
{
    const gs_pattern *p = &job->patterns[index];
    if (p->align < 2 || p->align > 128 || (p->align & (p->align - 1)) || p->minor == 0 || p->width == 0 ||
        p->width > 16 || p->arg > 7 || p->level2 > 2 || too_far(p)) {
        return gs_fail(
            sim, GS_ERR_ARG,
            "pattern %llu: align %u, minor %u, width %u, arg %u, level2 %u or a distance out of range",
            (unsigned long long)index, p->align, p->minor, p->width, p->arg, p->level2);
    }
    l->patterns[index] = (gs_ipattern){p->base,
                                       p->bx,
                                       p->by,
                                       p->bz,
                                       p->warp,
                                       p->step,
                                       p->step2,
                                       (u32)l->n_templates,
                                       (u8)gs_ctz(p->align),
                                       p->arg,
                                       p->level2,
                                       0};
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
    if ((u64)p->first_op + p->ops > job->n_ops || (u64)p->first_pattern + p->patterns > job->n_patterns ||
        p->ops == 0 || p->ops > 65535 || p->warps == 0 || p->warps > GS_WARPS || p->args > 8) {
        return gs_fail(sim, GS_ERR_ARG,
                       "program %llu: %u ops (at most 65535), %u warps (1 to 64) or %u arguments (at most 8)",
                       (unsigned long long)index, p->ops, p->warps, p->args);
    }
    for (u32 v = 0; v < 8; v++) {
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

u64 gs_address_top(const gs_sim *sim)
{
    /* L2 tags have 16 bits, L1 tags name a line in 32 */
    return gs_min((u64)65535 * (u64)sim->params.gpu_l2.size / GS_WAYS, (u64)UINT32_MAX * 128);
}

/* adds the range of stride * (first to last); a product that the hot loop could not hold becomes an address
 * below 0 */
static void span_add(i64 *lo, i64 *hi, i64 stride, i64 first, i64 last)
{
    __int128 a = (__int128)stride * first, b = (__int128)stride * last, most = (__int128)1 << 58;
    if (a < -most || a > most || b < -most || b > most) {
        a = b = -most;
    }
    *lo += (i64)(a < b ? a : b);
    *hi += (i64)(a < b ? b : a);
}

/* all addresses that a launch can reach lie within memory: from the ranges of what addresses are made of */
static int check_addresses(gs_sim *sim, const gs_job *job, u64 index)
{
    const gs_launch *l = &job->launches[index];
    const gs_program *p = &job->programs[l->program];
    i64 counter[3] = {0, 0, 0}, top = (i64)gs_address_top(sim);
    for (u64 i = p->first_op; i < (u64)p->first_op + p->ops; i++) {
        const gs_op *op = &job->ops[i];
        if (op->kind == GS_OP_LOOP && counter[op->level] < (i64)op->count - 1) {
            counter[op->level] = (i64)op->count - 1;
        }
    }
    for (u64 i = p->first_op; i < (u64)p->first_op + p->ops; i++) {
        const gs_op *op = &job->ops[i];
        if (op->kind != GS_OP_LOAD && op->kind != GS_OP_STORE && op->kind != GS_OP_REDUCE) {
            continue;
        }
        i64 last = counter[op->level] + op->count_plus;
        if (op->count && last >= (i64)op->count) {
            last = (i64)op->count - 1;
        }
        if (last < op->count_plus) {
            continue; /* always skipped */
        }
        for (u32 w = 0; w < (op->per_warp ? p->warps : 1); w++) {
            const gs_pattern *q = &job->patterns[op->pattern + (i32)w];
            i64 lo = (i64)l->arg[q->arg] + q->base, hi = lo + q->width;
            span_add(&lo, &hi, q->bx, 0, (i64)l->grid[0] - 1);
            span_add(&lo, &hi, q->by, 0, (i64)l->grid[1] - 1);
            span_add(&lo, &hi, q->bz, 0, (i64)l->grid[2] - 1);
            span_add(&lo, &hi, q->warp, op->per_warp ? w : 0, op->per_warp ? w : p->warps - 1);
            span_add(&lo, &hi, q->step, op->count_plus, last);
            span_add(&lo, &hi, q->step2, 0, counter[q->level2]);
            span_add(&lo, &hi, q->s0, 0, gs_min(q->minor, 32) - 1);
            span_add(&lo, &hi, q->s1, 0, 31 / q->minor);
            if (lo < 0 || hi > top) {
                return gs_fail(sim, GS_ERR_ARG,
                               "launch %llu: op %llu reaches from %lld to %lld of argument %u at 0x%llx: "
                               "outside memory (0x%llx bytes)",
                               (unsigned long long)index, (unsigned long long)(i - p->first_op),
                               (long long)(lo - (i64)l->arg[q->arg]), (long long)(hi - (i64)l->arg[q->arg]),
                               q->arg, (unsigned long long)l->arg[q->arg], (unsigned long long)top);
            }
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
        mark_runs(out->ops + p->first_op, p->ops);
    }
    for (u64 i = 0; i < job->n_launches; i++) {
        if (check_addresses(sim, job, i)) {
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
}
