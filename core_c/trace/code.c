/* Lowering of a class's code to ops of one GPU.

   Runs of instructions of fixed latency become compute blocks: a count for each pipe, and `chain`, what a
   warp alone needs beyond them, from an in-order scoreboard over the registers. A load's line requests count
   on one of the five slots, chosen as a compiler does: loads that are first needed at the same place share
   one. A WAIT precedes the first instruction that reads or overwrites what is in flight. Stores and
   reductions have a slot of their own, which only MEMBAR and EXIT wait for.

   Groups of async copies (LDGSTS) take up to three slots in turn, so that DEPBAR waits for all but the newest
   groups that it allows. Where the loop counters do not determine a group's slot, all groups are on one slot
   and all are waited for.

   Simplifications: bulk copies are at most 64 lines each; a matrix multiply of a warp group is waited for at
   once; textures and constants have the latency of an L1 hit. */
#include "trace/code.h"

#include "trace/code_chain.h"
#include "trace/code_slots.h"
#include "trace/code_work.h"
#include "trace/convert_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LONG_RUN = 1 << 14,   /* wavefronts of a block are 16 bits */
    MOST_TENSOR = 1 << 20 /* 64ths of instructions of the tensor pipe */
};

/* Ops. */
static gs_op *add_op(gs_lowering *l, u8 kind)
{
    gs_op *op = gs_vector_room(&l->code->ops, 1, sizeof *op);
    if (op) {
        memset(op, 0, sizeof *op);
        op->kind = kind;
        l->code->ops.n++;
    }
    return op;
}

/* An op for each of the places; the first of them is the instruction. */
static int add_memory(gs_lowering *l, u64 i, int what)
{
    const gs_sass *s = gs_lower_row(l, i);
    const gs_item *item = &l->items[i];
    u8 kind = what == GS_IS_LOAD || what == GS_IS_COPY ? GS_OP_LOAD
              : what == GS_IS_STORE                    ? GS_OP_STORE
                                                       : GS_OP_REDUCE;
    for (u32 j = 0; j < item->count; j++) {
        gs_op *op = add_op(l, kind);
        if (!op) {
            return 0;
        }
        op->slot = l->slot[i];
        if (what == GS_IS_COPY) {
            gs_async_copy_slot c = gs_lower_copy_slot(l, i, 0);
            op->slot = c.slot;
            op->stages = c.stages;
            op->count_plus = l->code->plus[item->a + j] = c.plus;
        }
        op->level = l->levels[item->a];
        op->bypass_l1 = s->variant & GS_VARIANT_STRONG || gs_is_bulk(GS_OPCODE[s->opcode].kind);
        op->issue = j == 0;
        op->pattern = (i32)(item->a + j);
    }
    if (what != GS_IS_COPY || !s->barrier) {
        return 1;
    }
    gs_op *op = add_op(l, GS_OP_ARRIVE);
    if (!op) {
        return 0;
    }
    gs_async_copy_slot c = gs_lower_copy_slot(l, i, 0);
    op->slot = c.slot;
    op->stages = c.stages;
    op->count_plus = c.plus;
    op->level = c.stages ? c.level : 0;
    op->per_warp = 1;
    op->count = s->barrier - 1u;
    return 1;
}

static int add_wait(gs_lowering *l, gs_async_copy_slot slot)
{
    gs_op *op = add_op(l, GS_OP_WAIT);
    if (!op) {
        return 0;
    }
    op->slot = slot.slot;
    op->stages = slot.stages;
    op->level = slot.level;
    op->count_plus = slot.plus;
    return 1;
}

/* Waits before an item: on slots, and on all groups of copies but the newest that it allows. */
static int add_waits(gs_lowering *l, u64 i)
{
    for (u32 s = 0; s < GS_LOWER_SLOTS; s++) {
        if (l->needs[i] >> s & 1 && !add_wait(l, (gs_async_copy_slot){(u8)s, 0, 0, 0})) {
            return 0;
        }
    }
    if (l->needs[i] & GS_NEEDS_COPIES) {
        const gs_sass *s = gs_lower_row(l, i);
        u32 allowed = GS_OPCODE[s->opcode].kind == GS_KIND_DEPBAR && s->imm > 0 ? (u32)s->imm : 0;
        allowed = l->groups && allowed < l->copy_slots ? allowed : 0;
        for (u32 back = allowed + 1; back <= l->copy_slots; back++) {
            if (!add_wait(l, gs_lower_copy_slot(l, i, back))) {
                return 0;
            }
        }
    }
    return 1;
}

