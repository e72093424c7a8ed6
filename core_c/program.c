/* Addresses: the lanes of a pattern are coalesced into lines and sectors once for each offset that the base
   can have in a line; the hot loop then only adds. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

enum {
    GS_OP_LONGEST = 1 << 24, /* issue slots or cycles of one op */
    GS_PROGRAM_OPS = 1 << 30
};

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

/* a loop's body has an op that takes time, and no loop that counts with the same counter or goes back to
 * before the body */
static int takes_time(const gs_job *job, u64 first, u64 loop)
{
    int found = 0;
    for (u64 i = first; i < loop; i++) {
        const gs_op *op = &job->ops[i];
        int memory = op->kind == GS_OP_LOAD || op->kind == GS_OP_STORE || op->kind == GS_OP_REDUCE;
        found |= op->kind == GS_OP_COMPUTE || op->kind == GS_OP_BARRIER || op->kind == GS_OP_EXIT ||
                 op->kind == GS_OP_POST || op->kind == GS_OP_TRIGGER || op->kind == GS_OP_DEPEND ||
                 (op->kind == GS_OP_DELAY && op->count) || (memory && op->count == 0);
        if (op->kind == GS_OP_LOOP && (op->level == job->ops[loop].level || op->target < first)) {
            return 0;
        }
    }
    return found;
}

/* 1: its ops are none of the program's, or its grid has no tiles or too many */
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

static int lower_op(gs_sim *sim, const gs_job *job, const gs_program *program, u64 index, gs_iop *out)
{
    const gs_op *op = &job->ops[index];
    const gs_gpu_sm_params *sm = &sim->params.gpu_sm;
    const i64 interval[GS_PIPES] = {sm->fp32_interval,   sm->int_interval, sm->fp16_interval,
                                    sm->fp64_interval,   sm->sfu_interval, sm->tensor_interval,
                                    sm->control_interval};
    memset(out, 0, sizeof *out);
    if (op->kind >= GS_OPS || op->kind == GS_OP_MARK || op->level > 2 ||
        op->slot + (op->stages ? op->stages : 1) > GS_SLOTS) {
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
    out->smem = op->kind == GS_OP_LOAD ? op->smem : 0;
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
            return gs_fail(
                sim, GS_ERR_ARG,
                "op %llu: a loop of nothing, loops that cross, or two with one counter in each other",
                (unsigned long long)index);
        }
    }
    if (op->kind == GS_OP_LOAD || op->kind == GS_OP_STORE || op->kind == GS_OP_REDUCE) {
        out->issue = op->issue != 0;
        u64 last = (u64)op->pattern + (op->per_warp ? program->warps - 1 : 0);
        if (op->pattern < 0 || (u64)op->pattern < program->first_pattern ||
            last >= (u64)program->first_pattern + program->patterns) {
            return gs_fail(sim, GS_ERR_ARG, "op %llu: pattern %d is not one of its program's",
                           (unsigned long long)index, op->pattern);
        }
    }
    if ((op->kind == GS_OP_POST || op->kind == GS_OP_POLL) &&
        (op->pattern < 0 || (u64)op->pattern >= job->n_sems)) {
        return gs_fail(sim, GS_ERR_ARG, "op %llu: no use of semaphores %d", (unsigned long long)index,
                       op->pattern);
    }
    if (op->kind == GS_OP_TILE) {
        const gs_stage *s =
            op->pattern >= 0 && (u64)op->pattern < job->n_stages ? &job->stages[op->pattern] : NULL;
        u64 last = (u64)program->first_op + program->ops;
        /* a stage without tiles left goes forward, so a program ends */
        if (!s || check_stage(job, program, s) || op->target < s->end || op->target <= index ||
            op->target >= last || op->level > 1) {
            return gs_fail(sim, GS_ERR_ARG, "op %llu: stage %d, its ops, its grid or target %u out of range",
                           (unsigned long long)index, op->pattern, op->target);
        }
        out->target = op->target - program->first_op;
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
        out->smem = (u32)(op->smem * sm->smem_interval);
        i64 slow = sm->smem_return - sm->smem_interval;
        out->smem_slow = slow > 0 ? (u32)slow : 0;
        out->smem_return = op->smem * out->smem_slow;
        /* loads from shared memory are queued: a warp runs ahead of them unless it needs their results now */
        out->smem_ahead = op->chain && !op->smem_wait ? 0 : GS_SMEM_AHEAD * 64;
        if (op->smem_wait) {
            out->smem_wait = (u32)sm->smem_latency;
            out->smem_back = (u32)gs_min((u64)(op->smem_wait - 1) * (u64)sm->smem_interval, 1u << 20);
        }
        if (sum > op->issue || op->issue == 0) {
            return gs_fail(sim, GS_ERR_ARG, "op %llu: %llu pipe instructions in %u issue slots",
                           (unsigned long long)index, (unsigned long long)sum, op->issue);
        }
    }
    return GS_OK;
}

