/* The arena: the place of every table of a simulation, and what a job puts there. */
#include "engine/layout.h"

#include "base/arena.h"
#include "base/time_series.h"
#include "program/program.h"
#include "scheduler/bloom_tables.h"
#include "scheduler/coarsening.h"
#include "scheduler/table_memory.h"

#include <string.h>

static u32 power_of_two(u64 n)
{
    u32 p = 16;
    while (p < n) {
        p *= 2;
    }
    return p;
}

u64 gs_arena_lay_out(gs_sim *sim, const gs_job *job, const gs_lowered *low, u32 shapes)
{
    u64 t = sizeof *sim, n = job->n_launches;
    sim->n_launches = (u32)n;
    sim->at_ops = gs_reserve(&t, job->n_ops, sizeof(gs_iop));
    sim->at_patterns = gs_reserve(&t, job->n_patterns, sizeof(gs_ipattern));
    sim->at_templates = gs_reserve(&t, low->n_templates, sizeof(gs_template));
    sim->at_parts = gs_reserve(&t, low->n_parts, sizeof(gs_part));
    sim->at_bytes = low->bytes ? gs_reserve(&t, low->n_parts, sizeof(gs_bytes)) : 0;
    sim->at_programs = gs_reserve(&t, job->n_programs, sizeof(gs_program));
    sim->at_launches = gs_reserve(&t, n, sizeof(gs_launch));
    sim->at_preds = gs_reserve(&t, job->n_preds, 4);
    sim->at_succ_ptr = gs_reserve(&t, n + 1, 4);
    sim->at_succs = gs_reserve(&t, job->n_preds, 4);
    sim->at_outs = gs_reserve(&t, job->n_outs, 4);
    sim->at_tb_out_ptr = gs_reserve(&t, job->n_tb_out_ptr, 4);
    sim->at_tb_outs = gs_reserve(&t, job->n_tb_outs, 4);
    sim->at_nodes = gs_reserve(&t, job->n_nodes, sizeof(gs_node));
    sim->at_ranges = gs_reserve(&t, job->n_ranges, sizeof(gs_range));
    sim->at_forms = gs_reserve(&t, job->n_forms, sizeof(gs_form));
    sim->at_links = gs_reserve(&t, job->n_links, sizeof(gs_link));
    sim->at_entries = gs_reserve(&t, job->n_entries, 4);
    sim->at_tb_rows = gs_reserve(&t, job->n_tb_rows, 4);
    sim->at_blocks = gs_reserve(&t, job->n_blocks, 4);
    sim->at_copies = gs_reserve(&t, job->n_copied, sizeof(gs_copy));
    sim->copies = job->n_copied;
    sim->at_sems = gs_reserve(&t, job->n_sems, sizeof(gs_sem));
    sim->at_stages = gs_reserve(&t, job->n_stages, sizeof(gs_stage));
    sim->at_semaphores = gs_reserve(&t, job->n_needs, sizeof(gs_semaphore));
    sim->at_subscribers =
        gs_reserve(&t, job->n_needs ? (u64)sim->sms * GS_TBS * GS_POLLS : 0, sizeof(gs_subscriber));
    sim->accesses = (u64)(uintptr_t)job->accesses;
    sim->recorded_templates = (u64)(uintptr_t)job->templates;
    sim->recorded_parts = (u64)(uintptr_t)job->parts;
    sim->at_node_states = gs_reserve(&t, job->n_nodes, sizeof(gs_node_state));
    sim->at_sequence = gs_reserve(&t, job->n_sequence, 8);
    sim->at_queues = gs_reserve(&t, sim->order.queues, sizeof(gs_aql_queue));
    sim->at_queue_next = gs_reserve(&t, sim->order.queues ? n : 0, 4);
    sim->at_queue_slots = gs_reserve(&t, sim->order.queues ? sim->order.slots : 0, 4);
    sim->n_sequence = job->n_sequence;
    sim->at_kernels = gs_reserve(&t, n, sizeof(gs_kernel));
    sim->at_tb_resources = gs_reserve(&t, shapes, sizeof(gs_tb_resources));
    sim->at_rank = gs_reserve(&t, n, 4);
    sim->at_ready_words = gs_reserve(&t, n / 64 + 1, 8);
    sim->at_ready_summary = gs_reserve(&t, n / 4096 + 1, 8);
    sim->at_sm_loads = gs_reserve(&t, sim->sms, sizeof(gs_sm_load));
    sim->at_turns = gs_reserve(&t, 2 * (u64)sim->sms, 2);
    sim->at_residents = gs_reserve(&t, (u64)sim->sms * GS_TBS, sizeof(gs_resident));
    sim->at_departed = gs_reserve(&t, (u64)sim->sms * GS_STORE_OWNERS, sizeof(gs_departed));
    u64 reserve = (u64)sim->sms * GS_TBS;
    sim->tb_room = (u32)gs_min(gs_max(job->tb_buffer, 2 * reserve), 1u << 24);
    sim->at_tb_records = gs_reserve(&t, sim->tb_room, sizeof(gs_tb_record));
    u64 nodes = sim->order.tb_edges ? job->n_nodes + gs_min(sim->order.nodes, job->n_sequence) : 0;
    t = sim->order.bloom ? gs_bloom_lay_out(sim, job, t) : t;
    u64 held = sim->sched.has_pdl || sim->order.launchers ? n : 0;
    t = gs_table_memory_lay_out(sim, t);
    u64 rooms[6] = {
        power_of_two(reserve + 1),
        power_of_two(nodes + n + (gs_table_memory_is_used(sim) ? GS_TABLE_WAITS : 0) + sim->bloom.slots + 1),
        power_of_two(n + held + 2),
        power_of_two(held + 1),
        power_of_two(sim->order.prologue ? reserve + 1 : 1),
        power_of_two((u64)sim->sms * GS_STORE_OWNERS + reserve + 1)};
    gs_ring *rings[6] = {&sim->sched.release,         &sim->sched.ready,         &sim->sched.admit,
                         &sim->sched.waiting_kernels, &sim->sched.prologue_over, &sim->sched.complete};
    for (u32 i = 0; i < 6; i++) {
        *rings[i] = (gs_ring){gs_reserve(&t, rooms[i], sizeof(gs_event)), 0, 0, (u32)rooms[i] - 1, 0};
    }
    sim->at_sms = gs_reserve(&t, sim->sm_boxes * GS_GROUP, sizeof(gs_sm));
    sim->at_slices = gs_reserve(&t, sim->slice_boxes * GS_GROUP, sizeof(gs_slice));
    u64 sets = (u64)sim->slice_boxes * GS_GROUP * sim->sets;
    sim->at_sets = gs_reserve(&t, sets, sizeof(gs_set));
    sim->at_gpc_links =
        gs_reserve(&t, sim->gpc_sector ? (u64)sim->slice_boxes * sim->gpcs : 0, sizeof(gs_gpc_link));
    sim->at_partial_lines = gs_reserve(&t, sim->keep_partial ? sets : 0, sizeof(gs_partial_lines));
    /* every message in flight could sit in a chunk of its own */
    /* an op may go where one line may, so that each pool has up to 31 more */
    u64 messages = (u64)sim->sms * (sim->in_flight + 31 * GS_POOLS + 33) + 2 * reserve;
    messages *= sim->partition_boxes ? 2 : 1; /* a store may drop a twin */
    messages += (sim->sched.has_pdl || sim->order.prologue ? 2 * reserve : 0) +
                (job->n_needs ? (GS_POLLS + 2) * reserve : 0);
    messages += (u64)sim->sms * GS_STORE_OWNERS; /* TBs that are complete after they left, and their posts */
    messages += sim->sched.table_memory.room;
    u64 chunks = messages + (u64)GS_RING * sim->boxes + 64;
    sim->sort_room = (u32)gs_min(messages, 65535);
    sim->far_room = (u32)messages;
    sim->at_far = gs_reserve(&t, sim->far_room, sizeof(gs_far_msg));
    sim->at_chunks = gs_reserve(&t, chunks * GS_THREADS, sizeof(gs_chunk));
    for (u32 i = 0; i < GS_THREADS; i++) {
        gs_thread *th = &sim->thread[i];
        th->next_chunk = (u32)(chunks * i + 1);
        th->end_chunk = (u32)(chunks * (i + 1));
        th->at_boxes = gs_reserve(&t, (u64)GS_RING * sim->boxes, sizeof(gs_box));
        th->at_kernels = gs_reserve(&t, n, sizeof(gs_kernel_count));
        th->at_samples = gs_reserve(&t, GS_SAMPLES, sizeof(gs_sample));
        th->at_sort = gs_reserve(&t, sim->sort_room + 8, sizeof(gs_msg));
        th->at_count = gs_reserve(&t, (sim->quantum >> 9) + 16, 2);
    }
    gs_series *series = &sim->series;
    gs_series_plan(sim);
    series->at_sms = gs_reserve(&t, series->room * sim->sms, sizeof(gs_sm_series));
    series->at_slices = gs_reserve(&t, series->room * sim->slice_places, sizeof(gs_slice_series));
    series->at_banks =
        gs_reserve(&t, series->room * sim->slice_places * (sim->bank_mask + 1), sizeof(gs_bank_series));
    u64 on = series->interval ? sim->slice_places : 0;
    series->at_done = gs_reserve(&t, on ? sim->slice_boxes : 0, 8);
    series->at_channels = gs_reserve(&t, on, sizeof(gs_channel));
    series->at_dues = gs_reserve(&t, on * series->due_room, sizeof(gs_dram_booking));
    return (t + 127) & ~127ull;
}

