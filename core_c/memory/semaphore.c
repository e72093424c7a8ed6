/* Semaphores at their L2 slice: see semaphore.h. Only the slice's own part accesses them. */
#include "memory/semaphore.h"

#include "base/mailbox.h"

/* How many semaphores are complete from `index` on, at most to the end of the line. */
static u32 run_of(const gs_sim *sim, u32 index)
{
    const gs_semaphore *all = GS_CONST_TABLE(sim, gs_semaphore, at_semaphores);
    u32 end = gs_min((index | (GS_SEMAPHORES_A_LINE - 1)) + 1, sim->n_semaphores), i = index;
    while (i < end && all[i].count >= all[i].need) {
        i++;
    }
    return i - index;
}

static void answer(gs_ctx *ctx, const gs_sender *sender, u32 sm, u64 time, u64 pay, u32 far)
{
    const gs_sim *sim = ctx->sim;
    u32 run = GS_SYNC_LOOK_AHEAD(pay) ? run_of(sim, GS_SYNC_INDEX(pay)) : 0;
    u64 back = sim->l2_latency + sim->noc + sim->sync_extra[far][1];
    gs_send(ctx, sender, sm / GS_GROUP, time + back + sim->acquire * sim->period,
            pay | gs_pay_line(0, 0, 0, run, 0));
}

/* The semaphore is complete: each subscriber's first poll from now on sees it. */
static void complete(gs_ctx *ctx, const gs_sender *sender, gs_slice *s, gs_semaphore *sem, u64 now)
{
    gs_sim *sim = ctx->sim;
    const gs_subscriber *all = GS_CONST_TABLE(sim, gs_subscriber, at_subscribers);
    u64 n = 0;
    for (u32 i = sem->head; i; i = all[i - 1].next) {
        n++;
    }
    for (u32 i = sem->head; i; i = all[i - 1].next) {
        const gs_subscriber *b = &all[i - 1];
        u32 far = gs_sync_far(sim, b->sm, s->id);
        /* many that poll one line slow each other down */
        u64 period = gs_max(sim->poll_period[far], n * sim->atomic_hold);
        /* SMs are at different distances and disturb each other, so their polls are not in step: a number
           that depends on who polls what stands for that */
        u64 odd = gs_mix(gs_mix(i, b->semaphore), 1) >> 32;
        u64 second = b->time + 1 + (odd * period >> 32), polls = 1;
        if (second < now) {
            polls += (now - second + period - 1) / period;
        }
        s->count.requests += polls;
        s->count.sectors_read += polls;
        answer(ctx, sender, b->sm, second + (polls - 1) * period, b->pay, far);
    }
    sem->head = 0;
}

void gs_semaphore_request(gs_ctx *ctx, const gs_sender *sender, gs_slice *s, const gs_msg *m)
{
    gs_sim *sim = ctx->sim;
    u64 pay = m->pay;
    u32 sm = gs_key_sender(m->key), post = GS_SYNC_WHAT(pay) == GS_SYNC_POST,
        far = gs_sync_far(sim, sm, s->id);
    gs_semaphore *sem = GS_TABLE(sim, gs_semaphore, at_semaphores) + GS_SYNC_INDEX(pay);
    u64 start = gs_max(gs_max(gs_msg_time(ctx, m), s->port_free), s->atomic_free);
    s->port_free = start + sim->slice_sector[GS_MSG_LOAD];
    s->atomic_free = start + sim->atomic_hold;
    s->count.requests++;
    s->hash = gs_mix(s->hash, start ^ pay << 19);
    if (post) {
        s->count.sectors_written++;
        u64 back = sim->l2_latency + sim->noc + sim->sync_extra[far][1];
        gs_send(ctx, sender, sm / GS_GROUP, start + back + sim->posted * sim->period, pay);
        if (++sem->count == sem->need) {
            complete(ctx, sender, s, sem, start);
        }
        return;
    }
    s->count.sectors_read++;
    if (sem->count >= sem->need) {
        answer(ctx, sender, sm, start, pay, far);
        return;
    }
    u32 node = (sm * GS_TBS + GS_PAY_WARP(pay)) * GS_POLLS + GS_SYNC_POLL_NUMBER(pay);
    GS_TABLE(sim, gs_subscriber, at_subscribers)
    [node] = (gs_subscriber){start, pay, sem->head, GS_SYNC_INDEX(pay), sm, 0};
    sem->head = node + 1;
}
