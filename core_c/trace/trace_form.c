/* Operands and work from a mnemonic: see trace_form.h.

   A trace names the first register of an operand only. How many there are follows from shape and types: a
   matrix of m x k elements is spread over the 32 lanes of a warp, or the 128 of a warp group. */
#include "trace/trace_form.h"

#include <string.h>

enum { LANES = 32, GROUP = 4 /* warps that share a warp-group multiply */ };

/* Element types of operands, and how many bits they have. */
typedef struct type {
    const char *name;
    u8 math, bits;
} type;

static const type types[] = {
    {"F16", GS_MATH_FP16, 16}, {"BF16", GS_MATH_BF16, 16}, {"TF32", GS_MATH_TF32, 32},
    {"S8", GS_MATH_INT8, 8},   {"U8", GS_MATH_INT8, 8},    {"S4", GS_MATH_INT4, 4},
    {"U4", GS_MATH_INT4, 4},   {"E4M3", GS_MATH_FP8, 8},   {"E5M2", GS_MATH_FP8, 8},
};

gs_span gs_next_part(const char **p, const char *end)
{
    gs_span part = {*p, 0};
    while (*p < end && **p != '.') {
        (*p)++;
    }
    part.length = (u32)(*p - part.at);
    *p += *p < end;
    return part;
}

int gs_part_is(gs_span part, const char *word)
{
    return strlen(word) == part.length && memcmp(part.at, word, part.length) == 0;
}

static u32 number(const char **p, const char *end, u32 most)
{
    u32 value = 0;
    for (; *p < end && (u32)(u8) * *p - '0' < 10 && value <= most; (*p)++) {
        value = value * 10 + ((u32)(u8) * *p - '0');
    }
    return value;
}

/* 64x128x16, or without x: 16816 is 16 x 8 x 16 and 884 is 8 x 8 x 4. 1: it is a shape. */
static int shape_of(gs_span part, u32 shape[3])
{
    const char *p = part.at, *end = part.at + part.length;
    if (memchr(p, 'x', part.length)) {
        for (u32 i = 0; i < 3; i++) {
            shape[i] = number(&p, end, 4096);
            int last = i == 2, ends = p == end;
            if (!shape[i] || shape[i] > 4096 || ends != last || (!last && *p != 'x')) {
                return 0;
            }
            p += !last;
        }
        return 1;
    }
    u32 rows = part.length > 3 && p[0] == '1' && p[1] == '6' ? 2 : 1;
    if (part.length < rows + 2 || p[rows] != '8' || (rows == 1 && p[0] != '8')) {
        return 0;
    }
    shape[0] = rows == 2 ? 16 : 8;
    shape[1] = 8;
    p += rows + 1;
    shape[2] = number(&p, end, 4096);
    return p == end && shape[2] && shape[2] <= 4096;
}

/* Registers of a lane for so many elements of `bits` in all lanes. */
static u8 registers(u32 elements, u32 bits, u32 lanes)
{
    u32 n = elements * bits / (32 * lanes);
    return (u8)(n < 1 ? 1 : n > 255 ? 255 : n);
}

static void tensor_form(gs_form *f, char kind, int group, const char *p, const char *end)
{
    u32 shape[3] = {0}, sum_bits = kind == 'D' ? 64 : 32, typed = 0, sparse = 0, bits;
    int known = 0;
    f->math = kind == 'D'   ? GS_MATH_FP64
              : kind == 'Q' ? GS_MATH_FP8
              : kind == 'I' ? GS_MATH_INT8
              : kind == 'B' ? GS_MATH_BIT
                            : GS_MATH_FP16;
    bits = kind == 'D' ? 64 : kind == 'H' ? 16 : kind == 'B' ? 1 : 8;
    while (p < end) {
        gs_span part = gs_next_part(&p, end);
        if (!known && shape_of(part, shape)) {
            known = 1;
            continue;
        }
        sparse |= gs_part_is(part, "SP");
        if (!typed && (gs_part_is(part, "F16") || gs_part_is(part, "F32")) && (kind == 'H' || kind == 'Q')) {
            sum_bits = part.at[1] == '1' ? 16 : 32; /* the first type is that of the sums */
            typed = 1;
            continue;
        }
        for (u32 i = 0; i < sizeof types / sizeof *types; i++) {
            if (gs_part_is(part, types[i].name) && (types[i].bits != 16 || types[i].math == GS_MATH_BF16)) {
                f->math = types[i].math;
                bits = types[i].bits;
            }
        }
    }
    if (!known) {
        return;
    }
    u32 m = shape[0], n = shape[1], k = sparse ? shape[2] / 2 : shape[2],
        lanes = group ? LANES * GROUP : LANES;
    f->fma = m * n * k / (group ? GROUP : 1);
    f->a = registers(m * k, bits, lanes);
    f->b = registers(n * shape[2], bits, lanes);
    f->c = f->d = registers(m * n, sum_bits, lanes);
    if (kind == 'H' && m == 8) {
        /* Volta: four 8 x 8 x 4 of eight lanes each, in four steps with fp32 sums and two with fp16 sums */
        f->fma = sum_bits == 32 ? 256 : 512;
        f->a = f->b = f->c = f->d = 2;
    }
}

