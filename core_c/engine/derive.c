/* Derived constants: see derive.h. */
#include "engine/derive.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/mailbox.h"
#include "memory/address_map.h"
#include "scheduler/table_memory.h"

/* What each bit of a line number above bit 8 adds to its set in L1: measured on an H200 (h200_l1_bits.csv) */
static const u16 l1_bits[] = {0x071, 0x01b, 0x176, 0x149, 0x039, 0x1e1, 0x1dd, 0x0ee, 0x194, 0x08d,
                              0x1ac, 0x0f4, 0x12f, 0x082, 0x0f0, 0x115, 0x1fc, 0x15f, 0x13d};

static void derive_l1(gs_sim *sim)
{
    const gs_gpu_l1_params *p = &sim->params.gpu_l1;
    sim->l1_latency = (u32)p->latency;
    sim->credits[GS_POOL_LOADS] = (u32)p->in_flight;
    sim->credits[GS_POOL_COPIES] = (u32)p->copies_in_flight;
    sim->credits[GS_POOL_STORES] = (u32)p->stores_in_flight;
    for (u32 pool = 0; pool < GS_POOLS; pool++) {
        sim->pool[pool] = sim->credits[pool] ? pool : GS_POOL_LOADS;
        /* A credit asks for one of the last releases. No more are remembered: they are used in turn, and
           those of all SMs would fill the host's caches. */
        sim->credit_mask[pool] = 31;
        while (sim->credit_mask[pool] + 1 < gs_min32(sim->credits[pool], GS_CREDITS)) {
            sim->credit_mask[pool] = 2 * sim->credit_mask[pool] + 1;
        }
    }
    sim->in_flight = (u32)(p->in_flight + p->copies_in_flight + p->stores_in_flight);
    sim->keep_stores = (u32)p->keep_stores;
    sim->l1_total = (u64)p->size - gs_min((u64)p->reserved, (u64)p->size);
    for (u32 bit = 0; bit < sizeof l1_bits / sizeof *l1_bits; bit++) {
        u16 *table = sim->l1_hash[bit / 8];
        for (u32 byte = 1u << bit % 8; byte < 256; byte++) {
            table[byte] ^= byte >> bit % 8 & 1 ? l1_bits[bit] : 0;
        }
    }
}

static int derive_partitions(gs_sim *sim)
{
    const gs_gpu_l2_params *p = &sim->params.gpu_l2;
    if (p->partitions == 1) {
        return GS_OK;
    }
    if (sim->map.wraps) {
        return gs_fail(sim, GS_ERR_ARG, "gpu.l2.hash_slices = %lld: must be 0 with gpu.l2.partitions = 2",
                       (long long)p->hash_slices);
    }
    if (p->replacement == GS_GPU_L2_REPLACEMENT_LRU) {
        return gs_fail(sim, GS_ERR_ARG,
                       "gpu.l2.replacement = lru: random or clock with gpu.l2.partitions = 2");
    }
    sim->partition_boxes = sim->slice_places / (2 * GS_GROUP);
    sim->fabric = (u64)p->fabric_latency * sim->period;
    if (p->fabric_bandwidth) {
        /* ticks that a byte holds the link of a group of slices, times bytes: MB/s = B/us */
        u64 bytes = 1024ull * 1000 * (u64)p->slices / GS_GROUP, rate = (u64)p->fabric_bandwidth;
        sim->link_store = (u32)(44 * bytes / rate);
        sim->link_sector[0] = (u32)(29 * bytes / rate);
        sim->link_sector[1] = (u32)(32 * bytes / rate);
    }
    /* the configured latency is the mean over lines with their home near and far */
    sim->far_latency = (u64)p->far_latency * sim->period;
    if (sim->far_latency / 2 >= sim->l2_latency) {
        return gs_fail(sim, GS_ERR_ARG,
                       "gpu.l2.far_latency = %lld cycles: too much for gpu.l2.latency = %lld",
                       (long long)p->far_latency, (long long)p->latency);
    }
    sim->l2_latency -= sim->far_latency / 2;
    u64 there = sim->tag_latency + sim->fabric, whole = (u64)p->twin_latency * sim->period;
    if (p->twin_latency && whole < there) {
        return gs_fail(sim, GS_ERR_ARG,
                       "gpu.l2.twin_latency = %lld cycles: must be 0 or at least %lld more than "
                       "gpu.l2.fabric_latency = %lld",
                       (long long)p->twin_latency, (long long)(sim->tag_latency / sim->period),
                       (long long)p->fabric_latency);
    }
    sim->fabric_back = (p->twin_latency ? whole - there : sim->fabric) + sim->far_latency;
    u64 more = (there + sim->fabric_back) / 2;
    sim->fabric_mean = more - sim->far_latency / 2;
    if (sim->fill_latency < more) {
        return gs_fail(sim, GS_ERR_ARG,
                       "gpu.dram.latency = %lld cycles: less than the way there takes with "
                       "gpu.l2.fabric_latency = %lld",
                       (long long)sim->params.gpu_dram.latency, (long long)p->fabric_latency);
    }
    sim->fill_latency -= more;
    u64 miss = (u64)sim->params.gpu_dram.row_open + sim->tag_latency + sim->fill_latency;
    sim->twin_latency = there + sim->fabric_back + gs_max(sim->l2_latency, miss);
    return GS_OK;
}

