/* Mailboxes between parts (groups of SMs, groups of slices, the scheduler). A message arrives in a quantum
   that its receiver has not run yet, because no message is faster than the least latencies from which
   derive.c computes the quantum. A box holds the messages of one quantum for one part. Chunks are reused
   last in, first out, so those in use stay in the host's cache. The thread that filled a chunk frees it
   after the quantum: a reader that wrote to it would make the sender fetch the line from another processor.
   The reader sorts by (time, sender) and keeps each sender's order, see gs_msg. Times are in ticks. */
#pragma once
#include "base/state.h"

#include <string.h>

/* kinds of messages; the kind is part of the payload of a request and its reply */
enum {
    GS_MSG_LOAD,
    GS_MSG_STORE,
    GS_MSG_REDUCE,
    GS_MSG_START,
    GS_MSG_DONE,
    GS_MSG_PORT_SHARERS,
    GS_MSG_HOST_COPY,
    GS_MSG_SYNC,
    GS_MSG_COMPLETE = GS_MSG_START, /* to the scheduler: all stores of a TB that has left are acknowledged */
    GS_MSG_TABLE = GS_MSG_PORT_SHARERS /* from the scheduler to slices, and back */
};

#define GS_PAY_TAG(p)  ((u32)((p) & 0xffff))
#define GS_PAY_ROW(p)  ((u32)((p) >> 16 & 8191))
#define GS_PAY_MASK(p) ((u32)((p) >> 29 & 15))
#define GS_PAY_WARP(p) ((u32)((p) >> 33 & 63))
#define GS_PAY_SLOT(p) ((u32)((p) >> 39 & 7))
#define GS_PAY_KIND(p) ((u32)((p) >> 42 & 7))
#define GS_PAY_L1(p)   ((u32)((p) >> 45 & 4095))
/* Of stores: the owner takes fewer bits than a place in L1, and the rest is how many words of each sector
   are written, 0: all. */
#define GS_PAY_OWNER(p) ((u32)((p) >> 45 & (GS_STORE_OWNERS - 1)))
#define GS_PAY_WORDS(p) ((u32)((p) >> (45 + GS_STORE_OWNER_BITS) & 7))
#define GS_PAY_SLICE(p) ((u32)((p) >> 60 & 3))
#define GS_PAY_SM(p)    ((u32)((p) >> 58 & 3))

/* of a load: it is a copy into shared memory (of a store the bit belongs to the words) */
#define GS_PAY_ASYNC_COPY ((u64)1 << 57)

/* a forwarded load that has joined one at the slice that forwards */
#define GS_PAY_JOINED ((u64)1 << 63)
/* a load of sectors that already cross the fabric */
#define GS_PAY_IN_TRANSIT ((u64)1 << 62)

/* The part of the payload that is the same for all requests of an op; `sm`: the SM within its group. A
   reply carries its request's payload unchanged. */
static inline u64 gs_pay_op(u32 warp, u32 slot, u32 kind, u32 sm)
{
    return (u64)warp << 33 | (u64)slot << 39 | (u64)kind << 42 | (u64)sm << 58;
}

/* The part of the payload that differs by line; `row`: the set, numbered over all slices of a group. */
static inline u64 gs_pay_line(u32 tag, u32 row, u32 mask, u32 l1, u32 slice)
{
    return (u64)(tag | row << 16) | (u64)mask << 29 | (u64)(l1 | slice << 15) << 45;
}

/* Payload of a TB start: kernel and TB 31 + 3 + 13 + 3 bits, of which the TB takes gs_sim.tb_bits, TB slot 5,
   rotation 2, new carve-out 1, conditions met 1. */
enum { GS_LAUNCH_TB_BITS = 50 };

static inline u64 gs_pay_start(const gs_sim *sim, u32 tb, u32 slot, u32 rotate, u32 configure, u32 kernel,
                               u32 sm)
{
    u64 id = (u64)kernel << sim->tb_bits | tb;
    return (id & 0x7fffffff) | (u64)slot << 31 | (u64)rotate << 36 | (u64)configure << 38 |
           (id >> 44 & 7) << 39 | (u64)GS_MSG_START << 42 | (id >> 31 & 8191) << 45 | (u64)sm << 58 |
           (id >> 47) << 60;
}

