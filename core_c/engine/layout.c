/* Layout of the arena: see layout.h. */
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

/* Tables of the job in the arena. */
static void lay_out_job(gs_sim *sim, const gs_job *job, const gs_lowered *low, u64 *end)
{
    u64 n = job->n_launches;
    sim->n_launches = (u32)n;
    sim->at_ops = gs_reserve(end, job->n_ops, sizeof(gs_iop));
    sim->at_patterns = gs_reserve(end, job->n_patterns, sizeof(gs_ipattern));
    sim->at_templates = gs_reserve(end, low->n_templates, sizeof(gs_template));
    sim->at_parts = gs_reserve(end, low->n_parts, sizeof(gs_part));
    sim->at_bytes = low->bytes ? gs_reserve(end, low->n_parts, sizeof(gs_bytes)) : 0;
    sim->at_programs = gs_reserve(end, job->n_programs, sizeof(gs_program));
    sim->at_launches = gs_reserve(end, n, sizeof(gs_launch));
    sim->at_preds = gs_reserve(end, job->n_preds, 4);
    sim->at_succ_ptr = gs_reserve(end, n + 1, 4);
    sim->at_succs = gs_reserve(end, job->n_preds, 4);
    sim->at_outs = gs_reserve(end, job->n_outs, 4);
    sim->at_tb_out_ptr = gs_reserve(end, job->n_tb_out_ptr, 4);
    sim->at_tb_outs = gs_reserve(end, job->n_tb_outs, 4);
    sim->at_nodes = gs_reserve(end, job->n_nodes, sizeof(gs_node));
    sim->at_ranges = gs_reserve(end, job->n_ranges, sizeof(gs_range));
    sim->at_forms = gs_reserve(end, job->n_forms, sizeof(gs_form));
    sim->at_links = gs_reserve(end, job->n_links, sizeof(gs_link));
    sim->at_entries = gs_reserve(end, job->n_entries, 4);
    sim->at_tb_rows = gs_reserve(end, job->n_tb_rows, 4);
    sim->at_blocks = gs_reserve(end, job->n_blocks, 4);
    sim->at_copies = gs_reserve(end, job->n_copied, sizeof(gs_copy));
    sim->copies = job->n_copied;
    sim->at_sems = gs_reserve(end, job->n_sems, sizeof(gs_sem));
    sim->at_stages = gs_reserve(end, job->n_stages, sizeof(gs_stage));
    sim->at_boxes = gs_reserve(end, job->n_boxes, sizeof(gs_bulk_box));
    sim->at_mates = gs_reserve(end, sim->has_clusters ? (u64)sim->sms * GS_TBS : 0, sizeof(gs_mates));
    sim->at_semaphores = gs_reserve(end, job->n_needs, sizeof(gs_semaphore));
    sim->at_subscribers =
        gs_reserve(end, job->n_needs ? (u64)sim->sms * GS_TBS * GS_POLLS : 0, sizeof(gs_subscriber));
    sim->accesses = job->accesses;
    sim->recorded_templates = job->templates;
    sim->recorded_parts = job->parts;
}

/* The scheduler's state except its event queues. */
static void lay_out_scheduler(gs_sim *sim, const gs_job *job, u32 shapes, u64 *end)
{
    u64 n = job->n_launches, slots = (u64)sim->sms * GS_TBS;
    sim->at_node_states = gs_reserve(end, job->n_nodes, sizeof(gs_node_state));
    sim->at_sequence = gs_reserve(end, job->n_sequence, 8);
    sim->at_queues = gs_reserve(end, sim->order.queues, sizeof(gs_aql_queue));
    sim->at_queue_next = gs_reserve(end, sim->order.queues ? n : 0, 4);
    sim->at_queue_slots = gs_reserve(end, sim->order.queues ? sim->order.slots : 0, 4);
    sim->n_sequence = job->n_sequence;
    sim->at_kernels = gs_reserve(end, n, sizeof(gs_kernel));
    sim->at_tb_resources = gs_reserve(end, shapes, sizeof(gs_tb_resources));
    sim->at_rank = gs_reserve(end, n, 4);
    sim->at_ready_words = gs_reserve(end, n / 64 + 1, 8);
    sim->at_ready_summary = gs_reserve(end, n / 4096 + 1, 8);
    sim->at_sm_loads = gs_reserve(end, sim->sms, sizeof(gs_sm_load));
    sim->at_turns = gs_reserve(end, 2 * (u64)sim->sms, 2);
    sim->at_residents = gs_reserve(end, slots, sizeof(gs_resident));
    sim->at_departed = gs_reserve(end, (u64)sim->sms * GS_STORE_OWNERS, sizeof(gs_departed));
    sim->tb_room = (u32)gs_min(gs_max(job->tb_buffer, 2 * slots), 1u << 24);
    sim->at_tb_records = gs_reserve(end, sim->tb_room, sizeof(gs_tb_record));
    *end = sim->order.bloom ? gs_bloom_lay_out(sim, job, *end) : *end;
    *end = gs_table_memory_lay_out(sim, *end);
}

