/* Tables of the scheduler in memory: see table_memory.h. */
#include "scheduler/table_memory.h"

#include "base/arena.h"
#include "base/fail.h"
#include "base/mailbox.h"
#include "memory/address_map.h"
#include "memory/semaphore.h"
#include "scheduler/coarsening.h"
#include "scheduler/scheduler.h"

enum { PIECES = GS_TABLE_WAITS };

static gs_table_wait *awaited_of(gs_sim *sim, u32 i)
{
    return GS_TABLE(sim, gs_table_wait, sched.table_memory.at_awaited) + i;
}

static gs_table_request *piece_at(gs_sim *sim, u32 i)
{
    return GS_TABLE(sim, gs_table_request, sched.table_memory.at_pieces) + (i & (PIECES - 1));
}

u64 gs_table_memory_lay_out(gs_sim *sim, u64 end)
{
    gs_table_memory *b = &sim->sched.table_memory;
    u64 on = gs_table_memory_is_used(sim) ? 1 : 0;
    b->room = on ? sim->credits[GS_POOL_LOADS] : 0;
    b->at_pieces = gs_reserve(&end, on * PIECES, sizeof(gs_table_request));
    b->at_awaited = gs_reserve(&end, on * GS_TABLE_WAITS, sizeof(gs_table_wait));
    b->at_kernels = gs_reserve(&end, on * sim->n_launches, sizeof(gs_table_region));
    return end;
}

/* The most children, or nodes, in the list of a TB of the launch. */
static u64 children_of(const gs_sim *sim, const gs_launch *l)
{
    const gs_node_state *states = GS_CONST_TABLE(sim, gs_node_state, at_node_states);
    const u32 *outs = GS_CONST_TABLE(sim, u32, at_outs) + l->first_out;
    u64 all = 0, most = 0;
    for (u32 i = 0; sim->order.each && i < l->outs; i++) {
        all += states[outs[i]].consumers;
    }
    const u32 *ptr = GS_CONST_TABLE(sim, u32, at_tb_out_ptr) + l->first_tb_out;
    for (u64 tb = 0; l->first_tb_out != GS_NONE && tb < gs_tbs_of(l); tb++) {
        u64 own = 0;
        for (u32 i = ptr[tb]; i < ptr[tb + 1]; i++) {
            own += sim->order.each ? states[GS_CONST_TABLE(sim, u32, at_tb_outs)[i]].consumers : 1;
        }
        most = gs_max(most, own);
    }
    return all + most;
}

/* The most entries that a kernel needs in a table of nodes, beyond one for each of its TBs. */
static u64 node_entries(const gs_sim *sim, const gs_launch *l)
{
    const gs_node *nodes = GS_CONST_TABLE(sim, gs_node, at_nodes);
    u64 n = 1, per = (u64)sim->params.scheme_table.consumers;
    for (u32 form = 0, k = (u32)(l - gs_launches(sim)); sim->order.fetch && form <= l->forms; form++) {
        const gs_form f = gs_coarsening_form(sim, k, form);
        u64 own = 1;
        for (u32 i = f.first_node; i < f.first_node + f.nodes; i++) {
            own += 1 + nodes[i].ranges / per;
        }
        n = gs_max(n, own);
    }
    return n;
}

void gs_table_memory_init(gs_sim *sim)
{
    gs_table_memory *b = &sim->sched.table_memory;
    gs_table_region *kernels = GS_TABLE(sim, gs_table_region, sched.table_memory.at_kernels);
    u64 bytes = 0;
    for (u32 i = 0; sim->order.entry_bytes && i < sim->n_launches; i++) {
        const gs_launch *l = gs_launches(sim) + i;
        kernels[i].first = bytes;
        bytes += (gs_tbs_of(l) + node_entries(sim, l)) * sim->order.entry_bytes;
        bytes = (bytes + 127) & ~127ull;
        kernels[i].lists = bytes;
        if (sim->order.lists) {
            u64 most = (children_of(sim, l) + sim->order.children - 1) / sim->order.children;
            kernels[i].list_entries = (u32)gs_min(most, GS_NONE);
            bytes += gs_tbs_of(l) * kernels[i].list_entries * sim->order.list_bytes;
            bytes = (bytes + 127) & ~127ull;
        }
    }
    b->footprints = bytes;
    bytes += sim->order.footprints;
    u64 top = gs_address_limit(sim), flags = ((u64)sim->n_semaphores / GS_SEMAPHORES_A_LINE + 1) * 128;
    if (bytes + flags > top) {
        gs_fail(sim, GS_ERR_ARG, "the scheduler's tables take %llu B of memory: there are %llu",
                (unsigned long long)bytes, (unsigned long long)(top - flags));
        return;
    }
    b->base = (top - flags - bytes) & ~127ull;
    b->used = 1; /* 0 names none */
}

