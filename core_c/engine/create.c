/* Creation of a simulation: constants, checks, lowering, layout, then the initial state of every part. All is
   one arena: nothing is allocated after this, except by the oracle. */
#if defined(__linux__)
/* madvise; NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming) */
#define _DEFAULT_SOURCE
#include <sys/mman.h>
#endif

#include "base/arena.h"
#include "base/clock.h"
#include "base/fail.h"
#include "engine/check.h"
#include "engine/derive.h"
#include "engine/layout.h"
#include "gen/gs_hash.h"
#include "memory/dram.h"
#include "oracle/oracle.h"
#include "program/program.h"
#include "scheduler/bloom_tables.h"
#include "scheduler/placement.h"
#include "scheduler/scheduler.h"
#include "sm/l1.h"

#include <assert.h>
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

const char *gs_build_info(void)
{
    return "mode " GS_BUILD_MODE ", compiler " __VERSION__ ", flags " GS_BUILD_FLAGS;
}

uint64_t gs_tables_hash(void)
{
    return GS_TABLES_HASH;
}

/* Classes of resources: one for each program and carve-out in use. */
static u32 shape_of(gs_tb_resources *shapes, u32 *n, const gs_sim *sim, const gs_program *p, u32 carveout)
{
    const gs_gpu_sm_params *sm = &sim->params.gpu_sm;
    u64 unit = (u64)sm->register_unit / 32, registers = (p->registers + unit - 1) / unit;
    u64 smem = p->smem + (u64)sm->smem_reserved;
    smem = (smem + (u64)sm->smem_unit - 1) / (u64)sm->smem_unit * (u64)sm->smem_unit;
    gs_tb_resources want = {p->warps,
                            (u32)registers,
                            (u32)gs_min(smem, GS_NONE),
                            carveout,
                            GS_NEVER - 1,
                            0,
                            0,
                            0,
                            sm->own_carveout ? carveout : 0,
                            0};
    for (u32 i = 0; i < *n; i++) {
        if (!memcmp(&shapes[i], &want, sizeof want)) {
            return i;
        }
    }
    shapes[*n] = want;
    return (*n)++;
}

static int check_shape(gs_sim *sim, const gs_tb_resources *s, u64 launch)
{
    const gs_gpu_sm_params *sm = &sim->params.gpu_sm;
    u64 sub_warps = (s->warps + 3) / 4, units = (u64)sm->registers / 4 / (u64)sm->register_unit;
    const char *what = s->warps > (u64)sm->warps                   ? "warps"
                       : sub_warps * s->units > units              ? "registers"
                       : s->smem > s->carveout                     ? "shared memory"
                       : s->carveout > (u64)sm->smem               ? "shared-memory carve-out"
                       : s->carveout + GS_L1_LEAST > sim->l1_total ? "L1"
                                                                   : NULL;
    if (what) {
        return gs_fail(sim, GS_ERR_FIT, "launch %llu: a TB fits no SM: not enough %s",
                       (unsigned long long)launch, what);
    }
    return GS_OK;
}

/* 1: some node releases only part of the kernel, so its TBs need conditions of their own. The nodes of a
   coarser form may release parts even where the kernel's finest nodes do not. */