/* Payload that reports a change of a port's sharers: its first SM, and whether one SM more or one fewer has
   TBs. */
static inline u64 gs_pay_port_sharers(u32 sm, u32 more)
{
    return (u64)more | (u64)GS_MSG_PORT_SHARERS << 42 | (u64)sm << 58;
}

/* Payload of a TB's completion: as of its start, with the 10 bits of its gs_store_owner where the slot is. */
static inline u64 gs_pay_complete(const gs_sim *sim, u32 tb, u32 owner, u32 kernel)
{
    return gs_pay_start(sim, tb, owner & 31, owner >> 5 & 3, owner >> 7 & 1, kernel, owner >> 8);
}

#define GS_COMPLETE_OWNER(p)                                                                                 \
    (GS_START_SLOT(p) | GS_START_ROTATE(p) << 5 | GS_START_CONFIGURE(p) << 7 | GS_PAY_SM(p) << 8)

#define GS_START_CONDITIONS_MET(p) ((u32)((p) >> 63))
#define GS_START_SLOT(p)           ((u32)((p) >> 31 & 31))
#define GS_START_ROTATE(p)         ((u32)((p) >> 36 & 3))
#define GS_START_CONFIGURE(p)      ((u32)((p) >> 38 & 1))

/* Kernel and TB of a TB start or completion. */
static inline u64 gs_start_id(u64 p)
{
    return (p & 0x7fffffff) | (p >> 45 & 8191) << 31 | (p >> 39 & 7) << 44 | (p >> 60 & 7) << 47;
}

static inline u32 gs_start_kernel(const gs_sim *sim, u64 p)
{
    return (u32)(gs_start_id(p) >> sim->tb_bits);
}

static inline u32 gs_start_tb(const gs_sim *sim, u64 p)
{
    return (u32)(gs_start_id(p) & ((1ull << sim->tb_bits) - 1));
}

/* The boxes of a quantum. */
typedef struct gs_box_row {
    u64 begin, quanta; /* quanta: counted from the beginning of the next one */
    gs_box *boxes;
} gs_box_row;

/* A host thread's pointers into the arena during one gs_run. */
typedef struct gs_ctx {
    gs_sim *sim;
    gs_thread *t;
    u32 id, threads;
    u64 q0, qn;         /* the quantum of the parts that run now: its beginning and number */
    u64 send0, send_qn; /* the next quantum of the parts that they send to */
    gs_box_row row;     /* that SMs sent to last */
    gs_box *boxes[GS_THREADS];
    gs_chunk *chunks;
    gs_msg *sorted;
    u16 *count;
    gs_kernel_count *kernels;
} gs_ctx;

void gs_mailbox_append(gs_ctx *ctx, gs_box *box, gs_msg m);
/* Stores a message that arrives after the last quantum of the ring. `soonest`: when the receiver's next
   quantum begins, ticks. */
void gs_mailbox_put_far(gs_ctx *ctx, u64 soonest, u32 box, u64 time, gs_msg m);
/* Moves stored messages whose quantum is now within the ring to their boxes. One thread calls it, at
   multiples of half the ring. */
void gs_mailbox_move_near(gs_ctx *ctx);

typedef enum gs_prefetch {
    GS_PREFETCH_NOTHING,
    GS_PREFETCH_L2_SETS, /* `base`: the first set of a group */
    GS_PREFETCH_L1_LINES /* `base`: the first SM of a group */
} gs_prefetch;

/* Sorts the messages of `box` for this quantum; returns their number. *out points to memory of this thread
   that is valid until its next call. Prefetches the sets or lines of `base` that they name. */
u32 gs_mailbox_take(gs_ctx *ctx, u32 box, const gs_msg **out, gs_prefetch what, const void *base);
/* Fetches what other threads have sent to `box` for this quantum. */
void gs_mailbox_prefetch(const gs_ctx *ctx, u32 box);
/* Empties boxes [from, to) of this thread for this quantum, after their readers have read them. */
void gs_mailbox_clear(gs_ctx *ctx, u32 from, u32 to);
/* Before the number of threads changes: moves all messages to thread 0's boxes. */
void gs_mailbox_gather(gs_sim *sim);