static int add_sync(gs_lowering *l, const gs_sass *s, int what)
{
    gs_op *op = add_op(l, what == GS_IS_END      ? GS_OP_EXIT
                          : what == GS_IS_ARRIVE ? GS_OP_ARRIVE
                          : what == GS_IS_AWAIT  ? GS_OP_AWAIT
                                                 : GS_OP_BARRIER);
    if (!op) {
        return 0;
    }
    op->issue = 1;
    if (what != GS_IS_END && s->barrier) {
        op->count = s->barrier - 1u;
        op->chain = what == GS_IS_ARRIVE ? 0 : s->counted;
        op->conflicts = s->phases;
        op->per_warp = (s->variant & GS_VARIANT_LATE) != 0;
    }
    return 1;
}

static int write_ops(gs_lowering *l)
{
    u32 block = GS_NOWHERE; /* the current compute block */
    for (u64 i = 0; i < l->n; i++) {
        const gs_item *item = &l->items[i];
        if (l->head[i] || l->needs[i] || item->row == GS_LOOP_END) {
            block = GS_NOWHERE;
        }
        l->start[i] = (u32)l->code->ops.n;
        if (!add_waits(l, i)) {
            return 0;
        }
        l->op[i] = (u32)l->code->ops.n;
        if (item->row == GS_LOOP_END) {
            gs_op *op = add_op(l, GS_OP_LOOP);
            if (!op) {
                return 0;
            }
            op->level = (u8)item->level;
            op->count = item->count;
            op->target = l->start[item->a];
            continue;
        }
        const gs_sass *s = gs_lower_row(l, i);
        int what = gs_lower_kind(l, i);
        if (what == GS_IS_LOAD || what == GS_IS_STORE || what == GS_IS_UPDATE || what == GS_IS_FETCH_UPDATE ||
            what == GS_IS_COPY) {
            if (!add_memory(l, i, what)) {
                return 0;
            }
            block = GS_NOWHERE;
        } else if (what == GS_IS_BARRIER || what == GS_IS_END || what == GS_IS_ARRIVE ||
                   what == GS_IS_AWAIT) {
            if (!add_sync(l, s, what)) {
                return 0;
            }
            block = GS_NOWHERE;
        } else {
            u32 waves = gs_lower_wavefronts(l, s);
            if (block != GS_NOWHERE && (l->cut[i] || gs_lower_op(l, block)->issue >= l->longest ||
                                        gs_lower_op(l, block)->count_plus > MOST_TENSOR ||
                                        gs_lower_op(l, block)->smem + waves > LONG_RUN)) {
                block = GS_NOWHERE;
            }
            if (block == GS_NOWHERE) {
                block = (u32)l->code->ops.n;
                if (!add_op(l, GS_OP_COMPUTE)) {
                    return 0;
                }
            }
            gs_op *op = gs_lower_op(l, block);
            op->issue++;
            op->smem = (u16)(op->smem + waves);
            op->conflicts += gs_lower_bank_conflict(l, i);
            u32 pipe = gs_lower_pipe(l, s);
            if (pipe < GS_PIPES) {
                op->pipes[pipe]++;
                op->count_plus += pipe == GS_PIPE_TENSOR ? (i32)gs_lower_tensor_work(l, s) : 0;
            }
            l->op[i] = block;
        }
    }
    return 1;
}

/* Classes. */
static int lower_class(gs_lowering *l, const gs_class *class)
{
    u64 n = class->items;
    l->items = l->in->items + class->first_item;
    l->n = n;
    char *block = calloc(n + 1, 4 * 1 + 3 * 4 + 2 * 8);
    if (!block) {
        return 0;
    }
    l->loop = (u64 *)(void *)block;
    l->commits = l->loop + n + 1;
    l->op = (u32 *)(void *)(l->commits + n + 1);
    l->start = l->op + n + 1;
    l->head = l->start + n + 1;
    l->slot = (u8 *)(l->head + n + 1);
    l->needs = l->slot + n + 1;
    l->passed = l->needs + n + 1;
    l->cut = l->passed + n + 1;
    u32 loops = 0;
    u64 open[3], depth = 0;
    for (u64 i = n; i-- > 0;) {
        while (depth && i < l->items[open[depth - 1]].a) {
            depth--;
        }
        l->loop[i] = depth ? open[depth - 1] : n;
        if (l->items[i].row == GS_LOOP_END) {
            open[depth++] = i; /* checked: at most three nested loops */
            if (!l->head[l->items[i].a]) {
                l->head[l->items[i].a] = ++loops;
            }
        }
    }
    u64 first = l->code->ops.n;
    int good = gs_lower_slots(l, loops) && write_ops(l);
    if (good) {
        /* the stalls of a warp alone decide where blocks end, and that what their chains are */
        gs_lower_chains(l, first);
        l->code->ops.n = first;
        good = write_ops(l);
    }
    if (good) {
        gs_lower_chains(l, first);
    }
    free(block);
    return good;
}

