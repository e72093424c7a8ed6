/* Lowers a class's code to ops of one GPU.

   Runs of instructions of fixed latency become compute blocks: counts a pipe, and `chain`, what a warp alone
   needs beyond them, from an in-order scoreboard over the registers. A load's line requests count on one of
   the five slots, chosen as a compiler does: loads that are first needed at the same place share one. A WAIT
   stands before the first instruction that reads or overwrites what is on its way. Stores and reductions have
   a slot of their own that nobody waits for before MEMBAR or EXIT.

   Kept simple: groups of asynchronous copies (LDGSTS) share one slot, so DEPBAR waits for all of them
   whatever it allows to be outstanding; bulk copies count on that slot too, and a wait on a transaction
   barrier is a wait for it; a matrix multiply of a warp group is one tensor instruction, waited for at once;
   textures and constants take the latency of an L1 hit. */
#include "convert.h"

#include "gen/gs_opcodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 5,
    REGISTERS = 512,
    NEAR = 1024,        /* instructions that are looked through for a load's first use */
    CLOSE = 4,          /* instructions apart that are the same place for it */
    LONG_RUN = 1 << 14, /* wavefronts of a block are 16 bits */
    NONE = 0xff
};

struct gs_code {
    gs_vector ops, entries;
};

/* what an instruction is to the lowering */
enum { ISSUE, LOAD, STORE, UPDATE, FETCH_UPDATE, COPY, BARRIER, DRAIN, DRAIN_COPIES, END };

typedef struct lowering {
    const gs_params *params;
    const gs_lower_in *in;
    gs_code *code;
    const gs_item *items; /* of the class */
    u64 n;
    /* of each item */
    u64 *loop;        /* the end of the innermost loop around it; n: none */
    u32 *op;          /* its op */
    u32 *start;       /* the first of its waits, or its op */
    u32 *head;        /* number + 1 of the loops that begin here */
    u8 *slot;         /* of a memory op */
    u8 *needs;        /* slots that it waits for, a bit each */
    u8 *passed;       /* end of a loop: gone through once */
    const u8 *levels; /* of each place: the loop counter that moves it most */
    u32 store_slot, copy_slot, load_slots;
    u8 used; /* slots, a bit each */
    u32 longest;
    u32 interval[GS_PIPES], latency[GS_PIPES];
    u32 smem_latency, l1_latency;
} lowering;

static const gs_sass *row_of(const lowering *l, u64 item)
{
    return &l->in->rows[l->items[item].row];
}

static int what_of(const lowering *l, u64 item)
{
    const gs_sass *s = row_of(l, item);
    int memory = l->items[item].a != GS_NOWHERE;
    switch (GS_OPCODE[s->opcode].kind) {
    case GS_KIND_LOAD:
        return memory ? LOAD : ISSUE;
    case GS_KIND_STORE:
        return memory ? STORE : ISSUE;
    case GS_KIND_REDUCE:
    case GS_KIND_BULK_REDUCE:
        return memory ? UPDATE : ISSUE;
    case GS_KIND_ATOMIC:
        return memory ? FETCH_UPDATE : ISSUE;
    case GS_KIND_BULK_STORE:
        return memory ? STORE : ISSUE;
    case GS_KIND_ASYNC_COPY:
    case GS_KIND_BULK_LOAD:
    case GS_KIND_BULK_PREFETCH:
        return memory ? COPY : ISSUE;
    case GS_KIND_BARRIER:
        return BARRIER;
    case GS_KIND_MEMBAR:
        return DRAIN;
    case GS_KIND_DEPBAR:
    case GS_KIND_MBARRIER_WAIT:
        return DRAIN_COPIES;
    case GS_KIND_EXIT:
        return item + 1 == l->n ? END : ISSUE;
    default:
        return ISSUE;
    }
}

/* ---- registers ---- */

/* A register's place in the tables; REGISTERS: none (RZ, URZ, PT, UPT). */
static u32 place_of(u16 reg)
{
    u32 number = reg & 0xfff;
    switch (reg >> 12) {
    case GS_REG_R:
        return number < 255 ? number : REGISTERS;
    case GS_REG_UR:
        return number < 63 ? 256 + number : REGISTERS;
    case GS_REG_P:
        return number < 7 ? 320 + number : REGISTERS;
    default:
        return number < 7 ? 336 + number : REGISTERS;
    }
}

