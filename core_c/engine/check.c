/* Checks of a job: see check.h. */
#include "engine/check.h"

#include "base/arena.h"
#include "base/fail.h"
#include "base/mailbox.h"
#include "memory/address_map.h"
#include "memory/semaphore.h"
#include "scheduler/coarsening.h"

#include <stdlib.h>

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
    if (l->copy_wait >> GS_TIME_BITS || l->copy_time >> GS_TIME_BITS) {
        return gs_fail(sim, GS_ERR_LIMIT, "launch %llu: a copy takes more than 1,099 s",
                       (unsigned long long)launch);
    }
    return GS_OK;
}

static int check_gpcs(gs_sim *sim)
{
    u64 seen = 0;
    for (u32 i = 0; i < (u32)sim->params.gpu.gpcs; i++) {
        seen |= sim->order.gpcs[i] < sim->params.gpu.gpcs ? 1ull << sim->order.gpcs[i] : 0;
    }
    if (gs_popcount64(seen) != (u32)sim->params.gpu.gpcs) {
        return gs_fail(sim, GS_ERR_ARG, "the order of GPCs leaves some out");
    }
    return GS_OK;
}

/* Settings of the scheme that contradict each other. */
static int check_order(gs_sim *sim)
{
    if (sim->order.queues && (sim->order.tb_edges || !sim->order.slots || sim->order.slots > 65536 ||
                              sim->order.queues > 65536 || !sim->order.quantum)) {
        return gs_fail(sim, GS_ERR_ARG, "queues: a table, or slots or a quantum of 0 or too many");
    }
    if (sim->order.footprints >> 38 ||
        (sim->order.footprints && (!sim->order.tb_edges || sim->order.lists || sim->order.nodes))) {
        return gs_fail(sim, GS_ERR_ARG, "footprints of more than 256 GB, without a table or with buffers");
    }
    if (!sim->order.tb_edges && (sim->order.nodes || sim->order.each || sim->order.lists)) {
        return gs_fail(sim, GS_ERR_ARG, "buffers of TBs or edges without a table");
    }
    if ((sim->order.each || sim->order.lists) && sim->order.children == 0) {
        return gs_fail(sim, GS_ERR_ARG, "lists of 0 children");
    }
    if ((sim->order.each && !sim->order.lists) || (sim->order.lists && !sim->order.list_bytes)) {
        return gs_fail(sim, GS_ERR_ARG, "a buffer of lists of 0 entries or B");
    }
    if ((sim->order.lists || sim->order.fetch) && !sim->order.entry_bytes) {
        return gs_fail(sim, GS_ERR_ARG, "tables in memory of entries of 0 B");
    }
    return GS_OK;
}

/* Every TB stands in the sequence once: the wavefront buffer would wait for one that does not. */
static int check_sequence(gs_sim *sim, const gs_job *job)
{
    u64 tbs = 0;
    if (!sim->order.nodes) {
        return GS_OK;
    }
    for (u64 i = 0; i < job->n_launches; i++) {
        tbs += job->launches[i].copies ? 0 : gs_tbs_of(&job->launches[i]);
    }
    if (tbs != job->n_sequence) {
        return gs_fail(sim, GS_ERR_ARG, "the sequence has %llu TBs, the job %llu",
                       (unsigned long long)job->n_sequence, (unsigned long long)tbs);
    }
    for (u64 i = 0; i < job->n_sequence; i++) {
        u64 kernel = job->sequence[i] >> 32, tb = job->sequence[i] & GS_NONE;
        if (kernel >= job->n_launches || job->launches[kernel].copies ||
            tb >= gs_tbs_of(&job->launches[kernel])) {
            return gs_fail(sim, GS_ERR_ARG, "TB %llu of the sequence is not one of the job's",
                           (unsigned long long)i);
        }
    }
    return GS_OK;
}

enum { GS_LAUNCHES = 1 << 24 };

