/* Mailboxes: see mail.h. Chunk 0 is never used, so index 0 means none. */
#include "mail.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

static u32 chunk_take(gs_ctx *ctx)
{
    gs_thread *t = ctx->t;
    u32 c = t->free_chunks;
    if (c) {
        t->free_chunks = ctx->chunks[c].next;
    } else if (t->next_chunk < t->end_chunk) {
        c = t->next_chunk++;
        ctx->chunks[c].owner = ctx->id;
    } else {
        return 0;
    }
    ctx->chunks[c].next = 0;
    return c;
}

void gs_mail_append(gs_ctx *ctx, gs_box *box, gs_msg m)
{
    u32 c = chunk_take(ctx);
    if (c == 0) {
        gs_fail(ctx->sim, GS_ERR_LIMIT, "more messages in flight than the arena holds; please report this");
        return;
    }
    if (box->at) {
        gs_chunk *tail = &ctx->chunks[box->at / (GS_CHUNK + 1) - 1];
        tail->next = c;
        tail->n = GS_CHUNK;
    } else {
        box->head = c;
        ctx->t->any[(u32)(box - ctx->boxes[ctx->id]) / ctx->sim->boxes] = 1;
    }
    ctx->chunks[c].m[0] = m;
    box->at = c * (GS_CHUNK + 1) + 2;
}

/* the last chunk, whose count is noted in it; 0: the box is empty */
static u32 box_close(gs_chunk *chunks, const gs_box *b)
{
    u32 tail = (b->at - 1) / (GS_CHUNK + 1);
    if (b->at == 0) {
        return 0;
    }
    chunks[tail].n = b->at - tail * (GS_CHUNK + 1) - 1;
    return tail;
}

void gs_mail_far(gs_ctx *ctx, u32 box, gs_msg m)
{
    gs_sim *sim = ctx->sim;
    gs_thread *t = ctx->t;
    if (m.key >> GS_SENDER_BITS < ctx->send0) {
        gs_fail(sim, GS_ERR_LIMIT, "a message came too late for its receiver; please report this");
        return;
    }
    if (t->far_n == sim->far_room) {
        gs_fail(sim, GS_ERR_LIMIT, "more distant messages than the arena holds; please report this");
        return;
    }
    gs_far *far = (gs_far *)(void *)((char *)sim + t->at_far);
    far[t->far_n++] = (gs_far){m, box, 0};
}

void gs_mail_near(gs_ctx *ctx)
{
    gs_thread *t = ctx->t;
    gs_far *far = (gs_far *)(void *)((char *)ctx->sim + t->at_far);
    const gs_sender s = gs_sender_make(ctx, 0);
    const u64 q0 = ctx->sim->q0, lead = ctx->sim->lead;
    u32 kept = 0;
    for (u32 i = 0; i < t->far_n; i++) {
        u64 begin = far[i].box < ctx->sim->sm_boxes ? q0 + lead : q0;
        u64 ahead = (far[i].m.key >> GS_SENDER_BITS) - begin;
        if (ahead < s.far) {
            gs_box_put(ctx, s.units, gs_box_of(&s, ahead, far[i].box), far[i].m);
        } else {
            far[kept++] = far[i];
        }
    }
    t->far_n = kept;
}

/* gives a chunk that has been read back to the thread that made it */
static inline void chunk_drop(gs_ctx *ctx, u32 c)
{
    gs_thread *t = ctx->t;
    gs_chunk *k = &ctx->chunks[c];
    if (k->owner == ctx->id) {
        k->next = t->free_chunks;
        t->free_chunks = c;
        return;
    }
    k->next = t->ret_head[k->owner];
    if (!t->ret_head[k->owner]) {
        t->ret_tail[k->owner] = c;
    }
    t->ret_head[k->owner] = c;
}

/* Turns the counts of buckets into the place of each bucket's first message. Works on eight at a time:
   `count` has room for seven beyond n. */
static inline void first_places(u16 *count, u32 n)
{
#if defined(__SSE2__)
    __m128i sum = _mm_setzero_si128();
    for (u32 i = 0; i < n; i += 8) {
        __m128i *at = (__m128i *)(void *)(count + i);
        __m128i own = _mm_load_si128(at), x = _mm_add_epi16(own, _mm_slli_si128(own, 2));
        x = _mm_add_epi16(x, _mm_slli_si128(x, 4));
        x = _mm_add_epi16(x, _mm_slli_si128(x, 8));
        x = _mm_add_epi16(x, sum);
        _mm_store_si128(at, _mm_sub_epi16(x, own));
        x = _mm_shufflehi_epi16(x, 0xff);
        sum = _mm_unpackhi_epi64(x, x);
    }
#else
    u32 sum = 0;
    for (u32 i = 0; i < n; i++) {
        u32 own = count[i];
        count[i] = (u16)sum;
        sum += own;
    }
#endif
}

/* Moves the messages of thread t's box to the places of their buckets. */
static inline __attribute__((always_inline)) void scatter(gs_ctx *ctx, gs_box *b, u32 shift,
                                                          const gs_set *sets, int fetch)
{
    gs_msg *s = ctx->sorted;
    u16 *count = ctx->count;
    const u32 q0 = (u32)ctx->q0;
    u32 c = b->head;
    while (c) {
        const gs_msg *m = ctx->chunks[c].m, *end = m + ctx->chunks[c].n;
        for (; m < end; m++) {
            if (fetch) {
                __builtin_prefetch(sets + GS_PAY_ROW(m->pay), 1);
            }
            s[count[((u32)(m->key >> GS_SENDER_BITS) - q0) >> shift]++] = *m;
        }
        u32 next = ctx->chunks[c].next;
        chunk_drop(ctx, c);
        c = next;
    }
    *b = (gs_box){0};
}

