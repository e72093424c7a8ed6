/* The threads of a run. They wait for each other at the end of a round: when the slices of a quantum have
   run, and when its SMs have. The last to arrive does what one thread must do alone. */
#pragma once
#include "base/mailbox.h"

#include <pthread.h>

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the padding keeps threads off one cache line */
typedef struct gs_team {
    gs_sim *sim;
    u32 threads;
    u32 asleep, spins; /* spins: looks at `round` before a thread sleeps */
    pthread_mutex_t lock;
    pthread_cond_t next;
    u64 quanta;
    u64 until;  /* the run ends with the first quantum that begins then or later */
    int result; /* GS_OK: go on */
    /* On host cache lines of their own: waiting threads read one while others count themselves in the
       other. */
    _Alignas(128) u32 round; /* rounds that have ended; 1: the team is complete */
    _Alignas(128) u32 waiting;
    struct {
        _Alignas(128) u64 range[GS_SHARES]; /* boxes that the thread has still to run: see shares.c */
    } left[GS_THREADS];
} gs_team;

/* The context of thread `id`. */
gs_ctx gs_team_context(const gs_team *t, u32 id);
/* Waits for the end of a round. */
void gs_team_await(gs_team *t, u32 round);
/* Releases the threads that wait for the end of a round. */
void gs_team_end_round(gs_team *t, u32 round);
/* Runs work(t, context) on `threads` threads, or on as many as the host can start. `begin` is called once,
   when their number is known, before any of them works. */
void gs_team_run(gs_team *t, u32 threads, void (*begin)(gs_team *t), void (*work)(gs_team *t, gs_ctx *ctx));

/* Waits until all threads are here. The last one calls `last`, if there is one, before the others go on. */
static inline void gs_barrier_wait(gs_team *t, gs_ctx *ctx, int (*last)(gs_team *t, gs_ctx *ctx))
{
    u32 round = __atomic_load_n(&t->round, __ATOMIC_ACQUIRE);
    if (t->threads > 1 && __atomic_add_fetch(&t->waiting, 1, __ATOMIC_ACQ_REL) < t->threads) {
        gs_team_await(t, round);
        return;
    }
    if (last) {
        t->result = last(t, ctx);
    }
    if (t->threads > 1) {
        __atomic_store_n(&t->waiting, 0, __ATOMIC_RELAXED);
        gs_team_end_round(t, round);
    }
}