static int check_counts(gs_sim *sim, const gs_job *job)
{
    if (job->n_launches == 0 || job->n_launches > GS_LAUNCHES || job->n_nodes >= GS_NONE ||
        job->n_ranges >= GS_NONE) {
        return gs_fail(sim, GS_ERR_LIMIT, "a job has 1 to %d launches, this one %llu", GS_LAUNCHES,
                       (unsigned long long)job->n_launches);
    }
    if (job->n_sems >= INT32_MAX || job->n_stages >= UINT16_MAX || job->n_needs >= GS_SEMAPHORES) {
        return gs_fail(sim, GS_ERR_LIMIT, "%llu uses of semaphores, %llu stages or %llu semaphores: too many",
                       (unsigned long long)job->n_sems, (unsigned long long)job->n_stages,
                       (unsigned long long)job->n_needs);
    }
    return GS_OK;
}

static int check_semaphores(gs_sim *sim, const gs_job *job)
{
    for (u64 i = 0; i < job->n_sems; i++) {
        const gs_sem *q = &job->sems[i];
        if (q->rows == 0 || q->cols == 0 || q->base > 3 || q->times == 0 || q->times > GS_POLLS ||
            q->ahead > 2 || (q->ahead == 1 && q->times != 1)) {
            return gs_fail(sim, GS_ERR_ARG,
                           "use %llu of semaphores: %u rows, %u columns, base %u or %u times out of range",
                           (unsigned long long)i, q->rows, q->cols, q->base, q->times);
        }
    }
    return GS_OK;
}

static int check_latencies(gs_sim *sim)
{
    const gs_order *o = &sim->order;
    const u64 ticks[] = {o->launch,  o->gap,     o->admit,     o->early,  o->beside,
                         o->prepare, o->check,   o->end,       o->seen,   o->submit,
                         o->update,  o->latency, o->prelaunch, o->packet, o->quantum};
    u64 all = o->refetch >> 31;
    for (u32 i = 0; i < sizeof ticks / sizeof *ticks; i++) {
        all |= ticks[i] >> GS_TIME_BITS;
    }
    return all ? gs_fail(sim, GS_ERR_ARG, "a launch latency or gap is longer than 1,099 s") : GS_OK;
}

/* Each launch has a rank of its own. */
static int check_ranks(gs_sim *sim, const gs_job *job)
{
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
    return GS_OK;
}

/* What a launch asks of the scheme; `tbs`: of its grid. */
static int check_scheme(gs_sim *sim, const gs_launch *l, u64 launch, u64 tbs)
{
    unsigned long long i = launch;
    u64 footprints = l->footprint * tbs;
    if (footprints > sim->order.footprints ||
        (l->footprint && l->first_footprint > sim->order.footprints - footprints)) {
        return gs_fail(sim, GS_ERR_ARG, "launch %llu: footprints outside of the %llu B for them", i,
                       (unsigned long long)sim->order.footprints);
    }
    if (l->prologue && (!sim->order.tb_edges || !sim->order.prologue || l->copies)) {
        return gs_fail(sim, GS_ERR_ARG, "launch %llu: a prologue needs a scheme with a table", i);
    }
    if (l->early && sim->order.tb_edges) {
        return gs_fail(sim, GS_ERR_ARG, "launch %llu: an early start needs barriers between kernels", i);
    }
    if (l->look_up >> GS_TIME_BITS || l->enter >> GS_TIME_BITS || l->evaluate >> GS_TIME_BITS) {
        return gs_fail(sim, GS_ERR_LIMIT, "launch %llu: finding its edges takes more than 1,099 s", i);
    }
    if (sim->order.queues && (l->queue >= sim->order.queues || l->packets >= GS_NONE)) {
        return gs_fail(sim, GS_ERR_ARG, "launch %llu: queue %u of %u", i, l->queue, sim->order.queues);
    }
    if (l->whole > l->preds) {
        return gs_fail(sim, GS_ERR_ARG, "launch %llu: it waits for %u of %u kernels", i, l->whole, l->preds);
    }
    return GS_OK;
}

