/* Loops of a class: see convert_loop.h. Instructions are pushed on a stack one after another. If the last of
   them repeat those before, or the body of a loop below them, they become one loop. */
#include "trace/convert_loop.h"

#include "trace/convert.h"
#include "trace/convert_tables.h"

#include <stdlib.h>
#include <string.h>

/* Functions call themselves for nested loops, which are at most GS_HEIGHT deep.
   NOLINTBEGIN(misc-no-recursion) */

enum { LOOP = 0xffffffff, LONGEST = 65535, CHAIN = 4 };

typedef struct node {
    u64 value;        /* hash of its content */
    u64 fits;         /* unrolled accesses of one pass */
    u64 first;        /* instruction: its unrolled access */
    u64 body, length; /* loop: its nodes in the pool */
    i64 step[GS_HEIGHT];
    u32 row; /* LOOP: a loop */
    u32 count;
    u32 place;  /* instruction: its gs_place */
    u8 reaches; /* instruction: it has an access */
    u8 height;
    u8 recorded;
} node;

typedef struct roller {
    gs_convert *c;
    gs_stream *s;
    int few; /* addresses without a rule are recorded, so that a loop is possible */
    node *stack, *pool;
    u64 *hash;       /* hash[i]: of the nodes below i */
    i64 *under;      /* the nearest loop at or below a node; -1: none */
    u64 top, pooled; /* a loop takes twice as many nodes off the stack as it adds to the pool: n are enough */
    u64 *power;
    u64 power_n;
    gs_index known; /* value -> where on the stack it was last */
    u32 before;     /* where the last settled value was before */
    u64 odd, odd_n; /* nodes below which there is no repetition of the odd_n before; 0: none is known */
} roller;

static u64 scramble(u64 x)
{
    x ^= x >> 31;
    x *= 0x9E3779B97F4A7C15ull;
    return (x ^ x >> 29) | 1;
}

enum { BASE_ODD = 0x2545F491 };

static u64 range_hash(const roller *r, u64 from, u64 to)
{
    return r->hash[to] - r->hash[from] * r->power[to - from];
}

/* Modulo 2^64, as addresses may be at both ends. */
static i64 apart(const roller *r, const node *a, const node *b)
{
    return (i64)((u64)r->s->fits[b->first].address - (u64)r->s->fits[a->first].address);
}

static int fits_agree(const roller *r, const node *a, const node *b, u32 level, u32 turn)
{
    const gs_fit *f = &r->s->fits[a->first], *g = &r->s->fits[b->first];
    if (f->since != GS_NOWHERE || g->since != GS_NOWHERE || a->recorded || b->recorded ||
        f->shape != g->shape) {
        return 0;
    }
    for (u32 i = 0; i < GS_FITS; i++) {
        if (f->c[i] != g->c[i]) {
            return 0;
        }
    }
    for (u32 i = 0; i < level; i++) {
        if (a->step[i] != b->step[i]) {
            return 0;
        }
    }
    i64 moved = apart(r, a, b);
    return turn == 1 ? moved < (i64)1 << 40 && moved > -((i64)1 << 40) : moved == a->step[level] * (i64)turn;
}

/* 1: it is recorded in any case; then the other may be, too. */
static int is_recorded(const roller *r, const node *a, const node *b)
{
    return a->recorded || b->recorded || r->s->fits[a->first].since != GS_NOWHERE ||
           r->s->fits[b->first].since != GS_NOWHERE;
}

/* 0: `b` may be the next pass after `a`; else the number of nodes up to the last that may not. */
static u64 disagree(const roller *r, const node *a, const node *b, u64 n, u32 level, u32 turn)
{
    for (u64 i = n; i > 0; i--) {
        const node *x = &a[i - 1], *y = &b[i - 1];
        if (x->row != y->row || x->count != y->count || x->length != y->length) {
            return i;
        }
        if (x->row == LOOP
                ? disagree(r, r->pool + x->body, r->pool + y->body, x->length, level, turn) != 0
                : x->reaches && !r->few && !is_recorded(r, x, y) && !fits_agree(r, x, y, level, turn)) {
            return i;
        }
    }
    return 0;
}

/* `a` is in a loop now, whose next pass is `b`. */
static void take(roller *r, node *a, const node *b, u64 n, u32 level, u32 turn)
{
    for (u64 i = 0; i < n; i++) {
        if (a[i].row == LOOP) {
            take(r, r->pool + a[i].body, r->pool + b[i].body, a[i].length, level, turn);
        } else if (a[i].reaches) {
            if (!fits_agree(r, &a[i], &b[i], level, turn)) {
                a[i].recorded = 1;
            } else if (turn == 1) {
                a[i].step[level] = apart(r, &a[i], &b[i]);
            }
        }
    }
}

