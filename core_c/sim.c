/* Creation of a simulation: checks, derived constants, one arena. Nothing is allocated after this (the
   oracle, a check for tests, keeps tables of its own). */
#include "bloom.h"
#include "clock.h"
#include "fabric.h"
#include "l1.h"
#include "l2.h"
#include "oracle.h"
#include "program.h"
#include "scheduler.h"
#include "series.h"
#include "sync.h"

#include "gen/gs_hash.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef GS_BUILD_MODE
#define GS_BUILD_MODE "unknown"
#endif
#ifndef GS_BUILD_FLAGS
#define GS_BUILD_FLAGS ""
#endif

int gs_fail(gs_sim *sim, int code, const char *format, ...)
{
    /* threads may fail at once: the first code wins, and with it the message */
    int none = GS_OK;
    if (__atomic_compare_exchange_n(&sim->error_code, &none, code, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        va_list args;
        va_start(args, format);
        vsnprintf(sim->error, sizeof sim->error, format, args);
        va_end(args);
    }
    return code;
}

const char *gs_error(const gs_sim *sim)
{
    return sim->error;
}

const char *gs_build_info(void)
{
    return "mode " GS_BUILD_MODE ", compiler " __VERSION__ ", flags " GS_BUILD_FLAGS;
}

uint64_t gs_tables_hash(void)
{
    return GS_TABLES_HASH;
}

/* ---- derived constants ---- */
static int derive_partitions(gs_sim *sim)
{
    const gs_gpu_l2_params *p = &sim->params.gpu_l2;
    if (p->partitions == 1) {
        return GS_OK;
    }
    if (sim->slices % (2 * GS_GROUP) || sim->map.wraps || p->replacement == GS_GPU_L2_REPLACEMENT_LRU) {
        return gs_fail(sim, GS_ERR_ARG,
                       "gpu.l2.partitions = 2: gpu.l2.slices = %u must be a multiple of %d, "
                       "gpu.l2.hash_slices 0 and gpu.l2.replacement random or clock",
                       sim->slices, 2 * GS_GROUP);
    }
    sim->half_boxes = sim->slices / (2 * GS_GROUP);
    sim->fabric = (u64)p->fabric_latency * sim->period;
    if (p->fabric_bandwidth) {
        /* ticks that a byte holds one slice's link, times bytes: MB/s = B/us */
        u64 bytes = 1024ull * 1000 * sim->slices, rate = (u64)p->fabric_bandwidth;
        sim->link_store = (u32)(44 * bytes / rate);
        sim->link_sector[0] = (u32)(29 * bytes / rate);
        sim->link_sector[1] = (u32)(32 * bytes / rate);
    }
    /* the mean over lines with their home here and there is the configured latency */
    u64 more = (sim->tag_latency + 2 * sim->fabric) / 2;
    if (sim->fill_latency < more) {
        return gs_fail(sim, GS_ERR_ARG,
                       "gpu.dram.latency = %lld cycles: less than the way there takes with "
                       "gpu.l2.fabric_latency = %lld",
                       (long long)sim->params.gpu_dram.latency, (long long)p->fabric_latency);
    }
    sim->fill_latency -= more;
    u64 miss = (u64)sim->params.gpu_dram.row_open + sim->tag_latency + sim->fill_latency;
    sim->twin_latency = sim->tag_latency + 2 * sim->fabric + gs_max(sim->l2_latency, miss);
    return GS_OK;
}

static int derive_memory(gs_sim *sim)
{
    const gs_params *p = &sim->params;
    u64 period = sim->period;
    u64 sets = (u64)p->gpu_l2.size / (u64)(p->gpu_l2.slices * GS_WAYS * 128);
    if (sets == 0 || sets > 2048 || sets * (u64)p->gpu_l2.slices * GS_WAYS * 128 != (u64)p->gpu_l2.size) {
        return gs_fail(sim, GS_ERR_ARG,
                       "gpu.l2.size = %lld B in %lld slices: %llu sets a slice: must be 1 to 2048 sets of 16 "
                       "lines, without a rest",
                       (long long)p->gpu_l2.size, (long long)p->gpu_l2.slices, (unsigned long long)sets);
    }
    sim->sets = (u32)sets;
    u64 hashed = gs_max((u64)p->gpu_l2.hash_slices, sim->slices);
    if ((p->gpu_l2.hash_slices && p->gpu_l2.hash_slices < p->gpu_l2.slices) || hashed > 2ull * sim->slices) {
        return gs_fail(sim, GS_ERR_ARG,
                       "gpu.l2.hash_slices = %lld: must be 0 or 1 to 2 times gpu.l2.slices = %u",
                       (long long)p->gpu_l2.hash_slices, sim->slices);
    }
    sim->map.slices = (u32)hashed;
    sim->map.wraps = hashed > sim->slices ? sim->slices : 0;
    sim->map.sets = sim->sets;
    sim->map.row_sets = (u32)gs_min(sets, (u64)p->gpu_dram.row_bytes / 128);
    sim->map.rows = sim->sets / sim->map.row_sets;
    sim->map.turn = p->gpu_l2.hash ? 0x9E37 : 0;
    sim->map.spread = p->gpu_l2.hash ? ~0u : 0;
    sim->bank_mask = (u32)p->gpu_dram.banks - 1;
    sim->bank_fold = p->gpu_dram.bank_hash ? sim->bank_mask : 0;
    sim->map.slices_inverse = (1ull << 40) / hashed + 1;
    sim->map.by_block = gs_div_make(hashed * sets);
    sim->row_shift = gs_ctz((u64)p->gpu_dram.row_bytes) - 7;
    /* ticks that a sector holds the bus: 32 B at bandwidth / slices, MB/s = B/us */
    sim->dram_slot =
        (32ull * 1024 * 1000 * sim->slices + (u64)p->gpu_dram.bandwidth / 2) / (u64)p->gpu_dram.bandwidth;
    sim->dram_slot = gs_max(sim->dram_slot, 1);
    sim->by_slot = gs_div_make(sim->dram_slot);
    u64 both = (u64)p->gpu_dram.turnaround + (u64)p->gpu_dram.read_turnaround;
    sim->turnaround_slots[0] = (u32)((u64)p->gpu_dram.turnaround / sim->dram_slot);
    sim->turnaround_slots[1] = (u32)(both / sim->dram_slot);
    sim->write_ahead = p->gpu_dram.write_queue ? (u64)p->gpu_dram.write_queue * sim->dram_slot : GS_NEVER / 2;
    sim->noc = (u64)p->gpu_noc.latency * period;
    sim->l1_latency = (u32)p->gpu_l1.latency;
    sim->in_flight = (u32)p->gpu_l1.in_flight;
    sim->l1_total = (u64)p->gpu_l1.size;
    /* a set has lines of at most 16 neighbouring hashes, so the least L1 is a sixteenth of the largest */
    sim->l1_hash = sim->l1_total > GS_L1_SETS / 2 * GS_L1_WAYS * 128 ? GS_L1_SETS - 1 : GS_L1_SETS / 2 - 1;
    sim->port_sms = (u32)p->gpu_noc.port_sms;
    sim->clock_hand = p->gpu_l2.replacement == GS_GPU_L2_REPLACEMENT_CLOCK;
    sim->join_stores = (u32)p->gpu_l1.join_stores;
    sim->join_loads = (u32)p->gpu_noc.join_loads;
    sim->fill_pairs = p->gpu_l2.fill == 64;
    if (sim->port_sms == 3) {
        return gs_fail(sim, GS_ERR_ARG, "gpu.noc.port_sms = 3: must be 1, 2 or 4");
    }
    for (u32 mask = 0; mask < 16; mask++) {
        u32 n = gs_popcount(mask), write = (u32)(32 * 64 / p->gpu_noc.write_bytes);
        sim->reply_hold[0][mask] = (u16)(n * (u32)(32 * 64 / p->gpu_noc.reply_bytes));
        sim->reply_hold[1][mask] = 16;
        for (u32 sharing = 0; sharing <= 4; sharing++) {
            u32 each = n * gs_max32(sharing, 1);
            sim->port_hold[sharing][0][mask] = (u16)gs_max32(1, (each * write + 63) / 64);
            sim->port_hold[sharing][1][mask] =
                (u16)gs_max32(1, (each * (u32)p->gpu_noc.read_sector + 63) / 64);
        }
    }
    u32 sector = (u32)(32 * period / (u64)p->gpu_l2.slice_bytes);
    sim->slice_sector[GS_MSG_LOAD] = sim->slice_sector[GS_MSG_STORE] = sector;
    sim->slice_sector[GS_MSG_REDUCE] = gs_max32(sector, (u32)((u64)p->gpu_l2.update * period / 64));
    /* a pointer chase measures the configured latencies: what the way there takes is subtracted */
    i64 way = p->gpu_l1.latency + 2 * p->gpu_noc.latency + 1;
    i64 l2 = p->gpu_l2.latency - way;
    sim->tag_latency = 10 * period;
    i64 dram =
        (p->gpu_dram.latency - way - 10) * (i64)period - p->gpu_dram.row_open - (i64)(sim->dram_slot * 3 / 2);
    /* the mean wait for a refresh belongs to the configured latency too */
    dram -= p->gpu_dram.refresh_time * p->gpu_dram.refresh_time / (2 * p->gpu_dram.refresh_period);
    if (l2 < 1 || dram < 0) {
        return gs_fail(
            sim, GS_ERR_ARG,
            "gpu.l2.latency = %lld or gpu.dram.latency = %lld cycles: less than the way there takes",
            (long long)p->gpu_l2.latency, (long long)p->gpu_dram.latency);
    }
    sim->l2_latency = (u64)l2 * period;
    sim->fill_latency = (u64)dram;
    return derive_partitions(sim);
}

static int derive(gs_sim *sim)
{
    const gs_params *p = &sim->params;
    sim->sms = (u32)p->gpu.sms;
    sim->slices = (u32)p->gpu_l2.slices;
    sim->period = (u64)p->gpu.clock;
    sim->by_period = gs_div_make(sim->period);
    sim->period_inverse = (1ull << 44) / sim->period + 1;
    if (derive_memory(sim)) {
        return sim->error_code;
    }
    sim->done_latency = (u64)p->gpu_cp.tb_done_latency;
    sim->start_latency = (u64)p->gpu_cp.tb_start_latency;
    sim->depend_latency = (u64)p->gpu_cp.depend;
    /* What an SM does reaches a slice or the scheduler this much later at the soonest, and the other way
       round: a request passes L1 and the network, a reply L2 and the network. So slices and scheduler run a
       quantum, then SMs run one that begins `lead` later, and a quantum may be as long as both ways together.
     */
    u64 request = sim->l1_latency * sim->period + sim->noc;
    u64 reply = gs_min(sim->l2_latency, sim->tag_latency + sim->fill_latency) + sim->noc;
    sim->lead = gs_min(reply, sim->start_latency);
    sim->lead = sim->sched.early || sim->order.prologue ? gs_min(sim->lead, sim->depend_latency) : sim->lead;
    /* copies are there a tick before what waits for them can send its first request */
    sim->copy_latency = sim->lead + gs_min(request, sim->done_latency) - 1;
    u64 most = gs_min(sim->copy_latency, 1024 * sim->period); /* see gs_box_of */
    most = sim->half_boxes ? gs_min(most, sim->tag_latency + sim->fabric) : most;
    u64 want = (u64)p->sim.quantum * sim->period;
    sim->quantum = want && want < most ? want : most;
    u64 share = (u64)p->gpu.clock_tensor;
    if (share < 65536) {
        sim->tensor_period = (sim->period * 65536 + share / 2) / share;
        sim->quantum = gs_clock_quantum(sim->quantum);
    }
    sim->by_quantum = gs_div_make(sim->quantum);
    sim->quantum_inverse = (1ull << 56) / sim->quantum + 1;
    sim->far_limit = GS_RING;
    sim->sm_boxes = (sim->sms + GS_GROUP - 1) / GS_GROUP;
    sim->slice_boxes = (sim->slices + GS_GROUP - 1) / GS_GROUP;
    sim->boxes = sim->sm_boxes + sim->slice_boxes + 1;
    /* about as long as the blocks of our kernels, whose work is counted when they begin */
    sim->sample_cycles = 1024;
    sim->threads = 0; /* none have their shares yet */
    sim->atomic_hold = (u64)p->gpu_sync.atomic;
    sim->acquire = (u64)p->gpu_sync.acquire;
    for (u32 far = 0; far < 2; far++) {
        u64 way = request + sim->l2_latency + sim->noc;
        u64 trip = gs_max(way, (u64)p->gpu_sync.latency * sim->period) + (far ? 2 * sim->fabric : 0);
        sim->sync_extra[far][0] = (trip - way) / 2;
        sim->sync_extra[far][1] = trip - way - sim->sync_extra[far][0];
        sim->poll_period[far] = trip + sim->acquire * sim->period;
    }
    return GS_OK;
}

/* ---- the arena ---- */
static u64 place(u64 *total, u64 n, u64 size)
{
    u64 at = (*total + 127) & ~127ull;
    *total = at + n * size;
    return at;
}

static u32 power_of_two(u64 n)
{
    u32 p = 16;
    while (p < n) {
        p *= 2;
    }
    return p;
}

/* programs' resource classes: a shape for each (program, carve-out) in use */
static u32 shape_of(gs_shape *shapes, u32 *n, const gs_sim *sim, const gs_program *p, u32 carveout)
{
    const gs_gpu_sm_params *sm = &sim->params.gpu_sm;
    u64 unit = (u64)sm->register_unit / 32, registers = (p->registers + unit - 1) / unit;
    u64 smem = p->smem + (u64)sm->smem_reserved;
    smem = (smem + (u64)sm->smem_unit - 1) / (u64)sm->smem_unit * (u64)sm->smem_unit;
    gs_shape want = {p->warps, (u32)registers, (u32)gs_min(smem, GS_NONE), carveout, GS_NEVER - 1};
    for (u32 i = 0; i < *n; i++) {
        if (!memcmp(&shapes[i], &want, sizeof want)) {
            return i;
        }
    }
    shapes[*n] = want;
    return (*n)++;
}

static int check_shape(gs_sim *sim, const gs_shape *s, u64 launch)
{
    const gs_gpu_sm_params *sm = &sim->params.gpu_sm;
    u64 l1_least = (u64)(sim->l1_hash + 1) / 16 * GS_L1_WAYS * 128;
    u64 sub_warps = (s->warps + 3) / 4, units = (u64)sm->registers / 4 / (u64)sm->register_unit;
    const char *what = s->warps > (u64)sm->warps                ? "warps"
                       : sub_warps * s->units > units           ? "registers"
                       : s->smem > s->carveout                  ? "shared memory"
                       : s->carveout > (u64)sm->smem            ? "shared-memory carve-out"
                       : s->carveout + l1_least > sim->l1_total ? "L1"
                                                                : NULL;
    if (what) {
        return gs_fail(sim, GS_ERR_FIT, "launch %llu: a TB fits no SM: not enough %s",
                       (unsigned long long)launch, what);
    }
    return GS_OK;
}

static int check_copy(gs_sim *sim, const gs_job *job, const gs_launch *l, u64 launch, u64 top)
{
    u64 before = 0, n = l->copies;
    int good =
        l->grid[0] == 1 && l->grid[1] == 1 && l->grid[2] == 1 && (u64)l->first_copy + n <= job->n_copied;
    for (u64 i = l->first_copy; good && i < l->first_copy + n; i++) {
        const gs_copy *c = &job->copied[i];
        if (c->first < c->end && c->end > top / 32) {
            return gs_fail(sim, GS_ERR_LIMIT, "launch %llu: a copy to beyond %llu GiB of memory",
                           (unsigned long long)launch, (unsigned long long)(top >> 30));
        }
        good = c->first < c->end && c->before == before;
        before += good ? c->end - c->first : 0;
        good = good && before <= top / 32;
    }
    if (!good) {
        return gs_fail(sim, GS_ERR_ARG, "launch %llu: what it copies is out of range",
                       (unsigned long long)launch);
    }
    if (l->copy_wait >> 40 || l->copy_time >> 40) {
        return gs_fail(sim, GS_ERR_LIMIT, "launch %llu: a copy takes more than 1.07 s",
                       (unsigned long long)launch);
    }
    return GS_OK;
}

static u64 tbs_of(const gs_launch *l)
{
    return (u64)l->grid[0] * l->grid[1] * l->grid[2];
}

/* every TB must come once: the buffer of TBs would wait for one that does not */
static int check_sequence(gs_sim *sim, const gs_job *job)
{
    u64 tbs = 0;
    if (sim->order.queues && (sim->order.tb_edges || !sim->order.slots || sim->order.slots > 65536 ||
                              sim->order.queues > 65536 || !sim->order.quantum)) {
        return gs_fail(sim, GS_ERR_ARG, "queues: a table, or slots or a quantum of 0 or too many");
    }
    if (!sim->order.tb_edges && (sim->order.nodes || sim->order.each)) {
        return gs_fail(sim, GS_ERR_ARG, "buffers of TBs or edges without a table");
    }
    if (sim->order.each && sim->order.children == 0) {
        return gs_fail(sim, GS_ERR_ARG, "lists of 0 children");
    }
    if (!sim->order.nodes) {
        return GS_OK;
    }
    for (u64 i = 0; i < job->n_launches; i++) {
        tbs += job->launches[i].copies ? 0 : tbs_of(&job->launches[i]);
    }
    if (tbs != job->n_sequence) {
        return gs_fail(sim, GS_ERR_ARG, "the sequence has %llu TBs, the job %llu",
                       (unsigned long long)job->n_sequence, (unsigned long long)tbs);
    }
    for (u64 i = 0; i < job->n_sequence; i++) {
        u64 kernel = job->sequence[i] >> 32, tb = job->sequence[i] & GS_NONE;
        if (kernel >= job->n_launches || job->launches[kernel].copies ||
            tb >= tbs_of(&job->launches[kernel])) {
            return gs_fail(sim, GS_ERR_ARG, "TB %llu of the sequence is not one of the job's",
                           (unsigned long long)i);
        }
    }
    return GS_OK;
}

static int check_job(gs_sim *sim, const gs_job *job)
{
    if (job->n_launches == 0 || job->n_launches >= GS_KERNEL_LIMIT || job->n_nodes >= GS_NONE ||
        job->n_ranges >= GS_NONE) {
        return gs_fail(sim, GS_ERR_LIMIT, "a job has 1 to %d launches, this one %llu", GS_KERNEL_LIMIT - 1,
                       (unsigned long long)job->n_launches);
    }
    if (job->n_sems >= INT32_MAX || job->n_stages >= UINT16_MAX || job->n_needs >= GS_SEMAPHORES) {
        return gs_fail(sim, GS_ERR_LIMIT, "%llu uses of semaphores, %llu stages or %llu semaphores: too many",
                       (unsigned long long)job->n_sems, (unsigned long long)job->n_stages,
                       (unsigned long long)job->n_needs);
    }
    for (u64 i = 0; i < job->n_sems; i++) {
        const gs_sem *q = &job->sems[i];
        if (q->rows == 0 || q->cols == 0 || q->base > 3 || q->times == 0 || q->times > GS_POLLS ||
            q->ahead > 2 || (q->ahead == 1 && q->times != 1)) {
            return gs_fail(sim, GS_ERR_ARG,
                           "use %llu of semaphores: %u rows, %u columns, base %u or %u times out of range",
                           (unsigned long long)i, q->rows, q->cols, q->base, q->times);
        }
    }
    u64 top = gs_address_top(sim);
    if (sim->order.launch >> 40 || sim->order.gap >> 40 || sim->order.admit >> 40 || sim->order.early >> 40 ||
        sim->order.beside >> 40 || sim->order.check >> 40 || sim->order.end >> 40 || sim->order.seen >> 40 ||
        sim->order.submit >> 40 || sim->order.update >> 40 || sim->order.latency >> 40 ||
        sim->order.prelaunch >> 40 || sim->order.spill >> 40 || sim->order.packet >> 40 ||
        sim->order.quantum >> 40) {
        return gs_fail(sim, GS_ERR_ARG, "a launch latency or gap is longer than 1 s");
    }
    if (check_sequence(sim, job)) {
        return sim->error_code;
    }
    u8 *ranks = calloc(job->n_launches, 1);
    if (!ranks) {
        return gs_fail(sim, GS_ERR_MEM, "not enough memory for %llu launches",
                       (unsigned long long)job->n_launches);
    }
    for (u64 i = 0; i < job->n_launches; i++) {
        u32 rank = job->launches[i].rank;
        if (rank >= job->n_launches || ranks[rank]) {
            free(ranks);
            return gs_fail(sim, GS_ERR_ARG, "launch %llu: rank %u is out of range or taken",
                           (unsigned long long)i, rank);
        }
        ranks[rank] = 1;
    }
    free(ranks);
    u64 places = 0;
    for (u64 i = 0; i < job->n_launches; i++) {
        const gs_launch *l = &job->launches[i];
        u64 tbs = (u64)l->grid[0] * l->grid[1];
        if (l->program >= job->n_programs || tbs == 0 || l->grid[2] == 0 || tbs > 0x7fffffff ||
            tbs * l->grid[2] > 0x7fffffff || l->enqueued >> 40) {
            return gs_fail(
                sim, GS_ERR_ARG,
                "launch %llu: program %u, time or grid %u x %u x %u out of range (at most 2^31 - 1 TBs)",
                (unsigned long long)i, l->program, l->grid[0], l->grid[1], l->grid[2]);
        }
        tbs *= l->grid[2];
        places += l->places;
        if (l->places == 0 || places > UINT32_MAX) {
            return gs_fail(sim, GS_ERR_ARG, "launch %llu: takes %u places of the window: out of range",
                           (unsigned long long)i, l->places);
        }
        if (l->prologue && (!sim->order.tb_edges || !sim->order.prologue || l->copies)) {
            return gs_fail(sim, GS_ERR_ARG, "launch %llu: a prologue needs a scheme with a table",
                           (unsigned long long)i);
        }
        if (l->early && sim->order.tb_edges) {
            return gs_fail(sim, GS_ERR_ARG, "launch %llu: an early start needs barriers between kernels",
                           (unsigned long long)i);
        }
        if (l->look_up >> 40 || l->enter >> 40) {
            return gs_fail(sim, GS_ERR_LIMIT, "launch %llu: finding its edges takes more than 1.07 s",
                           (unsigned long long)i);
        }
        if (sim->order.queues && (l->queue >= sim->order.queues || l->packets >= GS_NONE)) {
            return gs_fail(sim, GS_ERR_ARG, "launch %llu: queue %u of %u", (unsigned long long)i, l->queue,
                           sim->order.queues);
        }
        if (l->whole > l->preds) {
            return gs_fail(sim, GS_ERR_ARG, "launch %llu: it waits for %u of %u kernels",
                           (unsigned long long)i, l->whole, l->preds);
        }
        if ((u64)l->first_pred + l->preds > job->n_preds || (u64)l->first_out + l->outs > job->n_outs ||
            (u64)l->first_node + l->nodes > job->n_nodes ||
            (l->first_tb_out != GS_NONE && (u64)l->first_tb_out + tbs + 1 > job->n_tb_out_ptr)) {
            return gs_fail(sim, GS_ERR_ARG, "launch %llu: its dependences lie outside the tables",
                           (unsigned long long)i);
        }
        const u32 *ptr = l->first_tb_out == GS_NONE ? NULL : job->tb_out_ptr + l->first_tb_out;
        for (u64 tb = 0; ptr && tb < tbs; tb++) {
            if (ptr[tb] > ptr[tb + 1] || ptr[tb + 1] > job->n_tb_outs) {
                return gs_fail(sim, GS_ERR_ARG,
                               "launch %llu: what TB %llu counts down lies outside the table",
                               (unsigned long long)i, (unsigned long long)tb);
            }
        }
        for (u32 a = 0; a < 8; a++) {
            if (l->arg[a] % 256 || l->arg[a] >= top) {
                return gs_fail(sim, GS_ERR_ARG,
                               "launch %llu: argument %u at 0x%llx: must be a multiple of 256 below 0x%llx",
                               (unsigned long long)i, a, (unsigned long long)l->arg[a],
                               (unsigned long long)top);
            }
        }
        if (l->copies && check_copy(sim, job, l, i, top)) {
            return sim->error_code;
        }
        for (u32 j = 0; j < l->preds; j++) {
            if (job->preds[l->first_pred + j] >= i) {
                return gs_fail(sim, GS_ERR_ARG,
                               "launch %llu waits for launch %u: a dependence must go forward",
                               (unsigned long long)i, job->preds[l->first_pred + j]);
            }
        }
        for (u32 j = l->first_node; j < l->first_node + l->nodes; j++) {
            const gs_node *n = &job->nodes[j];
            if (n->kernel != i || n->expect == 0 || (u64)n->first_range + n->ranges > job->n_ranges ||
                n->ranges == 0) {
                return gs_fail(sim, GS_ERR_ARG, "node %u: kernel, count or ranges out of range", j);
            }
            for (u32 r = n->first_range; r < n->first_range + n->ranges; r++) {
                const gs_range *g = &job->ranges[r];
                if (g->count == 0 || g->start + (u64)(g->count - 1) * g->stride >= tbs ||
                    (g->count > 1 && g->stride == 0)) {
                    return gs_fail(sim, GS_ERR_ARG, "range %u lies outside its kernel", r);
                }
            }
        }
    }
    for (u64 i = 0; i < job->n_nodes; i++) {
        const gs_launch *l =
            job->nodes[i].kernel < job->n_launches ? &job->launches[job->nodes[i].kernel] : NULL;
        if (!l || i < l->first_node || i - l->first_node >= l->nodes) {
            return gs_fail(sim, GS_ERR_ARG, "node %llu: it is not one of its kernel's",
                           (unsigned long long)i);
        }
    }
    for (u64 i = 0; i < job->n_tb_outs; i++) {
        if (job->tb_outs[i] >= job->n_nodes) {
            return gs_fail(sim, GS_ERR_ARG, "a TB counts down node %u of %llu", job->tb_outs[i],
                           (unsigned long long)job->n_nodes);
        }
    }
    for (u64 i = 0; i < job->n_outs; i++) {
        if (job->outs[i] >= job->n_nodes) {
            return gs_fail(sim, GS_ERR_ARG, "a kernel counts down node %u of %llu", job->outs[i],
                           (unsigned long long)job->n_nodes);
        }
    }
    return GS_OK;
}

/* a kernel some of whose nodes release only part of it needs counters of its TBs */
static int is_fine(const gs_sim *sim, const gs_job *job, const gs_launch *l, u64 tbs)
{
    if (sim->order.nodes && !l->copies) {
        return 1;
    }
    if (sim->order.bloom) {
        return l->units > 1;
    }
    for (u32 j = l->first_node; j < l->first_node + l->nodes; j++) {
        const gs_node *n = &job->nodes[j];
        const gs_range *r = &job->ranges[n->first_range];
        if (n->ranges != 1 || r->start != 0 || r->count != tbs || (r->count > 1 && r->stride != 1)) {
            return 1;
        }
    }
    return 0;
}

static u64 lay_out(gs_sim *sim, const gs_job *job, const gs_lowered *low, u32 shapes)
{
    u64 t = sizeof *sim, n = job->n_launches;
    sim->n_launches = (u32)n;
    sim->at_ops = place(&t, job->n_ops, sizeof(gs_iop));
    sim->at_patterns = place(&t, job->n_patterns, sizeof(gs_ipattern));
    sim->at_templates = place(&t, low->n_templates, sizeof(gs_template));
    sim->at_parts = place(&t, low->n_parts, sizeof(gs_part));
    sim->at_programs = place(&t, job->n_programs, sizeof(gs_program));
    sim->at_launches = place(&t, n, sizeof(gs_launch));
    sim->at_preds = place(&t, job->n_preds, 4);
    sim->at_succ_ptr = place(&t, n + 1, 4);
    sim->at_succs = place(&t, job->n_preds, 4);
    sim->at_outs = place(&t, job->n_outs, 4);
    sim->at_tb_out_ptr = place(&t, job->n_tb_out_ptr, 4);
    sim->at_tb_outs = place(&t, job->n_tb_outs, 4);
    sim->at_nodes = place(&t, job->n_nodes, sizeof(gs_node));
    sim->at_ranges = place(&t, job->n_ranges, sizeof(gs_range));
    sim->at_entries = place(&t, job->n_entries, 4);
    sim->at_tb_rows = place(&t, job->n_tb_rows, 4);
    sim->at_blocks = place(&t, job->n_blocks, 4);
    sim->at_copies = place(&t, job->n_copied, sizeof(gs_copy));
    sim->copies = job->n_copied;
    sim->at_sems = place(&t, job->n_sems, sizeof(gs_sem));
    sim->at_stages = place(&t, job->n_stages, sizeof(gs_stage));
    sim->at_semaphores = place(&t, job->n_needs, sizeof(gs_semaphore));
    sim->at_subscribers =
        place(&t, job->n_needs ? (u64)sim->sms * GS_TBS * GS_POLLS : 0, sizeof(gs_subscriber));
    sim->accesses = (u64)(uintptr_t)job->accesses;
    sim->recorded_templates = (u64)(uintptr_t)job->templates;
    sim->recorded_parts = (u64)(uintptr_t)job->parts;
    sim->at_nstates = place(&t, job->n_nodes, sizeof(gs_nstate));
    sim->at_sequence = place(&t, job->n_sequence, 8);
    sim->at_queues = place(&t, sim->order.queues, sizeof(gs_queue));
    sim->at_queue_next = place(&t, sim->order.queues ? n : 0, 4);
    sim->at_queue_slots = place(&t, sim->order.queues ? sim->order.slots : 0, 4);
    sim->n_sequence = job->n_sequence;
    sim->at_kernels = place(&t, n, sizeof(gs_kernel));
    sim->at_shapes = place(&t, shapes, sizeof(gs_shape));
    sim->at_rank = place(&t, n, 4);
    sim->at_ready_words = place(&t, n / 64 + 1, 8);
    sim->at_ready_summary = place(&t, n / 4096 + 1, 8);
    sim->at_smloads = place(&t, sim->sms, sizeof(gs_smload));
    sim->at_turns = place(&t, sim->sms, 2);
    sim->at_residents = place(&t, (u64)sim->sms * GS_TBS, sizeof(gs_resident));
    sim->at_departed = place(&t, (u64)sim->sms * GS_OWNERS, sizeof(gs_departed));
    u64 reserve = (u64)sim->sms * GS_TBS;
    sim->tb_room = (u32)gs_min(gs_max(job->tb_buffer, 2 * reserve), 1u << 24);
    sim->at_tb_records = place(&t, sim->tb_room, sizeof(gs_tb_record));
    u64 nodes = sim->order.tb_edges ? job->n_nodes + gs_min(sim->order.nodes, job->n_sequence) : 0;
    t = sim->order.bloom ? gs_bloom_lay_out(sim, job, t) : t;
    u64 held = sim->sched.early || sim->order.launchers ? n : 0;
    u64 rooms[6] = {power_of_two(reserve + 1),
                    power_of_two(nodes + n + sim->bloom.slots + 1),
                    power_of_two(n + held + 2),
                    power_of_two(held + 1),
                    power_of_two(sim->order.prologue ? reserve + 1 : 1),
                    power_of_two((u64)sim->sms * GS_OWNERS + reserve + 1)};
    gs_ring *rings[6] = {&sim->sched.release, &sim->sched.ready, &sim->sched.admit,
                         &sim->sched.held,    &sim->sched.opens, &sim->sched.complete};
    for (u32 i = 0; i < 6; i++) {
        *rings[i] = (gs_ring){place(&t, rooms[i], sizeof(gs_event)), 0, 0, (u32)rooms[i] - 1, 0};
    }
    sim->at_sms = place(&t, sim->sm_boxes * GS_GROUP, sizeof(gs_sm));
    sim->at_slices = place(&t, sim->slice_boxes * GS_GROUP, sizeof(gs_slice));
    sim->at_sets = place(&t, (u64)sim->slice_boxes * GS_GROUP * sim->sets, sizeof(gs_set));
    /* every message in flight could sit in a chunk of its own */
    u64 messages = (u64)sim->sms * (sim->in_flight + 64) + 2 * reserve;
    messages *= sim->half_boxes ? 2 : 1; /* a store may drop a twin */
    messages += (sim->sched.early || sim->order.prologue ? 2 * reserve : 0) +
                (job->n_needs ? (GS_POLLS + 2) * reserve : 0);
    messages += (u64)sim->sms * GS_OWNERS; /* TBs that are complete after they left, and their posts */
    u64 chunks = messages + (u64)GS_RING * sim->boxes + 64;
    sim->sort_room = (u32)gs_min(messages, 65535);
    sim->far_room = (u32)messages;
    sim->at_chunks = place(&t, chunks * GS_THREADS, sizeof(gs_chunk));
    for (u32 i = 0; i < GS_THREADS; i++) {
        gs_thread *th = &sim->thread[i];
        th->next_chunk = (u32)(chunks * i + 1);
        th->end_chunk = (u32)(chunks * (i + 1));
        th->at_boxes = place(&t, (u64)GS_RING * sim->boxes, sizeof(gs_box));
        th->at_far = place(&t, sim->far_room, sizeof(gs_far));
        th->at_kernels = place(&t, n, sizeof(gs_kcount));
        th->at_samples = place(&t, GS_SAMPLES, sizeof(gs_sample));
        th->at_sort = place(&t, sim->sort_room + 8, sizeof(gs_msg));
        th->at_count = place(&t, (sim->quantum >> 9) + 16, 2);
    }
    gs_series *series = &sim->series;
    gs_series_plan(sim);
    series->at_sms = place(&t, series->room * sim->sms, sizeof(gs_sm_series));
    series->at_slices = place(&t, series->room * sim->slices, sizeof(gs_slice_series));
    series->at_banks = place(&t, series->room * sim->slices * (sim->bank_mask + 1), sizeof(gs_bank_series));
    u64 on = series->interval ? sim->slices : 0;
    series->at_done = place(&t, on ? sim->slice_boxes : 0, 8);
    series->at_channels = place(&t, on, sizeof(gs_channel));
    series->at_dues = place(&t, on * series->due_room, sizeof(gs_due));
    return (t + 127) & ~127ull;
}

static void fill_tables(gs_sim *sim, const gs_job *job, const gs_lowered *low)
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
    gs_nstate *states = GS_TABLE(sim, gs_nstate, at_nstates);
    for (u64 i = 0; i < job->n_nodes; i++) {
        const gs_node *n = &job->nodes[i];
        states[i] = (gs_nstate){n->expect, 0, GS_NONE, GS_NONE, 0, 0};
        for (u32 r = n->first_range; r < n->first_range + n->ranges; r++) {
            states[i].consumers += job->ranges[r].count;
        }
    }
}

