/* The oracle check, independent of every scheme: it expands the programs of all TBs in launch order and knows
   from that alone how many TB ends each access must come after.

   For a sector the accesses of all kernels, and of all stages of a kernel, fall into epochs in launch order:
   a kernel (a stage) that writes it is an epoch, readers between two writers share one. An access is right if
   every TB of all earlier epochs has published what it does with the sector: it has ended (its stores
   acknowledged at L2), or posted a semaphore after its last access of the sector. It is enough to count
   these: until the first wrong access nobody of a later epoch can have published. A load that L1 serves sees
   memory as of the line's reading from L2, or as of its SM's store there, which must not be before the last
   store came to L2.

   TBs of one kernel whose program posts semaphores: see intra_kernel.h. */
#include "oracle/oracle.h"

#include "base/fail.h"
#include "base/mailbox.h"
#include "oracle/intra_kernel.h"
#include "program/tb_cost.h"

#include <stdlib.h>

typedef struct touch {
    u64 sector;
    u32 required[2]; /* of its loads, of what it writes */
    u32 left;        /* accesses to come */
    u16 phase;
    u8 write, read, published, pad[3];
    u32 place; /* 1 + its place inside the kernel; 0: no other TB of it meets it there */
} touch;

typedef struct shadow {
    u64 key;     /* sector + 1 */
    u64 written; /* when the last store came to L2 */
    u32 total, epoch, done;
    u32 unit, base_total;                 /* of the kernel or stage being taken in */
    u8 read_epoch, base_read, kinds, pad; /* kinds: 1: the unit writes it, 2: and reads */
    u32 base_epoch;
} shadow;

typedef struct access {
    u64 time, seen; /* seen: what L1 showed is of this time; GS_NEVER: as of `time` */
    u64 line;
    u32 kernel, tb, mask;
    u16 phase;
    u8 kind; /* GS_MSG_LOAD, GS_MSG_STORE or GS_MSG_REDUCE */
    u8 what; /* ACCESS, or the TB posts or polls `line`, with those behind it `mask`, or ends */
} access;

enum { POSTS, POLLS, ACCESS, ENDS };

typedef struct log {
    access *at;
    u64 n, room;
} log;

typedef struct taken {
    touch *touches;
    u64 *first; /* of each TB, and one more */
    u8 *ended;
    gs_intra_kernel *inside; /* NULL: its TBs do not meet */
    u32 left;
} taken;

typedef struct oracle {
    log logs[GS_THREADS + 1]; /* the last: ends of TBs */
    log pending;
    shadow *shadows;
    u64 shadows_n, shadows_room;
    taken *kernels;
    u32 next_kernel, next_unit;
    u64 *l1_time; /* of each L1 sector: when it was read from L2, or stored there by its SM */
    int failed;
} oracle;

static oracle *oracle_of(const gs_sim *sim)
{
    return (oracle *)(uintptr_t)sim->oracle;
}

static int grow(void **at, u64 *room, u64 need, size_t size)
{
    if (need <= *room) {
        return 1;
    }
    u64 want = need * 2 + 1024;
    void *p = realloc(*at, want * size);
    if (!p) {
        return 0;
    }
    *at = p;
    *room = want;
    return 1;
}

static int push(log *l, access a)
{
    if (!grow((void **)&l->at, &l->room, l->n + 1, sizeof a)) {
        return 0;
    }
    l->at[l->n++] = a;
    return 1;
}

static shadow *find(oracle *o, u64 sector)
{
    u64 mask = o->shadows_room - 1;
    u64 i = gs_mix(0, sector + 1) >> 20 & mask;
    while (o->shadows[i].key && o->shadows[i].key != sector + 1) {
        i = (i + 1) & mask;
    }
    return &o->shadows[i];
}