/* The launch's slices of the job's tables lie inside of them. */
static int check_slices(gs_sim *sim, const gs_job *job, const gs_launch *l, u64 launch, u64 tbs)
{
    if ((u64)l->first_pred + l->preds > job->n_preds || (u64)l->first_out + l->outs > job->n_outs ||
        (u64)l->first_node + l->nodes > job->n_nodes ||
        (l->first_tb_out != GS_NONE && (u64)l->first_tb_out + tbs + 1 > job->n_tb_out_ptr)) {
        return gs_fail(sim, GS_ERR_ARG, "launch %llu: its dependences lie outside the tables",
                       (unsigned long long)launch);
    }
    const u32 *ptr = l->first_tb_out == GS_NONE ? NULL : job->tb_out_ptr + l->first_tb_out;
    for (u64 tb = 0; ptr && tb < tbs; tb++) {
        if (ptr[tb] > ptr[tb + 1] || ptr[tb + 1] > job->n_tb_outs) {
            return gs_fail(sim, GS_ERR_ARG, "launch %llu: what TB %llu counts down lies outside the table",
                           (unsigned long long)launch, (unsigned long long)tb);
        }
    }
    return GS_OK;
}

static int check_arguments(gs_sim *sim, const gs_launch *l, u64 launch, u64 top)
{
    for (u32 a = 0; a < 8; a++) {
        if (l->arg[a] % 256 || l->arg[a] >= top) {
            return gs_fail(
                sim, GS_ERR_ARG, "launch %llu: argument %u at 0x%llx: must be a multiple of 256 below 0x%llx",
                (unsigned long long)launch, a, (unsigned long long)l->arg[a], (unsigned long long)top);
        }
    }
    return GS_OK;
}

