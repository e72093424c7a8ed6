/* The loop of a simulation. Reading order of the core starts here. */
#include "base/clock.h"
#include "base/fail.h"
#include "base/mail.h"
#include "base/series.h"
#include "engine/deadlock.h"
#include "memory/l2.h"
#include "oracle/oracle.h"
#include "scheduler/scheduler.h"
#include "sm/sm.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

typedef struct team {
    gs_sim *sim;
    u32 threads;
    u32 asleep, spins; /* spins: looks at `round` before a thread sleeps */
    pthread_mutex_t lock;
    pthread_cond_t next;
    u64 quanta;
    int result; /* GS_OK: go on */
    /* each on a host cache line of its own: those that wait look at one while others count themselves in the
       other */
    _Alignas(128) u32 round; /* how often all have met; 1: the team is complete */
    _Alignas(128) u32 waiting;
    struct {
        _Alignas(128) u64 range[GS_SHARES]; /* see range_of */
    } left[GS_THREADS];
} team;

typedef struct worker {
    team *team;
    u32 id;
    pthread_t thread;
} worker;

static inline void relax(void)
{
#if defined(__SSE2__)
    _mm_pause();
#endif
}

/* Waits for the end of a round. Threads usually arrive within microseconds; one that is late has lost its
   processor, and a sleeper leaves it a free one, where one that yields would stay in its way. */