/* The stack. */
static int settle(roller *r, u64 at)
{
    const node *x = &r->stack[at];
    r->hash[at + 1] = r->hash[at] * r->power[1] + x->value;
    r->under[at] = x->row == LOOP ? (i64)at : at ? r->under[at - 1] : -1;
    r->before = gs_index_set(&r->known, x->value, (u32)at);
    return r->known.room != 0;
}

static u64 loop_value(const roller *r, const node *x)
{
    u64 h = x->count;
    for (u64 i = 0; i < x->length; i++) {
        h = gs_mix(h, r->pool[x->body + i].value) ^ h >> 32;
    }
    return scramble(h ^ x->length << 32);
}

static u64 body_hash(const roller *r, const node *x)
{
    u64 h = 0;
    for (u64 i = 0; i < x->length; i++) {
        h = h * r->power[1] + r->pool[x->body + i].value;
    }
    return h;
}

/* The last nodes are one more pass of a loop below them. */
static int extend(roller *r)
{
    i64 at = r->top >= 2 ? r->under[r->top - 2] : -1;
    for (u32 i = 0; at >= 0 && i < CHAIN; i++, at = at ? r->under[at - 1] : -1) {
        node *x = &r->stack[at];
        u64 n = r->top - 1 - (u64)at;
        if (n != x->length || x->count >= LONGEST ||
            r->pool[x->body + n - 1].value != r->stack[r->top - 1].value ||
            body_hash(r, x) != range_hash(r, (u64)at + 1, r->top) ||
            disagree(r, r->pool + x->body, r->stack + at + 1, n, x->height - 1u, x->count)) {
            continue;
        }
        take(r, r->pool + x->body, r->stack + at + 1, n, x->height - 1u, x->count);
        x->count++;
        x->value = loop_value(r, x);
        r->top = (u64)at + 1;
        r->odd_n = 0;
        return settle(r, (u64)at) ? 1 : -1;
    }
    return 0;
}

/* The last nodes repeat those before them. */
static int begin(roller *r)
{
    u64 best = r->before == GS_NOWHERE ? 0 : r->before + 1ull;
    if (!best || best >= r->top || r->stack[best - 1].value != r->stack[r->top - 1].value) {
        return 0;
    }
    u64 n = r->top - best;
    if (n == r->odd_n && r->odd > best) {
        return 0;
    }
    if (best < n || range_hash(r, best - n, best) != range_hash(r, best, r->top)) {
        return 0;
    }
    u32 height = 0;
    for (u64 i = best - n; i < best; i++) {
        height = gs_max32(height, r->stack[i].height);
    }
    if (height >= GS_HEIGHT) {
        return 0;
    }
    u64 odd = disagree(r, r->stack + best - n, r->stack + best, n, height, 1);
    if (odd) {
        r->odd = best + odd; /* this holds as long as that node is among the last n */
        r->odd_n = n;
        return 0;
    }
    take(r, r->stack + best - n, r->stack + best, n, height, 1);
    node loop = {.row = LOOP, .count = 2, .body = r->pooled, .length = n, .height = (u8)(height + 1)};
    for (u64 i = 0; i < n; i++) {
        const node *x = &r->stack[best - n + i];
        r->pool[r->pooled++] = *x;
        loop.fits += x->fits * (x->row == LOOP ? x->count : 1);
    }
    loop.value = loop_value(r, &loop);
    r->top = best - n;
    r->odd_n = 0;
    r->stack[r->top++] = loop;
    return settle(r, r->top - 1) ? 1 : -1;
}

static int push(roller *r, node x)
{
    r->stack[r->top++] = x;
    if (!settle(r, r->top - 1)) {
        return 0;
    }
    for (int merged = !(r->c->plain & 2); merged;) {
        merged = extend(r);
        merged = merged ? merged : begin(r);
        if (merged < 0) {
            return 0;
        }
    }
    return 1;
}

