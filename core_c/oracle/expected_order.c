/* The order in which TBs of different kernels must touch each sector: see expected_order.h. */
#include "oracle/expected_order.h"

#include "base/fail.h"
#include "program/tb_walk.h"

#include <stdlib.h>

static int rehash(gs_oracle *o)
{
    u64 old_room = o->shadows_room;
    gs_oracle_sector *old = o->shadows, *fresh = calloc(old_room * 2, sizeof *fresh);
    if (!fresh) {
        return 0;
    }
    o->shadows = fresh;
    o->shadows_room = old_room * 2;
    for (u64 i = 0; i < old_room; i++) {
        if (old[i].key) {
            *gs_oracle_find(o, old[i].key - 1) = old[i];
        }
    }
    free(old);
    return 1;
}

void gs_oracle_drop_kernel(gs_oracle_kernel *k)
{
    free(k->touches);
    free(k->first);
    free(k->ended);
    gs_intra_kernel_free(k->inside);
    memset(k, 0, sizeof *k);
}

typedef struct gather {
    gs_oracle_touch *at;
    u64 n, room;
    int failed;
} gather;

static void gather_visit(void *user, const gs_iop *op, u64 line, u32 mask, const gs_bytes *bytes)
{
    gather *g = user;
    (void)bytes;
    for (u32 i = 0; i < 4; i++) {
        if (!(mask >> i & 1)) {
            continue;
        }
        if (!gs_grow((void **)&g->at, &g->room, g->n + 1, sizeof *g->at)) {
            g->failed = 1;
            return;
        }
        g->at[g->n++] = (gs_oracle_touch){.sector = line * 4 + i,
                                          .left = 1,
                                          .phase = op->phase,
                                          .write = !gs_is_load(op),
                                          .read = gs_is_load(op)};
    }
}

static int by_sector(const void *a, const void *b)
{
    const gs_oracle_touch *x = a, *y = b;
    if (x->phase != y->phase) {
        return x->phase < y->phase ? -1 : 1;
    }
    return x->sector < y->sector ? -1 : x->sector > y->sector;
}

static u64 unique(gs_oracle_touch *t, u64 n)
{
    u64 kept = 0;
    if (n == 0) {
        return 0;
    }
    qsort(t, n, sizeof *t, by_sector);
    for (u64 i = 0; i < n; i++) {
        if (kept && t[kept - 1].sector == t[i].sector && t[kept - 1].phase == t[i].phase) {
            t[kept - 1].left++;
            t[kept - 1].write |= t[i].write;
            t[kept - 1].read |= t[i].read;
        } else {
            t[kept++] = t[i];
        }
    }
    return kept;
}

/* What the accesses of a kernel, or of one of its stages, must come after. */
static int order_unit(gs_oracle *o, gs_oracle_touch *touches, u64 n, u32 phase)
{
    u32 unit = o->next_unit++;
    for (u64 i = 0; i < n; i++) {
        gs_oracle_touch *t = &touches[i];
        if (t->phase != phase) {
            continue;
        }
        if (o->shadows_n * 2 >= o->shadows_room && !rehash(o)) {
            return 0;
        }
        gs_oracle_sector *s = gs_oracle_find(o, t->sector);
        if (!s->key) {
            s->key = t->sector + 1;
            s->unit = s->writer = GS_NONE;
            o->shadows_n++;
        }
        if (s->unit != unit) {
            s->unit = unit;
            s->base_total = s->total;
            s->base_epoch = s->epoch;
            s->base_read = s->read_epoch;
            s->kinds = 0;
        }
        s->total++;
        s->kinds |= (u8)(t->write | t->read << 1);
        /* a reader comes after what was before the readers beside it; a writer after all */
        t->required[0] = s->base_read ? s->base_epoch : s->base_total;
        t->required[1] = s->base_total;
    }
    for (u64 i = 0; i < n; i++) {
        if (touches[i].phase == phase) {
            gs_oracle_sector *s = gs_oracle_find(o, touches[i].sector);
            s->epoch = s->kinds & 1 ? s->base_total : s->base_read ? s->base_epoch : s->base_total;
            s->read_epoch = !(s->kinds & 1);
            touches[i].place = s->kinds & 1 && s->total - s->base_total > 1;
        }
    }
    return 1;
}

gs_oracle_touch *gs_oracle_touch_of(const gs_oracle_kernel *k, u32 tb, u32 phase, u64 sector)
{
    if (!k->touches) {
        return NULL;
    }
    gs_oracle_touch key = {.sector = sector, .phase = (u16)phase};
    return bsearch(&key, k->touches + k->first[tb], k->first[tb + 1] - k->first[tb], sizeof key, by_sector);
}