/* puts a message that is smaller than the one before it in its place */
static __attribute__((noinline)) void insert(gs_msg *at)
{
    gs_msg m = *at;
    do {
        at[0] = at[-1];
        at--;
    } while (at[-1].key > m.key);
    *at = m;
}

/* One pass to count, one to scatter into buckets of about a cycle, then an insertion pass that finds almost
   everything in place: measured faster than heaps, calendars and qsort at these sizes. */
u32 gs_mail_take(gs_ctx *ctx, u32 box, const gs_msg **out, const gs_set *sets)
{
    gs_sim *sim = ctx->sim;
    u32 at = ((u32)ctx->qn & (GS_RING - 1)) * sim->boxes + box;
    u32 n = 0;
    for (u32 t = 0; t < ctx->threads; t++) {
        const gs_box *b = &ctx->boxes[t][at];
        box_close(ctx->chunks, b);
        for (u32 c = b->head; c; c = ctx->chunks[c].next) {
            n += ctx->chunks[c].n;
        }
    }
    *out = ctx->sorted;
    if (n == 0) {
        return 0;
    }
    if (n > sim->sort_room) {
        gs_fail(sim, GS_ERR_LIMIT, "more messages in a quantum than the arena holds; please report this");
        return 0;
    }
    const u32 q0 = (u32)ctx->q0, shift = n <= 24   ? 12
                                         : n <= 96 ? 10
                                                   : 9; /* a quantum is less than 32 bits long */
    u16 *count = ctx->count;
    u32 buckets = (u32)(sim->quantum >> shift) + 2;
    memset(count, 0, (buckets + 7) * sizeof *count);
    for (u32 t = 0; t < ctx->threads; t++) {
        for (u32 c = ctx->boxes[t][at].head; c; c = ctx->chunks[c].next) {
            const gs_msg *m = ctx->chunks[c].m, *end = m + ctx->chunks[c].n;
            for (; m < end; m++) {
                count[((u32)(m->key >> GS_SENDER_BITS) - q0) >> shift]++;
            }
        }
    }
    first_places(count, buckets);
    for (u32 t = 0; t < ctx->threads; t++) {
        if (sets) {
            scatter(ctx, &ctx->boxes[t][at], shift, sets, 1);
        } else {
            scatter(ctx, &ctx->boxes[t][at], shift, NULL, 0);
        }
    }
    /* two at a time; before the first lies a message that none is smaller than, behind the last one that is
       smaller than none */
    gs_msg *s = ctx->sorted, *end = s + n;
    end->key = GS_NEVER;
    for (; s < end; s += 2) {
        if (GS_UNLIKELY(s[0].key < s[-1].key)) {
            insert(s);
        }
        if (GS_UNLIKELY(s[1].key < s[0].key)) {
            insert(s + 1);
        }
    }
    return n;
}

void gs_mail_settle(gs_sim *sim)
{
    gs_chunk *chunks = GS_TABLE(sim, gs_chunk, at_chunks);
    for (u32 t = 0; t < sim->threads; t++) {
        gs_thread *from = &sim->thread[t];
        for (u32 o = 0; o < GS_THREADS; o++) {
            if (from->ret_head[o]) {
                gs_thread *to = &sim->thread[o];
                chunks[from->ret_tail[o]].next = to->free_chunks;
                to->free_chunks = from->ret_head[o];
                from->ret_head[o] = from->ret_tail[o] = 0;
            }
        }
    }
}

/* Before the number of threads changes: what was sent so far comes first in thread 0's boxes, so a sender's
   order is kept whichever thread runs it next. */
void gs_mail_rehome(gs_sim *sim)
{
    gs_chunk *chunks = GS_TABLE(sim, gs_chunk, at_chunks);
    gs_box *to = (gs_box *)(void *)((char *)sim + sim->thread[0].at_boxes);
    gs_far *far = (gs_far *)(void *)((char *)sim + sim->thread[0].at_far);
    for (u32 t = 1; t < GS_THREADS; t++) {
        gs_thread *other = &sim->thread[t];
        gs_box *from = (gs_box *)(void *)((char *)sim + other->at_boxes);
        for (u32 i = 0; i < GS_RING * sim->boxes; i++) {
            if (!from[i].head) {
                continue;
            }
            u32 tail = box_close(chunks, &to[i]);
            if (tail) {
                chunks[tail].next = from[i].head;
            } else {
                to[i].head = from[i].head;
            }
            to[i].at = from[i].at;
            from[i] = (gs_box){0};
        }
        const gs_far *theirs = (const gs_far *)(const void *)((char *)sim + other->at_far);
        for (u32 i = 0; i < other->far_n && sim->thread[0].far_n < sim->far_room; i++) {
            far[sim->thread[0].far_n++] = theirs[i];
        }
        other->far_n = 0;
        for (u32 i = 0; i < GS_RING; i++) {
            sim->thread[0].any[i] |= other->any[i];
            other->any[i] = 0;
        }
    }
}