/* What a warp waits for at its end: what it loads, or, if an SM keeps a TB's place until L2 has acknowledged
   its stores, every slot. */
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

/* Compute ops without a wait between them are one run: its main pipe is the one that it keeps busy longest.
 */
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
            if (op->chain || op->smem_wait) {
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
static int expand(gs_lowered *l, const gs_pattern *p, const gs_lanes *lanes, u32 offset)
{
    gs_template t = {(u32)l->n_parts, 0, 0};
    for (u32 lane = 0; lane < 32; lane++) {
        if (!(p->lanes >> lane & 1)) {
            continue;
        }
        i64 first = (i64)offset + (lanes ? lanes->offset[lane]
                                         : (i64)(lane / p->minor) * p->s1 + (i64)(lane % p->minor) * p->s0);
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

/* a place in a warp's block is not moved by where the TB is, and has no lanes of its own */
static int odd_record(const gs_pattern *p)
{
    return p->recorded && (p->recorded > 1 || p->bx || p->by || p->bz || p->warp || p->shape);
}

static int lower_pattern(gs_sim *sim, const gs_job *job, u64 index, gs_lowered *l)
{
    const gs_pattern *p = &job->patterns[index];
    const gs_lanes *lanes = p->shape && p->shape <= job->n_lanes ? &job->lanes[p->shape - 1] : NULL;
    if (p->align < 1 || p->align > 128 || (p->align & (p->align - 1)) || p->minor == 0 || p->width == 0 ||
        p->width > 16 || p->arg > 7 || p->level2 > 2 || p->shape > job->n_lanes || too_far(p) ||
        odd_record(p)) {
        return gs_fail(
            sim, GS_ERR_ARG,
            "pattern %llu: align %u, minor %u, width %u, arg %u, level2 %u, shape or a distance out of range",
            (unsigned long long)index, p->align, p->minor, p->width, p->arg, p->level2);
    }
    for (u32 i = 0; lanes && i < 32; i++) {
        if (lanes->offset[i] > 1 << 30 || lanes->offset[i] < -(1 << 30)) {
            return gs_fail(sim, GS_ERR_ARG, "pattern %llu: lane %u lies %d bytes away: at most 2^30",
                           (unsigned long long)index, i, lanes->offset[i]);
        }
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
                                       p->recorded};
    for (u32 offset = 0; !p->recorded && offset < 128; offset += p->align) {
        if (!expand(l, p, lanes, offset)) {
            return gs_fail(sim, GS_ERR_MEM, "not enough memory for address templates");
        }
    }
    return GS_OK;
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

u64 gs_address_top(const gs_sim *sim)
{
    /* L2 tags have 16 bits, L1 keys name a line of 31 */
    u64 tags = sim->map.wraps || sim->half_boxes ? 32767 : 65535;
    return gs_min(tags * sim->map.by_block.d * 128, (u64)INT32_MAX * 128);
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

/* Ops from first to last run by TBs and warps within the box: what can be reached. */
typedef struct gs_box3 {
    u64 first, end;
    u32 lo[4], hi[4]; /* x, y, z, warp */
} gs_box3;

static int is_memory(const gs_op *op)
{
    return op->kind == GS_OP_LOAD || op->kind == GS_OP_STORE || op->kind == GS_OP_REDUCE;
}

/* the lowest and the highest sum of a pattern, and how often the op's counter runs; 0: never executed */
static int span_of(const gs_pattern *q, const gs_op *op, const gs_box3 *box, const i64 *counter, u32 w0,
                   u32 w1, i64 *lo, i64 *hi)
{
    i64 last = counter[op->level] + op->count_plus;
    if (op->count && last >= (i64)op->count) {
        last = (i64)op->count - 1;
    }
    if (last < op->count_plus) {
        return 0; /* always skipped */
    }
    const i64 strides[] = {q->bx, q->by, q->bz};
    for (u32 i = 0; i < 3; i++) {
        span_add(lo, hi, strides[i], box->lo[i], box->hi[i]);
    }
    span_add(lo, hi, q->warp, w0, w1);
    span_add(lo, hi, q->step, op->count_plus, last);
    span_add(lo, hi, q->step2, 0, counter[q->level2]);
    return 1;
}

static void lanes_add(const gs_job *job, const gs_pattern *q, i64 *lo, i64 *hi)
{
    *hi += q->width;
    if (q->shape) {
        i64 least = 0, most = 0;
        for (u32 i = 0; i < 32; i++) {
            if (q->lanes >> i & 1) {
                i64 at = job->lanes[q->shape - 1].offset[i];
                least = at < least ? at : least;
                most = at > most ? at : most;
            }
        }
        *lo += least;
        *hi += most;
    } else {
        span_add(lo, hi, q->s0, 0, gs_min(q->minor, 32) - 1);
        span_add(lo, hi, q->s1, 0, 31 / q->minor);
    }
}

/* All addresses that a launch reaches with a segment of code lie within memory, from the ranges of what they
   are made of; *most: one more than the highest place in a warp's block. */
static int check_segment(gs_sim *sim, const gs_job *job, u64 index, const gs_box3 *box, u64 *most)
{
    const gs_launch *l = &job->launches[index];
    const gs_program *p = &job->programs[l->program];
    const gs_op *open[3]; /* the loops around an op, innermost last */
    u32 depth = 0;
    i64 top = (i64)gs_address_top(sim);
    *most = 0;
    for (u64 i = box->end; i-- > box->first;) {
        const gs_op *op = &job->ops[i];
        while (depth && i < open[depth - 1]->target) {
            depth--;
        }
        if (op->kind == GS_OP_LOOP) {
            if (op->target < box->first) {
                return gs_fail(sim, GS_ERR_ARG, "op %llu: a loop goes back to before its entry",
                               (unsigned long long)i);
            }
            open[depth++] =
                op; /* lower_op has seen to it that loops in each other have counters of their own */
        }
        if (!is_memory(op)) {
            continue;
        }
        i64 counter[3] = {0, 0, 0};
        for (u32 j = 0; j < depth; j++) {
            counter[open[j]->level] = (i64)open[j]->count - 1;
        }
        for (u32 w = 0; w < (op->per_warp ? p->warps : 1); w++) {
            const gs_pattern *q = &job->patterns[op->pattern + (i32)w];
            i64 lo = (i64)(q->recorded ? 0 : l->arg[q->arg]) + q->base, hi = lo;
            u32 w0 = op->per_warp ? w : box->lo[3], w1 = op->per_warp ? w : box->hi[3];
            if (!span_of(q, op, box, counter, w0, w1, &lo, &hi)) {
                continue;
            }
            if (q->recorded) {
                if (lo < 0) {
                    return gs_fail(sim, GS_ERR_ARG, "launch %llu: op %llu reaches in front of its accesses",
                                   (unsigned long long)index, (unsigned long long)(i - p->first_op));
                }
                *most = gs_max(*most, (u64)hi + 1);
                continue;
            }
            lanes_add(job, q, &lo, &hi);
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

/* Recorded lines lie within memory. */
static int check_accesses(gs_sim *sim, const gs_job *job, const gs_launch *l, u64 index)
{
    u64 top = gs_address_top(sim) >> 7;
    for (u64 i = l->first_access; i < l->first_access + l->accesses; i++) {
        u64 line = (u32)job->accesses[i], number = job->accesses[i] >> 32, sectors = 0;
        const gs_template *t = number < job->n_templates ? &job->templates[number] : NULL;
        int good = t && t->lines <= 64 && (u64)t->first + t->lines <= job->n_parts;
        for (u32 j = 0; good && j < t->lines; j++) {
            const gs_part *part = &job->parts[t->first + j];
            u64 at = line + (u64)(i64)part->line;
            if (at >= top) {
                return gs_fail(sim, GS_ERR_ARG,
                               "launch %llu: access %llu lies outside memory: line %lld of 0x%llx",
                               (unsigned long long)index, (unsigned long long)(i - l->first_access),
                               (long long)at, (unsigned long long)top);
            }
            good = part->mask && part->mask < 16;
            sectors += gs_popcount(part->mask);
        }
        if (!good || sectors != t->sectors) {
            return gs_fail(sim, GS_ERR_ARG, "launch %llu: access %llu is damaged", (unsigned long long)index,
                           (unsigned long long)(i - l->first_access));
        }
    }
    return GS_OK;
}

/* A launch of a program with rows: each entry in use, with the box of the warps that use it. */
static int check_rows(gs_sim *sim, const gs_job *job, u64 index)
{
    const gs_launch *l = &job->launches[index];
    const gs_program *p = &job->programs[l->program];
    u64 tbs = (u64)l->grid[0] * l->grid[1] * l->grid[2], warps = tbs * p->warps, length = 0, most;
    if ((l->first_tb_row != GS_NONE && (u64)l->first_tb_row + tbs > job->n_tb_rows) ||
        (l->first_block != GS_NONE && (u64)l->first_block + warps > job->n_blocks) ||
        l->first_access > job->n_accesses || l->accesses > job->n_accesses - l->first_access) {
        return gs_fail(sim, GS_ERR_ARG, "launch %llu: rows, blocks or accesses lie outside the tables",
                       (unsigned long long)index);
    }
    const u32 *blocks = l->first_block == GS_NONE ? NULL : job->blocks + l->first_block;
    gs_box3 *boxes = NULL;
    u32 *at = calloc(p->ops, sizeof *at); /* entry -> its box + 1 */
    u64 n = 0, room = 0, *reach = NULL;
    int code = at ? GS_OK : gs_fail(sim, GS_ERR_MEM, "not enough memory for entries");
    for (u64 i = 0; at && !code && i < warps; i++) {
        u32 tb = (u32)(i / p->warps),
            row = l->first_tb_row == GS_NONE ? 0 : job->tb_rows[l->first_tb_row + tb];
        u32 entry = row < p->rows ? job->entries[p->first_entry + (u64)row * p->warps + i % p->warps] : 0;
        if (row >= p->rows || entry < p->first_op || entry - p->first_op >= p->ops) {
            code = gs_fail(sim, GS_ERR_ARG, "launch %llu: row %u or entry %u of TB %u lies outside",
                           (unsigned long long)index, row, entry, tb);
            break;
        }
        u32 *box = &at[entry - p->first_op];
        const u32 place[4] = {tb % l->grid[0], tb / l->grid[0] % l->grid[1], tb / l->grid[0] / l->grid[1],
                              (u32)(i % p->warps)};
        if (!*box) {
            if (!grow((void **)&boxes, &room, n + 1, sizeof *boxes)) {
                code = gs_fail(sim, GS_ERR_MEM, "not enough memory for entries");
                break;
            }
            gs_box3 *b = &boxes[n++];
            *b = (gs_box3){entry, entry, {0}, {0}};
            memcpy(b->lo, place, sizeof place);
            memcpy(b->hi, place, sizeof place);
            *box = (u32)n;
            while (b->end < (u64)p->first_op + p->ops && job->ops[b->end].kind != GS_OP_EXIT) {
                b->end++;
            }
            length += b->end - b->first + 1;
            if (length > p->ops || b->end == (u64)p->first_op + p->ops) {
                code = gs_fail(sim, GS_ERR_ARG, "launch %llu: entry %u has no EXIT or overlaps another",
                               (unsigned long long)index, entry);
            }
        }
        gs_box3 *b = &boxes[*box - 1];
        for (u32 j = 0; j < 4; j++) {
            b->lo[j] = b->lo[j] < place[j] ? b->lo[j] : place[j];
            b->hi[j] = b->hi[j] > place[j] ? b->hi[j] : place[j];
        }
    }
    reach = code ? NULL : calloc(n + 1, sizeof *reach);
    if (!code && !reach) {
        code = gs_fail(sim, GS_ERR_MEM, "not enough memory for entries");
    }
    for (u64 i = 0; reach && !code && i < n; i++) {
        code = check_segment(sim, job, index, &boxes[i], &most);
        reach[i] = most;
    }
    for (u64 i = 0; at && reach && !code && i < warps; i++) {
        u32 row = l->first_tb_row == GS_NONE ? 0 : job->tb_rows[l->first_tb_row + i / p->warps];
        u32 entry = job->entries[p->first_entry + (u64)row * p->warps + i % p->warps];
        u64 need = reach[at[entry - p->first_op] - 1];
        if (need && (!blocks || blocks[i] + need > l->accesses)) {
            code = gs_fail(sim, GS_ERR_ARG, "launch %llu: warp %llu reaches past its accesses",
                           (unsigned long long)index, (unsigned long long)i);
        }
    }
    free(at);
    free(boxes);
    free(reach);
    return code ? code : check_accesses(sim, job, l, index);
}

/* the stage whose ops begin here */
static const gs_stage *stage_at(const gs_job *job, u64 op)
{
    for (u64 i = 0; i < job->n_stages; i++) {
        if (job->stages[i].first == op) {
            return &job->stages[i];
        }
    }
    return NULL;
}

static int check_addresses(gs_sim *sim, const gs_job *job, u64 index)
{
    const gs_launch *l = &job->launches[index];
    const gs_program *p = &job->programs[l->program];
    if (p->rows) {
        return check_rows(sim, job, index);
    }
    u64 most = 0, end = (u64)p->first_op + p->ops;
    for (u64 first = p->first_op; first < end;) {
        gs_box3 box = {first, first, {0}, {0}};
        const u32 *grid = l->grid;
        const gs_stage *s = stage_at(job, first);
        if (s) {
            box.end = s->end;
            grid = s->grid;
        }
        while (!s && box.end < end && !stage_at(job, box.end)) {
            box.end++;
        }
        for (u32 i = 0; i < 3; i++) {
            box.hi[i] = grid[i] - 1;
        }
        box.hi[3] = p->warps - 1;
        if (check_segment(sim, job, index, &box, &most)) {
            return sim->error_code;
        }
        first = box.end;
    }
    if (most || l->first_block != GS_NONE) {
        return gs_fail(sim, GS_ERR_ARG, "launch %llu: recorded accesses need a program with rows",
                       (unsigned long long)index);
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