static int rehash(oracle *o)
{
    u64 old_room = o->shadows_room;
    shadow *old = o->shadows, *fresh = calloc(old_room * 2, sizeof *fresh);
    if (!fresh) {
        return 0;
    }
    o->shadows = fresh;
    o->shadows_room = old_room * 2;
    for (u64 i = 0; i < old_room; i++) {
        if (old[i].key) {
            *find(o, old[i].key - 1) = old[i];
        }
    }
    free(old);
    return 1;
}

int gs_oracle_create(gs_sim *sim)
{
    oracle *o = calloc(1, sizeof *o);
    if (!o) {
        return 0;
    }
    sim->oracle = (u64)(uintptr_t)o;
    o->shadows_room = 1 << 16;
    o->shadows = calloc(o->shadows_room, sizeof *o->shadows);
    o->kernels = calloc(sim->n_launches, sizeof *o->kernels);
    o->l1_time = calloc((u64)sim->sms * GS_L1_SETS * GS_L1_WAYS * 4, sizeof *o->l1_time);
    return o->shadows && o->kernels && o->l1_time;
}

static void drop_kernel(taken *k)
{
    free(k->touches);
    free(k->first);
    free(k->ended);
    gs_intra_kernel_free(k->inside);
    memset(k, 0, sizeof *k);
}

void gs_oracle_free(gs_sim *sim)
{
    oracle *o = oracle_of(sim);
    if (!o) {
        return;
    }
    for (u32 i = 0; i <= GS_THREADS; i++) {
        free(o->logs[i].at);
    }
    for (u32 i = 0; o->kernels && i < sim->n_launches; i++) {
        drop_kernel(&o->kernels[i]);
    }
    free(o->pending.at);
    free(o->shadows);
    free(o->kernels);
    free(o->l1_time);
    free(o);
    sim->oracle = 0;
}

/* ---- taking in a kernel ---- */
typedef struct gather {
    touch *at;
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
        if (!grow((void **)&g->at, &g->room, g->n + 1, sizeof *g->at)) {
            g->failed = 1;
            return;
        }
        g->at[g->n++] = (touch){.sector = line * 4 + i,
                                .left = 1,
                                .phase = op->phase,
                                .write = op->kind != GS_OP_LOAD,
                                .read = op->kind == GS_OP_LOAD};
    }
}

static int by_sector(const void *a, const void *b)
{
    const touch *x = a, *y = b;
    if (x->phase != y->phase) {
        return x->phase < y->phase ? -1 : 1;
    }
    return x->sector < y->sector ? -1 : x->sector > y->sector;
}

static u64 unique(touch *t, u64 n)
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