/* The scheduler's event queues, each with room for the most events that it can hold. */
static void lay_out_events(gs_sim *sim, const gs_job *job, u64 *end)
{
    u64 n = job->n_launches, slots = (u64)sim->sms * GS_TBS;
    u64 nodes = sim->order.tb_edges ? job->n_nodes + gs_min(sim->order.nodes, job->n_sequence) : 0;
    u64 held = sim->sched.has_pdl || sim->order.launchers ? n : 0;
    u64 waits = gs_table_memory_is_used(sim) ? GS_TABLE_WAITS : 0;
    const struct {
        gs_ring *ring;
        u64 most;
    } all[] = {
        {&sim->sched.release, slots + 1},
        {&sim->sched.ready, nodes + n + waits + sim->bloom.slots + 1},
        {&sim->sched.admit, n + held + 2},
        {&sim->sched.waiting_kernels, held + 1},
        {&sim->sched.prologue_over, sim->order.prologue ? slots + 1 : 1},
        {&sim->sched.complete, (u64)sim->sms * GS_STORE_OWNERS + slots + 1},
    };
    for (u32 i = 0; i < sizeof all / sizeof *all; i++) {
        u32 room = power_of_two(all[i].most);
        *all[i].ring = (gs_ring){gs_reserve(end, room, sizeof(gs_event)), 0, 0, room - 1, 0};
    }
}

static void lay_out_parts(gs_sim *sim, u64 *end)
{
    u64 sets = (u64)sim->slice_boxes * GS_GROUP * sim->sets;
    sim->at_sms = gs_reserve(end, (u64)sim->sm_boxes * GS_GROUP, sizeof(gs_sm));
    sim->at_slices = gs_reserve(end, (u64)sim->slice_boxes * GS_GROUP, sizeof(gs_slice));
    sim->at_sets = gs_reserve(end, sets, sizeof(gs_set));
    sim->at_gpc_links =
        gs_reserve(end, sim->gpc_sector ? (u64)sim->slice_boxes * sim->gpcs : 0, sizeof(gs_gpc_link));
    sim->at_partial_lines = gs_reserve(end, sim->keep_partial ? sets : 0, sizeof(gs_partial_lines));
}

/* The most messages that can be in flight. */
static u64 most_messages(const gs_sim *sim, const gs_job *job)
{
    u64 slots = (u64)sim->sms * GS_TBS;
    /* an op may issue where one line may: each pool has up to 31 more */
    u64 messages = (u64)sim->sms * (sim->in_flight + 31 * GS_POOLS + 33) + 2 * slots;
    messages *= sim->partition_boxes ? 2 : 1; /* a store may drop a twin */
    messages += (sim->sched.has_pdl || sim->order.prologue ? 2 * slots : 0) +
                (job->n_needs ? (GS_POLLS + 2) * slots : 0);
    messages += sim->has_bulk ? (u64)sim->sms * (GS_BULK_LINES + GS_RINGS * GS_CLUSTER_TBS) : 0;
    messages += (u64)sim->sms * GS_STORE_OWNERS; /* completions of TBs that have left, and posts */
    return messages + sim->sched.table_memory.room;
}

/* Memory of each host thread. In the worst case every message in flight is alone in its chunk. */
static void lay_out_threads(gs_sim *sim, const gs_job *job, u64 *end)
{
    u64 messages = most_messages(sim, job), chunks = messages + (u64)GS_RING * sim->boxes + 64;
    sim->sort_room = (u32)gs_min(messages, 65535);
    sim->far_room = (u32)messages;
    sim->at_far = gs_reserve(end, sim->far_room, sizeof(gs_far_msg));
    sim->at_chunks = gs_reserve(end, chunks * GS_THREADS, sizeof(gs_chunk));
    for (u32 i = 0; i < GS_THREADS; i++) {
        gs_thread *th = &sim->thread[i];
        th->next_chunk = (u32)(chunks * i + 1);
        th->end_chunk = (u32)(chunks * (i + 1));
        th->at_boxes = gs_reserve(end, (u64)GS_RING * sim->boxes, sizeof(gs_box));
        th->at_kernels = gs_reserve(end, job->n_launches, sizeof(gs_kernel_count));
        th->at_samples = gs_reserve(end, GS_SAMPLES, sizeof(gs_sample));
        th->at_sort = gs_reserve(end, sim->sort_room + 8, sizeof(gs_msg));
        th->at_count = gs_reserve(end, (sim->quantum >> 9) + 16, 2);
    }
}

static void lay_out_series(gs_sim *sim, u64 *end)
{
    gs_series *series = &sim->series;
    gs_series_plan(sim);
    series->at_sms = gs_reserve(end, series->room * sim->sms, sizeof(gs_sm_series));
    series->at_slices = gs_reserve(end, series->room * sim->slice_places, sizeof(gs_slice_series));
    series->at_banks =
        gs_reserve(end, series->room * sim->slice_places * (sim->bank_mask + 1), sizeof(gs_bank_series));
    u64 on = series->interval ? sim->slice_places : 0;
    series->at_done = gs_reserve(end, on ? sim->slice_boxes : 0, 8);
    series->at_channels = gs_reserve(end, on, sizeof(gs_channel));
    series->at_dues = gs_reserve(end, on * series->due_room, sizeof(gs_dram_booking));
}

u64 gs_arena_lay_out(gs_sim *sim, const gs_job *job, const gs_lowered *low, u32 shapes)
{
    u64 end = sizeof *sim;
    lay_out_job(sim, job, low, &end);
    lay_out_scheduler(sim, job, shapes, &end);
    lay_out_events(sim, job, &end);
    lay_out_parts(sim, &end);
    lay_out_threads(sim, job, &end);
    lay_out_series(sim, &end);
    return (end + 127) & ~127ull;
}

/* Each kernel's successors, from the predecessors in the job, and the kernels by rank. */
static void fill_successors(gs_sim *sim, const gs_job *job)
{
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
        {sim->at_boxes, job->boxes, job->n_boxes * sizeof(gs_bulk_box)},
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
    fill_successors(sim, job);
    gs_semaphore *semaphores = GS_TABLE(sim, gs_semaphore, at_semaphores);
    for (u64 i = 0; i < job->n_needs; i++) {
        semaphores[i].need = job->needs[i];
    }
    gs_coarsening_init(sim);
    gs_table_memory_init(sim);
}
