/* The front end of the GPU: launch path, release and start servers, admission, ready TBs and their placement.
   One part of its own; everything in it happens in (time, kind, order of arrival). */
#pragma once
#include "mail.h"

void gs_sched_init(gs_sim *sim);
void gs_sched_run(gs_ctx *ctx);
/* Time of the next event that needs no message; GS_NEVER: none. */
u64 gs_sched_next(const gs_sim *sim);

/* ---- between the files of the scheduler ---- */
enum {
    GS_EVENT_NODE,
    GS_EVENT_KERNEL_END,
    GS_EVENT_KERNEL_READY,
    GS_EVENT_COPY,
    GS_EVENT_EARLY_PLACE,
    GS_EVENT_LAUNCHED,
    GS_EVENT_PRELAUNCHED,
    GS_EVENT_QUANTUM,
    GS_EVENT_LOADED,
    GS_EVENT_UNIT,
    GS_EVENT_FETCHED,
    GS_EVENT_SPILLED,
    GS_EVENT_LISTED,
    GS_EVENT_FOOTPRINTS,
    GS_EVENT_RECORDED
};

void gs_ring_push(gs_sim *sim, gs_ring *r, gs_event e);
static inline gs_event *gs_ring_head(gs_sim *sim, gs_ring *r)
{
    return (gs_event *)(void *)((char *)sim + r->at) + (r->head & r->mask);
}

/* whether a launch is a copy that costs nothing */
static inline int gs_copy_is_free(const gs_sim *sim, u32 kernel)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    return l->copies && !l->copy_time;
}