static void await(team *t, u32 round)
{
    for (u32 i = 0; i < t->spins; i++) {
        if (__atomic_load_n(&t->round, __ATOMIC_ACQUIRE) != round) {
            return;
        }
        relax();
    }
    __atomic_add_fetch(&t->asleep, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&t->lock);
    while (__atomic_load_n(&t->round, __ATOMIC_SEQ_CST) == round) {
        pthread_cond_wait(&t->next, &t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    __atomic_sub_fetch(&t->asleep, 1, __ATOMIC_SEQ_CST);
}

static void end_round(team *t, u32 round)
{
    __atomic_store_n(&t->round, round + 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&t->asleep, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&t->lock);
        pthread_cond_broadcast(&t->next);
        pthread_mutex_unlock(&t->lock);
    }
}

static gs_ctx context(gs_sim *sim, u32 id, u32 threads)
{
    gs_ctx ctx = {.sim = sim, .t = &sim->thread[id], .id = id, .threads = threads};
    char *base = (char *)sim;
    for (u32 i = 0; i < GS_THREADS; i++) {
        ctx.boxes[i] = (gs_box *)(void *)(base + sim->thread[i].at_boxes);
    }
    ctx.chunks = GS_TABLE(sim, gs_chunk, at_chunks);
    ctx.sorted = (gs_msg *)(void *)(base + sim->thread[id].at_sort) + 1; /* see gs_mail_take */
    ctx.sorted[-1].key = 0;
    ctx.count = (u16 *)(void *)(base + sim->thread[id].at_count);
    ctx.kernels = (gs_kcount *)(void *)(base + sim->thread[id].at_kernels);
    return ctx;
}

enum { SLICES, SMS };
#define NO_BOX 0xffffffffu

/* The boxes of its share that a thread has still to run: from `next` to before `end`. */
static u64 range_of(u32 next, u32 end)
{
    return (u64)end << 32 | next;
}

/* makes a thread's share ready for a quantum; nobody may be taking from it */
static void lay_out(team *t, u32 kind, u32 thread)
{
    const u32 *first = t->sim->share[kind];
    __atomic_store_n(&t->left[thread].range[kind], range_of(first[thread], first[thread + 1]),
                     __ATOMIC_RELAXED);
}

/* The threads' shares are equal numbers of boxes at first. */
static void share_out(gs_sim *sim, u32 threads)
{
    for (u32 t = 0; t <= threads; t++) {
        sim->share[SLICES][t] = sim->slice_boxes * t / threads;
        sim->share[SMS][t] = sim->sm_boxes * t / threads;
    }
    for (u32 t = 0; t < threads; t++) {
        memset(sim->thread[t].took, 0, sizeof sim->thread[t].took);
    }
    sim->shared = sim->quanta;
}

/* boxes of thread t that others have run */
static u32 lost(const gs_sim *sim, u32 kind, u32 t)
{
    u32 n = 0;
    for (u32 i = 0; i < GS_THREADS; i++) {
        n += sim->thread[i].took[kind][t];
    }
    return n;
}

/* Boxes differ in work, and so do host processors in speed. Where others run a box of a thread in most
   quanta, and of its neighbour in few, the box is its neighbour's: what a box touches stays with one
   processor. No result depends on it. */
static void share_anew(team *t)
{
    enum { QUANTA = 1024 };
    gs_sim *sim = t->sim;
    if (t->threads == 1 || sim->quanta - sim->shared < QUANTA) {
        return;
    }
    for (u32 kind = 0; kind < GS_SHARES; kind++) {
        u32 *first = sim->share[kind];
        for (u32 i = 0; i + 1 < t->threads; i++) {
            u32 a = lost(sim, kind, i), b = lost(sim, kind, i + 1);
            if (a > b + QUANTA / 2 && first[i + 1] - first[i] > 1) {
                first[i + 1]--;
            } else if (b > a + QUANTA / 2 && first[i + 2] - first[i + 1] > 1) {
                first[i + 1]++;
            }
        }
    }
    for (u32 i = 0; i < t->threads; i++) {
        memset(sim->thread[i].took, 0, sizeof sim->thread[i].took);
        lay_out(t, SLICES, i);
    }
    sim->shared = sim->quanta;
}

/* Takes a box to run: of this thread's share the first one left; else of another's the last, which leaves
   that one in peace for longest. NO_BOX: none is left. */
static u32 take(team *t, gs_ctx *ctx, u32 kind)
{
    for (u32 i = 0; i < t->threads; i++) {
        u32 of = ctx->id + i < t->threads ? ctx->id + i : ctx->id + i - t->threads;
        u64 *range = &t->left[of].range[kind], left = __atomic_load_n(range, __ATOMIC_RELAXED);
        for (;;) {
            u32 next = (u32)left, end = (u32)(left >> 32);
            if (next == end) {
                break;
            }
            u64 then = i ? range_of(next, end - 1) : range_of(next + 1, end);
            if (!__atomic_compare_exchange_n(range, &left, then, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
                continue;
            }
            ctx->t->took[kind][of] += i != 0;
            return i ? end - 1 : next;
        }
    }
    return NO_BOX;
}

/* slices and the scheduler alone for one quantum */
static void run_slices(team *t, gs_ctx *ctx)
{
    gs_sim *sim = ctx->sim;
    ctx->q0 = sim->q0;
    ctx->send0 = sim->q0 + sim->lead;
    ctx->qn = ctx->send_qn = sim->qn;
    ctx->t->events = 0;
    lay_out(t, SMS, ctx->id);
    if (ctx->id == 0) {
        if ((sim->qn & (GS_RING / 2 - 1)) == 0) {
            gs_mail_near(ctx);
        }
        gs_sched_run(ctx);
    }
    for (u32 g; (g = take(t, ctx, SLICES)) != NO_BOX;) {
        if (g + 1 < sim->share[SLICES][ctx->id + 1]) {
            gs_mail_ahead(ctx, sim->sm_boxes + g + 1);
        }
        gs_slices_run(ctx, g);
    }
}

/* SMs alone for one quantum */
static void run_sms(team *t, gs_ctx *ctx)
{
    gs_sim *sim = ctx->sim;
    if (ctx->threads > 1) {
        gs_mail_clear(ctx, sim->sm_boxes, sim->boxes);
    }
    lay_out(t, SLICES, ctx->id);
    ctx->q0 = sim->q0 + sim->lead;
    ctx->send0 = sim->q0 + sim->quantum; /* slices have run this one */
    ctx->send_qn = sim->qn + 1;
    ctx->row.begin = GS_NEVER - sim->quantum; /* no time lies in it */
    for (u32 g; (g = take(t, ctx, SMS)) != NO_BOX;) {
        if (g + 1 < sim->share[SMS][ctx->id + 1]) {
            gs_mail_ahead(ctx, g + 1);
        }
        gs_sms_run(ctx, g);
    }
}

/* After a quantum that all threads have run: empties the boxes of this thread. */
static void clear(gs_ctx *ctx)
{
    const gs_sim *sim = ctx->sim;
    if (ctx->threads > 1) {
        gs_mail_clear(ctx, 0, sim->sm_boxes);
    }
    for (u64 q = ctx->qn; q < sim->qn && q < ctx->qn + GS_RING; q++) {
        ctx->t->any[q & (GS_RING - 1)] = 0;
    }
}

/* Quanta until something can happen: 1, or more when all parts are waiting for a later time. */
static u64 quanta_to_next(const gs_sim *sim, u32 threads)
{
    u64 events = 0, most = GS_RING / 2 - (sim->qn & (GS_RING / 2 - 1));
    u32 far = sim->far_n, live = 0;
    for (u32 t = 0; t < threads; t++) {
        events += sim->thread[t].events;
    }
    if (events) {
        return 1;
    }
    for (u32 q = 1; q < GS_RING; q++) {
        for (u32 t = 0; t < threads; t++) {
            if (sim->thread[t].any[(sim->qn + q) & (GS_RING - 1)]) {
                most = gs_min(q, far ? most : GS_RING);
                q = GS_RING;
                break;
            }
        }
        if (q == GS_RING - 1 && !far) {
            most = GS_NEVER;
        }
    }
    u64 next = gs_sched_next(sim);
    const gs_sm *sms = GS_CONST_TABLE(sim, gs_sm, at_sms);
    for (u32 i = 0; i < sim->sms; i++) {
        if (sms[i].live_tbs | sms[i].starts) {
            u64 sm = gs_sm_next(sim, &sms[i]);
            live = 1;
            next = gs_min(next, sm - (sm == GS_NEVER ? 0 : sim->lead));
        }
    }
    /* the clock may change before that, and with it when an SM has something to do */
    if (live && (next != GS_NEVER || most != GS_NEVER)) {
        next = gs_min(next, sim->epoch - (sim->epoch == GS_NEVER ? 0 : sim->lead));
    }
    if (next == GS_NEVER) {
        return most;
    }
    return gs_min(most, next > sim->q0 + sim->quantum ? gs_div_by(next - sim->q0, sim->by_quantum) : 1);
}

static void samples_merge(gs_sim *sim)
{
    sim->sample_cycles *= 2;
    for (u32 t = 0; t < GS_THREADS; t++) {
        gs_sample *s = (gs_sample *)(void *)((char *)sim + sim->thread[t].at_samples);
        for (u32 i = 0; i < GS_SAMPLES / 2; i++) {
            u64 *to = (u64 *)&s[i];
            const gs_sample pair[2] = {s[2 * i], s[2 * i + 1]};
            for (u32 j = 0; j < sizeof(gs_sample) / 8; j++) {
                to[j] = ((const u64 *)&pair[0])[j] + ((const u64 *)&pair[1])[j];
            }
        }
        memset(s + GS_SAMPLES / 2, 0, sizeof *s * (GS_SAMPLES / 2));
    }
    for (u32 i = 0; i < sim->sms; i++) {
        gs_sm *sm = &gs_sms(sim)[i];
        sm->sample /= 2;
        gs_clock_sample(sim, sm);
    }
}

/* Between quanta, one thread: checks, exchange, clock. Returns GS_OK to go on. */
static int between(team *t, gs_ctx *ctx)
{
    gs_sim *sim = t->sim;
    gs_sched *d = &sim->sched;
    if (sim->oracle && !sim->error_code) {
        gs_oracle_check(sim);
    }
    if (sim->error_code) {
        return sim->error_code;
    }
    sim->quanta++;
    share_anew(t);
    if (d->finished) {
        u64 last = gs_div_by(d->end, sim->by_period);
        while (last / sim->sample_cycles + 2 >= GS_SAMPLES / 2) {
            samples_merge(sim); /* by the end, not by where this quantum began */
        }
        for (u32 i = 0; i < sim->sms; i++) {
            gs_sm_sample(ctx, &gs_sms(sim)[i], gs_sms(sim)[i].cur);
        }
        gs_series_fit(sim, d->end);
        return GS_DONE;
    }
    u64 step = quanta_to_next(sim, t->threads);
    if (step == GS_NEVER && gs_sync_deadlock(sim)) {
        return sim->error_code;
    }
    if (step == GS_NEVER) {
        return gs_fail(sim, GS_ERR_DEADLOCK,
                       "deadlock at %.3f us: %u of %u kernels have ended and nothing can happen",
                       (double)sim->q0 / 1024e3, d->kernels_done, sim->n_launches);
    }
    sim->q0 += step * sim->quantum;
    sim->qn += step;
    gs_clock_epochs(sim, sim->q0 + sim->lead);
    sim->far_limit = (sim->qn & ~(u64)(GS_RING / 2 - 1)) + GS_RING;
    if (sim->q0 >> 40) {
        return gs_fail(sim, GS_ERR_LIMIT, "more than 1.07 s of simulated time: cut the job");
    }
    u64 cycle = gs_div_by(sim->q0, sim->by_period);
    while (cycle / sim->sample_cycles + 2 >= GS_SAMPLES / 2) {
        samples_merge(sim);
    }
    gs_series_fit(sim, sim->q0);
    if (++t->quanta == 0 || d->tb_tail - d->tb_head > sim->tb_room - sim->sms * GS_TBS) {
        return GS_MORE;
    }
    return GS_OK;
}

/* Waits until all threads are here. The last one does what is to be done between quanta, if this is a round's
   end. */
static void meet(team *t, gs_ctx *ctx, int end)
{
    u32 round = __atomic_load_n(&t->round, __ATOMIC_ACQUIRE);
    if (t->threads > 1 && __atomic_add_fetch(&t->waiting, 1, __ATOMIC_ACQ_REL) < t->threads) {
        await(t, round);
        return;
    }
    if (end) {
        t->result = between(t, ctx);
    }
    if (t->threads > 1) {
        __atomic_store_n(&t->waiting, 0, __ATOMIC_RELAXED);
        end_round(t, round);
    }
}

static void *work(void *arg)
{
    const worker *w = arg;
    team *t = w->team;
    if (w->id) {
        await(t, 0);
    }
    gs_ctx ctx = context(t->sim, w->id, t->threads);
    do {
        run_slices(t, &ctx);
        meet(t, &ctx, 0);
        run_sms(t, &ctx);
        meet(t, &ctx, 1);
        clear(&ctx);
    } while (t->result == GS_OK);
    return NULL;
}

int gs_run(gs_sim *sim, uint32_t threads, uint64_t max_quanta)
{
    if (sim->error_code) {
        return sim->error_code;
    }
    if (sim->sched.finished) {
        return GS_DONE;
    }
    if (threads == 0 || threads > GS_THREADS) {
        return gs_fail(sim, GS_ERR_ARG, "%u threads: must be 1 to %d", threads, GS_THREADS);
    }
    if (sim->sched.tb_tail - sim->sched.tb_head > sim->tb_room - sim->sms * GS_TBS) {
        return GS_MORE;
    }
    team t = {.sim = sim,
              .quanta = max_quanta ? 0 - max_quanta : 1,
              /* no use in looking if a thread waits for one that this one keeps from running */
              .spins = (long)threads <= sysconf(_SC_NPROCESSORS_ONLN) ? 10000 : 1,
              .lock = PTHREAD_MUTEX_INITIALIZER,
              .next = PTHREAD_COND_INITIALIZER};
    worker all[GS_THREADS];
    for (t.threads = 1; t.threads < threads; t.threads++) {
        worker *w = &all[t.threads];
        *w = (worker){.team = &t, .id = t.threads};
        if (pthread_create(&w->thread, NULL, work, w)) {
            break; /* fewer threads give the same result */
        }
    }
    if (t.threads != sim->threads) {
        gs_mail_rehome(sim);
        share_out(sim, t.threads);
        sim->threads = t.threads;
    }
    for (u32 i = 0; i < t.threads; i++) {
        lay_out(&t, SLICES, i);
    }
    end_round(&t, 0);
    all[0] = (worker){.team = &t, .id = 0};
    work(&all[0]);
    for (u32 i = 1; i < t.threads; i++) {
        pthread_join(all[i].thread, NULL);
    }
    return t.result;
}
