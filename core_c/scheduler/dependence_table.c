/* The dependence table. A node counts the TB ends that it still waits for. At zero it releases its consumers:
   a whole kernel, or ranges of its TBs, which have counters of their own. A kernel whose nodes do not fit
   into the table waits for whole kernels instead, in one entry: coarser, never wrong. While no entry is free,
   no kernel with conditions is admitted: kernels that hold entries were admitted before and wait only for
   older ones, so an entry will become free. A scheme may make a kernel wait for whole kernels in any case
   (gs_launch.whole); that takes an entry, too. */
#include "scheduler/dependence_table.h"

#include "scheduler/bloom.h"
#include "scheduler/child_lists.h"
#include "scheduler/coarsening.h"
#include "scheduler/copy_engine.h"
#include "scheduler/dispatch.h"
#include "scheduler/host_launcher.h"
#include "scheduler/learned_footprints.h"
#include "scheduler/prologue.h"
#include "scheduler/scheduler.h"
#include "scheduler/table_fetch.h"
#include "scheduler/table_memory.h"
#include "scheduler/wavefront_buffer.h"

#include <string.h>

int gs_table_counts_tbs(const gs_sim *sim)
{
    return sim->order.each || sim->order.nodes;
}

static void entries_add(gs_sched *d, u32 n)
{
    d->table_entries += n;
    if (d->table_entries > d->table_peak) {
        d->table_peak = d->table_entries;
    }
}

/* When the table has finished `updates` counter updates for the end of a TB at time t. */
static u64 table_time(gs_sim *sim, u64 t, u32 updates, u32 kernel)
{
    gs_sched *d = &sim->sched;
    if (gs_host_copy_is_free(sim, kernel)) {
        return t;
    }
    d->table_updates += updates;
    if (sim->order.infinite) {
        return t;
    }
    u64 start = gs_max(t, d->table_free);
    d->table_wait += start - t;
    d->table_free = start + updates * sim->order.update;
    return d->table_free;
}

/* From an update to the TB that it frees being ready. */
static u64 table_latency(const gs_sim *sim, u32 kernel)
{
    return sim->order.infinite || gs_host_copy_is_free(sim, kernel) ? 0 : sim->order.latency;
}

u64 gs_table_update_time(gs_sim *sim, u64 t, u32 updates, u32 kernel)
{
    return table_time(sim, t, updates, kernel) + table_latency(sim, kernel);
}

void gs_kernel_ready(gs_sim *sim, u32 kernel, u64 t, u32 cause_kernel, u32 cause_tb)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    k->record.ready = t;
    k->cause_kernel = cause_kernel;
    k->cause_tb = cause_tb;
    if (gs_launches(sim)[kernel].copies) {
        gs_copy_engine_start(sim, kernel, t);
        return;
    }
    if (k->in_prologue) {
        gs_prologue_kernel_met(sim, kernel, t);
    }
    if (k->per_tb ? k->ready > 0 : k->next_tb < k->tbs) {
        gs_ready_set(sim, kernel);
    }
}

void gs_table_tb_ready(gs_sim *sim, u32 kernel, u32 tb, u64 t, u32 cause_kernel, u32 cause_tb)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    gs_tb_conditions *f = &gs_tb_conditions_of(sim, k)[tb];
    f->ready = t;
    f->cause_kernel = cause_kernel;
    f->cause_tb = cause_tb;
    f->producer_sm = (u16)sim->sched.producer_sm;
    if (f->entry) {
        f->entry = 0;
        sim->sched.table_entries--;
    }
    if (sim->order.prologue && gs_prologue_tb_met(sim, kernel, tb, t)) {
        return;
    }
    gs_ready_bits(sim, k)[tb >> 6] |= 1ull << (tb & 63);
    if (k->ready++ == 0 && k->unmet == 0) {
        gs_ready_set(sim, kernel);
    }
}

