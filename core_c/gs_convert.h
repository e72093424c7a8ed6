/* Conversion of recorded TBs to a kernel's converted form, which is independent of the GPU, and lowering of
   that to programs of one GPU. cffi reads this text, too. Addresses are the trace's own until Python lays out
   the pages that it touches. */
#pragma once
#include "gs_api.h"
#include "gs_trace.h"

#define GS_LOOP_END 0xffffffffu
#define GS_NOWHERE  0xffffffffu

/* An instruction of the code, without its addresses. */
typedef struct gs_sass {
    uint32_t pc, mask;
    uint16_t opcode, variant;
    uint8_t dsts, srcs, space, width;
    uint16_t dst[4];
    uint16_t src[8];
    uint8_t dst_size[4], src_size[8];
    uint32_t fma;
    uint8_t math, pad[3];
    int32_t imm;
    uint32_t bytes;
    uint16_t barrier; /* that it counts or waits at, + 1: 16 named ones, then transaction barriers; 0: none,
                         or all warps of the TB */
    uint16_t pad2;
    uint32_t counted;     /* BAR: warps; a wait: copies or arrivals at its barrier, */
    uint32_t phases;      /* and the phases in which they come */
    uint16_t wavefronts;  /* of an access to shared memory */
    uint16_t first_words; /* wavefronts that the first word of each lane alone would take */
} gs_sass;

/* A step of a class's code. */
typedef struct gs_item {
    uint32_t row; /* its gs_sass; GS_LOOP_END: the end of a loop */
    uint32_t a;   /* instruction: its pattern or GS_NOWHERE; loop: first item of the body, within the class */
    uint32_t count; /* loop: iterations */
    uint32_t level; /* loop: its counter */
} gs_item;

/* Warps with the same instructions, but for addresses. */
typedef struct gs_class {
    uint64_t first_item, items;
    uint64_t instructions; /* of one warp */
    uint64_t warps;        /* warps in the class */
    uint64_t block;        /* recorded accesses of one warp */
} gs_class;

/* The address of an instruction of a class, as in gs_pattern. */
typedef struct gs_place {
    int64_t base, bx, by, bz, warp, step, step2;
    uint64_t lo, hi; /* bytes that it reaches, half open */
    uint32_t shape;  /* its gs_shape_lanes; 0 if it is recorded */
    uint8_t recorded, align, level, level2;
} gs_place;

typedef struct gs_shape_lanes {
    int32_t offset[32]; /* from the first active lane */
    uint32_t lanes, width;
} gs_shape_lanes;

/* A recorded access: the line of its first address, and its template (2^32 and more: known only after
   gs_convert_far). */
typedef struct gs_record {
    uint64_t line, template_;
} gs_record;

/* A run of bytes that a TB touches; mode 0: reads, 1: writes, 2: updates. */
typedef struct gs_run_touched {
    uint64_t start, end;
    uint32_t tb, mode;
} gs_run_touched;

/* A kernel after its last TB; valid until the next gs_convert_begin. */
typedef struct gs_converted {
    const gs_sass *rows;
    const gs_item *items;
    const gs_class *classes;
    const gs_place *places;
    const gs_shape_lanes *shapes;
    const uint32_t *entries; /* tb_row x warps: classes */
    const uint32_t *tb_rows; /* one a TB */
    uint64_t n_rows, n_items, n_classes, n_places, n_shapes, n_entries, n_tb_rows;
    uint64_t accesses; /* recorded accesses of all warps */
    uint64_t instructions;
    uint32_t warps;
} gs_converted;

typedef struct gs_convert gs_convert;

/* `plain`, for tests that results do not differ: 1: every address is recorded, 2: loops are not searched. */
gs_convert *gs_convert_open(uint32_t plain);
void gs_convert_close(gs_convert *convert);
const char *gs_convert_error(const gs_convert *convert);
/* A new kernel. All calls return GS_OK or an error code. */
int gs_convert_begin(gs_convert *convert, const gs_trace_header *header);
int gs_convert_tb(gs_convert *convert, const gs_trace_tb *tb);
/* After the last TB: finds loops. */
int gs_convert_end(gs_convert *convert);
void gs_convert_get(const gs_convert *convert, gs_converted *out);
/* Recorded accesses since the last gs_convert_drop, in order of arrival. */
uint64_t gs_convert_spilled(const gs_convert *convert, const gs_record **out);
/* Runs touched by TBs since then, by TB in order of arrival, each by (mode, start). */
uint64_t gs_convert_touched(const gs_convert *convert, const gs_run_touched **out);
void gs_convert_drop(gs_convert *convert);
/* After gs_convert_end: takes the spilled accesses in their order, in pieces, and returns all recorded
   accesses in the order of TBs as they came and of warps. `last`: no more come. *used and *made: taken and
   returned. blocks[TB * warps + warp]: where a warp's begin. Call until all are used and no more are made. */
int gs_convert_settle(gs_convert *convert, const gs_record *in, uint64_t n, int last, gs_record *out,
                      uint64_t room, uint64_t *used, uint64_t *made, uint32_t *blocks);
/* Templates and parts of all kernels so far. */
uint64_t gs_convert_templates(const gs_convert *convert, const gs_template **templates, const gs_part **parts,
                              uint64_t *n_parts);
/* Pages of 2 MiB that the kernels so far touch, ascending. Returns their number; writes at most `room`. */
uint64_t gs_convert_pages(gs_convert *convert, uint64_t *out, uint64_t room);
/* When all kernels are in, and `pages` are all of them: gives accesses with lanes 4 GiB or more apart the
   templates that they have once the pages are adjacent. Call it before gs_convert_templates. */
int gs_convert_far(gs_convert *convert, gs_record *records, uint64_t n, const uint64_t *pages,
                   uint64_t n_pages);

/* Lowering a class's code to one GPU. */
typedef struct gs_lower_in {
    const gs_sass *rows;
    const gs_item *items;
    const gs_class *classes;
    const uint8_t *levels; /* of each place: its loop counter */
    uint64_t n_rows, n_items, n_classes, n_places;
    /* The GPU: its SM version, 0: unknown, and then every instruction is one of its pipe's; fp16
       multiply-adds a cycle of a sub-core's tensor cores by mma instructions. */
    uint32_t sm, mma_rate;
} gs_lower_in;

typedef struct gs_code gs_code;

/* Lowers all classes, one after another. NULL: an error, with a message in `error` (size >= 256). */
gs_code *gs_code_open(const gs_params *params, const gs_lower_in *in, int *code, char *error);
void gs_code_close(gs_code *code);
/* The ops of all classes, and where each class begins. */
uint64_t gs_code_ops(const gs_code *code, const gs_op **ops);
const uint32_t *gs_code_entries(const gs_code *code);
/* Of each place, what its op adds to the loop counter: the place's base must be that many steps less. */
const int32_t *gs_code_plus(const gs_code *code);
