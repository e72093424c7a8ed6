/* Work of instructions: see code_work.h.

   A device states its tensor pipe by one instruction and the cycles between two: an HMMA.884 step of 256
   multiply-adds before SM 80, an HMMA.16816 of 2048 since. Other shapes and types take in proportion to their
   multiply-adds and to the rate of their type, so that no mixture of instructions exceeds the pipe's peak. */
#include "trace/code_work.h"

enum {
    STEP = 256,
    MMA = 2048,
    GROUP_RATE =
        512,        /* fp16 multiply-adds a cycle of a sub-core by warp-group instructions: H100 whitepaper */
    DMMA_LANES = 32 /* multiply-adds of a DFMA */
};

/* First and last SM version whose tensor cores take a type. */
static const struct {
    u8 first, last;
    const char *name;
} tensor_of[GS_MATHS] = {
    [GS_MATH_FP16] = {70, 255, "tensor cores"},
    [GS_MATH_BF16] = {80, 255, "tensor cores for bf16"},
    [GS_MATH_TF32] = {80, 255, "tensor cores for tf32"},
    [GS_MATH_FP8] = {89, 255, "tensor cores for fp8"},
    [GS_MATH_INT8] = {72, 255, "tensor cores for int8"},
    [GS_MATH_INT4] = {75, 89, "tensor cores for int4"},
    [GS_MATH_BIT] = {75, 255, "tensor cores for single bits"},
    [GS_MATH_FP64] = {80, 255, "tensor cores for fp64"},
};

/* Time of a type's multiply-add against fp16, in 64ths; NVIDIA's whitepapers of A100, GA102, AD102 and H100.
 */
static u64 relative_time(const gs_lowering *l, u32 math)
{
    const u32 sm = l->in->sm, consumer = sm == 86 || sm == 87 || sm == 89;
    switch (math) {
    case GS_MATH_TF32:
        return 128;
    case GS_MATH_FP8:
        return 32;
    case GS_MATH_INT8:
        return consumer ? 16 : 32; /* GA10x: fp16 with fp32 sums runs at half rate, int8 does not */
    case GS_MATH_INT4:
        return consumer ? 8 : 16;
    case GS_MATH_BIT:
        return consumer ? 2 : sm < 90 ? 4 : 16;
    default:
        return 64;
    }
}

/* Multiply-adds of fp64 a cycle of a sub-core, 64ths: A100 64 an SM and H100 128; others as the fp64 pipe. */
static u64 fp64_rate(const gs_lowering *l)
{
    return l->in->sm == 80   ? 16 * 64
           : l->in->sm >= 90 ? 32 * 64
                             : DMMA_LANES * 64 * 64 / l->interval[GS_PIPE_FP64];
}

u64 gs_lower_tensor_work(const gs_lowering *l, const gs_sass *s)
{
    u64 fma = s->fma, one = l->in->sm < 80 ? STEP : MMA;
    if (!fma || !l->in->sm) {
        return 64;
    }
    if (s->math == GS_MATH_FP64) {
        /* cycles, as instructions of the pipe */
        u64 cycles = fma * 64 * 64 / gs_max(1, fp64_rate(l));
        return gs_min(gs_max(1, cycles * 64 / gs_max(1, l->interval[GS_PIPE_TENSOR])), 1 << 20);
    }
    u64 work = fma * relative_time(l, s->math);
    if (GS_OPCODE[s->opcode].kind == GS_KIND_GMMA && l->in->mma_rate < GROUP_RATE) {
        work = (work * l->in->mma_rate + GROUP_RATE - 1) / GROUP_RATE;
    }
    return gs_min(gs_max(1, (work + one - 1) / one), 1 << 20);
}

const char *gs_lower_lacks(const gs_lower_in *in, const gs_sass *s)
{
    const gs_opcode *row = &GS_OPCODE[s->opcode];
    const u32 kind = row->kind;
    if (!in->sm || gs_lower_is_off(s)) {
        return NULL;
    }
    int hopper = row->first >= 90 &&
                 (kind == GS_KIND_GMMA || kind == GS_KIND_GMMA_ARRIVE || kind == GS_KIND_GMMA_WAIT ||
                  gs_is_bulk(kind) || kind == GS_KIND_BULK_COMMIT || kind == GS_KIND_MBARRIER ||
                  kind == GS_KIND_MBARRIER_ARRIVE || kind == GS_KIND_MBARRIER_WAIT ||
                  kind == GS_KIND_CLUSTER_ARRIVE || kind == GS_KIND_CLUSTER_WAIT);
    if (hopper && in->sm < 90) {
        return kind <= GS_KIND_GMMA_WAIT ? "warp-group multiplies"
                                         : "bulk copies, transaction barriers and clusters";
    }
    if (row->pipe != GS_PIPE_TENSOR) {
        return NULL;
    }
    u32 math = s->math ? s->math : GS_MATH_FP16;
    return in->sm < tensor_of[math].first || in->sm > tensor_of[math].last ? tensor_of[math].name : NULL;
}