/* A pattern whose warps span more memory than is laid out together is recorded instead. */
static int span_of_access(const roller *r, const node *x, const u64 *counts, i64 *lo, i64 *hi)
{
    const gs_stream *s = r->s;
    const gs_fit *f = &s->fits[x->first];
    const gs_shape_lanes *shape = (const gs_shape_lanes *)r->c->shapes.at + (f->shape - 1);
    const __int128 most = (__int128)1 << 60;
    __int128 low = f->address, high = f->address;
    for (u32 i = 0; i < GS_FITS; i++) {
        __int128 a = (__int128)f->c[i] * ((i64)s->lo[i] - s->first[i]);
        __int128 b = (__int128)f->c[i] * ((i64)s->hi[i] - s->first[i]);
        low += a < b ? a : b;
        high += a < b ? b : a;
    }
    for (u32 i = 0; i < GS_HEIGHT; i++) {
        __int128 b = (__int128)x->step[i] * (i64)(counts[i] - 1);
        low += b < 0 ? b : 0;
        high += b < 0 ? 0 : b;
    }
    i64 least = 0, last = 0;
    for (u32 left = shape->lanes; left; left &= left - 1) {
        i64 at = shape->offset[gs_ctz(left)];
        least = at < least ? at : least;
        last = at > last ? at : last;
    }
    low += least;
    high += last + shape->width;
    if (low < 0 || high > most || high - low >= (__int128)1 << GS_SPAN_BITS) {
        return 0;
    }
    *lo = (i64)low;
    *hi = (i64)high;
    return 1;
}

/* Marks every unrolled access that a recorded one stands for. */
static void mark(roller *r, node *x, u64 n, u64 moved, u64 *counts)
{
    for (u64 i = 0; i < n; i++) {
        if (x[i].row == LOOP) {
            u64 level = x[i].height - 1u, before = counts[level], each = x[i].fits;
            counts[level] = x[i].count;
            for (u64 pass = 0; pass < x[i].count; pass++) {
                mark(r, r->pool + x[i].body, x[i].length, moved + pass * each, counts);
            }
            counts[level] = before;
        } else if (x[i].reaches) {
            gs_fit *f = &r->s->fits[x[i].first];
            i64 lo, hi;
            if (moved == 0 && !x[i].recorded &&
                (f->since != GS_NOWHERE || !span_of_access(r, &x[i], counts, &lo, &hi))) {
                x[i].recorded = 1;
            }
            for (u64 j = 0; j < x[i].fits; j++) {
                r->s->fits[x[i].first + moved + j].recorded = x[i].recorded;
            }
        }
    }
}

typedef struct writer {
    u64 first_item, at;                      /* place in the warp's block */
    u64 counts[GS_HEIGHT], sizes[GS_HEIGHT]; /* loops around: passes, recorded accesses of one */
    u32 levels;                              /* bit a loop around */
} writer;

static u64 block_size(const roller *r, const node *x, u64 n)
{
    u64 size = 0;
    for (u64 i = 0; i < n; i++) {
        size += x[i].row == LOOP ? x[i].count * block_size(r, r->pool + x[i].body, x[i].length)
                : x[i].recorded  ? x[i].fits
                                 : 0;
    }
    return size;
}

static u8 align_of(const gs_place *p)
{
    u64 all = (u64)(p->base | p->bx | p->by | p->bz | p->warp | p->step | p->step2) | 128;
    return (u8)(all & (0 - all));
}

/* The place of an instruction's access number `piece`; the pieces of local memory are a constant apart. */
static int write_place(roller *r, const node *x, u64 piece, writer *w)
{
    gs_place *p = gs_vector_room(&r->c->places, 1, sizeof *p);
    if (!p) {
        return 0;
    }
    memset(p, 0, sizeof *p);
    i64 step[GS_HEIGHT];
    for (u32 i = 0; i < GS_HEIGHT; i++) {
        step[i] = !(w->levels >> i & 1) ? 0 : x->recorded ? (i64)w->sizes[i] : x->step[i];
    }
    /* `level` is the innermost loop that moves it */
    u32 inner = w->levels & 1 ? 0 : 1;
    p->level = (u8)inner;
    p->step = step[inner];
    p->level2 = 1;
    p->step2 = inner == 0 ? step[1] : 0;
    if (x->recorded) {
        p->recorded = 1;
        p->align = 1;
        p->base = (i64)w->at++;
    } else {
        const gs_fit *f = &r->s->fits[x->first];
        i64 lo = 0, hi = 0;
        u64 counts[GS_HEIGHT];
        for (u32 i = 0; i < GS_HEIGHT; i++) {
            counts[i] = w->levels >> i & 1 ? w->counts[i] : 1;
        }
        span_of_access(r, x, counts, &lo, &hi);
        u64 further = (u64)r->s->fits[x->first + piece].address - (u64)f->address;
        p->lo = (u64)lo + further;
        p->hi = (u64)hi + further;
        p->base = (i64)((u64)f->address + further);
        for (u32 i = 0; i < GS_FITS; i++) {
            p->base = (i64)((u64)p->base - (u64)f->c[i] * r->s->first[i]);
        }
        p->bx = f->c[0];
        p->by = f->c[1];
        p->bz = f->c[2];
        p->warp = f->c[3];
        p->shape = f->shape;
        p->align = align_of(p);
        if (gs_pages_claim(r->c, p->lo, p->hi)) {
            return 0;
        }
    }
    r->c->places.n++;
    return 1;
}