static void init_parts(gs_sim *sim)
{
    const gs_params *p = &sim->params;
    gs_smload *loads = GS_TABLE(sim, gs_smload, at_smloads);
    for (u32 i = 0; i < sim->sm_boxes * GS_GROUP; i++) {
        gs_sm *sm = &gs_sms(sim)[i];
        sm->id = i;
        sm->free_warps = p->gpu_sm.warps == 64 ? ~0ull : (1ull << p->gpu_sm.warps) - 1;
        gs_l1_resize(sim, sm, sim->l1_total);
        sm->last_kernel = GS_NONE;
    }
    for (u32 i = 0; i < sim->sms; i++) {
        loads[i].tb_free = p->gpu_sm.tbs == 32 ? ~0u : (1u << p->gpu_sm.tbs) - 1;
        for (u32 j = 0; j < 4; j++) {
            loads[i].warps[j] = (u8)(p->gpu_sm.warps / 4);
            loads[i].registers[j] = (u16)(p->gpu_sm.registers / 4 / p->gpu_sm.register_unit);
        }
    }
    gs_place_init(sim);
    gs_clock_init(sim);
    for (u32 i = 0; i < sim->sms; i++) {
        gs_clock_sample(sim, &gs_sms(sim)[i]);
    }
    gs_set *sets = GS_TABLE(sim, gs_set, at_sets);
    for (u64 i = 0; i < (u64)sim->slices * sim->sets; i++) {
        sets[i].random = sim->clock_hand ? 0 : (u32)gs_mix((u64)p->sim.seed, i + 1);
        sets[i].order = sim->half_boxes ? 0 : 0xFEDCBA9876543210ull;
    }
    for (u32 i = 0; i < sim->slices; i++) {
        gs_slices(sim)[i].id = i;
    }
}

