/* The lines that the warps of a TB touch: see tb_walk.h. */
#include "program/tb_walk.h"

#include "base/arena.h"
#include "memory/address_map.h"
#include "memory/host_copy.h"

/* The bytes of the parts; NULL: they are recorded, or there is no oracle. */
static const gs_bytes *bytes_of(const gs_sim *sim, const gs_coalesced *r)
{
    u32 first = r->template->first;
    int recorded = r->part != GS_CONST_TABLE(sim, gs_part, at_parts) + first;
    return !sim->at_bytes || recorded ? NULL : GS_CONST_TABLE(sim, gs_bytes, at_bytes) + first;
}

typedef struct copied {
    gs_tb_visit visit;
    void *user;
} copied;

static void visit_copied(void *user, u64 line, u32 mask)
{
    static const gs_iop store = {.kind = GS_OP_STORE};
    copied *c = user;
    c->visit(c->user, &store, line, mask, NULL);
}

void gs_tb_walk(const gs_sim *sim, u32 kernel, u32 tb, gs_tb_visit visit, void *user)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    if (l->copies) {
        copied c = {visit, user};
        gs_host_copy_all_lines(sim, kernel, visit_copied, &c);
        return;
    }
    gs_walker w = gs_walker_of_tb(sim, l, tb);
    for (u32 warp = 0; warp < w.program->warps; warp++) {
        gs_walker_begin_warp(&w, warp);
        for (const gs_iop *op; (op = gs_walker_next(&w));) {
            if (gs_walker_moves(op)) {
                const gs_bulk_rows rows = gs_walker_rows(&w, op);
                for (u32 i = 0; i < rows.rows; i++) {
                    for (gs_bulk_part x = gs_bulk_part_first(&rows, i); gs_bulk_part_next(&x, 0);) {
                        visit(user, op, x.line, x.mask, NULL);
                    }
                }
                continue;
            }
            if (!gs_walker_accesses(&w, op)) {
                continue;
            }
            gs_coalesced r = gs_walker_lines(&w, op);
            const gs_bytes *bytes = bytes_of(sim, &r);
            for (u32 i = 0; i < r.template->lines; i++) {
                visit(user, op, r.line + (u64)(i64)r.part[i].line, r.part[i].mask, bytes ? bytes + i : NULL);
            }
        }
    }
}

typedef struct collector {
    u64 *out;
    u64 n, room;
} collector;

static void collect(void *user, const gs_iop *op, u64 line, u32 mask, const gs_bytes *bytes)
{
    collector *c = user;
    (void)bytes;
    if (c->n < c->room) {
        c->out[c->n] = line << 4 | mask | (gs_is_load(op) ? 0 : 1ull << 63);
    }
    c->n++;
}

uint64_t gs_touches(const gs_sim *sim, uint32_t kernel, uint32_t tb, uint64_t *out, uint64_t room)
{
    collector c = {out, 0, room};
    gs_tb_walk(sim, kernel, tb, collect, &c);
    return c.n;
}

typedef struct passer {
    const gs_sim *sim;
    gs_passed *out;
} passer;

static void visit_passed(void *user, const gs_iop *op, u64 line, u32 mask, const gs_bytes *bytes)
{
    const passer *p = user;
    (void)bytes;
    u32 slice, set, tag;
    gs_line_home(p->sim, line, &slice, &set, &tag);
    gs_passed *s = &p->out[slice];
    if (gs_is_load(op)) {
        s->loaded += gs_popcount(mask);
        s->whole |= mask == 15;
    } else {
        s->now += gs_popcount(mask);
    }
}

void gs_passed_of(const gs_sim *sim, uint32_t kernel, gs_passed *out)
{
    u32 tbs = (u32)gs_tbs_of(gs_launches(sim) + kernel);
    passer p = {sim, out};
    for (u32 tb = 0; tb < tbs; tb++) {
        gs_tb_walk(sim, kernel, tb, visit_passed, &p);
        for (u32 i = 0; i < sim->slices; i++) {
            gs_passed *s = &out[i];
            s->stored += s->now;
            if (s->whole) {
                s->passed += s->now;
                s->most = gs_max(s->most, s->now);
            }
            s->now = s->whole = 0;
        }
    }
}