static int touches_memory(const gs_sass *s)
{
    return s->width && s->space != GS_SPACE_NONE;
}

/* Registers of an operand, of which a trace names the first: wide accesses have several, addresses two. */
static u32 length_of(const gs_sass *s, int address)
{
    return !touches_memory(s) ? 1 : address ? 2 : gs_max32(1, s->width / 4u);
}

typedef struct operand {
    u32 first, end;
} operand;

/* All registers that an instruction reads or, from *reads on, writes. */
static u32 operands_of(const gs_sass *s, operand *out, u32 *reads)
{
    u32 n = 0;
    for (u32 i = 0; i < s->srcs; i++) {
        u32 at = place_of(s->src[i]);
        out[n] = (operand){at, at + length_of(s, i == 0)};
        n += at < REGISTERS;
    }
    *reads = n;
    for (u32 i = 0; i < s->dsts; i++) {
        u32 at = place_of(s->dst[i]);
        out[n] = (operand){at, at + length_of(s, 0)};
        n += at < REGISTERS;
    }
    for (u32 i = 0; i < n; i++) {
        out[i].end = out[i].end < REGISTERS ? out[i].end : REGISTERS;
    }
    return n;
}

enum { OPERANDS = GS_TRACE_DSTS + GS_TRACE_SRCS };

/* `s` reads or overwrites what `of` writes */
static int uses(const gs_sass *s, const gs_sass *of)
{
    operand mine[OPERANDS], theirs[OPERANDS];
    u32 reads, n = operands_of(s, mine, &reads), m = operands_of(of, theirs, &reads);
    for (u32 i = reads; i < m; i++) {
        for (u32 j = 0; j < n; j++) {
            if (mine[j].first < theirs[i].end && theirs[i].first < mine[j].end) {
                return 1;
            }
        }
    }
    return 0;
}

/* ---- slots of loads ---- */

/* The item that first needs a load's result; n: none that is near. */
static u64 first_use(const lowering *l, u64 load)
{
    const gs_sass *s = row_of(l, load);
    u64 far = 0, end = l->loop[load], begin = end < l->n ? l->items[end].a : load;
    for (u64 i = load + 1; i < l->n && far < NEAR; i++, far++) {
        if (i == end) {
            for (u64 j = begin; j <= load && far < NEAR; j++, far++) {
                if (l->items[j].row != GS_LOOP_END && uses(row_of(l, j), s)) {
                    return j;
                }
            }
        } else if (l->items[i].row != GS_LOOP_END && uses(row_of(l, i), s)) {
            return i;
        }
    }
    return l->n;
}

static void choose_slots(lowering *l)
{
    int stores = 0, copies = 0;
    for (u64 i = 0; i < l->n; i++) {
        int what = l->items[i].row == GS_LOOP_END ? ISSUE : what_of(l, i);
        stores |= what == STORE || what == UPDATE;
        copies |= what == COPY;
    }
    l->load_slots = SLOTS - (u32)stores - (u32)copies;
    l->store_slot = SLOTS - 1;
    l->copy_slot = copies ? l->store_slot - (u32)stores : SLOTS;
    l->used = 0;
    l->used |= (u8)((u32)stores << l->store_slot | (u32)copies << l->copy_slot);
    /* of each slot: who needs what was last put on it, and when that was */
    u64 user[SLOTS], since[SLOTS] = {0};
    u32 next = 0;
    memset(user, 0xff, sizeof user);
    for (u64 i = 0; i < l->n; i++) {
        l->slot[i] = NONE;
        int what = l->items[i].row == GS_LOOP_END ? ISSUE : what_of(l, i);
        if (what == STORE || what == UPDATE) {
            l->slot[i] = (u8)l->store_slot;
        } else if (what == COPY) {
            l->slot[i] = (u8)l->copy_slot;
        } else if (what == LOAD || what == FETCH_UPDATE) {
            u64 by = first_use(l, i);
            u32 best = l->load_slots;
            for (u32 s = 0; s < l->load_slots; s++) {
                if (user[s] != UINT64_MAX && user[s] <= by + CLOSE && by <= user[s] + CLOSE &&
                    (user[s] > i) == (by > i)) {
                    best = s; /* needed at the same place */
                }
            }
            for (u32 s = 0; best == l->load_slots && s < l->load_slots; s++) {
                if (user[s] == UINT64_MAX || (user[s] <= i && user[s] > since[s])) {
                    best = s; /* empty by now */
                }
            }
            if (best == l->load_slots) {
                best = next++ % l->load_slots;
            }
            user[best] = by;
            since[best] = i;
            l->slot[i] = (u8)best;
            l->used |= (u8)(1u << best);
        }
    }
}

