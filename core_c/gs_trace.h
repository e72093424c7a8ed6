/* Reader of SASS traces in the Accel-Sim text format (tracer versions 1 to 6). cffi reads this text, too.
   Text is fed in pieces of any size; memory is bounded by one TB. */
#pragma once
#include <stdint.h>

/* Results of gs_trace_feed. */
enum {
    GS_TRACE_MORE = 0,   /* all text is used: feed more */
    GS_TRACE_HEADER = 1, /* the header is complete: gs_trace_header_get */
    GS_TRACE_TB = 2,     /* a TB is complete: gs_trace_tb_get, valid until the next call */
    GS_TRACE_END = 3,    /* the last piece is used and the kernel is complete */
    GS_TRACE_ERROR = -1  /* gs_trace_error: a line that begins with the line number */
};

/* Memory space of an instruction. */
enum { GS_SPACE_NONE, GS_SPACE_GLOBAL, GS_SPACE_SHARED, GS_SPACE_LOCAL };

/* A register: class << 12 | number. */
enum { GS_REG_R, GS_REG_UR, GS_REG_P, GS_REG_UP };

/* Most registers of an instruction. */
enum { GS_TRACE_DSTS = 4, GS_TRACE_SRCS = 8 };

typedef struct gs_trace_header {
    char name[1024]; /* longer names are cut */
    uint64_t id, stream, shared_base, local_base;
    uint32_t grid[3], block[3];
    uint32_t smem;      /* bytes a TB */
    uint32_t registers; /* a thread */
    uint32_t binary;    /* SM version of the code */
    uint32_t version;   /* of the tracer */
    uint32_t lineinfo;
} gs_trace_header;

typedef struct gs_trace_inst {
    uint32_t pc;
    uint32_t mask;    /* active and not predicated off */
    uint16_t opcode;  /* row of OPCODES (pysim/opcodes.py) */
    uint16_t variant; /* suffixes that timing needs: GS_VARIANT_* bits */
    uint8_t dsts, srcs;
    uint8_t space; /* GS_SPACE_* */
    uint8_t width; /* bytes a lane; 0: not a memory instruction; bulk copies: CTAs that receive */
    uint16_t dst[4];
    uint16_t src[8];
    uint8_t dst_size[4]; /* registers of each operand that has no address */
    uint8_t src_size[8];
    uint32_t fma; /* tensor cores: multiply-adds of the warp; 0: the mnemonic names no shape */
    uint8_t math; /* GS_MATH_* */
    uint8_t pad[3];
    int32_t imm; /* the first immediate; BAR: the barrier, 0 to 15; bulk copies: addresses from `first` on */
    uint32_t line;    /* of the file, modulo 2^32 */
    uint32_t first;   /* memory: index into addresses, one for each set bit of mask, lane order */
    uint32_t bytes;   /* bulk copies (TMA): bytes moved; BAR: threads, 0: not known; else 0 */
    uint64_t barrier; /* bulk copies: address of the transaction barrier; else 0 */
} gs_trace_inst;

/* What an instruction computes with, where its mnemonic says more than its opcode. */
enum {
    GS_MATH_NONE,
    GS_MATH_FP16, /* types of the factors of a matrix multiply */
    GS_MATH_BF16,
    GS_MATH_TF32,
    GS_MATH_FP8,
    GS_MATH_INT8,
    GS_MATH_INT4,
    GS_MATH_BIT,
    GS_MATH_FP64,
    GS_MATH_CONVERT64, /* a conversion from or to 64 bits */
    GS_MATHS
};

/* Bits of gs_trace_inst.variant. */
enum {
    GS_VARIANT_STRONG = 1, /* .STRONG.GPU, .STRONG.SYS, .CV, .CG; of LDGSTS .BYPASS: bypasses L1 */
    GS_VARIANT_HALF = 2,   /* 16-bit arithmetic in packed form */
    GS_VARIANT_COMMIT = 4, /* commits a group (GMMA) */
    GS_VARIANT_MULTICAST = 8,
    GS_VARIANT_IVALL = 16,  /* CCTL: drops the whole L1 */
    GS_VARIANT_ARRIVE = 32, /* BAR.ARV: counts and goes on */
    GS_VARIANT_LATE = 64,   /* of the converter: a wait at a barrier without copies */
    GS_VARIANT_AGAIN = 128  /* of the converter: a further test of a spin loop */
};

typedef struct gs_trace_warp {
    uint32_t first, count; /* instructions */
} gs_trace_warp;

typedef struct gs_trace_tb {
    uint32_t x, y, z;
    uint32_t cluster[3], cta[3], rank; /* version 6; else 0 */
    uint32_t warps;
    uint32_t pad;
    uint64_t n_insts, n_addresses;
    const gs_trace_warp *warp; /* by warp number */
    const gs_trace_inst *insts;
    const uint64_t *addresses;
} gs_trace_tb;

typedef struct gs_trace gs_trace;

/* `unknown`: row of OPCODES for unknown opcodes; -1: they are errors. `room`: most bytes to hold for one TB
   (0: 1 GiB). NULL: not enough memory. */
gs_trace *gs_trace_open(int32_t unknown, uint64_t room);
/* `last`: no text follows this piece. *used: bytes taken; call again with the rest. */
int gs_trace_feed(gs_trace *trace, const char *text, uint64_t bytes, int last, uint64_t *used);
const char *gs_trace_error(const gs_trace *trace);
void gs_trace_header_get(const gs_trace *trace, gs_trace_header *out);
void gs_trace_tb_get(const gs_trace *trace, gs_trace_tb *out);
void gs_trace_close(gs_trace *trace);
