/* Mailboxes: see mail.h. Chunk 0 is never used, so index 0 means none. */
#include "mail.h"

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
    ctx->chunks[c].n = 0;
    return c;
}

void gs_mail_append(gs_ctx *ctx, gs_box *box, gs_msg m)
{
    u32 c = chunk_take(ctx);
    if (c == 0) {
        gs_fail(ctx->sim, GS_ERR_LIMIT, "more messages in flight than the arena holds; please report this");
        return;
    }
    if (box->tail) {
        ctx->chunks[box->tail].next = c;
        ctx->chunks[box->tail].n = box->n;
    } else {
        box->head = c;
    }
    box->tail = c;
    box->n = 1;
    ctx->chunks[c].m[0] = m;
}

void gs_mail_far(gs_ctx *ctx, u32 box, gs_msg m)
{
    gs_sim *sim = ctx->sim;
    gs_thread *t = ctx->t;
    if (t->far_n == sim->far_room) {
        gs_fail(sim, GS_ERR_LIMIT, "more distant messages than the arena holds; please report this");
        return;
    }
    gs_far *far = (gs_far *)(void *)((char *)sim + t->at_far);
    far[t->far_n++] = (gs_far){m, box, 0};
}

void gs_mail_near(gs_ctx *ctx)
{
    gs_sim *sim = ctx->sim;
    gs_thread *t = ctx->t;
    gs_far *far = (gs_far *)(void *)((char *)sim + t->at_far);
    u32 kept = 0;
    for (u32 i = 0; i < t->far_n; i++) {
        u64 time = far[i].m.key >> GS_SENDER_BITS;
        u64 q = ctx->qn + gs_div_by(time - ctx->q0, sim->by_quantum);
        if (q < sim->far_limit) {
            u32 ring = (u32)q & (GS_RING - 1);
            t->any[ring] = 1;
            gs_box_put(ctx, ctx->chunks, &ctx->boxes[ctx->id][ring * sim->boxes + far[i].box], far[i].m);
        } else {
            far[kept++] = far[i];
        }
    }
    t->far_n = kept;
}

/* One pass to count, one to scatter into buckets of about a cycle, then an insertion pass that finds almost
   everything in place: measured faster than heaps, calendars and qsort at these sizes. */
u32 gs_mail_take(gs_ctx *ctx, u32 box, const gs_msg **out, const char *prefetch, size_t stride)
{
    gs_sim *sim = ctx->sim;
    u32 at = ((u32)ctx->qn & (GS_RING - 1)) * sim->boxes + box;
    u32 n = 0;
    for (u32 t = 0; t < ctx->threads; t++) {
        gs_box *b = &ctx->boxes[t][at];
        if (b->tail) {
            ctx->chunks[b->tail].n = b->n;
        }
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
    u64 q0 = ctx->q0;
    u16 *count = ctx->count;
    u32 shift = n <= 24 ? 12 : 9;
    u32 buckets = (u32)(sim->quantum >> shift) + 2;
    memset(count, 0, buckets * sizeof *count);
    for (u32 t = 0; t < ctx->threads; t++) {
        for (u32 c = ctx->boxes[t][at].head; c; c = ctx->chunks[c].next) {
            const gs_chunk *k = &ctx->chunks[c];
            for (u32 i = 0; i < k->n; i++) {
                count[((k->m[i].key >> GS_SENDER_BITS) - q0) >> shift]++;
            }
        }
    }
    u32 sum = 0;
    for (u32 i = 0; i < buckets; i++) {
        u32 x = count[i];
        count[i] = (u16)sum;
        sum += x;
    }
    gs_msg *s = ctx->sorted;
    for (u32 t = 0; t < ctx->threads; t++) {
        gs_box *b = &ctx->boxes[t][at];
        u32 c = b->head;
        while (c) {
            gs_chunk *k = &ctx->chunks[c];
            for (u32 i = 0; i < k->n; i++) {
                gs_msg m = k->m[i];
                if (prefetch) {
                    __builtin_prefetch(
                        prefetch + GS_PAY_UNIT(m.pay) * stride + GS_PAY_SET(m.pay) * sizeof(gs_set), 1);
                }
                s[count[((m.key >> GS_SENDER_BITS) - q0) >> shift]++] = m;
            }
            u32 next = k->next;
            gs_thread *mine = ctx->t;
            if (k->owner == ctx->id) {
                k->next = mine->free_chunks;
                mine->free_chunks = c;
            } else {
                k->next = mine->ret_head[k->owner];
                if (!mine->ret_head[k->owner]) {
                    mine->ret_tail[k->owner] = c;
                }
                mine->ret_head[k->owner] = c;
            }
            c = next;
        }
        *b = (gs_box){0};
    }
    for (u32 i = 1; i < n; i++) {
        if (s[i].key < s[i - 1].key) {
            gs_msg m = s[i];
            u32 j = i;
            do {
                s[j] = s[j - 1];
                j--;
            } while (j && s[j - 1].key > m.key);
            s[j] = m;
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
            if (to[i].tail) {
                chunks[to[i].tail].next = from[i].head;
                chunks[to[i].tail].n = to[i].n;
            } else {
                to[i].head = from[i].head;
            }
            to[i].tail = from[i].tail;
            to[i].n = from[i].n;
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
