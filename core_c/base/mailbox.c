/* Mailboxes: see mailbox.h. Chunk 0 is never used, so index 0 means none. */
#include "base/mailbox.h"

#include "base/fail.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Prefetches a line for writing, so that it leaves the caches of other processors. The compiler's own builtin
   asks for a shared copy. */
static inline void fetch_to_write(const char *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*line));
#else
    __builtin_prefetch(line, 1);
#endif
}

static u32 chunk_take(gs_thread *t, gs_chunk *chunks)
{
    u32 c = t->free_chunks;
    if (c) {
        t->free_chunks = chunks[c].next;
    } else if (t->next_chunk < t->end_chunk) {
        c = t->next_chunk++;
    } else {
        return 0;
    }
    chunks[c].next = 0;
    return c;
}

void gs_mailbox_append(gs_ctx *ctx, gs_box *box, gs_msg m)
{
    u32 c = chunk_take(ctx->t, ctx->chunks);
    if (ctx->threads > 1) {
        /* another thread has read the chunk that will be taken next */
        const char *next = (const char *)&ctx->chunks[ctx->t->free_chunks];
        for (u32 line = 0; line < sizeof(gs_chunk); line += 64) {
            fetch_to_write(next + line);
        }
    }
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

/* the last chunk of a box that is not empty */
static inline u32 box_tail(const gs_box *b)
{
    return (b->at - 1) / (GS_CHUNK + 1);
}

/* Messages in chunk c of a box. Readers do not write: the sending thread would have to fetch what they wrote
   from their processor. */
static inline u32 chunk_count(const gs_ctx *ctx, const gs_box *b, u32 c)
{
    return c == box_tail(b) ? b->at - c * (GS_CHUNK + 1) - 1 : ctx->chunks[c].n;
}

/* Frees the chunks of a box of this thread, after its reader has read it. */
static inline void box_clear(gs_ctx *ctx, gs_box *b)
{
    if (b->at) {
        ctx->chunks[box_tail(b)].next = ctx->t->free_chunks;
        ctx->t->free_chunks = b->head;
        *b = (gs_box){0};
    }
}

void gs_mailbox_clear(gs_ctx *ctx, u32 from, u32 to)
{
    gs_box *row = ctx->boxes[ctx->id] + (ctx->qn & (GS_RING - 1)) * ctx->sim->boxes;
    for (u32 i = from; i < to; i++) {
        box_clear(ctx, &row[i]);
    }
}

void gs_mailbox_prefetch(const gs_ctx *ctx, u32 box)
{
    u32 at = ((u32)ctx->qn & (GS_RING - 1)) * ctx->sim->boxes + box;
    for (u32 t = 0; t < ctx->threads; t++) {
        const gs_box *b = &ctx->boxes[t][at];
        if (t == ctx->id || !b->at) {
            continue;
        }
        const gs_chunk *ends[2] = {&ctx->chunks[b->head], &ctx->chunks[box_tail(b)]};
        for (u32 i = 0; i < 1 + (ends[0] != ends[1]); i++) {
            for (u32 line = 0; line < sizeof(gs_chunk); line += 64) {
                __builtin_prefetch((const char *)ends[i] + line);
            }
        }
    }
}

void gs_mailbox_put_far(gs_ctx *ctx, u64 soonest, u32 box, u64 time, gs_msg m)
{
    gs_sim *sim = ctx->sim;
    if (time < soonest) {
        gs_fail(sim, GS_ERR_LIMIT, "a message came too late for its receiver; please report this");
        return;
    }
    /* One list for all threads keeps each sender's order over quanta. Such messages are few. */
    while (__atomic_exchange_n(&sim->far_lock, 1, __ATOMIC_ACQUIRE)) {
    }
    u32 at = sim->far_n;
    if (at < sim->far_room) {
        m.key &= ~((1ull << GS_LATE_BITS) - 1);
        GS_TABLE(sim, gs_far_msg, at_far)[sim->far_n++] = (gs_far_msg){m, time, box, 0};
    }
    __atomic_store_n(&sim->far_lock, 0, __ATOMIC_RELEASE);
    if (at == sim->far_room) {
        gs_fail(sim, GS_ERR_LIMIT, "more distant messages than the arena holds; please report this");
    }
}

void gs_mailbox_move_near(gs_ctx *ctx)
{
    gs_sim *sim = ctx->sim;
    gs_far_msg *far = GS_TABLE(sim, gs_far_msg, at_far);
    const gs_sender s = gs_sender_make(ctx, 0);
    u32 kept = 0;
    /* Other threads may add messages meanwhile, but none that is within the ring now. Those that move were
       sent before all that the ring has for the same quantum: `late` is 0. */
    while (__atomic_exchange_n(&sim->far_lock, 1, __ATOMIC_ACQUIRE)) {
    }
    for (u32 i = 0; i < sim->far_n; i++) {
        u64 begin = far[i].box < sim->sm_boxes ? sim->q0 + sim->lead : sim->q0;
        u64 ahead = far[i].time - begin;
        if (ahead < s.far) {
            gs_box_put(ctx, s.units, gs_box_of(&s, gs_quanta_ahead(&s, ahead), far[i].box), far[i].m);
        } else {
            far[kept++] = far[i];
        }
    }
    sim->far_n = kept;
    __atomic_store_n(&sim->far_lock, 0, __ATOMIC_RELEASE);
}

/* Turns the counts of buckets into the index of each bucket's first message, eight at a time: `count` has
   room for seven beyond n. */
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

/* Prefetches the set of L2 that a message names, or the line of L1 that waits for it. A message that names
   none prefetches some other line, which does no harm. */
static inline void fetch_ahead(const void *base, gs_prefetch what, u64 pay)
{
    if (what == GS_PREFETCH_L2_SETS) {
        __builtin_prefetch((const gs_set *)base + GS_PAY_ROW(pay), 1);
    } else if (what == GS_PREFETCH_L1_LINES && GS_PAY_SLOT(pay) != GS_SLOT_BULK) {
        __builtin_prefetch(((const gs_sm *)base)[GS_PAY_SM(pay)].l1 + GS_PAY_L1(pay) / GS_L1_WAYS, 1);
    }
}

/* Moves the messages of a box to their buckets. */
static GS_ALWAYS_INLINE void scatter(const gs_ctx *ctx, const gs_box *b, u32 shift, const void *base,
                                     gs_prefetch what)
{
    gs_msg *s = ctx->sorted;
    u16 *count = ctx->count;
    const u64 q0 = ctx->q0 << GS_KEY_TIME;
    for (u32 c = b->head; c; c = ctx->chunks[c].next) {
        const gs_msg *m = ctx->chunks[c].m, *end = m + chunk_count(ctx, b, c);
        for (; m < end; m++) {
            fetch_ahead(base, what, m->pay);
            u64 key = m->key - q0;
            s[count[key >> (GS_KEY_TIME + shift)]++] = (gs_msg){key, m->pay};
        }
    }
}

/* Inserts a message that sorts before its predecessor into the sorted messages before it. */
static __attribute__((noinline)) void insert(gs_msg *at)
{
    gs_msg m = *at;
    do {
        at[0] = at[-1];
        at--;
    } while (at[-1].key > m.key);
    *at = m;
}

/* Counting sort into buckets of about a cycle, then an insertion pass that finds almost everything in place:
   measured faster than heaps, calendar queues and qsort at these sizes. */
u32 gs_mailbox_take(gs_ctx *ctx, u32 box, const gs_msg **out, gs_prefetch what, const void *base)
{
    gs_sim *sim = ctx->sim;
    u32 at = ((u32)ctx->qn & (GS_RING - 1)) * sim->boxes + box;
    u32 n = 0;
    for (u32 t = 0; t < ctx->threads; t++) {
        const gs_box *b = &ctx->boxes[t][at];
        for (u32 c = b->head; c; c = ctx->chunks[c].next) {
            n += chunk_count(ctx, b, c);
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
    const u64 q0 = ctx->q0 << GS_KEY_TIME;
    const u32 shift = n <= 24 ? 12 : n <= 96 ? 10 : 9; /* a quantum is shorter than 2^32 ticks */
    u16 *count = ctx->count;
    u32 buckets = (u32)(sim->quantum >> shift) + 2;
    memset(count, 0, (buckets + 7) * sizeof *count);
    for (u32 t = 0; t < ctx->threads; t++) {
        const gs_box *b = &ctx->boxes[t][at];
        for (u32 c = b->head; c; c = ctx->chunks[c].next) {
            const gs_msg *m = ctx->chunks[c].m, *end = m + chunk_count(ctx, b, c);
            for (; m < end; m++) {
                count[(m->key - q0) >> (GS_KEY_TIME + shift)]++;
            }
        }
    }
    first_places(count, buckets);
    for (u32 t = 0; t < ctx->threads; t++) {
        const gs_box *b = &ctx->boxes[t][at];
        if (what == GS_PREFETCH_L2_SETS) {
            scatter(ctx, b, shift, base, GS_PREFETCH_L2_SETS);
        } else if (what == GS_PREFETCH_L1_LINES) {
            scatter(ctx, b, shift, base, GS_PREFETCH_L1_LINES);
        } else {
            scatter(ctx, b, shift, NULL, GS_PREFETCH_NOTHING);
        }
    }
    if (ctx->threads == 1) { /* other threads may still look at the box to prefetch it */
        box_clear(ctx, &ctx->boxes[0][at]);
    }
    /* Two at a time. A sentinel before the first message is smaller than all, one after the last is greater
       than all. */
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

/* Appends a box of another thread to thread 0's. The thread gets a free chunk for each chunk that it gives,
   so its number of chunks stays the same. */
static void box_move(gs_sim *sim, gs_thread *from, gs_box *b, gs_box *to)
{
    gs_chunk *chunks = GS_TABLE(sim, gs_chunk, at_chunks);
    for (u32 c = b->head; c; c = chunks[c].next) {
        u32 other = chunk_take(&sim->thread[0], chunks);
        if (other) {
            chunks[other].next = from->free_chunks;
            from->free_chunks = other;
        }
    }
    if (to->at) {
        gs_chunk *tail = &chunks[box_tail(to)];
        tail->n = to->at - box_tail(to) * (GS_CHUNK + 1) - 1;
        tail->next = b->head;
    } else {
        to->head = b->head;
    }
    to->at = b->at;
    *b = (gs_box){0};
}

void gs_mailbox_gather(gs_sim *sim)
{
    gs_thread *to = &sim->thread[0];
    for (u32 t = 1; t < GS_THREADS; t++) {
        gs_thread *from = &sim->thread[t];
        for (u32 ring = 0; ring < GS_RING; ring++) {
            u64 row = (u64)ring * sim->boxes * sizeof(gs_box);
            for (u32 i = 0; from->any[ring] && i < sim->boxes; i++) {
                gs_box *b = (gs_box *)(void *)((char *)sim + from->at_boxes + row) + i;
                if (b->at) {
                    box_move(sim, from, b, (gs_box *)(void *)((char *)sim + to->at_boxes + row) + i);
                }
            }
            to->any[ring] |= from->any[ring];
            from->any[ring] = 0;
        }
    }
}
