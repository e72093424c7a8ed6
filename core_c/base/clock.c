/* The SM clock under load: see clock.h. */
#include "base/clock.h"

/* Ticks, about a microsecond, with many divisors. A GPC of an H200 changes its clock in this order of time
   (measured: less than 1 us to slow down, 1 to 2 us to come back). */
enum { EPOCH = 997920 };

u64 gs_clock_quantum(u64 most)
{
    u64 n = (EPOCH + most - 1) / most;
    while (EPOCH % n) {
        n++;
    }
    return EPOCH / n;
}

void gs_clock_init(gs_sim *sim)
{
    for (u32 g = 0; g < (u32)sim->params.gpu.gpcs; g++) {
        const u64 period = sim->sm_period;
        sim->clock[g] = (gs_clock){.period = period,
                                   .last_period = period,
                                   .inverse = (1ull << 44) / period + 1,
                                   .by_period = gs_div_make(period)};
        for (u32 sm = gs_gpc_first(sim, g); sm < gs_gpc_first(sim, g + 1); sm++) {
            gs_sms(sim)[sm].gpc = g;
            sim->gpc_of[sm] = (u8)g;
            /* Every other GPC is attached to the first partition of L2. A chip of one GPC is treated as if it
               had two halves. */
            const int alone = sim->params.gpu.gpcs == 1;
            sim->partition_of[sm] = alone ? sm * 2 >= sim->sms : g & 1;
            sim->join_group_of[sm] = alone ? sim->partition_of[sm] : (u8)g;
        }
    }
    sim->epoch = sim->tensor_period ? sim->lead + EPOCH : GS_NEVER;
}

/* The clock's edges go on from its first edge at `begin` or later. */
static void set_period(gs_clock *k, u64 begin, u64 period)
{
    u64 cycle = gs_clock_cycle(k, begin), edge = gs_clock_edge(k, cycle);
    k->since = begin;
    k->last_period = k->period;
    k->last_origin = k->origin;
    k->period = period;
    k->origin = edge - cycle * period;
    k->inverse = (1ull << 44) / period + 1;
    k->by_period = gs_div_make(period);
}

/* Bit a GPC: one of its tensor pipes was busy in the epoch. */
static u64 tensor_gpcs(const gs_sim *sim)
{
    const gs_sm *sms = GS_CONST_TABLE(sim, gs_sm, at_sms);
    u64 found = 0;
    for (u32 i = 0; i < sim->sms; i++) {
        const gs_sm *sm = &sms[i];
        u64 last = 0, began = gs_clock_of(sim, sm)->began * 64;
        for (u32 j = 0; j < 4; j++) {
            last = gs_max(last, sm->sub[j].pipe[GS_PIPE_TENSOR]);
        }
        found |= (u64)(sm->work.tensor && last > began) << sm->gpc;
    }
    return found;
}

void gs_clock_epochs(gs_sim *sim, u64 begin)
{
    u32 gpcs = (u32)sim->params.gpu.gpcs;
    u64 changed = 0;
    while (sim->epoch <= begin) {
        u64 tensor = tensor_gpcs(sim), now = sim->epoch;
        for (u32 g = 0; g < gpcs; g++) {
            gs_clock *k = &sim->clock[g];
            u64 period = tensor >> g & 1 ? sim->tensor_period : sim->sm_period;
            if (period != k->period) {
                set_period(k, now, period);
                changed |= 1ull << g;
            }
            k->began = gs_clock_cycle(k, now);
        }
        sim->epoch += EPOCH;
        if (!tensor && begin >= sim->epoch) {
            /* time jumps so far only while no SM has a TB: clocks do not change */
            sim->epoch += (begin - sim->epoch) / EPOCH * EPOCH;
        }
    }
    for (u32 i = 0; changed && i < sim->sms; i++) {
        gs_sm *sm = &gs_sms(sim)[i];
        if (changed >> sm->gpc & 1) {
            gs_clock_sample(sim, sm);
        }
    }
}

u64 gs_clock_cycles(const gs_sim *sim)
{
    u64 most = 0, end = sim->sched.end;
    for (u32 g = 0; g < (u32)sim->params.gpu.gpcs; g++) {
        const gs_clock *k = &sim->clock[g];
        /* SMs may have run past the end, into another epoch */
        u64 cycles = end < k->since ? (end - k->last_origin) / k->last_period : (end - k->origin) / k->period;
        most = gs_max(most, cycles + k->left_behind);
    }
    return most;
}