/* All conditions of the TBs that share a counter are met. */
static void unit_ready(gs_sim *sim, u32 kernel, u32 unit, u64 t, u32 cause_kernel, u32 cause_tb)
{
    const gs_kernel *k = &gs_kernels(sim)[kernel];
    u32 first = unit * k->unit, end = (u32)gs_min((u64)first + k->unit, k->tbs);
    for (u32 tb = first; tb < end; tb++) {
        gs_table_tb_ready(sim, kernel, tb, t, cause_kernel, cause_tb);
    }
}

/* All conditions of the kernel as a whole are met. */
static void kernel_conditions_met(gs_sim *sim, u32 kernel, u64 t, u32 cause_kernel, u32 cause_tb)
{
    if (sim->order.launchers && !gs_host_copy_is_free(sim, kernel)) {
        gs_host_launcher_take(sim, kernel, t, cause_kernel, cause_tb);
    } else {
        gs_kernel_ready(sim, kernel, t, cause_kernel, cause_tb);
    }
}

u32 gs_unended_preds(const gs_sim *sim, u32 kernel, u32 n)
{
    const u32 *preds = GS_CONST_TABLE(sim, u32, at_preds) + gs_launches(sim)[kernel].first_pred;
    const gs_kernel *kernels = GS_CONST_TABLE(sim, gs_kernel, at_kernels);
    u32 open = 0;
    for (u32 i = 0; i < n; i++) {
        open += !kernels[preds[i]].ended;
    }
    return open;
}

/* It waits for the ends of kernels, in one entry. */
static void admit_waits(gs_sim *sim, gs_kernel *k, u32 waits)
{
    int entry = waits > 0 && !gs_table_counts_tbs(sim);
    k->unended_whole = waits;
    k->unmet += waits;
    if (entry && sim->order.fetch && sim->sched.table_entries >= sim->order.entries) {
        k->spilled = 1; /* not even one entry is free: it stays in memory */
        sim->sched.spills++;
        return;
    }
    entries_add(&sim->sched, (u32)entry);
}

static void admit_coarse(gs_sim *sim, u32 kernel)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    k->coarse = 1;
    k->per_tb = 0;
    k->record.coarse = 1;
    sim->sched.coarse++;
    admit_waits(sim, k, gs_unended_preds(sim, kernel, gs_launches(sim)[kernel].preds));
}

int gs_table_has_room(const gs_sim *sim, u32 kernel)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    const gs_node *nodes = GS_CONST_TABLE(sim, gs_node, at_nodes);
    const gs_node_state *states = GS_CONST_TABLE(sim, gs_node_state, at_node_states);
    if (sim->order.bloom) {
        return gs_bloom_room(sim, kernel);
    }
    u32 taken = gs_min32(sim->sched.table_entries, sim->order.entries);
    if (sim->order.patience && kernel - sim->sched.oldest_unfinished >= sim->order.patience && !l->shared &&
        l->exact > sim->order.entries - taken) {
        return 0; /* those before it will end and free entries */
    }
    if (sim->order.infinite || taken < sim->order.entries) {
        return 1;
    }
    if (l->shared && l->forms == 0) {
        return gs_unended_preds(sim, kernel, l->preds) == 0;
    }
    const gs_form f = gs_coarsening_form(sim, kernel, l->shared != 0);
    for (u32 i = f.first_node; i < f.first_node + f.nodes; i++) {
        if (!states[i].done && nodes[i].ranges) {
            return 0;
        }
    }
    return gs_unended_preds(sim, kernel, l->whole) == 0;
}

