/* Slots of memory ops, and where to wait for them: see code.c. */
#include "trace/code_slots.h"

#include "trace/code.h"

#include <stdlib.h>
#include <string.h>

enum {
    NEAR = 1024, /* instructions that are searched for a load's first use */
    CLOSE = 4,   /* instructions apart that count as the same place */
    COPY_SLOTS = 3,
    NONE = 0xff
};

int gs_lower_kind(const gs_lowering *l, u64 item)
{
    const gs_sass *s = gs_lower_row(l, item);
    int memory = l->items[item].a != GS_NOWHERE;
    if (gs_lower_is_off(s)) {
        return GS_IS_ISSUE;
    }
    switch (GS_OPCODE[s->opcode].kind) {
    case GS_KIND_LOAD:
        return memory ? GS_IS_LOAD : GS_IS_ISSUE;
    case GS_KIND_STORE:
        return memory ? GS_IS_STORE : GS_IS_ISSUE;
    case GS_KIND_REDUCE:
    case GS_KIND_BULK_REDUCE:
        return memory ? GS_IS_UPDATE : GS_IS_ISSUE;
    case GS_KIND_ATOMIC:
        return memory ? GS_IS_FETCH_UPDATE : GS_IS_ISSUE;
    case GS_KIND_BULK_STORE:
        return memory ? GS_IS_STORE : GS_IS_ISSUE;
    case GS_KIND_ASYNC_COPY:
    case GS_KIND_BULK_LOAD:
    case GS_KIND_BULK_PREFETCH:
        return memory ? GS_IS_COPY : GS_IS_ISSUE;
    case GS_KIND_ASYNC_COMMIT:
    case GS_KIND_BULK_COMMIT:
        return GS_IS_COMMIT;
    case GS_KIND_BARRIER:
        return s->variant & GS_VARIANT_ARRIVE && s->barrier ? GS_IS_ARRIVE : GS_IS_BARRIER;
    case GS_KIND_MBARRIER_ARRIVE:
        return s->barrier ? GS_IS_ARRIVE : GS_IS_ISSUE;
    case GS_KIND_MEMBAR:
        return GS_IS_DRAIN;
    case GS_KIND_MBARRIER_WAIT:
        return s->variant & GS_VARIANT_AGAIN ? GS_IS_ISSUE : s->barrier ? GS_IS_AWAIT : GS_IS_DRAIN_COPIES;
    case GS_KIND_DEPBAR:
        return GS_IS_DRAIN_COPIES;
    case GS_KIND_EXIT:
        return item + 1 == l->n ? GS_IS_END : GS_IS_ISSUE;
    default:
        return GS_IS_ISSUE;
    }
}

/* Registers. */

u32 gs_lower_register(u16 reg)
{
    u32 number = reg & 0xfff;
    switch (reg >> 12) {
    case GS_REG_R:
        return number < 255 ? number : GS_REGISTERS;
    case GS_REG_UR:
        return number < 63 ? 256 + number : GS_REGISTERS;
    case GS_REG_P:
        return number < 7 ? 320 + number : GS_REGISTERS;
    default:
        return number < 7 ? 336 + number : GS_REGISTERS;
    }
}

static int touches_memory(const gs_sass *s)
{
    return s->width && s->space != GS_SPACE_NONE;
}

/* Registers of an operand; a trace names the first. Wide accesses have several, addresses in the windows of
   shared and local memory one, other addresses two. */
static u32 length_of(const gs_sass *s, u16 reg, u32 size, int address)
{
    u32 space = GS_OPCODE[s->opcode].space;
    if (!touches_memory(s) || reg >> 12 >= GS_REG_P) {
        return gs_max32(1, size);
    }
    if (address || reg >> 12 == GS_REG_UR) {
        return space == GS_SPACE_SHARED || space == GS_SPACE_LOCAL ? 1 : 2;
    }
    return gs_max32(1, s->width / 4u);
}

/* The end of the registers of the class that `at` is in. */
static u32 class_end(u32 at)
{
    return at < 255 ? 255 : at < 320 ? 319 : at < 336 ? 327 : 343;
}

static u32 add_operand(const gs_sass *s, u16 reg, u32 size, int address, gs_operand *out)
{
    u32 at = gs_lower_register(reg);
    if (at == GS_REGISTERS) {
        return 0;
    }
    *out = (gs_operand){at, gs_min32(at + length_of(s, reg, size, address), class_end(at))};
    return 1;
}

u32 gs_lower_operands(const gs_sass *s, gs_operand *out, u32 *reads)
{
    u32 n = 0;
    *reads = 0;
    if (gs_lower_is_off(s)) {
        return 0;
    }
    for (u32 i = 0; i < s->srcs; i++) {
        n += add_operand(s, s->src[i], s->src_size[i], i == 0, &out[n]);
    }
    *reads = n;
    for (u32 i = 0; i < s->dsts; i++) {
        n += add_operand(s, s->dst[i], s->dst_size[i], 0, &out[n]);
    }
    return n;
}