/* When a message that a part has taken arrives. */
static inline u64 gs_msg_time(const gs_ctx *ctx, const gs_msg *m)
{
    return ctx->q0 + (m->key >> GS_KEY_TIME);
}

static inline void gs_box_put(gs_ctx *ctx, gs_msg *units, gs_box *b, gs_msg m)
{
    u32 at = b->at;
    if (GS_LIKELY(at & GS_CHUNK)) {
        units[at] = m;
        b->at = at + 1;
    } else {
        gs_mailbox_append(ctx, b, m);
    }
}

/* What a send needs, copied once for many sends: the compiler would otherwise load it again after each
   store to a message. */
typedef struct gs_sender {
    u64 q0, quantum, far, inverse;
    u64 id; /* the part of a key below the time, of messages to the next quantum */
    gs_box *boxes;
    gs_msg *units;
    u32 qn, stride;
} gs_sender;

static inline gs_sender gs_sender_make(const gs_ctx *ctx, u32 id)
{
    const gs_sim *sim = ctx->sim;
    return (gs_sender){.q0 = ctx->send0,
                       .far = (sim->far_limit - ctx->send_qn) * sim->quantum,
                       .quantum = sim->quantum,
                       .inverse = sim->quantum_inverse,
                       .id = ((u64)id << GS_LATE_BITS) + GS_RING,
                       .boxes = ctx->boxes[ctx->id],
                       .units = (gs_msg *)(void *)ctx->chunks,
                       .qn = (u32)ctx->send_qn,
                       .stride = sim->boxes};
}

/* Whole quanta in `ahead`, which is below s->far. Exact because GS_RING * quantum^2 is below 2^56: a quantum
   is at most 1024 cycles of 10240 ticks. */
static inline u32 gs_quanta_ahead(const gs_sender *s, u64 ahead)
{
    return (u32)(ahead * s->inverse >> 56);
}

/* The box of messages so many quanta ahead. */
static inline gs_box *gs_box_of(const gs_sender *s, u32 quanta, u32 box)
{
    return &s->boxes[((s->qn + quanta) & (GS_RING - 1)) * s->stride + box];
}

/* Sends one of many messages whose times are close together: most go to boxes of the same quantum. */
static inline void gs_send_row(gs_ctx *ctx, const gs_sender *s, gs_box_row *row, u32 box, u64 time, u64 pay)
{
    gs_msg m = {time << GS_KEY_TIME | s->id, pay};
    if (GS_UNLIKELY(time - row->begin >= s->quantum)) {
        u64 ahead = time - s->q0;
        if (ahead >= s->far) {
            gs_mailbox_put_far(ctx, s->q0, box, time, m);
            return;
        }
        u32 quanta = gs_quanta_ahead(s, ahead);
        row->begin = s->q0 + quanta * s->quantum;
        row->boxes = gs_box_of(s, quanta, 0);
        row->quanta = quanta;
    }
    m.key -= row->quanta;
    gs_box_put(ctx, s->units, &row->boxes[box], m);
}

static inline void gs_send(gs_ctx *ctx, const gs_sender *s, u32 box, u64 time, u64 pay)
{
    gs_msg m = {time << GS_KEY_TIME | s->id, pay};
    u64 ahead = time - s->q0;
    if (GS_UNLIKELY(ahead >= s->far)) {
        gs_mailbox_put_far(ctx, s->q0, box, time, m);
        return;
    }
    u32 quanta = gs_quanta_ahead(s, ahead);
    m.key -= quanta;
    gs_box_put(ctx, s->units, gs_box_of(s, quanta, box), m);
}

static inline void gs_send_one(gs_ctx *ctx, u32 box, u64 time, u32 sender, u64 pay)
{
    gs_sender s = gs_sender_make(ctx, sender);
    gs_send(ctx, &s, box, time, pay);
}