static const char *bad_class(const gs_lower_in *in, const gs_class *c)
{
    if (c->items == 0 || c->first_item > in->n_items || c->items > in->n_items - c->first_item ||
        c->items >= GS_NOWHERE) {
        return "its code lies outside";
    }
    const gs_item *items = in->items + c->first_item;
    u64 open[3];
    u32 depth = 0;
    for (u64 i = c->items; i-- > 0;) {
        const gs_item *x = &items[i];
        while (depth && i < items[open[depth - 1]].a) {
            depth--;
        }
        if (x->row == GS_LOOP_END) {
            if (x->a >= i || x->count == 0 || x->count > 65535 || x->level > 2 || depth == 3 ||
                (depth && x->a < items[open[depth - 1]].a)) {
                return "a loop is damaged";
            }
            open[depth++] = i;
        } else if (x->row >= in->n_rows || (x->a != GS_NOWHERE && (x->count == 0 || x->a >= in->n_places ||
                                                                   x->count > in->n_places - x->a))) {
            return "an instruction lies outside";
        }
    }
    const gs_item *last = &items[c->items - 1];
    if (last->row == GS_LOOP_END || GS_OPCODE[in->rows[last->row].opcode].kind != GS_KIND_EXIT) {
        return "it has no EXIT at its end";
    }
    return NULL;
}

gs_code *gs_code_open(const gs_params *params, const gs_lower_in *in, int *code, char *error)
{
    const gs_gpu_sm_params *sm = &params->gpu_sm;
    gs_lowering l = {.params = params,
                     .in = in,
                     .longest = (u32)sm->block_max,
                     .interval = {(u32)sm->fp32_interval, (u32)sm->int_interval, (u32)sm->fp16_interval,
                                  (u32)sm->fp64_interval, (u32)sm->sfu_interval, (u32)sm->tensor_interval,
                                  (u32)sm->control_interval},
                     .latency = {(u32)sm->fp32_latency, (u32)sm->int_latency, (u32)sm->fp16_latency,
                                 (u32)sm->fp64_latency, (u32)sm->sfu_latency, (u32)sm->tensor_latency,
                                 (u32)sm->control_latency},
                     .smem_latency = (u32)sm->smem_latency,
                     .l1_latency = (u32)params->gpu_l1.latency,
                     .levels = in->levels};
    *code = GS_ERR_MEM;
    snprintf(error, 256, "not enough memory for programs");
    for (u64 i = 0; i < in->n_rows; i++) {
        const gs_sass *s = &in->rows[i];
        if (s->opcode >= GS_OPCODES || s->dsts > GS_TRACE_DSTS || s->srcs > GS_TRACE_SRCS) {
            *code = GS_ERR_ARG;
            snprintf(error, 256, "instruction %llu: opcode or registers out of range", (unsigned long long)i);
            return NULL;
        }
        const char *lacks = gs_lower_lacks(in, s);
        if (lacks) {
            *code = GS_ERR_LIMIT;
            snprintf(error, 256, "%s at PC 0x%x: a GPU of sm_%u has no %s", GS_OPCODE[s->opcode].name, s->pc,
                     in->sm, lacks);
            return NULL;
        }
    }
    for (u64 i = 0; i < in->n_places; i++) {
        if (in->levels[i] > 2) {
            *code = GS_ERR_ARG;
            snprintf(error, 256, "place %llu: loop counter out of range", (unsigned long long)i);
            return NULL;
        }
    }
    l.code = calloc(1, sizeof *l.code);
    if (l.code) {
        l.code->plus = calloc(in->n_places + 1, sizeof *l.code->plus);
    }
    if (!l.code || !l.code->plus) {
        gs_code_close(l.code);
        return NULL;
    }
    for (u64 i = 0; i < in->n_classes; i++) {
        const char *bad = bad_class(in, &in->classes[i]);
        if (bad) {
            *code = GS_ERR_ARG;
            snprintf(error, 256, "class %llu: %s", (unsigned long long)i, bad);
            gs_code_close(l.code);
            return NULL;
        }
        u32 *entry = gs_vector_room(&l.code->entries, 1, sizeof *entry);
        if (entry) {
            *entry = (u32)l.code->ops.n;
            l.code->entries.n++;
        }
        if (!entry || l.code->ops.n >= 1u << 30 || !lower_class(&l, &in->classes[i])) {
            gs_code_close(l.code);
            return NULL;
        }
    }
    *code = GS_OK;
    return l.code;
}

void gs_code_close(gs_code *code)
{
    if (code) {
        free(code->ops.at);
        free(code->entries.at);
        free(code->plus);
        free(code);
    }
}

uint64_t gs_code_ops(const gs_code *code, const gs_op **ops)
{
    *ops = code->ops.at;
    return code->ops.n;
}

const uint32_t *gs_code_entries(const gs_code *code)
{
    return code->entries.at;
}

const int32_t *gs_code_plus(const gs_code *code)
{
    return code->plus;
}