/* Finds out what the accesses of a kernel, or of one of its stages, must come after. */
static int order_unit(oracle *o, touch *touches, u64 n, u32 phase)
{
    u32 unit = o->next_unit++;
    for (u64 i = 0; i < n; i++) {
        touch *t = &touches[i];
        if (t->phase != phase) {
            continue;
        }
        if (o->shadows_n * 2 >= o->shadows_room && !rehash(o)) {
            return 0;
        }
        shadow *s = find(o, t->sector);
        if (!s->key) {
            s->key = t->sector + 1;
            s->unit = GS_NONE;
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
        /* a reader waits for what came before the readers it stands among; a writer for everybody */
        t->required[0] = s->base_read ? s->base_epoch : s->base_total;
        t->required[1] = s->base_total;
    }
    for (u64 i = 0; i < n; i++) {
        if (touches[i].phase == phase) {
            shadow *s = find(o, touches[i].sector);
            s->epoch = s->kinds & 1 ? s->base_total : s->base_read ? s->base_epoch : s->base_total;
            s->read_epoch = !(s->kinds & 1);
            touches[i].place = s->kinds & 1 && s->total - s->base_total > 1;
        }
    }
    return 1;
}

static touch *touch_of(const taken *k, u32 tb, u32 phase, u64 sector)
{
    if (!k->touches) {
        return NULL;
    }
    touch key = {.sector = sector, .phase = (u16)phase};
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
    const taken *of;
    gs_intra_kernel_key *keys;
    u32 tb;
} bytes_of;

static void bytes_visit(void *user, const gs_iop *op, u64 line, u32 mask, const gs_bytes *bytes)
{
    const bytes_of *b = user;
    u32 kind = op->kind == GS_OP_LOAD ? GS_MSG_LOAD : op->kind == GS_OP_STORE ? GS_MSG_STORE : GS_MSG_REDUCE;
    for (u32 i = 0; i < 4; i++) {
        const touch *t = mask >> i & 1 ? touch_of(b->of, b->tb, op->phase, line * 4 + i) : NULL;
        if (t && t->place) {
            b->keys[t->place - 1].bytes[kind] |= bytes ? bytes->of[i] : ~0u;
        }
    }
}

/* Where TBs of one kernel meet, they are ordered by what they post. */
static int take_in_inside(const gs_sim *sim, taken *k, u32 kernel, u32 tbs)
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

static int take_in(gs_sim *sim, oracle *o, u32 kernel)
{
    taken *k = &o->kernels[kernel];
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

void gs_oracle_log_admit(gs_sim *sim, u32 kernel)
{
    oracle *o = oracle_of(sim);
    while (o->next_kernel <= kernel) {
        if (!take_in(sim, o, o->next_kernel++)) {
            gs_fail(sim, GS_ERR_MEM, "the oracle needs more memory than there is");
            return;
        }
    }
}

/* ---- the log ---- */
static u64 *l1_times(gs_sim *sim, const gs_sm *sm, u32 place)
{
    return oracle_of(sim)->l1_time + ((u64)sm->id * GS_L1_SETS * GS_L1_WAYS + place - GS_L1_WAYS) * 4;
}

void gs_oracle_log_poll(gs_ctx *ctx, u32 kernel, u32 tb, u32 semaphore, u32 count, u64 time)
{
    access a = {time, GS_NEVER, semaphore, kernel, tb, count, 0, 0, POLLS};
    if (!push(&oracle_of(ctx->sim)->logs[ctx->id], a)) {
        gs_fail(ctx->sim, GS_ERR_MEM, "the oracle needs more memory than there is");
    }
}

void gs_oracle_log_post(gs_ctx *ctx, u32 kernel, u32 tb, u32 semaphore, u64 time)
{
    access a = {time, GS_NEVER, semaphore, kernel, tb, 0, 0, 0, POSTS};
    if (!push(&oracle_of(ctx->sim)->logs[ctx->id], a)) {
        gs_fail(ctx->sim, GS_ERR_MEM, "the oracle needs more memory than there is");
    }
}

void gs_oracle_log_l2(gs_ctx *ctx, const gs_sm *sm, const gs_tb *tb, u64 line, u32 mask, u64 time, u32 kind,
                      u32 place)
{
    if (place && sm) { /* a copy from the host has neither */
        for (u32 i = 0; i < 4; i++) {
            if (mask >> i & 1) {
                l1_times(ctx->sim, sm, place)[i] = time;
            }
        }
    }
    access a = {time, GS_NEVER, line, tb->kernel, tb->tb, mask, (u16)tb->phase, (u8)kind, ACCESS};
    if (!push(&oracle_of(ctx->sim)->logs[ctx->id], a)) {
        gs_fail(ctx->sim, GS_ERR_MEM, "the oracle needs more memory than there is");
    }
}

void gs_oracle_log_l1(gs_ctx *ctx, const gs_sm *sm, const gs_tb *tb, u64 line, u32 mask, u64 time, u32 place)
{
    for (u32 i = 0; i < 4; i++) {
        if (mask >> i & 1) {
            access a = {time,           l1_times(ctx->sim, sm, place)[i],
                        line,           tb->kernel,
                        tb->tb,         1u << i,
                        (u16)tb->phase, GS_MSG_LOAD,
                        ACCESS};
            a.time = gs_max(a.time, a.seen);
            if (!push(&oracle_of(ctx->sim)->logs[ctx->id], a)) {
                gs_fail(ctx->sim, GS_ERR_MEM, "the oracle needs more memory than there is");
            }
        }
    }
}

void gs_oracle_log_end(gs_sim *sim, u32 kernel, u32 tb, u64 time)
{
    access a = {time, GS_NEVER, 0, kernel, tb, 0, 0, 0, ENDS};
    if (!push(&oracle_of(sim)->logs[GS_THREADS], a)) {
        gs_fail(sim, GS_ERR_MEM, "the oracle needs more memory than there is");
    }
}

/* ---- the check ---- */
/* what a TB does with a sector in an earlier epoch than access `a`, and has not published */
static const touch *pending(const oracle *o, const access *a, u64 sector, u32 kernel, u32 tb)
{
    const taken *k = &o->kernels[kernel];
    for (u64 i = k->first[tb]; !k->ended[tb] && i < k->first[tb + 1]; i++) {
        const touch *t = &k->touches[i];
        if (t->sector == sector && !t->published && (kernel < a->kernel || t->phase < a->phase) &&
            (t->write || a->kind != GS_MSG_LOAD)) {
            return t;
        }
    }
    return NULL;
}

static int violation(gs_sim *sim, const oracle *o, const access *a, u64 sector, int stale)
{
    for (u32 k = 0; k <= a->kernel; k++) {
        for (u32 tb = 0; o->kernels[k].left && tb < gs_kernels(sim)[k].tbs; tb++) {
            const touch *first = pending(o, a, sector, k, tb);
            if (!first) {
                continue;
            }
            const char *kind = a->kind == GS_MSG_LOAD ? "RAW" : first->write ? "WAW" : "WAR";
            return gs_fail(sim, GS_ERR_ORACLE,
                           "%s dependence broken: TB %u of kernel %u %s sector 0x%llx at %.3f us before TB "
                           "%u of kernel %u "
                           "has %s it",
                           kind, a->tb, a->kernel, a->kind == GS_MSG_LOAD ? "reads" : "writes",
                           (unsigned long long)(sector * 32), (double)a->time / 1024e3, tb, k,
                           first->write ? "written" : "read");
        }
    }
    return gs_fail(sim, GS_ERR_ORACLE,
                   "stale L1 line: TB %u of kernel %u reads sector 0x%llx at %.3f us as it was before its %s",
                   a->tb, a->kernel, (unsigned long long)(sector * 32), (double)a->time / 1024e3,
                   stale ? "last writer ended" : "writers ended");
}

/* a TB and another of its kernel, neither of which waits for the other */
static int race(gs_sim *sim, const access *a, u64 sector, u32 other, u32 other_kind)
{
    int reads = a->kind == GS_MSG_LOAD, after_read = other_kind == GS_MSG_LOAD;
    return gs_fail(
        sim, GS_ERR_ORACLE,
        "%s dependence broken inside kernel %u: TB %u of it %s sector 0x%llx at %.3f us and does not "
        "wait for TB %u of it, which has %s it",
        reads        ? "RAW"
        : after_read ? "WAR"
                     : "WAW",
        a->kernel, a->tb, reads ? "reads" : "writes", (unsigned long long)(sector * 32),
        (double)a->time / 1024e3, other, after_read ? "read" : "written");
}

static int check_access(gs_sim *sim, oracle *o, const access *a)
{
    for (u32 i = 0; i < 4; i++) {
        if (!(a->mask >> i & 1)) {
            continue;
        }
        u64 sector = a->line * 4 + i;
        touch *t = touch_of(&o->kernels[a->kernel], a->tb, a->phase, sector);
        shadow *s = find(o, sector);
        if (!t || !s->key || !t->left) {
            return gs_fail(sim, GS_ERR_ORACLE,
                           "TB %u of kernel %u touches sector 0x%llx, which its program does not name", a->tb,
                           a->kernel, (unsigned long long)(sector * 32));
        }
        t->left--;
        if (s->done < t->required[a->kind != GS_MSG_LOAD]) {
            return violation(sim, o, a, sector, 0);
        }
        if (a->seen != GS_NEVER && a->seen < s->written) {
            return violation(sim, o, a, sector, 1);
        }
        if (a->kind != GS_MSG_LOAD) {
            s->written = gs_max(s->written, a->time);
        }
        if (t->place) {
            u32 before,
                other = gs_intra_kernel_access(o->kernels[a->kernel].inside, t->place - 1, a->kind, &before);
            if (other != GS_NONE) {
                return race(sim, a, sector, other, before);
            }
        }
    }
    return GS_OK;
}

/* A TB posts or ends: what it will not touch again counts as done. */
static void publish(oracle *o, const access *a)
{
    taken *k = &o->kernels[a->kernel];
    for (u64 i = k->first[a->tb]; i < k->first[a->tb + 1]; i++) {
        touch *t = &k->touches[i];
        if (t->published || (t->left && a->what == POSTS)) {
            continue;
        }
        shadow *s = find(o, t->sector);
        t->published = 1;
        s->done++;
    }
    if (a->what == ENDS) {
        k->ended[a->tb] = 1;
        if (--k->left == 0) {
            drop_kernel(k);
        }
    }
}

static int by_time(const void *x, const void *y)
{
    const access *a = x, *b = y;
    if (a->time != b->time) {
        return a->time < b->time ? -1 : 1;
    }
    /* what ends now is published now, to later kernels; copies may begin and end at one time */
    if (a->kernel != b->kernel) {
        return a->kernel < b->kernel ? -1 : 1;
    }
    if (a->what != b->what) {
        return a->what < b->what ? -1 : 1;
    }
    if (a->tb != b->tb) {
        return a->tb < b->tb ? -1 : 1;
    }
    if (a->phase != b->phase) {
        return a->phase < b->phase ? -1 : 1;
    }
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    return a->line != b->line ? (a->line < b->line ? -1 : 1) : (a->mask < b->mask ? -1 : a->mask > b->mask);
}

int gs_oracle_check(gs_sim *sim)
{
    oracle *o = oracle_of(sim);
    u64 end = sim->q0 + sim->quantum, kept = 0;
    log due = {0};
    for (u32 l = 0; l <= GS_THREADS; l++) {
        log *from = &o->logs[l];
        for (u64 i = 0; i < from->n; i++) {
            if (!push(&o->pending, from->at[i])) {
                return gs_fail(sim, GS_ERR_MEM, "the oracle needs more memory than there is");
            }
        }
        from->n = 0;
    }
    for (u64 i = 0; i < o->pending.n; i++) {
        access a = o->pending.at[i];
        if (a.time >= end && !sim->sched.finished) {
            o->pending.at[kept++] = a;
        } else if (!push(&due, a)) {
            free(due.at);
            return gs_fail(sim, GS_ERR_MEM, "the oracle needs more memory than there is");
        }
    }
    o->pending.n = kept;
    if (due.n) {
        qsort(due.at, due.n, sizeof *due.at, by_time);
    }
    int code = GS_OK;
    for (u64 i = 0; i < due.n && code == GS_OK; i++) {
        const access *a = &due.at[i];
        gs_intra_kernel *inside = o->kernels[a->kernel].inside;
        if (a->what == POLLS) {
            if (inside) {
                gs_intra_kernel_poll(inside, a->tb, (u32)a->line, a->mask);
            }
        } else if (a->what == ACCESS) {
            code = check_access(sim, o, a);
        } else if (a->what == POSTS && inside && !gs_intra_kernel_post(inside, a->tb, (u32)a->line)) {
            code = gs_fail(sim, GS_ERR_MEM, "the oracle needs more memory than there is");
        } else {
            publish(o, a);
        }
    }
    free(due.at);
    return code;
}