void gs_table_enter_conditions(gs_sim *sim, u32 kernel, u32 from, u64 t)
{
    gs_sched *d = &sim->sched;
    gs_kernel *k = &gs_kernels(sim)[kernel];
    const gs_node_state *states = gs_node_states(sim);
    gs_tb_conditions *conditions = k->per_tb ? gs_tb_conditions_of(sim, k) : NULL;
    u32 waits = gs_unended_preds(sim, kernel, gs_launches(sim)[kernel].whole), need;
    for (u32 tb = 0; sim->order.nodes && k->per_tb && tb < k->tbs; tb++) {
        conditions[tb].unmet = 1; /* it is not in the wavefront buffer */
    }
    u32 form = gs_coarsening_choose(sim, kernel, from, waits, &need);
    if (form > gs_launches(sim)[kernel].forms) {
        admit_coarse(sim, kernel);
        return;
    }
    const gs_form f = gs_coarsening_form(sim, kernel, form);
    k->form = k->record.form = form;
    k->unit = k->record.unit = f.unit;
    d->shared += form > 0;
    entries_add(d, need - (need && waits > 0));
    admit_waits(sim, k, waits);
    for (u32 i = f.first_node; i < f.first_node + f.nodes; i++) {
        k->unmet += !states[i].done && states[i].whole_kernel;
    }
    for (u32 tb = 0; k->per_tb && tb < k->tbs; tb += f.unit) {
        conditions[tb].entry = conditions[tb].unmet >= 2 && !gs_table_counts_tbs(sim);
        if (conditions[tb].unmet == 0) {
            unit_ready(sim, kernel, tb / f.unit, t, GS_NONE, GS_NONE);
        }
    }
}

void gs_table_admit(gs_sim *sim, u32 kernel, u64 t)
{
    gs_sched *d = &sim->sched;
    gs_kernel *k = &gs_kernels(sim)[kernel];
    if (sim->order.bloom) {
        gs_bloom_admit(sim, kernel, t);
        return;
    }
    k->admitted = 1;
    d->producer_sm = GS_NO_SM;
    if (sim->order.fetch && gs_table_stays_in_memory(sim, kernel)) {
        k->unmet++;
    } else {
        gs_table_enter_conditions(sim, kernel, 0, t);
    }
    if (k->unmet == 0) {
        kernel_conditions_met(sim, kernel, t, GS_NONE, GS_NONE);
    }
}

/* 1: the table holds this form of the kernel's nodes, or will have to. */
static int in_table(const gs_sim *sim, u32 kernel, u32 form)
{
    const gs_kernel *k = GS_CONST_TABLE(sim, gs_kernel, at_kernels) + kernel;
    if (!k->admitted || k->in_memory) {
        return form == (gs_launches(sim)[kernel].shared != 0);
    }
    return !k->coarse && k->form == form;
}

int gs_table_counts_node(const gs_sim *sim, u32 node)
{
    const gs_node *n = GS_CONST_TABLE(sim, gs_node, at_nodes) + node;
    const gs_node_state *s = GS_CONST_TABLE(sim, gs_node_state, at_node_states) + node;
    return n->ranges && in_table(sim, n->kernel, s->form);
}

static void count_down(gs_sim *sim, u32 node, u32 kernel, u32 tb, u64 t)
{
    gs_node_state *s = &gs_node_states(sim)[node];
    const gs_node *n = GS_CONST_TABLE(sim, gs_node, at_nodes) + node;
    s->left--;
    if (n->ranges == 0) {
        return;
    }
    if (!in_table(sim, n->kernel, s->form)) {
        /* costs nothing here, but the kernel may enter the table later */
        if (s->left == 0) {
            s->done = 1;
        }
        return;
    }
    u32 updates = sim->order.each ? s->consumers : 1;
    if (s->left == 0) {
        s->cause_kernel = kernel;
        s->cause_tb = tb;
        s->producer_sm = sim->sched.producer_sm;
        updates += sim->order.each || s->whole_kernel ? 0 : s->consumers;
        u64 at = table_time(sim, t, updates, kernel) + table_latency(sim, kernel);
        if (sim->order.each) {
            u32 wait = gs_table_memory_await(sim, (gs_event){at - t, GS_EVENT_NODE, node, 0, 0});
            gs_child_lists_count(sim, node, wait);
            gs_table_memory_requested(sim, wait, t);
        } else {
            gs_ring_push(sim, &sim->sched.ready, (gs_event){at, GS_EVENT_NODE, node, 0, 0});
        }
    } else {
        table_time(sim, t, updates, kernel);
        if (sim->order.each) {
            gs_child_lists_count(sim, node, 0);
        }
    }
}

static void count_all(gs_sim *sim, u32 kernel, u32 tb, u64 t);