static int posts_any(const gs_sim *sim, u32 kernel)
{
    const gs_program *p = gs_programs(sim) + gs_launches(sim)[kernel].program;
    for (u32 i = p->first_op; i < p->first_op + p->ops; i++) {
        if (gs_iops(sim)[i].kind == GS_OP_POST) {
            return 1;
        }
    }
    return 0;
}

typedef struct bytes_of {
    const gs_oracle_kernel *of;
    gs_intra_kernel_key *keys;
    u32 tb;
} bytes_of;

static void bytes_visit(void *user, const gs_iop *op, u64 line, u32 mask, const gs_bytes *bytes)
{
    const bytes_of *b = user;
    u32 kind = gs_is_load(op) ? GS_MSG_LOAD : op->kind == GS_OP_REDUCE ? GS_MSG_REDUCE : GS_MSG_STORE;
    for (u32 i = 0; i < 4; i++) {
        const gs_oracle_touch *t =
            mask >> i & 1 ? gs_oracle_touch_of(b->of, b->tb, op->phase, line * 4 + i) : NULL;
        if (t && t->place) {
            b->keys[t->place - 1].bytes[kind] |= bytes ? bytes->of[i] : ~0u;
        }
    }
}

/* TBs of one kernel that touch the same bytes are ordered by their posts. */
static int take_in_inside(const gs_sim *sim, gs_oracle_kernel *k, u32 kernel, u32 tbs)
{
    u64 n = 0, all = k->first[tbs];
    int checked = tbs <= GS_INTRA_KERNEL_TBS && posts_any(sim, kernel);
    for (u64 i = 0; i < all; i++) {
        k->touches[i].place &= (u32)checked;
        n += k->touches[i].place;
    }
    if (n == 0) {
        return 1;
    }
    gs_intra_kernel_key *keys = malloc(n * sizeof *keys);
    if (!keys) {
        return 0;
    }
    n = 0;
    for (u32 tb = 0; tb < tbs; tb++) {
        for (u64 i = k->first[tb]; i < k->first[tb + 1]; i++) {
            if (k->touches[i].place) {
                k->touches[i].place = (u32)n + 1;
                keys[n++] =
                    (gs_intra_kernel_key){k->touches[i].sector, (u32)i, tb, k->touches[i].phase, 0, {0}};
            }
        }
    }
    for (u32 tb = 0; tb < tbs; tb++) {
        bytes_of b = {k, keys, tb};
        gs_tb_walk(sim, kernel, tb, bytes_visit, &b);
    }
    k->inside = gs_intra_kernel_create(tbs, sim->n_semaphores, keys, n);
    for (u64 i = 0; i < n; i++) {
        k->touches[keys[i].touch].place = (u32)i + 1;
    }
    free(keys);
    return k->inside != NULL;
}

static int take_in(gs_sim *sim, gs_oracle *o, u32 kernel)
{
    gs_oracle_kernel *k = &o->kernels[kernel];
    u32 tbs = gs_kernels(sim)[kernel].tbs;
    gather g = {0};
    k->first = calloc((u64)tbs + 1, sizeof *k->first);
    k->ended = calloc(tbs, 1);
    k->left = tbs;
    if (!k->first || !k->ended) {
        return 0;
    }
    for (u32 tb = 0; tb < tbs; tb++) {
        u64 first = g.n;
        gs_tb_walk(sim, kernel, tb, gather_visit, &g);
        g.n = first + unique(g.at + first, g.n - first);
        k->first[tb + 1] = g.n;
    }
    k->touches = g.at;
    if (g.failed) {
        return 0;
    }
    u32 phases = 0;
    k->first_unit = o->next_unit;
    for (u64 i = 0; i < g.n; i++) {
        phases = gs_max32(phases, k->touches[i].phase);
    }
    for (u32 phase = 0; phase <= phases; phase++) {
        if (!order_unit(o, k->touches, g.n, phase)) {
            return 0;
        }
    }
    return take_in_inside(sim, k, kernel, tbs);
}

void gs_oracle_add_kernels(gs_sim *sim, u32 kernel)
{
    gs_oracle *o = gs_oracle_of(sim);
    while (o->next_kernel <= kernel) {
        if (!take_in(sim, o, o->next_kernel++)) {
            gs_fail(sim, GS_ERR_MEM, "the oracle needs more memory than there is");
            return;
        }
    }
}
