/* The oracle check. It is independent of every scheme: from the programs of all TBs, expanded in launch
   order, follows how many TB ends each access must come after (expected_order.c).

   The accesses of a sector by all kernels, and by all stages of a kernel, are in epochs, in launch order: a
   kernel (a stage) that writes the sector is an epoch; readers between two writers share one. An access is
   right if every TB of all earlier epochs has published what it does with the sector: it has ended, with its
   stores acknowledged at L2, or posted a semaphore after its last access of the sector. Counting them is
   enough: until the first wrong access, no TB of a later epoch can have published. A load that L1 serves sees
   memory as of when the line was read from L2, or stored there by its SM; that must not be before the last
   store of an earlier kernel (stage) arrived at L2. TBs of its own kernel may write other bytes of the sector
   at any time.

   TBs of one kernel whose program posts semaphores are checked by intra_kernel.c. */
#include "oracle/oracle.h"

#include "base/fail.h"
#include "oracle/expected_order.h"
#include "oracle/oracle_state.h"

#include <stdlib.h>

int gs_oracle_create(gs_sim *sim)
{
    gs_oracle *o = calloc(1, sizeof *o);
    if (!o) {
        return 0;
    }
    sim->oracle = o;
    o->shadows_room = 1 << 16;
    o->shadows = calloc(o->shadows_room, sizeof *o->shadows);
    o->kernels = calloc(sim->n_launches, sizeof *o->kernels);
    o->l1_time = calloc((u64)sim->sms * GS_L1_SETS * GS_L1_WAYS * 4, sizeof *o->l1_time);
    return o->shadows && o->kernels && o->l1_time;
}

void gs_oracle_free(gs_sim *sim)
{
    gs_oracle *o = gs_oracle_of(sim);
    if (!o) {
        return;
    }
    for (u32 i = 0; i <= GS_THREADS; i++) {
        free(o->logs[i].at);
    }
    for (u32 i = 0; o->kernels && i < sim->n_launches; i++) {
        gs_oracle_drop_kernel(&o->kernels[i]);
    }
    free(o->pending.at);
    free(o->shadows);
    free(o->kernels);
    free(o->l1_time);
    free(o);
    sim->oracle = 0;
}

/* An access of the sector by a TB of `kernel`, in an earlier epoch than `a`, that the TB has not published;
   NULL: none. */
static const gs_oracle_touch *pending(const gs_oracle *o, const gs_oracle_access *a, u64 sector, u32 kernel,
                                      u32 tb)
{
    const gs_oracle_kernel *k = &o->kernels[kernel];
    for (u64 i = k->first[tb]; !k->ended[tb] && i < k->first[tb + 1]; i++) {
        const gs_oracle_touch *t = &k->touches[i];
        if (t->sector == sector && !t->published && (kernel < a->kernel || t->phase < a->phase) &&
            (t->write || a->kind != GS_MSG_LOAD)) {
            return t;
        }
    }
    return NULL;
}

static int violation(gs_sim *sim, const gs_oracle *o, const gs_oracle_access *a, u64 sector, int stale)
{
    for (u32 k = 0; k <= a->kernel; k++) {
        for (u32 tb = 0; o->kernels[k].left && tb < gs_kernels(sim)[k].tbs; tb++) {
            const gs_oracle_touch *first = pending(o, a, sector, k, tb);
            if (!first) {
                continue;
            }
            const char *kind = a->kind == GS_MSG_LOAD ? "RAW" : first->write ? "WAW" : "WAR";
            return gs_fail(sim, GS_ERR_ORACLE,
                           "%s dependence broken: TB %u of kernel %u %s sector 0x%llx at %.3f us before TB "
                           "%u of kernel %u "
                           "has %s it",
                           kind, a->tb, a->kernel, a->kind == GS_MSG_LOAD ? "reads" : "writes",
                           (unsigned long long)sector * 32, (double)a->time / 1024e3, tb, k,
                           first->write ? "written" : "read");
        }
    }
    return gs_fail(sim, GS_ERR_ORACLE,
                   "stale L1 line: TB %u of kernel %u reads sector 0x%llx at %.3f us as it was before its %s",
                   a->tb, a->kernel, (unsigned long long)sector * 32, (double)a->time / 1024e3,
                   stale ? "last writer ended" : "writers ended");
}

/* Reports two TBs of a kernel that access a sector in no order: neither waits for the other. */
static int race(gs_sim *sim, const gs_oracle_access *a, u64 sector, u32 other, u32 other_kind)
{
    int reads = a->kind == GS_MSG_LOAD, after_read = other_kind == GS_MSG_LOAD;
    return gs_fail(
        sim, GS_ERR_ORACLE,
        "%s dependence broken inside kernel %u: TB %u of it %s sector 0x%llx at %.3f us and does not "
        "wait for TB %u of it, which has %s it",
        reads        ? "RAW"
        : after_read ? "WAR"
                     : "WAW",
        a->kernel, a->tb, reads ? "reads" : "writes", (unsigned long long)sector * 32,
        (double)a->time / 1024e3, other, after_read ? "read" : "written");
}

