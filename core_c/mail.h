/* Mailboxes between parts. A message sent in one quantum arrives at least one quantum later; each box holds
   the messages of one arrival quantum for one group of parts. Chunks come from a pool used last in, first
   out, so the ones in use stay in the host's cache. The reader sorts by (time, sender); a sender's own order
   is kept. */
#pragma once
#include "state.h"

#include <string.h>

/* payload of a request and its reply */
enum { GS_MSG_LOAD, GS_MSG_STORE, GS_MSG_REDUCE, GS_MSG_START, GS_MSG_DONE };

#define GS_PAY_TAG(p)          ((u32)((p) & 0xffff))
#define GS_PAY_SET(p)          ((u32)((p) >> 16 & 2047))
#define GS_PAY_MASK(p)         ((u32)((p) >> 27 & 15))
#define GS_PAY_WARP(p)         ((u32)((p) >> 31 & 63))
#define GS_PAY_SLOT(p)         ((u32)((p) >> 37 & 7))
#define GS_PAY_KIND(p)         ((u32)((p) >> 40 & 7))
#define GS_PAY_L1(p)           ((u32)((p) >> 43 & 2047))
#define GS_PAY_UNIT(p)         ((u32)((p) >> 54 & 3))
#define GS_PAY_WITH_UNIT(p, u) (((p) & ~(3ull << 54)) | (u64)(u) << 54)

static inline u64 gs_pay(u32 tag, u32 set, u32 mask, u32 warp, u32 slot, u32 kind, u32 l1, u32 unit)
{
    return (u64)tag | (u64)set << 16 | (u64)mask << 27 | (u64)warp << 31 | (u64)slot << 37 | (u64)kind << 40 |
           (u64)l1 << 43 | (u64)unit << 54;
}

/* payload of a TB start: tb 31 bits, TB slot 5, rotation 2, new carve-out 1; kernel 11 + 8 bits */
enum { GS_KERNEL_LIMIT = 1 << 19 };

static inline u64 gs_pay_start(u32 tb, u32 slot, u32 rotate, u32 configure, u32 kernel, u32 unit)
{
    return (u64)tb | (u64)slot << 31 | (u64)rotate << 36 | (u64)configure << 38 | (u64)GS_MSG_START << 40 |
           (u64)(kernel & 2047) << 43 | (u64)unit << 54 | (u64)(kernel >> 11) << 56;
}

#define GS_START_TB(p)        ((u32)((p) & 0x7fffffff))
#define GS_START_SLOT(p)      ((u32)((p) >> 31 & 31))
#define GS_START_ROTATE(p)    ((u32)((p) >> 36 & 3))
#define GS_START_CONFIGURE(p) ((u32)((p) >> 38 & 1))
#define GS_START_KERNEL(p)    ((u32)((p) >> 43 & 2047) | (u32)((p) >> 56) << 11)

/* A host thread's view of the arena for the time of one gs_run. */
typedef struct gs_ctx {
    gs_sim *sim;
    gs_thread *t;
    u32 id, threads;
    u64 q0, qn;
    gs_box *boxes[GS_THREADS];
    gs_chunk *chunks;
    gs_msg *sorted;
    u16 *count;
    gs_kcount *kernels;
} gs_ctx;

void gs_mail_append(gs_ctx *ctx, gs_box *box, gs_msg m);
void gs_mail_far(gs_ctx *ctx, u32 box, gs_msg m);
/* Moves messages whose quantum has come within the ring; called at multiples of half the ring. */
void gs_mail_near(gs_ctx *ctx);
/* Sorted messages of `box` for this quantum; `prefetch` (or NULL) + set * 128 + unit * stride is fetched
 * ahead. */
u32 gs_mail_take(gs_ctx *ctx, u32 box, const gs_msg **out, const char *prefetch, size_t stride);
/* Gives chunks back to the threads that own them; makes one thread's boxes hold everything. */
void gs_mail_settle(gs_sim *sim);
void gs_mail_rehome(gs_sim *sim);

static inline void gs_box_put(gs_ctx *ctx, gs_chunk *chunks, gs_box *b, gs_msg m)
{
    if (GS_LIKELY(b->tail != 0 && b->n < GS_CHUNK)) {
        chunks[b->tail].m[b->n++] = m;
    } else {
        gs_mail_append(ctx, b, m);
    }
}

/* What sending needs, copied once for many sends: a store to a message could otherwise be a store to any of
 * it. */
typedef struct gs_sender {
    u64 q0, qn, far_limit;
    gs_div by_quantum;
    gs_box *boxes;
    gs_chunk *chunks;
    u8 *any;
    u32 stride, id;
} gs_sender;

static inline gs_sender gs_sender_make(const gs_ctx *ctx, u32 id)
{
    const gs_sim *sim = ctx->sim;
    return (gs_sender){
        ctx->q0,    ctx->qn, sim->far_limit, sim->by_quantum, ctx->boxes[ctx->id], ctx->chunks, ctx->t->any,
        sim->boxes, id};
}

static inline void gs_send(gs_ctx *ctx, const gs_sender *s, u32 box, u64 time, u64 pay)
{
    u64 q = s->qn + gs_div_by(time - s->q0, s->by_quantum);
    gs_msg m = {time << GS_SENDER_BITS | s->id, pay};
    if (GS_UNLIKELY(q >= s->far_limit)) {
        gs_mail_far(ctx, box, m);
        return;
    }
    u32 ring = (u32)q & (GS_RING - 1);
    s->any[ring] = 1;
    gs_box_put(ctx, s->chunks, &s->boxes[ring * s->stride + box], m);
}

static inline void gs_send_one(gs_ctx *ctx, u32 box, u64 time, u32 sender, u64 pay)
{
    gs_sender s = gs_sender_make(ctx, sender);
    gs_send(ctx, &s, box, time, pay);
}