void gs_arena_fill(gs_sim *sim, const gs_job *job, const gs_lowered *low)
{
    memcpy(GS_TABLE(sim, gs_iop, at_ops), low->ops, job->n_ops * sizeof(gs_iop));
    memcpy(GS_TABLE(sim, gs_ipattern, at_patterns), low->patterns, job->n_patterns * sizeof(gs_ipattern));
    if (low->n_templates) {
        memcpy(GS_TABLE(sim, gs_template, at_templates), low->templates,
               low->n_templates * sizeof(gs_template));
    }
    if (low->n_parts) {
        memcpy(GS_TABLE(sim, gs_part, at_parts), low->parts, low->n_parts * sizeof(gs_part));
    }
    if (low->bytes) {
        memcpy(GS_TABLE(sim, gs_bytes, at_bytes), low->bytes, low->n_parts * sizeof(gs_bytes));
    }
    memcpy(GS_TABLE(sim, gs_program, at_programs), job->programs, job->n_programs * sizeof(gs_program));
    memcpy(GS_TABLE(sim, gs_launch, at_launches), job->launches, job->n_launches * sizeof(gs_launch));
    const struct {
        u64 at;
        const void *from;
        u64 bytes;
    } copies[] = {
        {sim->at_preds, job->preds, job->n_preds * 4},
        {sim->at_outs, job->outs, job->n_outs * 4},
        {sim->at_tb_out_ptr, job->tb_out_ptr, job->n_tb_out_ptr * 4},
        {sim->at_tb_outs, job->tb_outs, job->n_tb_outs * 4},
        {sim->at_nodes, job->nodes, job->n_nodes * sizeof(gs_node)},
        {sim->at_ranges, job->ranges, job->n_ranges * sizeof(gs_range)},
        {sim->at_forms, job->forms, job->n_forms * sizeof(gs_form)},
        {sim->at_links, job->links, job->n_links * sizeof(gs_link)},
        {sim->at_entries, job->entries, job->n_entries * 4},
        {sim->at_tb_rows, job->tb_rows, job->n_tb_rows * 4},
        {sim->at_blocks, job->blocks, job->n_blocks * 4},
        {sim->at_copies, job->copied, job->n_copied * sizeof(gs_copy)},
        {sim->at_sems, job->sems, job->n_sems * sizeof(gs_sem)},
        {sim->at_stages, job->stages, job->n_stages * sizeof(gs_stage)},
        {sim->at_sequence, job->sequence, job->n_sequence * 8},
    };
    for (u32 i = 0; i < sizeof copies / sizeof *copies; i++) {
        if (copies[i].bytes) {
            memcpy((char *)sim + copies[i].at, copies[i].from, copies[i].bytes);
        }
    }
    if (sim->order.bloom) {
        gs_bloom_fill(sim, job);
    }
    u32 *ptr = GS_TABLE(sim, u32, at_succ_ptr), *succs = GS_TABLE(sim, u32, at_succs);
    for (u64 i = 0; i < job->n_launches; i++) {
        const gs_launch *l = &job->launches[i];
        for (u32 j = 0; j < l->preds; j++) {
            ptr[job->preds[l->first_pred + j] + 1]++;
        }
    }
    for (u64 i = 0; i < job->n_launches; i++) {
        ptr[i + 1] += ptr[i];
    }
    u32 *next = GS_TABLE(sim, u32, at_rank); /* borrowed: overwritten below */
    memcpy(next, ptr, job->n_launches * 4);
    for (u64 i = 0; i < job->n_launches; i++) {
        const gs_launch *l = &job->launches[i];
        for (u32 j = 0; j < l->preds; j++) {
            succs[next[job->preds[l->first_pred + j]]++] = (u32)i;
        }
    }
    for (u64 i = 0; i < job->n_launches; i++) {
        next[job->launches[i].rank] = (u32)i;
    }
    gs_semaphore *semaphores = GS_TABLE(sim, gs_semaphore, at_semaphores);
    for (u64 i = 0; i < job->n_needs; i++) {
        semaphores[i].need = job->needs[i];
    }
    gs_coarsening_init(sim);
    gs_table_memory_init(sim);
}