/* 1: `s` reads or overwrites what `of` writes. */
static int uses(const gs_sass *s, const gs_sass *of)
{
    gs_operand mine[GS_OPERANDS], theirs[GS_OPERANDS];
    u32 reads, n = gs_lower_operands(s, mine, &reads), m = gs_lower_operands(of, theirs, &reads);
    for (u32 i = reads; i < m; i++) {
        for (u32 j = 0; j < n; j++) {
            if (mine[j].first < theirs[i].end && theirs[i].first < mine[j].end) {
                return 1;
            }
        }
    }
    return 0;
}

/* Slots of loads. */

/* The item that first needs a load's result; n: none that is near. */
static u64 first_use(const gs_lowering *l, u64 load)
{
    const gs_sass *s = gs_lower_row(l, load);
    u64 far = 0, end = l->loop[load], begin = end < l->n ? l->items[end].a : load;
    for (u64 i = load + 1; i < l->n && far < NEAR; i++, far++) {
        if (i == end) {
            for (u64 j = begin; j <= load && far < NEAR; j++, far++) {
                if (l->items[j].row != GS_LOOP_END && uses(gs_lower_row(l, j), s)) {
                    return j;
                }
            }
        } else if (l->items[i].row != GS_LOOP_END && uses(gs_lower_row(l, i), s)) {
            return i;
        }
    }
    return l->n;
}

/* Slots of copies. */

static int kind_at(const gs_lowering *l, u64 i)
{
    return l->items[i].row == GS_LOOP_END ? GS_IS_ISSUE : gs_lower_kind(l, i);
}

/* Groups that were committed before each item, in the first turn of all loops, and in a turn of each loop. */
static void count_commits(gs_lowering *l)
{
    u64 now = 0;
    for (u64 i = 0; i < l->n; i++) {
        if (l->items[i].row == GS_LOOP_END) {
            u64 before = l->commits[l->items[i].a];
            l->commits[i] = now - before;
            now = before + l->commits[i] * l->items[i].count;
        } else {
            l->commits[i] = now;
            now += gs_lower_kind(l, i) == GS_IS_COMMIT;
        }
    }
}

gs_async_copy_slot gs_lower_copy_slot(const gs_lowering *l, u64 item, u32 back)
{
    u32 slots = l->copy_slots;
    gs_async_copy_slot made = {(u8)l->copy_slot, 0, 0, 0};
    const gs_sass *s = l->items[item].row == GS_LOOP_END ? NULL : gs_lower_row(l, item);
    if (s && s->barrier && kind_at(l, item) == GS_IS_COPY && !l->groups) {
        made.slot =
            (u8)(made.slot + s->barrier % slots); /* each barrier has a slot, as far as there are any */
        return made;
    }
    for (u64 e = l->loop[item]; e < l->n; e = l->loop[e]) {
        u64 each = l->commits[e] % slots;
        if (each == 1 && !made.stages) {
            made.stages = (u8)slots;
            made.level = (u8)l->items[e].level;
        } else if (each) {
            made.stages = NONE; /* no slot and counter determine it */
        }
    }
    made.plus = (i32)((l->commits[item] + (u64)slots * (back / slots + 1) - back) % slots);
    if (!made.stages) {
        made.slot = (u8)(made.slot + made.plus);
        made.plus = 0;
    }
    return made;
}

/* 1: with this number of slots, the loop counters determine the slot of each copy and of each wait. */
static int slots_are_determined(const gs_lowering *l)
{
    for (u64 i = 0; i < l->n; i++) {
        int what = kind_at(l, i);
        if (what == GS_IS_COPY || what == GS_IS_DRAIN_COPIES) {
            gs_async_copy_slot s = gs_lower_copy_slot(l, i, 0);
            if (s.stages == NONE || (what == GS_IS_COPY && s.stages && s.level != l->levels[l->items[i].a])) {
                return 0;
            }
        }
    }
    return 1;
}

/* As many slots as groups may be outstanding, one more than the waits allow; at most three. */
static void choose_copy_slots(gs_lowering *l, u32 below)
{
    u32 most = 0, any = 0, commits = 0, barriers = 0;
    for (u64 i = 0; i < l->n; i++) {
        int what = kind_at(l, i);
        any |= what == GS_IS_COPY;
        if (what == GS_IS_COPY && gs_lower_row(l, i)->barrier) {
            barriers |= 1u << (gs_lower_row(l, i)->barrier & 31);
        }
        commits |= what == GS_IS_COMMIT;
        if (what == GS_IS_DRAIN_COPIES && GS_OPCODE[gs_lower_row(l, i)->opcode].kind == GS_KIND_DEPBAR) {
            i32 allowed = gs_lower_row(l, i)->imm;
            most = gs_max32(most, allowed > 0 ? (u32)allowed : 0);
        }
    }
    l->copy_slots = any;
    l->groups = (u8)commits;
    if (any && !commits) {
        l->copy_slots = gs_min32(gs_popcount(barriers), COPY_SLOTS);
        l->copy_slots = gs_max32(l->copy_slots, 1);
    }
    if (any && commits) {
        l->copy_slots = most >= COPY_SLOTS - 1 ? COPY_SLOTS : most + 1;
        count_commits(l);
        l->copy_slots = slots_are_determined(l) ? l->copy_slots : 1;
    }
    l->copy_slot = below - l->copy_slots;
}