/* When the scheduler has computed what the end of a TB at time t counts down. */
static u64 evaluated(gs_sim *sim, u32 kernel, u64 t)
{
    u64 spent = gs_launches(sim)[kernel].evaluate;
    if (spent == 0) {
        return t;
    }
    sim->sched.evaluate_free = gs_max(t, sim->sched.evaluate_free) + spent;
    return sim->sched.evaluate_free;
}

void gs_table_tb_end(gs_sim *sim, u32 kernel, u32 tb, u64 t)
{
    if (sim->order.bloom) {
        gs_bloom_tb_end(sim, kernel, tb, t);
    } else if (!sim->order.lists || !gs_child_lists_read(sim, kernel, tb, t)) {
        count_all(sim, kernel, tb, evaluated(sim, kernel, t));
    }
}

static void count_all(gs_sim *sim, u32 kernel, u32 tb, u64 t)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    const u32 *outs = GS_CONST_TABLE(sim, u32, at_outs) + l->first_out;
    for (u32 i = 0; i < l->outs; i++) {
        count_down(sim, outs[i], kernel, tb, t);
    }
    const gs_link *links = GS_CONST_TABLE(sim, gs_link, at_links) + l->first_link;
    for (u32 i = 0; i < l->links; i++) {
        count_down(sim, links[i].first_node + tb / links[i].size, kernel, tb, t);
    }
    if (l->first_tb_out != GS_NONE) {
        const u32 *ptr = GS_CONST_TABLE(sim, u32, at_tb_out_ptr) + l->first_tb_out + tb;
        const u32 *tb_outs = GS_CONST_TABLE(sim, u32, at_tb_outs);
        for (u32 i = ptr[0]; i < ptr[1]; i++) {
            count_down(sim, tb_outs[i], kernel, tb, t);
        }
    }
}

/* 1: the kernel waits for the end of kernel `pred`. */
static int waits_for(const gs_sim *sim, u32 kernel, u32 pred)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    const gs_kernel *k = GS_CONST_TABLE(sim, gs_kernel, at_kernels) + kernel;
    const u32 *preds = GS_CONST_TABLE(sim, u32, at_preds) + l->first_pred;
    if (!k->admitted || k->coarse || l->whole == l->preds) {
        return k->admitted;
    }
    for (u32 i = 0; i < l->whole; i++) {
        if (preds[i] == pred) {
            return 1;
        }
    }
    return 0;
}

void gs_table_kernel_end(gs_sim *sim, u32 kernel, u32 last, u32 tb, u64 t)
{
    if (sim->order.bloom) {
        return; /* nothing waits for whole kernels */
    }
    u32 updates = 0;
    u64 at = t;
    if (!sim->order.infinite && !gs_host_copy_is_free(sim, kernel)) {
        const u32 *ptr = GS_CONST_TABLE(sim, u32, at_succ_ptr) + kernel;
        const u32 *succs = GS_CONST_TABLE(sim, u32, at_succs);
        for (u32 i = ptr[0]; i < ptr[1]; i++) {
            updates += gs_launches(sim)[succs[i]].whole > 0 && waits_for(sim, succs[i], kernel);
        }
        sim->sched.table_free = gs_max(t, sim->sched.table_free) + sim->order.end;
        at = table_time(sim, t, updates ? updates : 1, kernel) + table_latency(sim, kernel) + sim->order.seen;
    }
    gs_ring_push(sim, &sim->sched.ready, (gs_event){at, GS_EVENT_KERNEL_END, kernel, tb, last});
}

void gs_table_kernel_condition_met(gs_sim *sim, u32 kernel, u64 t, u32 cause_kernel, u32 cause_tb)
{
    if (--gs_kernels(sim)[kernel].unmet == 0) {
        kernel_conditions_met(sim, kernel, t, cause_kernel, cause_tb);
    }
}

void gs_table_tb_condition_met(gs_sim *sim, u32 kernel, u32 unit, u64 t, u32 cause_kernel, u32 cause_tb)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    if (--gs_tb_conditions_of(sim, k)[(size_t)unit * k->unit].unmet == 0) {
        unit_ready(sim, kernel, unit, t, cause_kernel, cause_tb);
    }
}

