/* Nodes of the dependence table in memory: see table_fetch.h. */
#include "scheduler/table_fetch.h"

#include "scheduler/coarsening.h"
#include "scheduler/dependence_table.h"
#include "scheduler/scheduler.h"
#include "scheduler/table_memory.h"

/* 1: all TBs of the kernel wait, and no TB that they wait for has been dispatched. */
static int may_stay_in_memory(gs_sim *sim, u32 kernel)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    const u32 *preds = GS_CONST_TABLE(sim, u32, at_preds) + l->first_pred;
    const gs_kernel *kernels = gs_kernels(sim), *k = kernels + kernel;
    const gs_node_state *states = gs_node_states(sim);
    const gs_form own = gs_coarsening_form(sim, kernel, 0);
    int all = 0;
    for (u32 i = 0; i < l->preds; i++) {
        if (gs_launches(sim)[preds[i]].copies || kernels[preds[i]].dispatched) {
            return 0;
        }
    }
    for (u32 i = own.first_node; i < own.first_node + own.nodes; i++) {
        all |= !states[i].done && states[i].whole_kernel;
    }
    if (!all && k->per_tb) {
        gs_coarsening_count(sim, kernel, &own);
        all = 1;
        for (u32 tb = 0; tb < k->tbs; tb++) {
            all &= gs_tb_conditions_of(sim, k)[tb].unmet > 0;
        }
        gs_coarsening_forget(sim, kernel);
    }
    return all;
}

/* Nodes that the scheduler has computed are written to memory, in their finest form. */
static void write_to_memory(gs_sim *sim, u32 kernel)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    const gs_form f = gs_coarsening_form(sim, kernel, l->shared && l->forms);
    if (sim->order.computed) {
        u64 entries = gs_coarsening_count(sim, kernel, &f);
        gs_coarsening_forget(sim, kernel);
        gs_table_memory_request(sim, kernel, 0, entries * sim->order.entry_bytes, 1, 0);
    }
}

int gs_table_stays_in_memory(gs_sim *sim, u32 kernel)
{
    if (!may_stay_in_memory(sim, kernel)) {
        return 0;
    }
    gs_kernels(sim)[kernel].in_memory = 1;
    write_to_memory(sim, kernel);
    return 1;
}

/* Requests a kernel's nodes, in the finest form that fits now, from one on. */
static void request_nodes(gs_sim *sim, u32 kernel, u32 from, u64 t)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    u32 waits = gs_unended_preds(sim, kernel, gs_launches(sim)[kernel].whole), need;
    k->form_requested = gs_coarsening_choose(sim, kernel, from, waits, &need);
    gs_coarsening_forget(sim, kernel);
    sim->sched.spills += need;
    u32 wait = gs_table_memory_await(sim, (gs_event){0, GS_EVENT_FETCHED, kernel, 0, 0});
    gs_table_memory_request(sim, kernel, 0, (u64)need * sim->order.entry_bytes, 0, wait);
    gs_table_memory_requested(sim, wait, t);
}

void gs_table_fetch(gs_sim *sim, u32 kernel, u64 t)
{
    const u32 *ptr = GS_CONST_TABLE(sim, u32, at_succ_ptr) + kernel;
    const u32 *succs = GS_CONST_TABLE(sim, u32, at_succs);
    for (u32 i = ptr[0]; i < ptr[1]; i++) {
        gs_kernel *k = &gs_kernels(sim)[succs[i]];
        if (k->in_memory == 1) {
            k->in_memory = 2;
            request_nodes(sim, succs[i], 0, t);
        }
    }
}

void gs_table_fetched(gs_sim *sim, u32 kernel, u64 t)
{
    gs_kernel *k = &gs_kernels(sim)[kernel];
    u32 waits = gs_unended_preds(sim, kernel, gs_launches(sim)[kernel].whole), need;
    u32 form = gs_coarsening_choose(sim, kernel, k->form_requested, waits, &need);
    gs_coarsening_forget(sim, kernel);
    if (form > k->form_requested) {
        request_nodes(sim, kernel, form, t); /* meanwhile others have taken the entries */
        return;
    }
    k->in_memory = 0;
    sim->sched.producer_sm = GS_NO_SM;
    gs_table_enter_conditions(sim, kernel, form, t);
    gs_table_kernel_condition_met(sim, kernel, t, GS_NONE, GS_NONE);
}
