/* Queues of AQL packets in memory. Hardware serves the queues that have a slot. It processes the packets of
   a queue in order, each for gs_order.packet ticks. A kernel at the head of its queue waits for the kernels
   that its barrier packets name, and later packets wait with it. While there are more queues than slots, at
   each scheduling quantum the next queue without a slot takes that of the first queue with no kernel
   running. */
#include "scheduler/aql_queues.h"

#include "scheduler/copy_engine.h"
#include "scheduler/scheduler.h"

static gs_aql_queue *queues(gs_sim *sim)
{
    return GS_TABLE(sim, gs_aql_queue, at_queues);
}

/* Takes the packets at the head of a queue whose conditions are met; 1: there were some. */
static int take_packets(gs_sim *sim, gs_aql_queue *q)
{
    gs_sched *d = &sim->sched;
    gs_kernel *kernels = gs_kernels(sim);
    int went = 0;
    while (q->slot != GS_NONE && q->head < d->submitted && kernels[q->head].unmet == 0) {
        u32 kernel = q->head;
        const gs_kernel *k = &kernels[kernel];
        u32 barriers = gs_launches(sim)[kernel].packets;
        u64 each = gs_host_copy_is_free(sim, kernel) ? 0 : sim->order.packet;
        /* with barrier packets, the kernel's own packet is processed after its conditions are met; without,
           it may be processed before */
        u64 at = barriers ? gs_max(q->free + barriers * each, k->conditions_met_at) + each
                          : gs_max(q->free + each, k->conditions_met_at);
        at = gs_max(at, k->submitted + sim->order.launch);
        gs_ring_push(sim, &d->admit,
                     (gs_event){at, GS_EVENT_KERNEL_READY, kernel, k->cause_kernel, k->cause_tb});
        q->running++;
        q->waiting -= barriers + 1;
        q->free = at;
        q->head = GS_TABLE(sim, u32, at_queue_next)[kernel];
        d->queue_room_at = gs_max(d->queue_room_at, at);
        went = 1;
    }
    return went;
}

/* The host puts launches into their queues, in order, as long as there is room; 1: it did. */
static int submit(gs_sim *sim)
{
    gs_sched *d = &sim->sched;
    u32 before = d->submitted;
    for (; d->submitted < sim->n_launches; d->submitted++) {
        const gs_launch *l = gs_launches(sim) + d->submitted;
        gs_aql_queue *q = &queues(sim)[l->queue];
        if (q->waiting && q->waiting + l->packets + 1 > sim->order.ring) {
            if (!d->host_blocked) {
                d->host_blocked = 1;
                d->host_free = l->enqueued;
            }
            break;
        }
        u64 at = l->enqueued;
        if (d->host_blocked) {
            d->host_free = gs_max(d->host_free, d->queue_room_at) + sim->order.submit;
            at = gs_max(at, d->host_free);
        }
        gs_kernels(sim)[d->submitted].submitted = at;
        gs_kernels(sim)[d->submitted].record.enqueued = at;
        q->waiting += l->packets + 1;
    }
    return d->submitted != before;
}

static void take_slot(gs_sim *sim, u32 queue, u32 slot, u64 t)
{
    u32 *held = GS_TABLE(sim, u32, at_queue_slots) + slot;
    gs_aql_queue *q = &queues(sim)[queue];
    if (*held != GS_NONE) {
        queues(sim)[*held].slot = GS_NONE;
    }
    *held = queue;
    q->slot = slot;
    q->free = gs_max(q->free, t);
}

/* The first slot that is empty or whose queue has no kernel running; `stuck`: and cannot go on. */
static u32 idle_slot(gs_sim *sim, int stuck)
{
    const u32 *slots = GS_CONST_TABLE(sim, u32, at_queue_slots);
    for (u32 s = 0; s < sim->order.slots; s++) {
        const gs_aql_queue *q = slots[s] == GS_NONE ? NULL : &queues(sim)[slots[s]];
        if (!q || (q->running == 0 &&
                   !(stuck && q->head < sim->sched.submitted && gs_kernels(sim)[q->head].unmet == 0))) {
            return s;
        }
    }
    return GS_NONE;
}

/* The next queue in round robin with packets and without a slot; `able`: and that could go on. */
static u32 next_queue(gs_sim *sim, int able)
{
    for (u32 i = 0; i < sim->order.queues; i++) {
        u32 n = (sim->sched.rotation + i) % sim->order.queues;
        const gs_aql_queue *q = &queues(sim)[n];
        if (q->slot == GS_NONE && q->head != GS_NONE &&
            (!able || (q->head < sim->sched.submitted && gs_kernels(sim)[q->head].unmet == 0))) {
            return n;
        }
    }
    return GS_NONE;
}

static int swap(gs_sim *sim, int able, u64 t)
{
    u32 queue = next_queue(sim, able), slot = queue == GS_NONE ? GS_NONE : idle_slot(sim, able);
    if (slot == GS_NONE) {
        return 0;
    }
    take_slot(sim, queue, slot, t);
    sim->sched.rotation = (queue + 1) % sim->order.queues;
    return 1;
}

static void progress(gs_sim *sim, u64 t)
{
    gs_sched *d = &sim->sched;
    int more = 1;
    while (more) {
        more = submit(sim);
        for (u32 i = 0; i < sim->order.queues; i++) {
            more |= take_packets(sim, &queues(sim)[i]);
        }
        more |= sim->order.aware && swap(sim, 1, t);
    }
    if (!d->quantum_ticking && next_queue(sim, 0) != GS_NONE) {
        d->quantum_ticking = 1;
        gs_ring_push(sim, &d->admit, (gs_event){t + sim->order.quantum, GS_EVENT_QUANTUM, 0, 0, 0});
    }
}

void gs_aql_barrier_met(gs_sim *sim, u32 kernel, u64 at, u64 t)
{
    gs_kernels(sim)[kernel].conditions_met_at = at;
    progress(sim, t);
}

void gs_aql_kernel_end(gs_sim *sim, u32 kernel, u64 t)
{
    queues(sim)[gs_launches(sim)[kernel].queue].running--;
    progress(sim, t);
}

void gs_aql_quantum(gs_sim *sim, u64 t)
{
    sim->sched.quantum_ticking = 0;
    swap(sim, 0, t);
    progress(sim, t);
}

void gs_aql_init(gs_sim *sim)
{
    u32 *next = GS_TABLE(sim, u32, at_queue_next), *slots = GS_TABLE(sim, u32, at_queue_slots), used = 0;
    for (u32 i = 0; i < sim->order.queues; i++) {
        queues(sim)[i] = (gs_aql_queue){GS_NONE, GS_NONE, GS_NONE, 0, 0, 0};
    }
    for (u32 s = 0; s < sim->order.slots; s++) {
        slots[s] = GS_NONE;
    }
    for (u32 i = 0; i < sim->n_launches; i++) {
        u32 queue = gs_launches(sim)[i].queue;
        gs_aql_queue *q = &queues(sim)[queue];
        next[i] = GS_NONE;
        if (q->tail != GS_NONE) {
            next[q->tail] = i;
        } else {
            q->head = i;
            /* queues are numbered in the order of their first launches */
            if (used < sim->order.slots) {
                take_slot(sim, queue, used++, 0);
            }
        }
        q->tail = i;
    }
    progress(sim, 0);
}