static void node_done(gs_sim *sim, u32 node, u64 t)
{
    gs_node_state *s = &gs_node_states(sim)[node];
    const gs_node *n = GS_CONST_TABLE(sim, gs_node, at_nodes) + node;
    const gs_range *ranges = GS_CONST_TABLE(sim, gs_range, at_ranges);
    gs_kernel *k = &gs_kernels(sim)[n->kernel];
    s->done = 1;
    if (!k->admitted || k->in_memory || k->coarse || k->form != s->form) {
        return;
    }
    sim->sched.table_entries -= gs_table_counts_tbs(sim) ? 0 : gs_node_entries(sim, n);
    if (s->whole_kernel) {
        gs_table_kernel_condition_met(sim, n->kernel, t, s->cause_kernel, s->cause_tb);
        return;
    }
    sim->sched.producer_sm = s->producer_sm;
    for (u32 r = n->first_range; r < n->first_range + n->ranges; r++) {
        for (u32 j = 0; j < ranges[r].count; j++) {
            u32 unit = ranges[r].start + j * ranges[r].stride;
            if (sim->order.nodes) {
                gs_wavefront_pending(sim, n->kernel, unit);
            }
            gs_table_tb_condition_met(sim, n->kernel, unit, t, s->cause_kernel, s->cause_tb);
        }
    }
}

static void kernel_ended(gs_sim *sim, u32 kernel, u32 last, u32 tb, u64 t)
{
    gs_kernel *kernels = gs_kernels(sim);
    kernels[kernel].ended = 1;
    const u32 *ptr = GS_CONST_TABLE(sim, u32, at_succ_ptr) + kernel;
    const u32 *succs = GS_CONST_TABLE(sim, u32, at_succs);
    for (u32 i = ptr[0]; i < ptr[1]; i++) {
        gs_kernel *k = &kernels[succs[i]];
        if (!waits_for(sim, succs[i], kernel)) {
            continue;
        }
        k->unended_whole--;
        if (k->spilled) {
            u32 size = sim->order.entry_bytes;
            if (k->unended_whole) {
                gs_table_memory_request(sim, succs[i], 0, size, 1, 0);
                gs_table_kernel_condition_met(sim, succs[i], t, last, tb);
            } else {
                u32 wait = gs_table_memory_await(sim, (gs_event){0, GS_EVENT_SPILLED, succs[i], tb, last});
                gs_table_memory_request(sim, succs[i], 0, size, 1, wait);
                gs_table_memory_requested(sim, wait, t);
            }
            continue;
        }
        if (k->unended_whole == 0) {
            sim->sched.table_entries -= !gs_table_counts_tbs(sim);
        }
        gs_table_kernel_condition_met(sim, succs[i], t, last, tb);
    }
    if (sim->order.launchers) {
        gs_host_launcher_release(sim, kernel, t);
    }
}

void gs_table_event(gs_sim *sim, gs_event e)
{
    if (e.what == GS_EVENT_NODE) {
        node_done(sim, e.a, e.time);
    } else if (e.what == GS_EVENT_LOADED) {
        gs_wavefront_loaded(sim, e.a, e.b, e.time);
    } else if (e.what == GS_EVENT_FETCHED) {
        gs_table_fetched(sim, e.a, e.time);
    } else if (e.what == GS_EVENT_LISTED) {
        sim->sched.producer_sm = e.pad;
        count_all(sim, e.a, e.b, e.time);
    } else if (e.what == GS_EVENT_FOOTPRINTS) {
        gs_footprints_arrived(sim, e.a, e.b, e.time);
    } else if (e.what == GS_EVENT_SPILLED) {
        gs_table_kernel_condition_met(sim, e.a, e.time, e.pad, e.b);
    } else if (e.what == GS_EVENT_UNIT) {
        sim->sched.producer_sm = GS_NO_SM; /* TBs of a unit may have run on several SMs */
        gs_bloom_unit_end(sim, e.a, e.time);
    } else {
        kernel_ended(sim, e.a, e.pad, e.b, e.time);
    }
}
