/* Lists in memory: for each TB, what its end counts down. A buffer holds lists of resident TBs, so many
   children an entry. They are fetched when a TB is dispatched, while there is room; what is missing when the
   TB ends is read from memory then (table_memory.c). A table of nodes lists nodes. BlockMaestro's table is by
   edge: it lists children. Each child has a counter of parents, in memory and, while a parent is resident, in
   a second buffer; counters that are missing there are counted down in memory. */
#include "scheduler/child_lists.h"

#include "scheduler/dependence_table.h"
#include "scheduler/scheduler.h"
#include "scheduler/table_memory.h"

typedef void visit(gs_sim *sim, u32 node, u32 *count);

/* Visits the nodes in a TB's list. In a table of nodes, the nodes that all TBs of a kernel count down, or
   consecutive TBs (gs_link), follow from the kernel: lists leave them out. */
static u32 visit_nodes(gs_sim *sim, const gs_resident *r, visit *each)
{
    const gs_launch *l = gs_launches(sim) + r->kernel;
    const u32 *outs = GS_CONST_TABLE(sim, u32, at_outs) + l->first_out;
    u32 count = 0;
    for (u32 i = 0; sim->order.each && i < l->outs; i++) {
        each(sim, outs[i], &count);
    }
    if (l->first_tb_out != GS_NONE) {
        const u32 *ptr = GS_CONST_TABLE(sim, u32, at_tb_out_ptr) + l->first_tb_out + r->tb;
        const u32 *tb_outs = GS_CONST_TABLE(sim, u32, at_tb_outs);
        for (u32 i = ptr[0]; i < ptr[1]; i++) {
            each(sim, tb_outs[i], &count);
        }
    }
    return count;
}

/* Fetches counters of a node's consumers. Those that find no room are counted down in memory if `count`, and
   `wait` names what waits for that. Returns how many those are. */
static u32 bring_in(gs_sim *sim, u32 node, int count, u32 wait)
{
    gs_sched *d = &sim->sched;
    u64 size = sim->order.entry_bytes;
    u32 missing = 0;
    const gs_node *n = GS_CONST_TABLE(sim, gs_node, at_nodes) + node;
    const gs_range *ranges = GS_CONST_TABLE(sim, gs_range, at_ranges);
    gs_kernel *k = &gs_kernels(sim)[n->kernel];
    if (!k->admitted || !k->per_tb) {
        return 0;
    }
    gs_tb_conditions *conditions = gs_tb_conditions_of(sim, k);
    for (u32 r = n->first_range; r < n->first_range + n->ranges; r++) {
        for (u32 j = 0; j < ranges[r].count; j++) {
            u32 tb = ranges[r].start + j * ranges[r].stride;
            gs_tb_conditions *f = &conditions[tb];
            if (f->entry || f->unmet == 0) {
                continue;
            }
            if (d->table_entries < sim->order.counters) {
                f->entry = 1;
                d->table_entries++;
                d->table_peak = gs_max32(d->table_peak, d->table_entries);
                gs_table_memory_request(sim, n->kernel, tb * size, size, 0, 0);
            } else {
                missing++;
                if (count) {
                    gs_table_memory_request(sim, n->kernel, tb * size, size, 1, wait);
                }
            }
        }
    }
    return missing;
}

static void add_children(gs_sim *sim, u32 node, u32 *count)
{
    const gs_node *n = GS_CONST_TABLE(sim, gs_node, at_nodes) + node;
    const gs_kernel *k = &gs_kernels(sim)[n->kernel];
    if (k->admitted && !k->coarse) {
        *count += GS_CONST_TABLE(sim, gs_node_state, at_node_states)[node].consumers;
        bring_in(sim, node, 0, 0);
    }
}

static void add_node(gs_sim *sim, u32 node, u32 *count)
{
    *count += (u32)gs_table_counts_node(sim, node);
}

void gs_child_lists_tb_start(gs_sim *sim, gs_resident *r)
{
    gs_sched *d = &sim->sched;
    u32 children = visit_nodes(sim, r, sim->order.each ? add_children : add_node);
    u32 entries = (children + sim->order.children - 1) / sim->order.children;
    u32 held = (u32)gs_min(entries, sim->order.lists - d->lists);
    r->lists = held;
    d->lists += held;
    d->lists_peak = gs_max32(d->lists_peak, d->lists);
    r->missing = entries - held;
    d->spills += r->missing;
    gs_table_memory_request_list(sim, r->kernel, r->tb, 0, held, 0);
}

void gs_child_lists_tb_end(gs_sim *sim, const gs_departed *tb)
{
    sim->sched.lists -= tb->lists;
    sim->sched.list_missing = tb->missing;
    sim->sched.list_held = tb->lists;
}

int gs_child_lists_read(gs_sim *sim, u32 kernel, u32 tb, u64 t)
{
    gs_sched *d = &sim->sched;
    u32 late = d->list_missing;
    d->list_missing = 0;
    if (late == 0) {
        return 0;
    }
    u32 wait = gs_table_memory_await(sim, (gs_event){0, GS_EVENT_LISTED, kernel, tb, d->producer_sm});
    gs_table_memory_request_list(sim, kernel, tb, d->list_held, late, wait);
    gs_table_memory_requested(sim, wait, t);
    return 1;
}

void gs_child_lists_count(gs_sim *sim, u32 node, u32 wait)
{
    sim->sched.spills += bring_in(sim, node, 1, wait);
}
