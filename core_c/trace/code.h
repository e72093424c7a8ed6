/* Declarations that the files of the lowering share: see code.c. */
#pragma once
#include "gen/gs_opcodes.h"
#include "trace/convert.h"

enum {
    GS_LOWER_SLOTS = 5,
    GS_REGISTERS = 512,
    GS_OPERANDS = GS_TRACE_DSTS + GS_TRACE_SRCS,
    GS_NEEDS_COPIES = 0x80 /* in gs_lowering.needs: groups of copies */
};

/* Kinds of instructions for the lowering. */
enum {
    GS_IS_ISSUE,
    GS_IS_LOAD,
    GS_IS_STORE,
    GS_IS_UPDATE,
    GS_IS_FETCH_UPDATE,
    GS_IS_COPY,
    GS_IS_COMMIT,
    GS_IS_BARRIER,
    GS_IS_ARRIVE,
    GS_IS_AWAIT,
    GS_IS_DRAIN,
    GS_IS_DRAIN_COPIES,
    GS_IS_END
};

struct gs_code {
    gs_vector ops, entries;
    i32 *plus; /* of each place: what its op adds to the loop counter */
};

typedef struct gs_lowering {
    const gs_params *params;
    const gs_lower_in *in;
    gs_code *code;
    const gs_item *items; /* of the class */
    u64 n;
    /* of each item */
    u64 *loop;        /* the end of the innermost loop around it; n: none */
    u64 *commits;     /* groups of copies that were committed before it, in the first turn of all loops; of a
                         loop's end: in one turn */
    u32 *op;          /* its op */
    u32 *start;       /* the first of its waits, or its op */
    u32 *head;        /* number + 1 of the loops that begin here */
    u8 *slot;         /* of a memory op */
    u8 *needs;        /* slots that it waits for, a bit each */
    u8 *passed;       /* end of a loop: gone through once */
    u8 *cut;          /* 1: it stalls for long, so that a block ends before it */
    const u8 *levels; /* of each place: the loop counter that moves it most */
    u32 store_slot, copy_slot, copy_slots, load_slots;
    u8 used;   /* slots, a bit each */
    u8 groups; /* 1: copies are committed in groups */
    u32 longest;
    u32 interval[GS_PIPES], latency[GS_PIPES];
    u32 smem_latency, l1_latency;
} gs_lowering;

/* Registers, from the first to before the end. */
typedef struct gs_operand {
    u32 first, end;
} gs_operand;

/* The slot of a group of copies: slot + (counter[level] + plus) mod stages; stages = 0: slot. */
typedef struct gs_async_copy_slot {
    u8 slot, stages, level;
    i32 plus;
} gs_async_copy_slot;

static inline const gs_sass *gs_lower_row(const gs_lowering *l, u64 item)
{
    return &l->in->rows[l->items[item].row];
}

/* Predicated off for the whole warp: it takes its issue slot, and has no other effect. */
static inline int gs_lower_is_off(const gs_sass *s)
{
    return !s->mask;
}

/* Conversions from and to 64 bits run at the rate of MUFU or at that of fp64, whichever is lower. */
static inline u32 gs_lower_pipe(const gs_lowering *l, const gs_sass *s)
{
    if (gs_lower_is_off(s)) {
        return GS_PIPES;
    }
    u32 pipe = GS_OPCODE[s->opcode].pipe;
    int slow = s->math == GS_MATH_CONVERT64 && l->interval[GS_PIPE_FP64] > l->interval[GS_PIPE_SFU];
    return slow && pipe == GS_PIPE_SFU ? GS_PIPE_FP64 : pipe;
}

static inline u32 gs_lower_wavefronts(const gs_lowering *l, const gs_sass *s)
{
    if (gs_lower_is_off(s)) {
        return 0;
    }
    if (s->space != GS_SPACE_SHARED || GS_OPCODE[s->opcode].kind == GS_KIND_SHUFFLE) {
        return GS_OPCODE[s->opcode].kind == GS_KIND_SHUFFLE;
    }
    return l->params->gpu_sm.smem_conflicts == GS_GPU_SM_SMEM_CONFLICTS_FIRST_WORD ? s->first_words
                                                                                   : s->wavefronts;
}

static inline gs_op *gs_lower_op(const gs_lowering *l, u32 index)
{
    return (gs_op *)l->code->ops.at + index;
}