u32 gs_table_memory_await(gs_sim *sim, gs_event then)
{
    gs_table_memory *b = &sim->sched.table_memory;
    u32 i = b->free;
    if (i) {
        b->free = awaited_of(sim, i)->next;
    } else if (b->used < GS_TABLE_WAITS) {
        i = b->used++;
    } else {
        gs_fail(sim, GS_ERR_LIMIT,
                "more waits for tables in memory than the arena holds; please report this");
        return 0;
    }
    *awaited_of(sim, i) = (gs_table_wait){then, 1, 0};
    return i;
}

/* A reply has arrived for the event `wait`. */
static void reply_arrived(gs_sim *sim, u32 wait, u64 t)
{
    gs_table_memory *b = &sim->sched.table_memory;
    gs_table_wait *a = awaited_of(sim, wait);
    if (wait && --a->left == 0) {
        gs_event then = a->then;
        then.time += t;
        a->next = b->free;
        b->free = wait;
        gs_ring_push(sim, &sim->sched.ready, then);
    }
}

void gs_table_memory_requested(gs_sim *sim, u32 wait, u64 t)
{
    reply_arrived(sim, wait, t);
}

static u32 lines_of(const gs_table_request *p)
{
    return (u32)((p->end - 1) / 128 - p->first / 128 + 1);
}

static void request(gs_sim *sim, u64 first, u64 bytes, u32 update, u32 wait)
{
    gs_table_memory *b = &sim->sched.table_memory;
    if (bytes == 0) {
        return;
    }
    first += b->base;
    gs_table_request *last = piece_at(sim, b->tail - 1);
    if (b->tail - b->head > 1 && last->wait == wait && last->update == update && first <= last->end &&
        first >= last->first) {
        /* adjacent bytes are one request; the first in the queue may be half sent */
        u32 lines = lines_of(last);
        last->end = gs_max(last->end, first + bytes);
        awaited_of(sim, wait)->left += wait ? lines_of(last) - lines : 0;
        return;
    }
    if (b->tail - b->head == PIECES) {
        gs_fail(sim, GS_ERR_LIMIT,
                "more requests of tables in memory than the arena holds; please report this");
        return;
    }
    gs_table_request *p = piece_at(sim, b->tail++);
    *p = (gs_table_request){first, first + bytes, wait, update};
    awaited_of(sim, wait)->left += wait ? lines_of(p) : 0;
}

void gs_table_memory_request(gs_sim *sim, u32 kernel, u64 at, u64 bytes, u32 update, u32 wait)
{
    request(sim, GS_TABLE(sim, gs_table_region, sched.table_memory.at_kernels)[kernel].first + at, bytes,
            update, wait);
}

void gs_table_memory_request_list(gs_sim *sim, u32 kernel, u32 tb, u32 first, u32 entries, u32 wait)
{
    const gs_table_region *k = GS_TABLE(sim, gs_table_region, sched.table_memory.at_kernels) + kernel;
    u64 entry = (u64)tb * k->list_entries + first;
    request(sim, k->lists + entry * sim->order.list_bytes, (u64)entries * sim->order.list_bytes, 0, wait);
}

void gs_table_memory_request_footprints(gs_sim *sim, u64 at, u64 bytes, u32 update, u32 wait)
{
    request(sim, sim->sched.table_memory.footprints + at, bytes, update, wait);
}

int gs_table_memory_is_congested(const gs_sim *sim)
{
    const gs_table_memory *b = &sim->sched.table_memory;
    return b->tail - b->head > PIECES / 2;
}

void gs_table_memory_send(gs_ctx *ctx, u64 t)
{
    gs_sim *sim = ctx->sim;
    gs_table_memory *b = &sim->sched.table_memory;
    if (b->head == b->tail || b->in_flight == b->room) {
        return;
    }
    gs_ctx next_quantum = *ctx; /* the slices run this quantum now or have run it */
    next_quantum.send0 = ctx->q0 + sim->quantum;
    next_quantum.send_qn = ctx->qn + 1;
    const gs_sender sender = gs_sender_make(&next_quantum, GS_SENDER_SCHED);
    while (b->head != b->tail && b->in_flight < b->room) {
        gs_table_request *p = piece_at(sim, b->head);
        u64 line = p->first / 128, end = gs_min(p->end, (line + 1) * 128);
        u32 from = (u32)(p->first / 32 % 4), to = (u32)((end - 1) / 32 % 4) + 1;
        u32 slice, set, tag, mask = (1u << to) - (1u << from);
        gs_home(&sim->map, line, &slice, &set, &tag);
        u64 leave = gs_max(t, b->port);
        b->port = leave + sim->period;
        b->in_flight++;
        u32 unit = slice % GS_GROUP;
        gs_send(&next_quantum, &sender, sim->sm_boxes + slice / GS_GROUP, leave + b->way_out,
                gs_pay_op(p->wait >> 12, p->update, GS_MSG_TABLE, 0) |
                    gs_pay_line(tag, unit * sim->sets + set, mask, p->wait & 4095, unit));
        p->first = end;
        b->head += p->first == p->end;
    }
}

void gs_table_memory_reply(gs_sim *sim, u64 pay, u64 t)
{
    sim->sched.table_memory.in_flight--;
    reply_arrived(sim, GS_PAY_L1(pay) | GS_PAY_WARP(pay) << 12, t);
}