/* All slots. */
static void choose_slots(gs_lowering *l)
{
    int stores = 0;
    for (u64 i = 0; i < l->n; i++) {
        int what = kind_at(l, i);
        stores |= what == GS_IS_STORE || what == GS_IS_UPDATE;
    }
    l->store_slot = GS_LOWER_SLOTS - 1;
    choose_copy_slots(l, GS_LOWER_SLOTS - (u32)stores);
    l->load_slots = l->copy_slot;
    l->used = (u8)((u32)stores << l->store_slot | ((1u << l->copy_slots) - 1) << l->copy_slot);
    /* Of each slot: what needs the last load on it, and when that load was. */
    u64 user[GS_LOWER_SLOTS], since[GS_LOWER_SLOTS] = {0};
    u32 next = 0;
    memset(user, 0xff, sizeof user);
    for (u64 i = 0; i < l->n; i++) {
        l->slot[i] = NONE;
        int what = kind_at(l, i);
        if (what == GS_IS_STORE || what == GS_IS_UPDATE) {
            l->slot[i] = (u8)l->store_slot;
        } else if (what == GS_IS_LOAD || what == GS_IS_FETCH_UPDATE) {
            u64 by = first_use(l, i);
            u32 best = l->load_slots;
            for (u32 s = 0; s < l->load_slots; s++) {
                if (user[s] != UINT64_MAX && user[s] <= by + CLOSE && by <= user[s] + CLOSE &&
                    (user[s] > i) == (by > i)) {
                    best = s; /* needed at the same place */
                }
            }
            for (u32 s = 0; best == l->load_slots && s < l->load_slots; s++) {
                if (user[s] == UINT64_MAX || (user[s] <= i && user[s] > since[s])) {
                    best = s; /* empty by now */
                }
            }
            if (best == l->load_slots) {
                best = next++ % l->load_slots;
            }
            user[best] = by;
            since[best] = i;
            l->slot[i] = (u8)best;
            l->used |= (u8)(1u << best);
        }
    }
}

/* Where to wait. */
typedef struct pending {
    u8 on[GS_REGISTERS]; /* slots that will write a register, a bit each */
} pending;

static u8 needed(const pending *p, const gs_operand *o, u32 n)
{
    u8 found = 0;
    for (u32 i = 0; i < n; i++) {
        for (u32 j = o[i].first; j < o[i].end; j++) {
            found |= p->on[j];
        }
    }
    return found;
}

/* Goes through the code once; *again: the end of a loop adds to what its head knew. */
static void find_waits(gs_lowering *l, pending *heads, int *again)
{
    pending p;
    memset(&p, 0, sizeof p);
    *again = 0;
    for (u64 i = 0; i < l->n; i++) {
        const gs_item *item = &l->items[i];
        if (l->head[i]) {
            const pending *h = &heads[l->head[i] - 1];
            for (u32 r = 0; r < GS_REGISTERS; r++) {
                p.on[r] |= h->on[r];
            }
        }
        if (item->row == GS_LOOP_END) {
            pending *h = &heads[l->head[item->a] - 1];
            for (u32 r = 0; r < GS_REGISTERS; r++) {
                *again |= p.on[r] & ~h->on[r];
                h->on[r] |= p.on[r];
            }
            continue;
        }
        const gs_sass *s = gs_lower_row(l, i);
        gs_operand o[GS_OPERANDS];
        u32 reads, n = gs_lower_operands(s, o, &reads);
        int what = gs_lower_kind(l, i);
        u8 wait = needed(&p, o, n);
        if (what == GS_IS_DRAIN) {
            wait = 0x1f;
        }
        wait &= l->used;
        l->needs[i] |= wait;
        if (what == GS_IS_DRAIN_COPIES && l->copy_slots) {
            l->needs[i] |= GS_NEEDS_COPIES;
        }
        for (u32 r = 0; wait && r < GS_REGISTERS; r++) {
            p.on[r] &= (u8)~wait;
        }
        for (u32 d = reads; (what == GS_IS_LOAD || what == GS_IS_FETCH_UPDATE) && d < n; d++) {
            for (u32 j = o[d].first; j < o[d].end; j++) {
                p.on[j] |= (u8)(1u << (l->slot[i] & 7));
            }
        }
    }
}

int gs_lower_slots(gs_lowering *l, u32 loops)
{
    choose_slots(l);
    pending *heads = calloc(loops + 1ull, sizeof *heads);
    for (int again = heads != NULL; again;) {
        find_waits(l, heads, &again);
    }
    free(heads);
    return heads != NULL;
}