static int write_items(roller *r, node *x, u64 n, writer *w)
{
    for (u64 i = 0; i < n; i++) {
        gs_item item = {x[i].row, GS_NOWHERE, 0, 0};
        if (x[i].row == LOOP) {
            u32 level = x[i].height - 1u;
            u64 first = r->c->items.n - w->first_item, begins = w->at, size;
            size = block_size(r, r->pool + x[i].body, x[i].length);
            w->levels |= 1u << level;
            w->counts[level] = x[i].count;
            w->sizes[level] = size;
            if (!write_items(r, r->pool + x[i].body, x[i].length, w)) {
                return 0;
            }
            w->levels &= ~(1u << level);
            w->at = begins + size * x[i].count;
            item = (gs_item){GS_LOOP_END, (u32)first, x[i].count, level};
        } else if (x[i].reaches) {
            item.a = (u32)r->c->places.n;
            item.count = (u32)x[i].fits;
            for (u64 j = 0; j < x[i].fits; j++) {
                if (!write_place(r, &x[i], j, w)) {
                    return 0;
                }
            }
            x[i].place = item.a;
        }
        gs_item *to = gs_vector_room(&r->c->items, 1, sizeof *to);
        if (!to) {
            return 0;
        }
        *to = item;
        r->c->items.n++;
    }
    return 1;
}

/* Sets the place of every unrolled access. */
static void set_places(roller *r, const node *x, u64 n, u64 moved)
{
    for (u64 i = 0; i < n; i++) {
        for (u64 pass = 0; x[i].row == LOOP && pass < x[i].count; pass++) {
            set_places(r, r->pool + x[i].body, x[i].length, moved + pass * x[i].fits);
        }
        if (x[i].row != LOOP) {
            for (u64 j = 0; j < x[i].fits; j++) {
                r->s->fits[x[i].first + moved + j].place = (u32)(x[i].place + j);
            }
        }
    }
}

static int roll(roller *r)
{
    const gs_sass *rows = r->c->rows.at;
    gs_stream *s = r->s;
    u64 reach = 0;
    r->power[0] = 1;
    for (u64 i = 1; i <= s->n; i++) {
        r->power[i] = r->power[i - 1] * (0x9E3779B97F4A7C15ull ^ BASE_ODD << 1);
    }
    for (u64 i = 0; i < s->n; i++) {
        const gs_sass *inst = &rows[s->ids[i]];
        node x = {.row = s->ids[i], .value = scramble(s->ids[i] + 1ull), .first = reach};
        x.reaches = inst->space == GS_SPACE_GLOBAL || inst->space == GS_SPACE_LOCAL;
        x.fits = !x.reaches ? 0 : gs_accesses_of(inst);
        reach += x.fits;
        if (!push(r, x)) {
            return 0;
        }
    }
    u64 counts[GS_HEIGHT] = {1, 1};
    mark(r, r->stack, r->top, 0, counts);
    writer w = {.first_item = r->c->items.n};
    gs_class *to = gs_vector_room(&r->c->classes, 1, sizeof *to);
    if (!to || !write_items(r, r->stack, r->top, &w)) {
        return 0;
    }
    set_places(r, r->stack, r->top, 0);
    *to = (gs_class){w.first_item, r->c->items.n - w.first_item, s->n, s->warps, w.at};
    r->c->classes.n++;
    s->recorded = w.at;
    return 1;
}

int gs_convert_class(gs_convert *c, gs_stream *s)
{
    roller r = {.c = c, .s = s, .few = s->warps <= GS_FEW};
    r.stack = malloc((s->n + 1) * sizeof *r.stack);
    r.pool = malloc((s->n + 1) * sizeof *r.pool);
    r.hash = calloc(s->n + 2, sizeof *r.hash);
    r.under = malloc((s->n + 1) * sizeof *r.under);
    r.power = malloc((s->n + 2) * sizeof *r.power);
    int good = r.stack && r.pool && r.hash && r.under && r.power && roll(&r);
    free(r.stack);
    free(r.hash);
    free(r.under);
    free(r.power);
    free(r.pool);
    free(r.known.slot);
    free(r.known.hash);
    return good ? GS_OK : gs_convert_no_memory(c);
}
/* NOLINTEND(misc-no-recursion) */