static int derive_partial_sectors(gs_sim *sim)
{
    const gs_gpu_l2_params *p = &sim->params.gpu_l2;
    sim->keep_partial = (u32)p->open_lines;
    if (p->open_lines && p->replacement == GS_GPU_L2_REPLACEMENT_LRU) {
        return gs_fail(sim, GS_ERR_ARG, "gpu.l2.open_lines = 1: gpu.l2.replacement must be random or clock");
    }
    for (u32 i = 0, step = 1; i < 16; step++) {
        u32 a = sim->sets, b = step;
        while (b) {
            u32 rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1) {
            sim->partial_steps[i++] = (u16)step;
        }
    }
    return GS_OK;
}

/* Computes each SM's distance from L2; returns the mean in cycles. */
static i64 derive_distances(gs_sim *sim)
{
    const gs_gpu_noc_params *noc = &sim->params.gpu_noc;
    u32 each = (u32)sim->params.gpu.tpc_sms;
    u64 sum = 0;
    for (u32 g = 0; g < (u32)sim->params.gpu.gpcs; g++) {
        u32 first = gs_gpc_first(sim, g), end = gs_gpc_first(sim, g + 1);
        u32 rows = ((end - first + each - 1) / each + GS_CLUSTERS - 1) / GS_CLUSTERS;
        for (u32 sm = first; sm < end; sm++) {
            u32 tpc = (sm - first) / each;
            u64 far = (u64)noc->tpc_distance * (rows - 1 - tpc / GS_CLUSTERS) +
                      (u64)noc->cluster_distance * (tpc % GS_CLUSTERS);
            sim->cluster_of[sm] = (u8)(tpc % GS_CLUSTERS);
            sim->distance[sm] = (u16)gs_min(far, 0xffff);
            sum += sim->distance[sm];
        }
    }
    return (i64)(sum / sim->sms / 64);
}

static int derive_map(gs_sim *sim)
{
    const gs_gpu_l2_params *p = &sim->params.gpu_l2;
    gs_address_map *m = &sim->map;
    const u64 hashed = gs_max((u64)p->hash_slices, sim->slices);
    if ((p->hash_slices && p->hash_slices < p->slices) || hashed > 2ull * sim->slices) {
        return gs_fail(sim, GS_ERR_ARG,
                       "gpu.l2.hash_slices = %lld: must be 0 or 1 to 2 times gpu.l2.slices = %u",
                       (long long)p->hash_slices, sim->slices);
    }
    m->two_partitions = p->partitions == 2;
    if (m->two_partitions && p->slices % 2) {
        return gs_fail(sim, GS_ERR_ARG, "gpu.l2.slices = %lld: must be even with gpu.l2.partitions = 2",
                       (long long)p->slices);
    }
    m->half = sim->slices >> m->two_partitions;
    m->gap = m->two_partitions ? sim->slice_places / 2 - m->half : 0;
    if (p->chunked && hashed > sim->slices) {
        return gs_fail(sim, GS_ERR_ARG,
                       "gpu.l2.hash_slices = %lld: must be 0 with gpu.l2.chunked = 1, or gpu.l2.chunked 0",
                       (long long)p->hash_slices);
    }
    m->chunked = p->chunked != 0;
    m->paired = (m->half - gs_min32((u32)p->single, m->half)) & ~1u;
    m->slices = (u32)hashed;
    m->wraps = hashed > sim->slices ? sim->slices : 0;
    m->sets = sim->sets;
    m->row_sets = (u32)gs_min(m->sets, (u64)sim->params.gpu_dram.row_bytes / 128);
    m->rows = m->sets / m->row_sets;
    m->rotation = p->hash ? 0x9E37 : 0;
    m->mix_mask = p->hash ? ~0u : 0;
    m->slices_inverse = (1ull << 40) / hashed + 1;
    m->by_block = gs_div_make(hashed * m->sets);
    m->block_lines = m->chunked ? GS_QUAD_LINES : m->by_block.d;
    m->by_half = gs_div_make(m->half);
    m->half_inverse = (1u << 20) / m->half + 1;
    m->by_sets = gs_div_make(m->sets);
    gs_address_map_fold(m, p->hash != 0);
    gs_address_map_deal(m);
    return GS_OK;
}