static gs_sim *create(gs_sim *draft, const gs_job *job)
{
    gs_lowered low = {0};
    gs_shape *shapes = NULL;
    u32 *kernel_shape = NULL, n_shapes = 0;
    gs_sim *sim = NULL;
    draft->n_sems = (u32)gs_min(job->n_sems, GS_NONE);
    draft->n_semaphores = (u32)gs_min(job->n_needs, GS_NONE);
    for (u64 i = 0; i < job->n_launches; i++) {
        draft->sched.early |= job->launches[i].early != 0;
    }
    if (derive(draft) || check_job(draft, job) || (draft->order.bloom && gs_bloom_check(draft, job)) ||
        gs_program_lower(draft, job, &low)) {
        goto out;
    }
    shapes = calloc(job->n_launches, sizeof *shapes);
    kernel_shape = calloc(job->n_launches, sizeof *kernel_shape);
    if (!shapes || !kernel_shape) {
        gs_fail(draft, GS_ERR_MEM, "not enough memory for %llu launches",
                (unsigned long long)job->n_launches);
        goto out;
    }
    for (u64 i = 0; i < job->n_launches; i++) {
        const gs_launch *l = &job->launches[i];
        kernel_shape[i] = shape_of(shapes, &n_shapes, draft, &job->programs[l->program], l->carveout);
        if (check_shape(draft, &shapes[kernel_shape[i]], i)) {
            goto out;
        }
    }
    u64 bytes = lay_out(draft, job, &low, n_shapes);
    u64 fine_at = bytes;
    for (u64 i = 0; draft->order.tb_edges && i < job->n_launches; i++) {
        u64 tbs = tbs_of(&job->launches[i]);
        if (is_fine(draft, job, &job->launches[i], tbs)) {
            bytes += tbs * sizeof(gs_fine) + (tbs / 64 + 1) * 8;
        }
    }
    bytes = (bytes + 4095) & ~4095ull;
    /* pages that are never written are never taken from the system */
    char *block = calloc(1, bytes + 4096);
    if (!block) {
        gs_fail(draft, GS_ERR_MEM, "not enough memory: the simulation needs %llu MB",
                (unsigned long long)(bytes >> 20));
        goto out;
    }
    u64 skew = (4096 - ((uintptr_t)block & 4095)) & 4095;
    sim = (gs_sim *)(void *)(block + skew);
    *sim = *draft;
    sim->bytes = bytes;
    sim->block = (u64)(uintptr_t)block;
    fill_tables(sim, job, &low);
    memcpy(GS_TABLE(sim, gs_shape, at_shapes), shapes, n_shapes * sizeof *shapes);
    for (u64 i = 0; i < job->n_launches; i++) {
        gs_kernel *k = &gs_kernels(sim)[i];
        k->tbs = (u32)tbs_of(&job->launches[i]);
        k->shape = kernel_shape[i];
        if (sim->order.tb_edges && is_fine(sim, job, &job->launches[i], k->tbs)) {
            k->fine = 1;
            k->fine_at = fine_at;
            fine_at += (u64)k->tbs * sizeof(gs_fine) + (k->tbs / 64 + 1) * 8;
        }
    }
    init_parts(sim);
    if (sim->params.sim.oracle && !gs_oracle_create(sim)) {
        gs_fail(draft, GS_ERR_MEM, "not enough memory for the oracle");
        gs_free(sim);
        sim = NULL;
        goto out;
    }
    gs_sched_init(sim);
out:
    gs_program_drop(&low);
    free(shapes);
    free(kernel_shape);
    return sim;
}

gs_sim *gs_create(const gs_params *params, const gs_order *order, const gs_job *job, int *code, char *error)
{
    gs_sim *draft = calloc(1, sizeof *draft);
    if (!draft) {
        *code = GS_ERR_MEM;
        snprintf(error, 256, "not enough memory");
        return NULL;
    }
    draft->params = *params;
    draft->order = *order;
    gs_sim *sim = create(draft, job);
    *code = draft->error_code;
    snprintf(error, 256, "%s", draft->error);
    free(draft);
    return sim;
}

void gs_free(gs_sim *sim)
{
    if (sim) {
        gs_oracle_free(sim);
        free((void *)(uintptr_t)sim->block);
    }
}

void gs_line_home(const gs_sim *sim, uint64_t line, uint32_t *slice, uint32_t *set, uint32_t *tag)
{
    gs_home(&sim->map, line, slice, set, tag);
}
