/* Forms of a kernel's nodes: see coarsening.h. */
#include "scheduler/coarsening.h"

#include "base/arena.h"
#include "base/fail.h"
#include "scheduler/dependence_table.h"
#include "scheduler/scheduler.h"

static int check_form(gs_sim *sim, const gs_job *job, u32 kernel, const gs_form *f)
{
    u64 tbs = gs_tbs_of(&job->launches[kernel]);
    if (f->unit == 0 || (u64)f->first_node + f->nodes > job->n_nodes) {
        return gs_fail(sim, GS_ERR_ARG, "launch %u: a form lies outside the tables", kernel);
    }
    for (u32 j = f->first_node; j < f->first_node + f->nodes; j++) {
        const gs_node *n = &job->nodes[j];
        if (n->kernel != kernel || n->expect == 0 || (u64)n->first_range + n->ranges > job->n_ranges) {
            return gs_fail(sim, GS_ERR_ARG, "node %u of a form: kernel, count or ranges out of range", j);
        }
        for (u32 r = n->first_range; r < n->first_range + n->ranges; r++) {
            const gs_range *g = &job->ranges[r];
            if (g->count == 0 || (g->start + (u64)(g->count - 1) * g->stride) * f->unit >= tbs ||
                (g->count > 1 && g->stride == 0)) {
                return gs_fail(sim, GS_ERR_ARG, "range %u lies outside its kernel", r);
            }
        }
    }
    return GS_OK;
}

int gs_coarsening_check(gs_sim *sim, const gs_job *job)
{
    u64 own = 0; /* nodes of forms come after all others */
    for (u64 i = 0; i < job->n_launches; i++) {
        const gs_launch *l = &job->launches[i];
        own += l->nodes;
        if ((u64)l->first_form + l->forms > job->n_forms || (u64)l->first_link + l->links > job->n_links) {
            return gs_fail(sim, GS_ERR_ARG, "launch %llu: its forms or links lie outside the tables",
                           (unsigned long long)i);
        }
        for (u32 f = l->first_form; f < l->first_form + l->forms; f++) {
            if (check_form(sim, job, (u32)i, &job->forms[f])) {
                return sim->error_code;
            }
            own += job->forms[f].nodes;
        }
        for (u32 k = l->first_link; k < l->first_link + l->links; k++) {
            const gs_link *link = &job->links[k];
            if (link->size == 0 || link->first_node + (gs_tbs_of(l) - 1) / link->size >= job->n_nodes) {
                return gs_fail(sim, GS_ERR_ARG, "launch %llu: a link lies outside the nodes",
                               (unsigned long long)i);
            }
        }
    }
    for (u64 i = 0; i < job->n_nodes; i++) {
        own = job->nodes[i].kernel < job->n_launches ? own : GS_NEVER; /* of no kernel */
    }
    if (own != job->n_nodes) {
        return gs_fail(sim, GS_ERR_ARG, "%llu nodes, of which kernels have %llu",
                       (unsigned long long)job->n_nodes, (unsigned long long)own);
    }
    return GS_OK;
}

gs_form gs_coarsening_form(const gs_sim *sim, u32 kernel, u32 form)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    return form ? GS_CONST_TABLE(sim, gs_form, at_forms)[l->first_form + form - 1]
                : (gs_form){l->first_node, l->nodes, 1};
}

void gs_coarsening_init(gs_sim *sim)
{
    const gs_node *nodes = GS_CONST_TABLE(sim, gs_node, at_nodes);
    const gs_range *ranges = GS_CONST_TABLE(sim, gs_range, at_ranges);
    for (u32 kernel = 0; kernel < sim->n_launches; kernel++) {
        const gs_launch *l = gs_launches(sim) + kernel;
        gs_kernels(sim)[kernel].unit = 1;
        for (u32 form = 0; form <= l->forms; form++) {
            const gs_form f = gs_coarsening_form(sim, kernel, form);
            u64 units = (gs_tbs_of(l) + f.unit - 1) / f.unit;
            for (u32 i = f.first_node; i < f.first_node + f.nodes; i++) {
                const gs_node *n = &nodes[i];
                const gs_range *r = &ranges[n->first_range];
                u32 consumers = 0;
                for (u32 j = 0; j < n->ranges; j++) {
                    consumers += r[j].count;
                }
                u32 all =
                    n->ranges == 1 && r->start == 0 && (r->stride == 1 || r->count == 1) && r->count == units;
                GS_TABLE(sim, gs_node_state, at_node_states)
                [i] = (gs_node_state){n->expect, 0, GS_NONE, GS_NONE, consumers, 0, form, all};
            }
        }
    }
}

u32 gs_node_entries(const gs_sim *sim, const gs_node *n)
{
    u32 per = (u32)sim->params.scheme_table.consumers;
    return gs_max32((n->ranges + per - 1) / per, 1);
}

u32 gs_coarsening_count(gs_sim *sim, u32 kernel, const gs_form *form)
{
    const gs_kernel *k = &gs_kernels(sim)[kernel];
    const gs_node *nodes = GS_CONST_TABLE(sim, gs_node, at_nodes);
    const gs_range *ranges = GS_CONST_TABLE(sim, gs_range, at_ranges);
    const gs_node_state *states = gs_node_states(sim);
    gs_tb_conditions *conditions = k->per_tb ? gs_tb_conditions_of(sim, k) : NULL;
    u32 need = 0;
    for (u32 i = form->first_node; i < form->first_node + form->nodes; i++) {
        const gs_node *n = &nodes[i];
        if (states[i].done || n->ranges == 0) {
            continue;
        }
        need += gs_node_entries(sim, n);
        if (!conditions || states[i].whole_kernel) {
            continue; /* without conditions by TB, all nodes are of the whole kernel */
        }
        for (u32 r = n->first_range; r < n->first_range + n->ranges; r++) {
            for (u32 j = 0; j < ranges[r].count; j++) {
                u64 tb = (u64)(ranges[r].start + j * ranges[r].stride) * form->unit;
                need += ++conditions[tb].unmet == 2;
            }
        }
    }
    return gs_table_counts_tbs(sim) ? 0 : need;
}

void gs_coarsening_forget(gs_sim *sim, u32 kernel)
{
    const gs_kernel *k = &gs_kernels(sim)[kernel];
    for (u32 tb = 0; k->per_tb && tb < k->tbs; tb++) {
        gs_tb_conditions_of(sim, k)[tb].unmet = 0;
    }
}

u32 gs_coarsening_choose(gs_sim *sim, u32 kernel, u32 from, u32 waits, u32 *need)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    u64 free = sim->order.entries - gs_min(sim->order.entries, sim->sched.table_entries);
    for (u32 form = gs_max32(from, l->shared != 0); form <= l->forms; form++) {
        const gs_form f = gs_coarsening_form(sim, kernel, form);
        *need = gs_coarsening_count(sim, kernel, &f) + (waits && !gs_table_counts_tbs(sim));
        u64 room = form == l->forms ? free : free * sim->order.share >> 16;
        if (sim->order.infinite || *need <= room) {
            return form;
        }
        gs_coarsening_forget(sim, kernel);
    }
    *need = 1;
    return l->forms + 1;
}