static int derive_l2(gs_sim *sim)
{
    const gs_gpu_l2_params *p = &sim->params.gpu_l2;
    u64 sets = (u64)p->size / (u64)(p->slices * GS_WAYS * 128);
    if (sets == 0 || sets > 2048 || sets * (u64)p->slices * GS_WAYS * 128 != (u64)p->size) {
        return gs_fail(sim, GS_ERR_ARG,
                       "gpu.l2.size = %lld B in %lld slices: %llu sets a slice: must be 1 to 2048 sets of 16 "
                       "lines, without a rest",
                       (long long)p->size, (long long)p->slices, (unsigned long long)sets);
    }
    sim->sets = (u32)sets;
    sim->clock_hand = p->replacement == GS_GPU_L2_REPLACEMENT_CLOCK;
    sim->fill_pairs = p->fill == 64;
    u32 sector = (u32)(32 * sim->period / (u64)p->slice_bytes);
    sim->slice_sector[GS_MSG_LOAD] = sim->slice_sector[GS_MSG_STORE] = sector;
    sim->slice_sector[GS_MSG_REDUCE] = gs_max32(sector, (u32)((u64)p->update * sim->period / 64));
    sim->lookup_hold = (u32)((u64)p->request * sim->period / 64);
    sim->entry_hold = (u32)((u64)p->enter * sim->period / 64);
    return derive_map(sim) || derive_partial_sectors(sim);
}

static void derive_dram(gs_sim *sim)
{
    const gs_gpu_dram_params *p = &sim->params.gpu_dram;
    sim->bank_mask = (u32)p->banks - 1;
    sim->bank_fold = p->bank_hash ? sim->bank_mask : 0;
    sim->row_shift = gs_ctz((u64)p->row_bytes) - 7;
    /* ticks that a sector holds the bus: 32 B at bandwidth / slices, MB/s = B/us */
    sim->dram_slot = (32ull * 1024 * 1000 * sim->slices + (u64)p->bandwidth / 2) / (u64)p->bandwidth;
    sim->dram_slot = gs_max(sim->dram_slot, 1);
    sim->by_slot = gs_div_make(sim->dram_slot);
    sim->bus_refresh = (u64)p->refresh_period;
    sim->bus_refresh_length = (u64)p->refresh_time;
    if (p->bank_refresh_time && sim->bus_refresh_length) {
        /* refreshes by bank are short: whole slots, as often as takes the same share of the bus */
        u64 each = sim->bus_refresh / (u64)p->banks, asked = sim->bus_refresh_length;
        sim->bus_refresh_length = gs_max((asked + sim->dram_slot / 2) / sim->dram_slot, 1) * sim->dram_slot;
        sim->bus_refresh = sim->bus_refresh_length * each / asked;
    }
    u64 both = (u64)p->turnaround + (u64)p->read_turnaround;
    sim->turnaround_slots[0] = (u32)((u64)p->turnaround / sim->dram_slot);
    sim->turnaround_slots[1] = (u32)(both / sim->dram_slot);
    sim->write_ahead = p->write_queue ? (u64)p->write_queue * sim->dram_slot : GS_NEVER / 2;
}

