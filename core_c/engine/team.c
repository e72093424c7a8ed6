/* The threads of a run: see team.h. */
#include "engine/team.h"

#include "base/mailbox.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

typedef struct worker {
    gs_team *team;
    u32 id;
    void (*work)(gs_team *t, gs_ctx *ctx);
    pthread_t thread;
} worker;

static inline void relax(void)
{
#if defined(__SSE2__)
    _mm_pause();
#endif
}

/* Threads usually arrive within microseconds. A thread that is later than that was descheduled. A waiting
   thread then sleeps, which frees its processor; one that only yields would still compete for it. */
void gs_team_await(gs_team *t, u32 round)
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

void gs_team_end_round(gs_team *t, u32 round)
{
    __atomic_store_n(&t->round, round + 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&t->asleep, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&t->lock);
        pthread_cond_broadcast(&t->next);
        pthread_mutex_unlock(&t->lock);
    }
}

gs_ctx gs_team_context(const gs_team *t, u32 id)
{
    gs_sim *sim = t->sim;
    gs_ctx ctx = {.sim = sim, .t = &sim->thread[id], .id = id, .threads = t->threads};
    char *base = (char *)sim;
    for (u32 i = 0; i < GS_THREADS; i++) {
        ctx.boxes[i] = (gs_box *)(void *)(base + sim->thread[i].at_boxes);
    }
    ctx.chunks = GS_TABLE(sim, gs_chunk, at_chunks);
    ctx.sorted = (gs_msg *)(void *)(base + sim->thread[id].at_sort) + 1; /* see gs_mailbox_take */
    ctx.sorted[-1].key = 0;
    ctx.count = (u16 *)(void *)(base + sim->thread[id].at_count);
    ctx.kernels = (gs_kernel_count *)(void *)(base + sim->thread[id].at_kernels);
    return ctx;
}

static void *start(void *arg)
{
    const worker *w = arg;
    if (w->id) {
        gs_team_await(w->team, 0);
    }
    gs_ctx ctx = gs_team_context(w->team, w->id);
    w->work(w->team, &ctx);
    return NULL;
}

void gs_team_run(gs_team *t, u32 threads, void (*begin)(gs_team *t), void (*work)(gs_team *t, gs_ctx *ctx))
{
    worker all[GS_THREADS];
    for (t->threads = 1; t->threads < threads; t->threads++) {
        worker *w = &all[t->threads];
        *w = (worker){.team = t, .id = t->threads, .work = work};
        if (pthread_create(&w->thread, NULL, start, w)) {
            break; /* fewer threads give the same result */
        }
    }
    begin(t);
    gs_team_end_round(t, 0);
    all[0] = (worker){.team = t, .id = 0, .work = work};
    start(&all[0]);
    for (u32 i = 1; i < t->threads; i++) {
        pthread_join(all[i].thread, NULL);
    }
}
