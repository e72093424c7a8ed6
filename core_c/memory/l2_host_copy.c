/* Copies from the host at L2: see l2_host_copy.h. */
#include "memory/l2_host_copy.h"

#include "memory/address_map.h"
#include "memory/host_copy.h"
#include "memory/l2_miss.h"
#include "memory/l2_partition.h"
#include "memory/l2_set.h"
#include "memory/l2_twin.h"
#include "memory/partial_sectors.h"

typedef struct copy {
    gs_ctx *ctx;
    u64 time;
    u32 group, timed;
} copy;

static void copy_hit(const copy *c, gs_slice *s, gs_set *set, u32 way, u32 row, u32 mask, u64 start)
{
    gs_sim *sim = c->ctx->sim;
    u32 tag = set->tag[way];
    gs_l2_touch(gs_l2_is_lru(sim), set, way);
    if (sim->keep_partial && set->partial >> way & 1) {
        gs_partial_store(sim, s, set, way, set->mask[way], mask, 0, start);
    }
    set->mask[way] = (u8)(set->mask[way] | mask | mask << 4);
    if (sim->partition_boxes && set->twins >> way & 1) {
        u32 unit = s->id % GS_GROUP;
        set->twins &= (u16) ~(1u << way);
        gs_l2_twin_send_store(
            c->ctx, c->group, start,
            gs_pay_op(0, 0, GS_MSG_STORE, 0) | gs_pay_line(tag, unit * sim->sets + row, mask, 0, unit), 0);
    }
}

static void copy_miss(const copy *c, gs_slice *s, gs_set *set, u32 tag, u32 mask, u64 start)
{
    gs_sim *sim = c->ctx->sim;
    const int lru = gs_l2_is_lru(sim);
    u32 way = gs_l2_victim(lru, sim->clock_hand, set);
    if (c->timed) {
        gs_l2_evict(sim, s, set, way, start);
    } else if (sim->keep_partial && set->partial >> way & 1) {
        gs_partial_forget(sim, s, set, way);
    }
    set->tag[way] = (u16)tag;
    set->mask[way] = (u8)(mask | mask << 4);
    set->pending &= (u16) ~(1u << way);
    gs_l2_insert(lru, (u32)sim->params.gpu_l2.referenced, set, way);
}

/* Writes a line as a store does, without an acknowledgement. A copy that takes no time holds neither port nor
   bus and is not counted. */
static void copy_line(void *user, u64 line, u32 mask)
{
    const copy *c = user;
    gs_sim *sim = c->ctx->sim;
    u32 slice, row, tag, sectors = gs_popcount(mask);
    gs_home(&sim->map, line, &slice, &row, &tag);
    if (slice / GS_GROUP != c->group) {
        return;
    }
    gs_slice *s = &gs_slices(sim)[slice];
    gs_set *set = gs_l2_sets(sim, slice) + row;
    u64 start = c->time;
    if (c->timed) {
        start = gs_max(start, s->port_free);
        s->port_free = start + (u64)sectors * sim->slice_sector[GS_MSG_LOAD];
        s->count.requests++;
        s->count.sectors_written += sectors;
    }
    u32 hit = gs_l2_match(set, tag);
    if (hit) {
        copy_hit(c, s, set, gs_ctz(hit), row, mask, start);
    } else {
        copy_miss(c, s, set, tag, mask, start);
    }
    s->hash = gs_mix(s->hash, start ^ line << 8);
}

void gs_l2_host_copy(gs_ctx *ctx, u32 group, const gs_msg *m)
{
    u32 kernel = GS_HOST_COPY_KERNEL(m->pay);
    copy c = {ctx, gs_msg_time(ctx, m), group, gs_launches(ctx->sim)[kernel].copy_time != 0};
    gs_host_copy_lines(ctx->sim, kernel, GS_HOST_COPY_PIECE(m->pay), copy_line, &c);
}