static void derive_sm(gs_sim *sim)
{
    const gs_gpu_sm_params *p = &sim->params.gpu_sm;
    sim->oldest_first = p->warp_order == GS_GPU_SM_WARP_ORDER_OLDEST          ? GS_OLDEST_FIRST
                        : p->warp_order == GS_GPU_SM_WARP_ORDER_GREEDY_OLDEST ? GS_GREEDY_THEN_OLDEST
                                                                              : 0;
    sim->read_copy = 384 / (u32)p->queue_read;
    sim->read_load = 128 / (u32)p->queue_read;
    for (u32 i = 0; i < 5; i++) {
        sim->copy_hold[i] = (u16)(i * (u64)p->copy_hold);
    }
    sim->join_stores = (u32)sim->params.gpu_l1.join_stores;
    sim->hold_late = (u32)sim->params.gpu_l1.hold_late;
    derive_l1(sim);
}

/* How long requests and replies hold the ports between SMs and L2. */
static int derive_ports(gs_sim *sim)
{
    const gs_gpu_noc_params *p = &sim->params.gpu_noc;
    sim->port_sms = (u32)p->port_sms;
    sim->join_loads = p->join_loads > 1 ? (u32)p->join_loads : 0;
    sim->gpc_sector = p->gpc_link ? (u32)(32 * sim->period / (u64)p->gpc_link) : 0;
    if (sim->port_sms == 3) {
        return gs_fail(sim, GS_ERR_ARG, "gpu.noc.port_sms = 3: must be 1, 2 or 4");
    }
    for (u32 mask = 0; mask < 16; mask++) {
        u32 n = gs_popcount(mask), write = (u32)(32ll * 64 / p->write_bytes);
        sim->reply_hold[0][mask] = (u16)(n * (u32)(32ll * 64 / p->reply_bytes));
        sim->reply_hold[1][mask] = 16;
        for (u32 sharing = 0; sharing <= 4; sharing++) {
            u32 each = n * gs_max32(sharing, 1);
            u32 sends = gs_max32(1, (each * write + 63) / 64),
                asks = gs_max32(1, (each * (u32)p->read_sector + 63) / 64);
            sim->port_hold[sharing][0][mask] = (u16)sends;
            sim->port_hold[sharing][0][mask | GS_PARTIAL] = (u16)(sends + (u32)p->write_partial);
            sim->port_hold[sharing][1][mask] = (u16)asks;
        }
    }
    return GS_OK;
}

/* The configured latencies are those that a pointer chase measures, so the other parts of the path are
   subtracted from them. */
static int derive_latencies(gs_sim *sim)
{
    const gs_params *p = &sim->params;
    u64 period = sim->period;
    i64 distance = derive_distances(sim), way = p->gpu_l1.latency + 2 * p->gpu_noc.latency + 1 + distance;
    i64 l2 = p->gpu_l2.latency - way;
    sim->noc = (u64)p->gpu_noc.latency * period;
    sim->mean_distance = (u64)distance * period;
    sim->tag_latency = 10 * period;
    i64 dram =
        (p->gpu_dram.latency - way - 10) * (i64)period - p->gpu_dram.row_open - (i64)(sim->dram_slot * 3 / 2);
    /* the mean waits for refreshes belong to the configured latency too */
    i64 bus = (i64)sim->bus_refresh_length, bank = p->gpu_dram.bank_refresh_time;
    dram -= bus * bus / (2 * (i64)sim->bus_refresh) + bank * bank / (2 * p->gpu_dram.refresh_period);
    if (l2 < 1 || dram < 0) {
        return gs_fail(
            sim, GS_ERR_ARG,
            "gpu.l2.latency = %lld or gpu.dram.latency = %lld cycles: less than the way there takes",
            (long long)p->gpu_l2.latency, (long long)p->gpu_dram.latency);
    }
    sim->l2_latency = (u64)l2 * period;
    sim->fill_latency = (u64)dram;
    if (p->gpu_cp.tb_flush && p->gpu_cp.end_flush) {
        i64 over = p->gpu_l2.partitions == 2 ? 2 * p->gpu_l2.fabric_latency : 0;
        sim->flush_trip = (u32)(p->gpu_l2.latency + over);
    }
    return derive_partitions(sim);
}

/* A message from an SM to a slice or the scheduler takes at least as long as a request takes through L1 and
   the network. A message back takes at least as long as a reply takes through L2 and the network. So slices
   and the scheduler run a quantum, then SMs run a quantum that begins `lead` later, and a quantum may be as
   long as the two latencies together. */