/* ---- where to wait ---- */
typedef struct pending {
    u8 on[REGISTERS]; /* slots that will write a register, a bit each */
} pending;

static u8 needed(const pending *p, const operand *o, u32 n)
{
    u8 found = 0;
    for (u32 i = 0; i < n; i++) {
        for (u32 j = o[i].first; j < o[i].end; j++) {
            found |= p->on[j];
        }
    }
    return found;
}

/* Goes through the code once; *again: a loop's end leaves what its head did not know of. */
static void find_waits(lowering *l, pending *heads, int *again)
{
    pending p;
    memset(&p, 0, sizeof p);
    *again = 0;
    for (u64 i = 0; i < l->n; i++) {
        const gs_item *item = &l->items[i];
        if (l->head[i]) {
            const pending *h = &heads[l->head[i] - 1];
            for (u32 r = 0; r < REGISTERS; r++) {
                p.on[r] |= h->on[r];
            }
        }
        if (item->row == GS_LOOP_END) {
            pending *h = &heads[l->head[item->a] - 1];
            for (u32 r = 0; r < REGISTERS; r++) {
                *again |= p.on[r] & ~h->on[r];
                h->on[r] |= p.on[r];
            }
            continue;
        }
        const gs_sass *s = row_of(l, i);
        operand o[OPERANDS];
        u32 reads, n = operands_of(s, o, &reads);
        int what = what_of(l, i);
        u8 wait = needed(&p, o, n);
        if (what == DRAIN) {
            wait = 0x1f;
        } else if (what == DRAIN_COPIES) {
            wait |= (u8)(1u << l->copy_slot);
        }
        wait &= l->used;
        l->needs[i] |= wait;
        for (u32 r = 0; wait && r < REGISTERS; r++) {
            p.on[r] &= (u8)~wait;
        }
        for (u32 d = reads; (what == LOAD || what == FETCH_UPDATE) && d < n; d++) {
            for (u32 j = o[d].first; j < o[d].end; j++) {
                p.on[j] |= (u8)(1u << l->slot[i]);
            }
        }
    }
}

/* ---- ops ---- */
static gs_op *add_op(lowering *l, u8 kind)
{
    gs_op *op = gs_vector_room(&l->code->ops, 1, sizeof *op);
    if (op) {
        memset(op, 0, sizeof *op);
        op->kind = kind;
        l->code->ops.n++;
    }
    return op;
}

static gs_op *op_at(const lowering *l, u32 index)
{
    return (gs_op *)l->code->ops.at + index;
}

static u32 pipe_of(const gs_sass *s)
{
    return GS_OPCODE[s->opcode].pipe;
}

static u32 wavefronts_of(const gs_sass *s)
{
    return GS_OPCODE[s->opcode].kind == GS_KIND_SHUFFLE ? 1 : s->space == GS_SPACE_SHARED ? s->wavefronts : 0;
}

/* Three different sources in one of the two register banks: the pipe waits a cycle for them. A source that is
   where the instruction before had it is kept beside the pipe (.reuse, which compilers set where they can).
 */
static u32 conflict_of(const lowering *l, u64 i)
{
    const gs_sass *s = row_of(l, i),
                  *before = i && l->items[i - 1].row != GS_LOOP_END ? row_of(l, i - 1) : NULL;
    if (pipe_of(s) != GS_PIPE_FP32 || s->srcs < 3) {
        return 0;
    }
    for (u32 j = 0; j < 3; j++) {
        int kept = before && before->srcs > j && before->src[j] == s->src[j] && !touches_memory(before);
        if (kept || place_of(s->src[j]) >= 255 || (s->src[j] ^ s->src[0]) & 1) {
            return 0;
        }
    }
    return s->src[0] != s->src[1] && s->src[0] != s->src[2] && s->src[1] != s->src[2];
}

