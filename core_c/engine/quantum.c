/* The end of a quantum: see quantum.h. */
#include "engine/quantum.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/mailbox.h"
#include "base/time_series.h"
#include "engine/deadlock.h"
#include "engine/long_time.h"
#include "engine/shares.h"
#include "engine/team.h"
#include "oracle/oracle.h"
#include "scheduler/scheduler.h"
#include "sm/sm.h"

#include <string.h>

/* Quanta until something can happen: 1, or more if all parts wait for a later time. */
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
        if (sms[i].live_tbs | sms[i].deferred_n) {
            u64 sm = gs_sm_next(sim, &sms[i]);
            live = 1;
            next = gs_min(next, sm - (sm == GS_NEVER ? 0 : sim->lead));
        }
    }
    /* the clock may change earlier, which changes the time of an SM's next event */
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
            /* sample 0 is merged in place, word by word */
            const u64 *first = (const u64 *)&s[(size_t)2 * i], *second = (const u64 *)&s[(size_t)2 * i + 1];
            u64 *to = (u64 *)&s[i];
            for (u32 j = 0; j < sizeof(gs_sample) / 8; j++) {
                to[j] = first[j] + second[j];
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

int gs_end_quantum(gs_team *t, gs_ctx *ctx)
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
    gs_shares_adapt(t);
    if (d->finished) {
        u64 last = gs_div_by(d->end, sim->by_period);
        while (last / sim->sample_cycles + 2 >= GS_SAMPLES / 2) {
            samples_merge(sim); /* the last sample ends with the job, which may end after the quantum began */
        }
        for (u32 i = 0; i < sim->sms; i++) {
            gs_sm_sample(ctx, &gs_sms(sim)[i], gs_sms(sim)[i].cur);
        }
        gs_series_merge_to_fit(sim, d->end);
        return GS_DONE;
    }
    u64 step = quanta_to_next(sim, t->threads);
    if (step == GS_NEVER && gs_deadlock_report(sim)) {
        return sim->error_code;
    }
    if (step == GS_NEVER) {
        return gs_fail(sim, GS_ERR_DEADLOCK,
                       "deadlock at %.3f us: %u of %u kernels have ended and nothing can happen",
                       (double)sim->q0 / 1024e3, d->kernels_done, sim->n_launches);
    }
    if (t->until != GS_NEVER && t->until > sim->q0) {
        /* not beyond the first quantum that begins then: the moment does not depend on what happens before */
        step = gs_min(step, gs_div_by(t->until - sim->q0 - 1, sim->by_quantum) + 1);
    }
    const u64 before = sim->q0;
    sim->q0 += step * sim->quantum;
    sim->qn += step;
    gs_clock_epochs(sim, sim->q0 + sim->lead);
    sim->far_limit = (sim->qn & ~(u64)(GS_RING / 2 - 1)) + GS_RING;
    if (sim->q0 >> GS_TIME_BITS) {
        return gs_fail(sim, GS_ERR_TIME, "more than 1,099 s of simulated time: cut the job");
    }
    gs_long_time_advance(sim, before);
    u64 cycle = gs_div_by(sim->q0, sim->by_period);
    while (cycle / sim->sample_cycles + 2 >= GS_SAMPLES / 2) {
        samples_merge(sim);
    }
    gs_series_merge_to_fit(sim, sim->q0);
    if (++t->quanta == 0 || sim->q0 >= t->until ||
        d->tb_tail - d->tb_head > sim->tb_room - sim->sms * GS_TBS) {
        return GS_MORE;
    }
    return GS_OK;
}