/* The kernels, and the nodes of the dependence table, that a launch waits for. */
static int check_dependences(gs_sim *sim, const gs_job *job, const gs_launch *l, u64 launch, u64 tbs)
{
    for (u32 j = 0; j < l->preds; j++) {
        if (job->preds[l->first_pred + j] >= launch) {
            return gs_fail(sim, GS_ERR_ARG, "launch %llu waits for launch %u: a dependence must go forward",
                           (unsigned long long)launch, job->preds[l->first_pred + j]);
        }
    }
    for (u32 j = l->first_node; j < l->first_node + l->nodes; j++) {
        const gs_node *n = &job->nodes[j];
        if (n->kernel != launch || n->expect == 0 || (u64)n->first_range + n->ranges > job->n_ranges ||
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
    return GS_OK;
}

/* Clusters and tiles of a launch. */
static int check_tiles(gs_sim *sim, const gs_launch *l, u64 launch, u64 tbs)
{
    u64 size = (u64)l->cluster[0] * l->cluster[1], tiles = (u64)l->tiles[0] * l->tiles[1];
    if ((size > 1 || l->tiles[0]) && !sim->params.gpu_bulk.test) {
        return gs_fail(
            sim, GS_ERR_ARG,
            "launch %llu: clusters and bulk copies need compute capability 9.0 (gpu.bulk.test = 0)",
            (unsigned long long)launch);
    }
    if (size == 0 || size > GS_CLUSTER_TBS || l->grid[0] % size || l->cluster[0] > GS_CLUSTER_TBS) {
        return gs_fail(sim, GS_ERR_ARG,
                       "launch %llu: clusters of %u x %u TBs in rows of %u: at most %d that divide a row",
                       (unsigned long long)launch, l->cluster[0], l->cluster[1], l->grid[0], GS_CLUSTER_TBS);
    }
    if (size > 1 && l->prologue) {
        return gs_fail(sim, GS_ERR_ARG, "launch %llu: clusters have no prologue", (unsigned long long)launch);
    }
    if (l->tiles[0] && (tiles == 0 || l->tiles[2] == 0 || tiles > 0x3fffffff ||
                        tiles * l->tiles[2] > 0x3fffffff || l->steps[0] == 0 || l->steps[1] == 0 ||
                        l->steps[0] > 65535 || l->steps[1] > 65535 || tbs > 0x3fffffff)) {
        return gs_fail(sim, GS_ERR_ARG, "launch %llu: %u x %u x %u tiles of %u or %u steps: out of range",
                       (unsigned long long)launch, l->tiles[0], l->tiles[1], l->tiles[2], l->steps[0],
                       l->steps[1]);
    }
    return GS_OK;
}

static int check_launches(gs_sim *sim, const gs_job *job)
{
    u64 top = gs_address_limit(sim), places = 0, largest = 0;
    for (u64 i = 0; i < job->n_launches; i++) {
        const gs_launch *l = &job->launches[i];
        u64 layer = (u64)l->grid[0] * l->grid[1];
        if (l->program >= job->n_programs || layer == 0 || l->grid[2] == 0 || layer > 0x7fffffff ||
            layer * l->grid[2] > 0x7fffffff || l->enqueued >> GS_TIME_BITS) {
            return gs_fail(
                sim, GS_ERR_ARG,
                "launch %llu: program %u, time or grid %u x %u x %u out of range (at most 2^31 - 1 TBs)",
                (unsigned long long)i, l->program, l->grid[0], l->grid[1], l->grid[2]);
        }
        u64 tbs = layer * l->grid[2];
        largest = gs_max(largest, tbs);
        places += l->places;
        if (l->places == 0 || places > UINT32_MAX) {
            return gs_fail(sim, GS_ERR_ARG, "launch %llu: takes %u places of the window: out of range",
                           (unsigned long long)i, l->places);
        }
        if (check_scheme(sim, l, i, tbs) || check_slices(sim, job, l, i, tbs) ||
            check_arguments(sim, l, i, top) || check_tiles(sim, l, i, tbs) ||
            (l->copies && check_copy(sim, job, l, i, top)) || check_dependences(sim, job, l, i, tbs)) {
            return sim->error_code;
        }
    }
    for (sim->tb_bits = 1; largest > 1ull << sim->tb_bits; sim->tb_bits++) {
    }
    if (job->n_launches > 1ull << (GS_LAUNCH_TB_BITS - sim->tb_bits)) {
        return gs_fail(sim, GS_ERR_LIMIT, "%llu launches of up to %llu TBs: at most %llu of such kernels",
                       (unsigned long long)job->n_launches, (unsigned long long)largest,
                       1ull << (GS_LAUNCH_TB_BITS - sim->tb_bits));
    }
    return GS_OK;
}

/* Boxes of bulk copies: sizes that their sums cannot exceed 63 bits with. */
static int check_boxes(gs_sim *sim, const gs_job *job)
{
    for (u64 i = 0; i < job->n_boxes; i++) {
        const gs_bulk_box *b = &job->boxes[i];
        i64 most = (i64)1 << 40;
        if (b->arg > 7 || b->rows == 0 || b->bytes == 0 || b->rows > 1024 || b->bytes > 4096 ||
            b->all_rows > INT32_MAX || b->all_bytes > INT32_MAX || b->pitch < 0 || b->pitch > most ||
            b->plane < 0 || b->plane > most) {
            return gs_fail(
                sim, GS_ERR_ARG,
                "box %llu: argument %u, %u rows of %u B (at most 1024 and 4096) or pitch out of range",
                (unsigned long long)i, b->arg, b->rows, b->bytes);
        }
    }
    return GS_OK;
}

/* The nodes that ends of TBs and of kernels count down. */
static int check_outs(gs_sim *sim, const gs_job *job)
{
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

int gs_check_job(gs_sim *sim, const gs_job *job)
{
    if (check_counts(sim, job) || check_semaphores(sim, job) || check_latencies(sim) || check_gpcs(sim) ||
        check_order(sim) || check_sequence(sim, job) || check_ranks(sim, job) || check_launches(sim, job) ||
        check_outs(sim, job) || check_boxes(sim, job)) {
        return sim->error_code;
    }
    return gs_coarsening_check(sim, job);
}