static void derive_quantum(gs_sim *sim, u64 request)
{
    const gs_params *p = &sim->params;
    u64 reply = gs_min(sim->l2_latency, sim->tag_latency + sim->fill_latency) + sim->noc;
    sim->lead = gs_min(reply, sim->start_latency);
    sim->lead =
        sim->sched.has_pdl || sim->order.prologue ? gs_min(sim->lead, sim->depend_latency) : sim->lead;
    /* host copies arrive a tick before what waits for them can send its first request */
    sim->copy_latency = sim->lead + gs_min(request, sim->done_latency) - 1;
    u64 most = gs_min(sim->copy_latency, 1024 * sim->period); /* see gs_box_of */
    most = sim->partition_boxes ? gs_min(most, sim->tag_latency + sim->fabric) : most;
    if (gs_table_memory_is_used(sim)) {
        /* The scheduler is as far from L2 as an SM; it and the slices run the same quantum. */
        u64 both = (u64)p->gpu_l2.latency * sim->period;
        sim->sched.table_memory.way_out = both / 2;
        sim->sched.table_memory.way_back = both - both / 2;
        most = gs_min(most, both / 2);
    }
    most = sim->has_clusters ? gs_min(most, (u64)p->gpu_bulk.cluster_latency * sim->period) : most;
    const u64 left = (u64)p->sim.clock_share;
    sim->sm_period = (sim->period * 65536 + left / 2) / left;
    u64 share = (u64)p->gpu.clock_tensor, want = (u64)p->sim.quantum * sim->period;
    sim->quantum = want && want < most ? want : most;
    if (share < 65536) {
        sim->tensor_period = (sim->sm_period * 65536 + share / 2) / share;
        sim->quantum = gs_clock_quantum(sim->quantum);
    }
    sim->by_quantum = gs_div_make(sim->quantum);
    sim->quantum_inverse = (1ull << 56) / sim->quantum + 1;
    sim->far_limit = GS_RING;
}

static void derive_semaphores(gs_sim *sim, u64 request)
{
    const gs_gpu_sync_params *p = &sim->params.gpu_sync;
    sim->atomic_hold = (u64)p->atomic;
    sim->acquire = (u64)p->acquire;
    sim->posted = (u64)p->posted;
    for (u32 far = 0; far < 2; far++) {
        u64 way = request + sim->l2_latency + sim->noc;
        u64 trip = gs_max(way, (u64)p->latency * sim->period) + (far ? 2 * sim->fabric : 0);
        sim->sync_extra[far][0] = (trip - way) / 2;
        sim->sync_extra[far][1] = trip - way - sim->sync_extra[far][0];
        sim->poll_period[far] = trip + sim->acquire * sim->period;
    }
}

int gs_derive(gs_sim *sim)
{
    const gs_params *p = &sim->params;
    sim->sms = (u32)p->gpu.sms;
    sim->gpcs = (u32)p->gpu.gpcs;
    sim->slices = (u32)p->gpu_l2.slices;
    u32 half = (sim->slices + 1) / 2;
    sim->slice_places =
        p->gpu_l2.partitions == 2 ? 2 * ((half + GS_GROUP - 1) & ~(GS_GROUP - 1u)) : sim->slices;
    sim->sm_boxes = (sim->sms + GS_GROUP - 1) / GS_GROUP;
    sim->slice_boxes = (sim->slice_places + GS_GROUP - 1) / GS_GROUP;
    sim->boxes = sim->sm_boxes + sim->slice_boxes + 1;
    sim->period = (u64)p->gpu.clock;
    sim->by_period = gs_div_make(sim->period);
    /* at least about as long as a compute block, whose work is counted when it begins */
    sim->sample_cycles = 1024;
    sim->threads = 0; /* none have their shares yet */
    derive_sm(sim);
    derive_dram(sim);
    if (derive_l2(sim) || derive_ports(sim) || derive_latencies(sim)) {
        return sim->error_code;
    }
    sim->done_latency = (u64)p->gpu_cp.tb_done_latency;
    sim->start_latency = (u64)p->gpu_cp.tb_start_latency;
    sim->depend_latency = (u64)p->gpu_cp.depend;
    u64 request = sim->l1_latency * sim->period + sim->noc;
    derive_quantum(sim, request);
    derive_semaphores(sim, request);
    return GS_OK;
}
