/* Dispatch by a rule of the user's: see user_rule.h. It is slow, because each call lists all ready TBs. */
#include "scheduler/user_rule.h"

#include "base/fail.h"
#include "scheduler/dispatch.h"
#include "scheduler/placement.h"
#include "scheduler/scheduler.h"
#include "scheduler/table_memory.h"

/* Fills rule.ready, by rank, then TB; returns how many there are. */
static u32 collect(gs_sim *sim)
{
    const u32 *by_rank = GS_CONST_TABLE(sim, u32, at_rank);
    gs_ready_tb *out = sim->rule.ready;
    u32 n = 0;
    for (u32 r = gs_ready_next(sim, 0); r != GS_NONE; r = gs_ready_next(sim, r + 1)) {
        u32 kernel = by_rank[r];
        const gs_kernel *k = &gs_kernels(sim)[kernel];
        if (!k->per_tb) {
            out[n++] = (gs_ready_tb){k->record.ready, kernel, k->next_tb, GS_NO_SM, r};
            continue;
        }
        const u64 *bits = gs_ready_bits(sim, k);
        for (u32 w = 0; w <= (k->tbs - 1) / 64; w++) {
            for (u64 ready = bits[w]; ready; ready &= ready - 1) {
                u32 tb = w * 64 + gs_ctz(ready);
                const gs_tb_conditions *c = &gs_tb_conditions_of(sim, k)[tb];
                out[n++] = (gs_ready_tb){gs_max(c->ready, k->record.ready), kernel, tb, c->producer_sm, r};
            }
        }
    }
    return n;
}

/* TBs of the kernel are not asked for again at this time. */
static u32 leave_out(gs_ready_tb *ready, u32 n, u32 kernel)
{
    u32 left = 0;
    for (u32 i = 0; i < n; i++) {
        if (ready[i].kernel != kernel) {
            ready[left++] = ready[i];
        }
    }
    return left;
}

/* Checks a choice among n; returns whether there is one. */
static int chosen(gs_sim *sim, i64 choice, u32 n, const char *what)
{
    if (choice >= 0 && choice <= n) {
        return choice < n;
    }
    if (choice < 0) {
        gs_fail(sim, GS_ERR_ARG, "the rule for %s ended the run", what);
    } else {
        gs_fail(sim, GS_ERR_ARG, "the rule for %s chose number %lld of %u", what, (long long)choice, n);
    }
    return 0;
}

/* The SM that takes a TB, or GS_NONE. */
static u32 find_sm(gs_sim *sim, const gs_ready_tb *tb, u64 t, u32 hint, u32 *rotate)
{
    const gs_rule *rule = &sim->rule;
    if (gs_dispatch_is_held(sim, tb->kernel)) {
        return GS_NONE;
    }
    if (!rule->place) {
        return gs_placement_find(sim, tb->kernel, hint, rotate);
    }
    u32 n = gs_placement_list(sim, tb->kernel, rule->sms);
    if (n == 0) {
        return GS_NONE;
    }
    i64 choice = rule->place(rule->user, t, tb->kernel, tb->tb, n);
    if (!chosen(sim, choice, n, "placement")) {
        return GS_NONE;
    }
    u32 sm = rule->sms[choice].sm;
    return gs_placement_fits(sim, tb->kernel, sm, rotate) ? sm : GS_NONE;
}

void gs_user_rule_dispatch(gs_ctx *ctx, u64 t, u32 hint)
{
    gs_sim *sim = ctx->sim;
    const gs_rule *rule = &sim->rule;
    while (!sim->error_code &&
           !((sim->order.lists || sim->order.footprints) && gs_table_memory_is_congested(sim))) {
        u32 n = collect(sim), sm = GS_NONE;
        while (n && sm == GS_NONE) {
            i64 choice = rule->next ? rule->next(rule->user, t, n) : 0;
            if (!chosen(sim, choice, n, "priority")) {
                return;
            }
            gs_ready_tb tb = rule->ready[choice];
            u32 rotate = 0;
            sm = find_sm(sim, &tb, t, hint, &rotate);
            if (sm == GS_NONE) {
                n = sim->error_code ? 0 : leave_out(rule->ready, n, tb.kernel);
            } else {
                gs_dispatch_one(ctx, tb.kernel, tb.tb, sm, rotate, 0, t);
            }
        }
        if (n == 0) {
            return;
        }
    }
}