/* kernels that come and go (admission.c) */
/* when the window takes its next kernel, if it can take one now */
void gs_admit_plan(gs_sim *sim, u64 t);
/* how long its ranges are compared with those in the window before it is in */
u64 gs_admit_checks(const gs_sim *sim, u32 kernel);
void gs_admit_next(gs_sim *sim, u64 t);
/* behind barriers: all predecessors have ended and the gap is over */
void gs_admit_start(gs_sim *sim, u32 kernel, u32 cause_kernel, u32 cause_tb, u64 t);
/* a kernel starts: if others run, all SMs lose what they hold of code and parameters */
void gs_admit_beside(gs_ctx *ctx, u32 kernel, u64 t);
/* behind barriers: a kernel has ended; those behind it follow */
void gs_admit_behind(gs_ctx *ctx, u32 kernel, u32 tb, u64 t);
/* a kernel of a table scheme has no TB left: it ends now, or with those before it */
void gs_admit_table_done(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* its place in the window is free */
void gs_admit_leave(gs_sim *sim, u32 kernel);

/* dependence table (depend.c) */
/* whether the table can take the next kernel, if need be with whole kernels to wait for */
int gs_depend_room(const gs_sim *sim, u32 kernel);
void gs_depend_admit(gs_sim *sim, u32 kernel, u64 t);
void gs_depend_tb_end(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* `last`: the kernel whose TB ended last, itself or one before it */
void gs_depend_kernel_end(gs_sim *sim, u32 kernel, u32 last, u32 tb, u64 t);
void gs_depend_event(gs_sim *sim, gs_event e);
/* a condition of a kernel as a whole is met */
void gs_depend_gate(gs_sim *sim, u32 kernel, u64 t, u32 cause_kernel, u32 cause_tb);
/* a condition of a TB is met, or of the TBs that share its counter */
void gs_depend_tb(gs_sim *sim, u32 kernel, u32 unit, u64 t, u32 cause_kernel, u32 cause_tb);
/* when the table has done counter updates for the end of a TB, and who is freed by them is ready */
u64 gs_depend_updates(gs_sim *sim, u64 t, u32 updates, u32 kernel);
/* a TB of a kernel with conditions of its TBs waits for nothing more */
void gs_depend_tb_ready(gs_sim *sim, u32 kernel, u32 tb, u64 t, u32 cause_kernel, u32 cause_tb);
/* the TBs of a kernel whose conditions are all met become dispatchable */
void gs_kernel_ready(gs_sim *sim, u32 kernel, u64 t, u32 cause_kernel, u32 cause_tb);

/* 1: a TB's end counts a node down in the table */
int gs_depend_counts(const gs_sim *sim, u32 node);
/* the first TB of a kernel is dispatched: nodes of those that wait for it are brought in */
void gs_depend_fetch(gs_sim *sim, u32 kernel, u64 t);

/* forms of nodes (forms.c) */
int gs_forms_check(gs_sim *sim, const gs_job *job);
void gs_forms_init(gs_sim *sim);
/* form 0: the kernel's own nodes */
gs_form gs_form_of(const gs_sim *sim, u32 kernel, u32 form);

/* launchers (launcher.c): threads of the host that launch a kernel each and wait for its end */
void gs_launcher_take(gs_sim *sim, u32 kernel, u64 t, u32 cause_kernel, u32 cause_tb);
/* the end of a kernel has been seen */
void gs_launcher_free(gs_sim *sim, u32 kernel, u64 t);

/* lists of children, or nodes, and counters of parents in buffers (lists.c) */
void gs_lists_start(gs_sim *sim, gs_resident *r);
void gs_lists_end(gs_sim *sim, const gs_departed *tb);
/* reads what of the list of the TB that ends is in memory; 1: it is counted when that has come */
int gs_lists_read(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* counts for a node's consumers; what `awaited` names waits for those whose counters are in memory */
void gs_lists_count(gs_sim *sim, u32 node, u32 awaited);

/* footprints that were learned (footprints.c) */
/* A TB has ended. 1: its ranges are learned, and its end counts when they are written. */
int gs_footprints_record(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* 1: a kernel's are to be read before its admission, and have not been */
static inline int gs_footprints_due(const gs_sim *sim, u32 kernel)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    return l->footprint && !l->recorded && !sim->sched.seen;
}
/* Asks for a kernel's before its admission; 1: they have not come. */
int gs_footprints_wait(gs_sim *sim, u32 kernel, u64 t);
/* what a kernel asked for has come; first: the beginning of it */
void gs_footprints_came(gs_sim *sim, u32 kernel, u32 first, u64 t);

/* TBs in a buffer, in a given order (levels.c) */
void gs_levels_fill(gs_sim *sim, u64 t);
void gs_levels_end(gs_sim *sim, u64 t);
/* TBs that come one after another in the order */
void gs_levels_loaded(gs_sim *sim, u32 first, u32 count, u64 t);
/* a TB that may not be there has been counted down */
void gs_levels_pending(gs_sim *sim, u32 kernel, u32 tb);

/* tables in memory (backing.c) */
u64 gs_backing_lay_out(gs_sim *sim, u64 end);
void gs_backing_init(gs_sim *sim);
/* what is to happen behind the last answer to what is asked for it; its time: how long behind */
u32 gs_backing_await(gs_sim *sim, gs_event then);
/* Asks for bytes of a kernel's part from the `at`-th on; awaited: 0, or whom the answer is for. */
void gs_backing_ask(gs_sim *sim, u32 kernel, u64 at, u64 bytes, u32 update, u32 awaited);
/* all has been asked for it at time t */
void gs_backing_asked(gs_sim *sim, u32 awaited, u64 t);
/* the same of part of a TB's list */
void gs_backing_ask_list(gs_sim *sim, u32 kernel, u32 tb, u32 first, u32 entries, u32 awaited);
/* the same of footprints */
void gs_backing_ask_footprints(gs_sim *sim, u64 at, u64 bytes, u32 update, u32 awaited);
/* sends requests as long as there is room for answers */
void gs_backing_send(gs_ctx *ctx, u64 t);
void gs_backing_answer(gs_sim *sim, u64 pay, u64 t);
/* 1: so much waits to be sent that nobody should ask for more who can wait */
int gs_backing_is_behind(const gs_sim *sim);

/* queues of packets (queues.c) */
void gs_queues_init(gs_sim *sim);
/* all that a kernel waits for has ended, and it sees it at time `at` */
void gs_queues_open(gs_sim *sim, u32 kernel, u64 at, u64 t);
void gs_queues_end(gs_sim *sim, u32 kernel, u64 t);
void gs_queues_quantum(gs_sim *sim, u64 t);

/* programmatic dependent launch (early.c) */
/* a TB has triggered, or ended without */
void gs_early_trigger(gs_sim *sim, gs_resident *r, u64 t);
/* a kernel before an early one has ended */
void gs_early_pred_end(gs_ctx *ctx, u32 kernel, u64 t);
/* a kernel has ended */
void gs_early_end(gs_sim *sim, u64 t);
/* another kernel may be in flight */
void gs_early_place(gs_sim *sim, u64 t);

/* prologues (gate.c) */
/* the kernel whose TBs may be dispatched to wait inside, of that which is the oldest with TBs left */
u32 gs_gate_kernel(gs_sim *sim, u32 oldest);
/* takes the next such TB, which gets the place of a resident */
u32 gs_gate_take(gs_sim *sim, u32 kernel, u32 place);
/* a TB is dispatched that waits for nothing */
void gs_gate_passed(gs_sim *sim, u32 kernel, u32 tb);
/* a TB's own conditions are met; 1: it is dispatched already */
int gs_gate_met(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* the conditions of a kernel as a whole are met */
void gs_gate_open(gs_sim *sim, u32 kernel, u64 t);
/* tells the SMs */
void gs_gate_send(gs_ctx *ctx);

/* TBs that are ready (dispatch.c) */
/* Dispatches all that fit now; hint: see gs_place_find. Kernels go by rank. */
void gs_dispatch(gs_ctx *ctx, u64 t, u32 hint);
/* SMs that share a port learn that one of them has TBs now, or none */
void gs_dispatch_share(gs_ctx *ctx, u32 sm, u64 time, u32 more);
static inline u32 gs_dispatch_warps(const gs_sim *sim, const gs_kernel *k)
{
    return GS_CONST_TABLE(sim, gs_shape, at_shapes)[k->shape].warps;
}

void gs_idle_init(gs_sim *sim);
/* idle SMs: their time up to t counts for the reason that held so far; and why they are idle from now on */
void gs_idle_account(gs_sim *sim, u64 t);
void gs_idle_classify(gs_sim *sim);
/* the kernel has TBs that are ready */
void gs_ready_set(gs_sim *sim, u32 kernel);
/* how many TBs of the kernel are ready and not dispatched */
u32 gs_ready_tbs(gs_sim *sim, u32 kernel);

/* placement (place.c): hint is the SM that has just released a TB or GS_NONE */
void gs_place_init(gs_sim *sim);
u32 gs_place_find(gs_sim *sim, u32 kernel, u32 hint, u32 *rotate);
/* an SM with room where a producer of a ready TB ran, and that TB; or GS_NONE */
u32 gs_place_near(gs_sim *sim, u32 kernel, u32 hint, u32 *rotate, u32 *tb);
void gs_place_take(gs_sim *sim, u32 sm, u32 shape, u32 rotate, u32 *slot, u32 *configure);
void gs_place_free(gs_sim *sim, u32 sm, u32 shape, u32 rotate, u32 slot);

static inline gs_fine *gs_fine_of(gs_sim *sim, const gs_kernel *k)
{
    return (gs_fine *)(void *)((char *)sim + k->fine_at);
}

/* bit a TB: ready and not dispatched; behind the gs_fine entries */
static inline u64 *gs_fine_bits(gs_sim *sim, const gs_kernel *k)
{
    return (u64 *)(void *)((char *)sim + k->fine_at + (u64)k->tbs * sizeof(gs_fine));
}
