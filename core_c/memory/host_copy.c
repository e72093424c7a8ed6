/* Lines that copies from the host write: see host_copy.h. */
#include "memory/host_copy.h"

enum {
    PIECE = 128, /* sectors: 4 KiB, the largest payload of a PCIe packet */
    TAIL = 8 /* in sizes of L2: with random replacement a share of e^-8 of earlier lines is still cached */
};

static const gs_copy *first_of(const gs_sim *sim, const gs_launch *l)
{
    return GS_CONST_TABLE(sim, gs_copy, at_copies) + l->first_copy;
}

static u64 sectors_of(const gs_sim *sim, const gs_launch *l)
{
    const gs_copy *last = first_of(sim, l) + l->copies - 1;
    return last->before + last->end - last->first;
}

u32 gs_host_copy_pieces(const gs_sim *sim, const gs_launch *l)
{
    return l->copy_time ? (u32)((sectors_of(sim, l) + PIECE - 1) / PIECE) : 1;
}

/* The lines of a copy's sectors `from` to before `to`. */
static void lines(const gs_sim *sim, const gs_launch *l, u64 from, u64 to, gs_host_copy_visit visit,
                  void *user)
{
    const gs_copy *all = first_of(sim, l);
    u32 low = 0, high = l->copies;
    while (high - low > 1) {
        u32 middle = low + (high - low) / 2;
        if (all[middle].before <= from) {
            low = middle;
        } else {
            high = middle;
        }
    }
    for (u32 i = low; i < l->copies && all[i].before < to; i++) {
        const gs_copy *c = &all[i];
        u64 sector = c->first + (from > c->before ? from - c->before : 0);
        u64 end = gs_min(c->end, c->first + to - c->before);
        while (sector < end) {
            u64 line = sector / 4, n = gs_min(4 - sector % 4, end - sector);
            visit(user, line, (u32)((1u << n) - 1) << sector % 4);
            sector += n;
        }
    }
}

void gs_host_copy_lines(const gs_sim *sim, u32 kernel, u32 piece, gs_host_copy_visit visit, void *user)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    u64 n = sectors_of(sim, l), tail = (u64)TAIL * sim->slice_places * sim->sets * GS_WAYS * 4;
    u64 from = l->copy_time ? (u64)piece * PIECE : n > tail ? n - tail : 0;
    lines(sim, l, from, l->copy_time ? gs_min(n, from + PIECE) : n, visit, user);
}

void gs_host_copy_all_lines(const gs_sim *sim, u32 kernel, gs_host_copy_visit visit, void *user)
{
    const gs_launch *l = gs_launches(sim) + kernel;
    lines(sim, l, 0, sectors_of(sim, l), visit, user);
}
