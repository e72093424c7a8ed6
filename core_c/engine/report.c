/* Results of a simulation, read between calls of gs_run. */
#include "base/clock.h"
#include "base/time_series.h"

#include <string.h>

void gs_totals_get(const gs_sim *sim, gs_totals *out)
{
    const gs_sched *d = &sim->sched;
    const gs_sm *sms = GS_CONST_TABLE(sim, gs_sm, at_sms);
    const gs_slice *slices = GS_CONST_TABLE(sim, gs_slice, at_slices);
    u64 hash = d->hash;
    for (u32 i = 0; i < sim->sms; i++) {
        hash = gs_mix(gs_mix(hash, sms[i].reply_port), sms[i].hash_end);
    }
    for (u32 i = 0; i < sim->slice_places; i++) {
        hash = gs_mix(hash, slices[i].hash);
    }
    u64 cycles = gs_div_by(d->end, sim->by_period); /* of the clock without load */
    *out = (gs_totals){.now = d->finished ? d->end : sim->q0,
                       .end = d->end,
                       .slowed = cycles - gs_clock_cycles(sim),
                       .tbs_done = d->tbs_done,
                       .hash = hash,
                       .quantum = sim->quantum,
                       .quanta = sim->quanta,
                       .sample_interval = sim->sample_cycles * sim->period,
                       .samples = gs_min(cycles / sim->sample_cycles + 1, GS_SAMPLES),
                       .table_peak_entries = d->table_peak,
                       .table_updates = d->table_updates,
                       .table_wait = d->table_wait,
                       .table_coarse_kernels = d->coarse,
                       .table_shared_kernels = d->shared,
                       .table_peak_lists = d->lists_peak,
                       .table_spills = d->spills,
                       .series_interval = sim->series.interval,
                       .series = gs_series_samples(sim),
                       .arena_bytes = sim->bytes,
                       .bloom = sim->bloom.count};
}

uint64_t gs_take_tbs(gs_sim *sim, gs_tb_record *out, uint64_t room)
{
    gs_sched *d = &sim->sched;
    const gs_tb_record *all = GS_TABLE(sim, gs_tb_record, at_tb_records);
    u64 n = 0;
    while (n < room && d->tb_head != d->tb_tail) {
        out[n++] = all[d->tb_head++ % sim->tb_room];
    }
    return n;
}

void gs_kernels_get(const gs_sim *sim, gs_kernel_record *out)
{
    const gs_kernel *kernels = GS_CONST_TABLE(sim, gs_kernel, at_kernels);
    for (u32 i = 0; i < sim->n_launches; i++) {
        out[i] = kernels[i].record;
        for (u32 t = 0; t < GS_THREADS; t++) {
            const gs_kernel_count *k =
                (const gs_kernel_count *)(const void *)((const char *)sim + sim->thread[t].at_kernels) + i;
            gs_stalls_add(&out[i].stalls, &k->stalls);
            out[i].warp_instructions += k->instructions;
            out[i].load_sectors += k->load_sectors;
            out[i].store_sectors += k->store_sectors;
        }
    }
}

void gs_sms_get(const gs_sim *sim, gs_sm_record *out)
{
    const gs_sm *sms = GS_CONST_TABLE(sim, gs_sm, at_sms);
    const gs_sm_load *loads = GS_CONST_TABLE(sim, gs_sm_load, at_sm_loads);
    const gs_idles *now = &sim->sched.idle;
    for (u32 i = 0; i < sim->sms; i++) {
        gs_idles idle = loads[i].idle;
        u64 busy = loads[i].busy;
        if (loads[i].tbs == 0) {
            idle.dependence += now->dependence - loads[i].idle_at.dependence;
            idle.launch += now->launch - loads[i].idle_at.launch;
            idle.no_tb += now->no_tb - loads[i].idle_at.no_tb;
        } else {
            busy += sim->sched.accounted - loads[i].since;
        }
        out[i] = (gs_sm_record){busy, sms[i].tbs_done, sms[i].stalls, idle, sms[i].work};
    }
}

void gs_slices_get(const gs_sim *sim, gs_l2 *out)
{
    const gs_slice *slices = GS_CONST_TABLE(sim, gs_slice, at_slices);
    for (u32 i = 0; i < sim->slices; i++) {
        out[i] = gs_slice_count(sim, &slices[gs_slice_place(sim, i)]);
    }
}

void gs_samples_get(const gs_sim *sim, gs_sample *out)
{
    gs_totals totals;
    gs_totals_get(sim, &totals);
    memset(out, 0, totals.samples * sizeof *out);
    for (u32 t = 0; t < GS_THREADS; t++) {
        const gs_sample *s = (const gs_sample *)(const void *)((const char *)sim + sim->thread[t].at_samples);
        for (u64 i = 0; i < GS_SAMPLES; i++) {
            u64 *to = (u64 *)&out[gs_min(i, totals.samples - 1)];
            for (u32 j = 0; j < sizeof(gs_sample) / 8; j++) {
                to[j] += ((const u64 *)&s[i])[j];
            }
        }
    }
}