static int add_memory(lowering *l, u64 i, int what)
{
    const gs_sass *s = row_of(l, i);
    gs_op *op = add_op(l, what == LOAD || what == COPY ? GS_OP_LOAD
                          : what == STORE              ? GS_OP_STORE
                                                       : GS_OP_REDUCE);
    if (!op) {
        return 0;
    }
    op->slot = l->slot[i];
    op->level = l->levels[l->items[i].a];
    op->bypass_l1 = s->variant & GS_VARIANT_STRONG ? 1 : 0;
    op->issue = 1;
    op->pattern = (i32)l->items[i].a;
    return 1;
}

static int write_ops(lowering *l)
{
    u32 block = GS_NOWHERE; /* the compute block that is open */
    for (u64 i = 0; i < l->n; i++) {
        const gs_item *item = &l->items[i];
        if (l->head[i] || l->needs[i] || item->row == GS_LOOP_END) {
            block = GS_NOWHERE;
        }
        l->start[i] = (u32)l->code->ops.n;
        for (u32 s = 0; s < SLOTS; s++) {
            gs_op *op = l->needs[i] >> s & 1 ? add_op(l, GS_OP_WAIT) : NULL;
            if (l->needs[i] >> s & 1) {
                if (!op) {
                    return 0;
                }
                op->slot = (u8)s;
            }
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
        const gs_sass *s = row_of(l, i);
        int what = what_of(l, i);
        if (what == LOAD || what == STORE || what == UPDATE || what == FETCH_UPDATE || what == COPY) {
            if (!add_memory(l, i, what)) {
                return 0;
            }
            block = GS_NOWHERE;
        } else if (what == BARRIER || what == END) {
            gs_op *op = add_op(l, what == END ? GS_OP_EXIT : GS_OP_BARRIER);
            if (!op) {
                return 0;
            }
            op->issue = 1;
            block = GS_NOWHERE;
        } else {
            u32 waves = wavefronts_of(s);
            if (block != GS_NOWHERE &&
                (op_at(l, block)->issue >= l->longest || op_at(l, block)->smem + waves > LONG_RUN)) {
                block = GS_NOWHERE;
            }
            if (block == GS_NOWHERE) {
                block = (u32)l->code->ops.n;
                if (!add_op(l, GS_OP_COMPUTE)) {
                    return 0;
                }
            }
            gs_op *op = op_at(l, block);
            op->issue++;
            op->smem = (u16)(op->smem + waves);
            op->conflicts += conflict_of(l, i);
            if (pipe_of(s) < GS_PIPES) {
                op->pipes[pipe_of(s)]++;
            }
            l->op[i] = block;
        }
    }
    return 1;
}

/* ---- chains: a warp alone, twice through each loop, of which the second time counts ---- */
typedef struct timing {
    u64 now; /* 64ths of a cycle */
    u64 ready[REGISTERS];
    u64 pipe[GS_PIPES];
    u64 begun;  /* of the block at hand */
    u32 block;  /* GS_NOWHERE: none */
    u32 before; /* the block that ended just before; GS_NOWHERE: something else came between */
} timing;

static u32 latency_of(const lowering *l, const gs_sass *s)
{
    u32 kind = GS_OPCODE[s->opcode].kind;
    if (wavefronts_of(s)) {
        return l->smem_latency * 64 + (wavefronts_of(s) - 1) * (u32)l->params->gpu_sm.smem_interval;
    }
    if (kind == GS_KIND_CONSTANT || kind == GS_KIND_TEXTURE) {
        return l->l1_latency * 64;
    }
    return pipe_of(s) < GS_PIPES ? l->latency[pipe_of(s)] * 64 : 64;
}

/* what the block took beyond its issue slots and pipes */
static void close_block(lowering *l, timing *t)
{
    if (t->block == GS_NOWHERE) {
        return;
    }
    gs_op *op = op_at(l, t->block);
    u64 late = l->params->gpu_sm.register_ports ? (u64)op->conflicts * 64 : 0,
        span = (u64)op->issue * 64 + late;
    for (u32 p = 0; p < GS_PIPES; p++) {
        u64 amount = (u64)op->pipes[p] * l->interval[p] + (p == GS_PIPE_FP32 ? late : 0),
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
    for (u32 r = 0; r < REGISTERS; r++) {
        t->ready[r] = 0;
    }
    t->before = GS_NOWHERE;
}

static u64 operands_ready(const timing *t, const operand *o, u32 n)
{
    u64 at = t->now;
    for (u32 i = 0; i < n; i++) {
        for (u32 j = o[i].first; j < o[i].end; j++) {
            at = gs_max(at, t->ready[j]);
        }
    }
    return at;
}

static void time_item(lowering *l, timing *t, u64 i)
{
    const gs_sass *s = row_of(l, i);
    operand o[OPERANDS];
    u32 reads, n = operands_of(s, o, &reads);
    int what = what_of(l, i);
    if (l->needs[i] || l->head[i] || t->block != l->op[i]) {
        close_block(l, t);
    }
    if (l->needs[i]) {
        forget(t); /* a wait for memory is longer than any of these latencies */
    }
    if (what == BARRIER || what == END) {
        forget(t);
        t->now += 64;
        return;
    }
    if (op_at(l, l->op[i])->kind != GS_OP_COMPUTE) {
        u64 at = operands_ready(t, o, reads);
        if (t->before != GS_NOWHERE) {
            op_at(l, t->before)->chain += (u32)((at - t->now) / 64);
        }
        t->now = at + 64;
        t->before = GS_NOWHERE;
        return;
    }
    if (t->block == GS_NOWHERE) {
        t->block = l->op[i];
        t->begun = t->now;
        for (u32 p = 0; p < GS_PIPES; p++) {
            t->pipe[p] = t->now; /* what is left of the block before is the core's to count */
        }
    }
    u64 at = operands_ready(t, o, wavefronts_of(s) ? n : reads);
    u32 p = pipe_of(s);
    if (p < GS_PIPES) {
        at = gs_max(at, t->pipe[p]);
        t->pipe[p] = at + l->interval[p] + (l->params->gpu_sm.register_ports ? conflict_of(l, i) * 64 : 0);
    }
    t->now = at + 64;
    for (u32 d = reads; d < n; d++) {
        for (u32 j = o[d].first; j < o[d].end; j++) {
            t->ready[j] = at + latency_of(l, s);
        }
    }
}

static void find_chains(lowering *l)
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
}

/* ---- a class ---- */
static int lower_class(lowering *l, const gs_class *class)
{
    u64 n = class->items;
    l->items = l->in->items + class->first_item;
    l->n = n;
    char *block = calloc(n + 1, 3 * 1 + 3 * 4 + 8);
    pending *heads = NULL;
    if (!block) {
        return 0;
    }
    l->loop = (u64 *)(void *)block;
    l->op = (u32 *)(void *)(block + 8 * (n + 1));
    l->start = l->op + n + 1;
    l->head = l->start + n + 1;
    l->slot = (u8 *)(l->head + n + 1);
    l->needs = l->slot + n + 1;
    l->passed = l->needs + n + 1;
    u32 loops = 0;
    u64 open[3], depth = 0;
    for (u64 i = n; i-- > 0;) {
        while (depth && i < l->items[open[depth - 1]].a) {
            depth--;
        }
        l->loop[i] = depth ? open[depth - 1] : n;
        if (l->items[i].row == GS_LOOP_END) {
            open[depth++] = i; /* checked: at most three in each other */
            if (!l->head[l->items[i].a]) {
                l->head[l->items[i].a] = ++loops;
            }
        }
    }
    choose_slots(l);
    heads = calloc(loops + 1, sizeof *heads);
    for (int again = heads != NULL; again;) {
        find_waits(l, heads, &again);
    }
    int good = heads && write_ops(l);
    if (good) {
        find_chains(l);
    }
    free(heads);
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
        } else if (x->row >= in->n_rows || (x->a != GS_NOWHERE && x->a >= in->n_places)) {
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
    lowering l = {.params = params,
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
    }
    for (u64 i = 0; i < in->n_places; i++) {
        if (in->levels[i] > 2) {
            *code = GS_ERR_ARG;
            snprintf(error, 256, "place %llu: loop counter out of range", (unsigned long long)i);
            return NULL;
        }
    }
    l.code = calloc(1, sizeof *l.code);
    for (u64 i = 0; l.code && i < in->n_classes; i++) {
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
    *code = l.code ? GS_OK : GS_ERR_MEM;
    return l.code;
}

void gs_code_close(gs_code *code)
{
    if (code) {
        free(code->ops.at);
        free(code->entries.at);
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
