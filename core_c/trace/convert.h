/* Declarations that the files of the converter share: see gs_convert.h. */
#pragma once
#include "base/types.h"
#include "gen/gs_opcodes.h"
#include "gs_convert.h"

enum {
    GS_FITS = 4,          /* x, y, z, warp */
    GS_SHAPES = 1 << 16,  /* shapes a kernel has; accesses of further shapes are recorded */
    GS_SPAN_BITS = 32,    /* a pattern spans less than 4 GiB, and all pages in its span are laid out */
    GS_ACCESS_LINES = 64, /* the most that the core takes for one access */
    GS_PAGE_BITS = 21,
    GS_HEIGHT = 2, /* nested loops */
    GS_FEW = 8     /* in a class of fewer warps addresses are recorded rather than a loop unrolled */
};

/* Local memory begins here; addresses of GPUs have at most 49 bits. */
#define GS_LOCAL_FROM (1ull << 52)
/* In gs_record.template_ until gs_convert_far: the rest is a number of convert_far_lanes.c. */
#define GS_FAR_RECORD (1ull << 32)

/* A growing array. */
typedef struct gs_vector {
    void *at;
    u64 n, room;
} gs_vector;

/* A hash table from hashes to numbers; the caller compares the elements that they name. */
typedef struct gs_index {
    u32 *slot; /* number + 1 */
    u64 n, room;
    u64 *hash; /* of each slot */
} gs_index;

/* One memory access of a class, loops unrolled: how its address depends on TB and warp. */
typedef struct gs_fit {
    i64 address; /* of the class's first warp */
    i64 c[GS_FITS];
    u32 shape;   /* + 1; 0: none */
    u32 since;   /* the class's first warp whose access was recorded; GS_NOWHERE: none so far */
    u8 known;    /* bit a coefficient */
    u8 mode;     /* 0 reads, 1 writes, 2 updates, 3: local, private */
    u8 recorded; /* 1: it will be recorded */
    u8 pad;
    u32 place; /* its gs_place */
} gs_fit;

typedef struct gs_stream {
    u32 *ids; /* rows, loops unrolled */
    gs_fit *fits;
    u64 n, n_fits, hash;
    u32 first[GS_FITS]; /* x, y, z, warp of its first warp */
    u32 lo[GS_FITS], hi[GS_FITS];
    u64 warps;
    u64 recorded; /* accesses of one warp that will be recorded */
} gs_stream;

/* Barriers of the current TB: see convert_barriers.c. */
enum { GS_FIRST_TRANSACTION = 16, GS_TRANSACTION_BARRIERS = 32 };

typedef struct gs_barriers {
    u32 users[16], threads[16]; /* of named ones: warps, a bit each; threads as the trace states them */
    u8 arrives_at[16];          /* 1: a warp counts there without waiting */
    u32 n;
    u64 address[GS_TRANSACTION_BARRIERS];
    u32 copies[GS_TRANSACTION_BARRIERS], arrivals[GS_TRANSACTION_BARRIERS];
    /* the most of one warp: waits, and arrivals of those that copy */
    u32 waits[GS_TRANSACTION_BARRIERS], expected[GS_TRANSACTION_BARRIERS];
} gs_barriers;

struct gs_convert {
    char error[256];
    gs_trace_header header;
    u32 plain; /* of gs_convert_open */
    u32 warps;
    u64 tbs, came, instructions;
    /* Local memory: see convert_local.c. */
    u64 local_begin, local_bytes; /* of the kernel's */
    u32 local_bits;               /* of a chunk; 0: no TB so far has used local memory */
    u64 local_low;                /* where chunks begin in a thread's window */
    u64 local_chunks;
    u32 *local_number; /* of each chunk of a thread's window, + 1; 0: unused */
    gs_vector rows, streams, shapes, shape_waves, entries, order, tb_rows;
    gs_index row_index, stream_index, shape_index, entry_index;
    gs_vector items, classes, places;
    gs_vector spilled, touched;
    gs_barriers barriers;
    gs_vector ids, reach;        /* of the current warp */
    gs_vector runs;              /* of the current TB */
    u64 settle_warp, settle_fit; /* the position of gs_convert_settle */
    u32 settle_open;             /* the warp's block has its place */
    u64 accesses, settled;
    /* Of the whole trace. */
    gs_vector templates, parts;
    gs_index template_index;
    gs_vector far, far_parts; /* see convert_far_lanes.c */
    gs_index far_index;
    gs_vector pages;
    gs_index page_index;
    u64 last_page_lo, last_page_hi;
};

/* A TB, in order of arrival: see gs_convert_settle. */
typedef struct gs_came {
    u32 tb, row;
} gs_came;

/* An access to memory by the current warp. */
typedef struct gs_access {
    u64 first; /* index of its addresses in the TB */
    u32 lanes;
    u32 shape;  /* + 1 */
    u32 width;  /* bytes at each address */
    u32 offset; /* bytes from each address to the first byte accessed */
    u8 mode;
} gs_access;

/* A line that an access touches, and its sectors. */
typedef struct gs_touched_line {
    u64 line;
    u32 mask;
} gs_touched_line;

/* The access's addresses; `room` holds them if they differ from those of the TB. */
static inline const u64 *gs_access_addresses(const u64 *addresses, const gs_access *r, u64 room[32])
{
    for (u32 i = 0; r->offset && i < r->lanes; i++) {
        room[i] = addresses[r->first + i] + r->offset;
    }
    return r->offset ? room : addresses + r->first;
}

static inline int gs_is_bulk(u32 kind)
{
    return kind == GS_KIND_BULK_LOAD || kind == GS_KIND_BULK_STORE || kind == GS_KIND_BULK_REDUCE ||
           kind == GS_KIND_BULK_PREFETCH;
}

/* Accesses of an instruction that touches global or local memory: a bulk copy has its pieces; of local memory
   each word of 4 B is one, as the next word of a lane is 128 B further. */
static inline u32 gs_accesses_of(const gs_sass *s)
{
    if (gs_is_bulk(GS_OPCODE[s->opcode].kind)) {
        return (u32)s->imm;
    }
    return s->space == GS_SPACE_LOCAL && s->width > 4 ? s->width / 4u : 1;
}

int gs_convert_fail(gs_convert *c, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
static inline int gs_convert_no_memory(gs_convert *c)
{
    return gs_convert_fail(c, GS_ERR_MEM, "not enough memory to convert the trace");
}