/* Sizes in 32-bit registers of result and source of a conversion. */
static void conversion_form(gs_form *f, const char *name, const char *p, const char *end)
{
    u8 size[2] = {0};
    u32 n = 0, floats[2] = {0};
    while (p < end && n < 2) {
        gs_span part = gs_next_part(&p, end);
        if (part.length < 2 || !strchr("FSU", part.at[0]) || (u32)(u8)part.at[1] - '0' > 9) {
            continue;
        }
        floats[n] = part.at[0] == 'F';
        size[n++] = part.length == 3 && memcmp(part.at + 1, "64", 2) == 0 ? 2 : 1;
    }
    f->d = f->a = 1;
    if (n == 2) {
        f->d = size[0];
        f->a = size[1];
    } else if (n == 1 && strcmp(name, "FRND") == 0) {
        f->d = f->a = size[0];
    } else if (n == 1) {
        /* F2I names its source and I2F its result if that is the float */
        int result = strcmp(name, "F2I") == 0 ? !floats[0] : floats[0];
        f->d = result ? size[0] : 1;
        f->a = result ? 1 : size[0];
    }
    f->math = f->d == 2 || f->a == 2 ? GS_MATH_CONVERT64 : GS_MATH_NONE;
}

static int has_part(const char *p, const char *end, const char *word)
{
    while (p < end) {
        if (gs_part_is(gs_next_part(&p, end), word)) {
            return 1;
        }
    }
    return 0;
}

void gs_trace_form(gs_form *f, const gs_opcode *row, const char *p, const char *end)
{
    const char *name = row->name;
    size_t length = strcspn(name, ".");
    memset(f, 0, sizeof *f);
    gs_next_part(&p, end);
    int multiply = length >= 3 && memcmp(name + length - 3, "MMA", 3) == 0;
    if (multiply && (row->kind == GS_KIND_GMMA || row->pipe == GS_PIPE_TENSOR)) {
        tensor_form(f, name[0], row->kind == GS_KIND_GMMA, p, end);
    } else if (row->pipe == GS_PIPE_FP64) {
        f->a = f->b = f->c = 2;
        f->d = strcmp(name, "DSET") == 0 ? 1 : 2;
    } else if (strcmp(name, "F2F") == 0 || strcmp(name, "F2I") == 0 || strcmp(name, "I2F") == 0 ||
               strcmp(name, "FRND") == 0) {
        conversion_form(f, name, p, end);
    } else if (strcmp(name, "CS2R") == 0) {
        f->d = has_part(p, end, "32") ? 1 : 2;
    } else if (row->kind == GS_KIND_CONSTANT) {
        f->d = has_part(p, end, "64") ? 2 : has_part(p, end, "128") ? 4 : 1;
    } else if (strcmp(name, "MATCH") == 0) {
        f->a = has_part(p, end, "U64") ? 2 : 1;
    } else if (has_part(p, end, "WIDE")) {
        f->d = f->c = 2;
    } else if (has_part(p, end, "HI") && (strcmp(name, "IMAD") == 0 || strcmp(name, "UIMAD") == 0)) {
        f->c = 2;
    }
}

static u8 of_register(u16 reg, u8 count)
{
    return reg >> 12 >= GS_REG_P || count == 0 ? 1 : count;
}

void gs_trace_operands(gs_trace_inst *inst, const gs_form *f)
{
    const u8 size[3] = {f->a, f->b, f->c};
    for (u32 i = 0; i < inst->dsts; i++) {
        inst->dst_size[i] = of_register(inst->dst[i], i == 0 ? f->d : 1);
    }
    for (u32 i = 0; i < inst->srcs; i++) {
        inst->src_size[i] = of_register(inst->src[i], i < 3 ? size[i] : 1);
    }
    if (GS_OPCODE[inst->opcode].kind == GS_KIND_GMMA) {
        /* A may be in registers; the sums are the last of them; descriptors have four uniform registers */
        u32 last = 0;
        for (u32 i = 0; i < inst->srcs; i++) {
            int uniform = inst->src[i] >> 12 == GS_REG_UR;
            inst->src_size[i] = of_register(inst->src[i], uniform ? 4 : f->a);
            last = inst->src[i] >> 12 == GS_REG_R ? i + 1 : last;
        }
        if (last) {
            inst->src_size[last - 1] = of_register(inst->src[last - 1], f->c);
        }
    } else if (f->c > 1 && f->a <= 1 && inst->srcs == 2) {
        /* IMAD.WIDE of a register, an immediate and the addend; without immediate the addend is a constant */
        inst->src_size[1] = of_register(inst->src[1], inst->imm ? f->c : 1);
    }
}