static int needs_tb_conditions(const gs_sim *sim, const gs_job *job, const gs_launch *l, u64 tbs)
{
    if (sim->order.nodes && !l->copies) {
        return 1;
    }
    if (sim->order.bloom) {
        return l->units > 1;
    }
    if (l->forms) {
        return 1;
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

/* Bytes of the conditions of a kernel's TBs, and of a ready bit for each (gs_ready_bits). */
static u64 tb_conditions_bytes(u64 tbs)
{
    return tbs * sizeof(gs_tb_conditions) + (tbs / 64 + 1) * 8;
}

static void init_parts(gs_sim *sim)
{
    const gs_params *p = &sim->params;
    gs_sm_load *loads = GS_TABLE(sim, gs_sm_load, at_sm_loads);
    for (u32 i = 0; i < sim->sm_boxes * GS_GROUP; i++) {
        gs_sm *sm = &gs_sms(sim)[i];
        sm->id = i;
        sm->smem_queue = (u32)p->gpu_sm.smem_queue;
        sm->lsu_queue = (u32)p->gpu_sm.lsu_queue;
        sm->queue = sim->oldest_first ? (u32)p->gpu_sm.queue : 0;
        sm->free_warps = p->gpu_sm.warps == 64 ? ~0ull : (1ull << p->gpu_sm.warps) - 1;
        gs_l1_resize(sm, sim->l1_total);
        gs_l1_init(sm);
        sm->last_kernel = GS_NONE;
    }
    for (u32 i = 0; i < sim->sms; i++) {
        loads[i].tb_free = p->gpu_sm.tbs == 32 ? ~0u : (1u << p->gpu_sm.tbs) - 1;
        for (u32 j = 0; j < 4; j++) {
            loads[i].warps[j] = (u8)(p->gpu_sm.warps / 4);
            loads[i].registers[j] = (u16)(p->gpu_sm.registers / 4 / p->gpu_sm.register_unit);
        }
    }
    gs_placement_init(sim);
    gs_clock_init(sim);
    for (u32 i = 0; i < sim->sms; i++) {
        gs_clock_sample(sim, &gs_sms(sim)[i]);
    }
    gs_set *sets = GS_TABLE(sim, gs_set, at_sets);
    const int lru = p->gpu_l2.replacement == GS_GPU_L2_REPLACEMENT_LRU;
    for (u64 i = 0; i < (u64)sim->slice_places * sim->sets; i++) {
        sets[i].random = sim->clock_hand ? 0 : (u32)gs_mix((u64)p->sim.seed, i + 1);
        sets[i].order = lru ? 0xFEDCBA9876543210ull : 0;
    }
    for (u32 i = 0; i < sim->slice_places; i++) {
        gs_slices(sim)[i].id = i;
        gs_dram_begin(sim, &gs_slices(sim)[i]);
    }
}

enum { PAGE = 2 << 20 };

/* SMs, slices, L2's sets and the first few MiB of messages (for one thread, those in use) are on large pages
   where the system has them. All are visited every quantum, and the host's TLB does not cover them with 4 KiB
   pages. */
static void ask_for_large_pages(gs_sim *sim)
{
#if defined(MADV_HUGEPAGE)
    u64 first = sim->at_sms / PAGE, end = gs_min(sim->at_chunks / PAGE + 2, sim->bytes / PAGE);
    if (first < end) {
        (void)madvise((char *)sim + first * PAGE, (end - first) * PAGE, MADV_HUGEPAGE);
    }
#else
    (void)sim;
#endif
}

static gs_sim *create(gs_sim *draft, const gs_job *job)
{
    gs_lowered low = {0};
    gs_tb_resources *shapes = NULL;
    u32 *kernel_shape = NULL, n_shapes = 0;
    gs_sim *sim = NULL;
    draft->n_sems = (u32)gs_min(job->n_sems, GS_NONE);
    draft->n_semaphores = (u32)gs_min(job->n_needs, GS_NONE);
    for (u64 i = 0; i < job->n_launches; i++) {
        draft->sched.has_pdl |= job->launches[i].early != 0;
        draft->has_clusters |= gs_cluster_tbs(&job->launches[i]) > 1;
        draft->has_bulk |= job->launches[i].tiles[0] != 0;
    }
    if (gs_derive(draft) || gs_check_job(draft, job) || (draft->order.bloom && gs_bloom_check(draft, job)) ||
        gs_program_lower(draft, job, &low)) {
        goto out;
    }
    assert(job->n_launches > 0); /* gs_check_job has refused a job without launches */
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
    u64 bytes = gs_arena_lay_out(draft, job, &low, n_shapes);
    u64 tb_conditions_at = bytes;
    for (u64 i = 0; draft->order.tb_edges && i < job->n_launches; i++) {
        u64 tbs = gs_tbs_of(&job->launches[i]);
        if (needs_tb_conditions(draft, job, &job->launches[i], tbs)) {
            bytes += tb_conditions_bytes(tbs);
        }
    }
    bytes = (bytes + 4095) & ~4095ull;
    /* pages that are never written are never taken from the system */
    char *block = calloc(1, bytes + PAGE);
    if (!block) {
        gs_fail(draft, GS_ERR_MEM, "not enough memory: the simulation needs %llu MB",
                (unsigned long long)(bytes >> 20));
        goto out;
    }
    u64 skew = -(uintptr_t)block & (PAGE - 1);
    sim = (gs_sim *)(void *)(block + skew);
    *sim = *draft;
    sim->bytes = bytes;
    sim->block = block;
    ask_for_large_pages(sim);
    gs_arena_fill(sim, job, &low);
    memcpy(GS_TABLE(sim, gs_tb_resources, at_tb_resources), shapes, n_shapes * sizeof *shapes);
    for (u64 i = 0; i < job->n_launches; i++) {
        gs_kernel *k = &gs_kernels(sim)[i];
        k->tbs = (u32)gs_tbs_of(&job->launches[i]);
        k->shape = kernel_shape[i];
        if (sim->order.tb_edges && needs_tb_conditions(sim, job, &job->launches[i], k->tbs)) {
            k->per_tb = 1;
            k->tb_conditions_at = tb_conditions_at;
            tb_conditions_at += tb_conditions_bytes(k->tbs);
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

void gs_set_rule(gs_sim *sim, const gs_rule *rule)
{
    sim->rule = *rule;
}

void gs_free(gs_sim *sim)
{
    if (sim) {
        gs_oracle_free(sim);
        free(sim->block);
    }
}