static int check_access(gs_sim *sim, gs_oracle *o, const gs_oracle_access *a)
{
    for (u32 i = 0; i < 4; i++) {
        if (!(a->mask >> i & 1)) {
            continue;
        }
        u64 sector = a->line * 4 + i;
        gs_oracle_touch *t = gs_oracle_touch_of(&o->kernels[a->kernel], a->tb, a->phase, sector);
        gs_oracle_sector *s = gs_oracle_find(o, sector);
        if (!t || !s->key || !t->left) {
            return gs_fail(sim, GS_ERR_ORACLE,
                           "TB %u of kernel %u touches sector 0x%llx, which its program does not name", a->tb,
                           a->kernel, (unsigned long long)sector * 32);
        }
        t->left--;
        if (s->done < t->required[a->kind != GS_MSG_LOAD]) {
            return violation(sim, o, a, sector, 0);
        }
        u32 unit = o->kernels[a->kernel].first_unit + a->phase;
        if (a->seen != GS_NEVER && a->seen < (s->writer == unit ? s->written_before : s->written)) {
            return violation(sim, o, a, sector, 1);
        }
        if (a->kind != GS_MSG_LOAD) {
            s->written_before = s->writer == unit ? s->written_before : s->written;
            s->written = gs_max(s->written, a->time);
            s->writer = unit;
        }
        if (t->place) {
            gs_intra_kernel_found found =
                gs_intra_kernel_access(o->kernels[a->kernel].inside, t->place - 1, a->kind, a->time, a->seen);
            if (found.stale) {
                return violation(sim, o, a, sector, 1);
            }
            if (found.tb != GS_NONE) {
                return race(sim, a, sector, found.tb, found.kind);
            }
        }
    }
    return GS_OK;
}

/* A TB posts or ends: publishes the sectors that it will not touch again. */
static void publish(gs_oracle *o, const gs_oracle_access *a)
{
    gs_oracle_kernel *k = &o->kernels[a->kernel];
    for (u64 i = k->first[a->tb]; i < k->first[a->tb + 1]; i++) {
        gs_oracle_touch *t = &k->touches[i];
        if (t->published || (t->left && a->what == GS_ORACLE_POSTS)) {
            continue;
        }
        gs_oracle_sector *s = gs_oracle_find(o, t->sector);
        t->published = 1;
        s->done++;
    }
    if (a->what == GS_ORACLE_ENDS) {
        k->ended[a->tb] = 1;
        if (--k->left == 0) {
            gs_oracle_drop_kernel(k);
        }
    }
}

static int by_time(const void *x, const void *y)
{
    const gs_oracle_access *a = x, *b = y;
    if (a->time != b->time) {
        return a->time < b->time ? -1 : 1;
    }
    /* what ends now is published to later kernels now; copies may begin and end at one time */
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
    gs_oracle *o = gs_oracle_of(sim);
    u64 end = sim->q0 + sim->quantum, kept = 0;
    gs_oracle_log due = {0};
    for (u32 l = 0; l <= GS_THREADS; l++) {
        gs_oracle_log *from = &o->logs[l];
        for (u64 i = 0; i < from->n; i++) {
            if (!gs_oracle_push(&o->pending, from->at[i])) {
                return gs_fail(sim, GS_ERR_MEM, "the oracle needs more memory than there is");
            }
        }
        from->n = 0;
    }
    for (u64 i = 0; i < o->pending.n; i++) {
        gs_oracle_access a = o->pending.at[i];
        if (a.time >= end && !sim->sched.finished) {
            o->pending.at[kept++] = a;
        } else if (!gs_oracle_push(&due, a)) {
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
        const gs_oracle_access *a = &due.at[i];
        gs_intra_kernel *inside = o->kernels[a->kernel].inside;
        if (a->what == GS_ORACLE_POLLS) {
            if (inside) {
                gs_intra_kernel_poll(inside, a->tb, (u32)a->line, a->mask);
            }
        } else if (a->what == GS_ORACLE_ACCESS) {
            code = check_access(sim, o, a);
        } else if (a->what == GS_ORACLE_POSTS && inside &&
                   !gs_intra_kernel_post(inside, a->tb, (u32)a->line)) {
            code = gs_fail(sim, GS_ERR_MEM, "the oracle needs more memory than there is");
        } else {
            publish(o, a);
        }
    }
    free(due.at);
    return code;
}
