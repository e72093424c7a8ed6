/* The trace reader: it cuts text into lines, and keeps the header and the current TB. */
#include "trace/trace.h"

#include "trace/trace_header.h"
#include "trace/trace_line.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* States of the reader. */
enum { IN_HEADER, BETWEEN, IN_TB, IN_WARP, ENDED, FAILED };

int gs_trace_fail(gs_trace *t, const char *format, ...)
{
    if (t->state != FAILED) {
        t->state = FAILED;
        int n = snprintf(t->error, sizeof t->error, "line %llu: ", (unsigned long long)t->line);
        va_list list;
        va_start(list, format);
        vsnprintf(t->error + n, sizeof t->error - (size_t)n, format, list);
        va_end(list);
        for (char *p = t->error; *p; p++) { /* one line, whatever the file contains */
            *p = *p < ' ' || *p > '~' ? '?' : *p;
        }
    }
    return GS_TRACE_ERROR;
}

int gs_trace_bad(gs_trace *t, const char *p, const char *what)
{
    int n = 0;
    p = gs_scan_skip(p);
    while (n < 40 && !gs_scan_ends(p[n])) {
        n++;
    }
    return n ? gs_trace_fail(t, "bad %s: %.*s", what, n, p) : gs_trace_fail(t, "%s missing", what);
}

int gs_trace_reserve(gs_trace *t, u64 insts, u64 addresses)
{
    insts += t->tb.n_insts;
    addresses += t->tb.n_addresses;
    if (GS_LIKELY(insts <= t->insts_room && addresses <= t->addresses_room)) {
        return 0;
    }
    u64 more_insts = t->insts_room, more_addresses = t->addresses_room;
    if (insts > more_insts) {
        more_insts = gs_max(insts, gs_max(256, more_insts * 2));
    }
    if (addresses > more_addresses) {
        more_addresses = gs_max(addresses, gs_max(256, more_addresses * 2));
    }
    /* doubling must not exceed the limit */
    u64 fixed = t->seen_words * 8;
    if (fixed + more_insts * sizeof *t->insts + more_addresses * 8 > t->room) {
        more_insts = gs_max(insts, t->insts_room);
        more_addresses = gs_max(addresses, t->addresses_room);
    }
    if (fixed + more_insts * sizeof *t->insts + more_addresses * 8 > t->room || more_insts > UINT32_MAX ||
        more_addresses > UINT32_MAX) {
        return gs_trace_fail(t, "a TB needs more than %llu bytes", (unsigned long long)t->room);
    }
    if (more_insts > t->insts_room) {
        void *p = realloc(t->insts, more_insts * sizeof *t->insts);
        if (!p) {
            return gs_trace_fail(t, "not enough memory");
        }
        t->insts = p;
        t->insts_room = more_insts;
    }
    if (more_addresses > t->addresses_room) {
        void *p = realloc(t->addresses, more_addresses * 8);
        if (!p) {
            return gs_trace_fail(t, "not enough memory");
        }
        t->addresses = p;
        t->addresses_room = more_addresses;
    }
    return 0;
}

static int whole(gs_trace *t, const char *p, const char *what, u64 most, u64 *out)
{
    const char *next = gs_scan_dec(p, out);
    return next && gs_scan_at_end(next) && *out <= most ? 0 : gs_trace_bad(t, p, what);
}

static int whole32(gs_trace *t, const char *p, const char *what, u32 most, u32 *out)
{
    u64 value = 0;
    int rc = whole(t, p, what, most, &value);
    *out = (u32)value;
    return rc;
}

static int begin_tb(gs_trace *t)
{
    if (t->tbs_done == t->tbs) {
        return gs_trace_fail(t, "more TBs than the grid has (%llu)", (unsigned long long)t->tbs);
    }
    t->state = IN_TB;
    t->named = 0;
    t->warps_seen = 0;
    t->tb.rank = 0;
    memset(t->tb.cluster, 0, sizeof t->tb.cluster);
    memset(t->tb.cta, 0, sizeof t->tb.cta);
    return GS_TRACE_MORE;
}

static bool is_begin(const char *line)
{
    const char *next = gs_scan_word(line, "#BEGIN_TB");
    return next && gs_scan_at_end(next);
}

static int header_line(gs_trace *t, const char *line)
{
    if (*line == '-') {
        return gs_trace_header_line(t, line);
    }
    if (*line != '#') {
        return gs_trace_bad(t, line, "header line");
    }
    if (gs_trace_header_end(t)) {
        return GS_TRACE_ERROR;
    }
    t->state = BETWEEN;
    if (is_begin(line)) {
        begin_tb(t);
    }
    return GS_TRACE_HEADER;
}

/* Clusters are dispatched as a whole, so that their TBs come in an order of their own: each must come
   once. */
static int in_cluster(gs_trace *t)
{
    if (!t->seen) {
        t->seen_words = (t->tbs + 63) / 64;
        if (t->tbs_done) {
            return gs_trace_fail(t, "cluster fields begin after the first TB");
        }
        if (t->seen_words > t->room / 8 ||
            t->seen_words * 8 + t->insts_room * sizeof *t->insts + t->addresses_room * 8 > t->room) {
            t->seen_words = 0;
            return gs_trace_fail(t, "a grid of clusters needs more than %llu bytes",
                                 (unsigned long long)t->room);
        }
        t->seen = calloc(t->seen_words, 8);
        if (!t->seen) {
            return gs_trace_fail(t, "not enough memory");
        }
    }
    return 0;
}

static int check_order(gs_trace *t)
{
    const u32 *grid = t->header.grid;
    const gs_trace_tb *tb = &t->tb;
    u64 place = tb->x + (u64)grid[0] * (tb->y + (u64)grid[1] * tb->z);
    if (t->seen) {
        if (t->seen[place / 64] >> place % 64 & 1) {
            t->line = t->named_line;
            return gs_trace_fail(t, "TB %u,%u,%u comes twice", tb->x, tb->y, tb->z);
        }
        t->seen[place / 64] |= (u64)1 << place % 64;
        return 0;
    }
    if (place != t->tbs_done) {
        u64 row = t->tbs_done / grid[0];
        t->line = t->named_line;
        return gs_trace_fail(t, "TB %u,%u,%u is out of order: %u,%u,%u is next", tb->x, tb->y, tb->z,
                             (u32)(t->tbs_done % grid[0]), (u32)(row % grid[1]), (u32)(row / grid[1]));
    }
    return 0;
}

static int end_tb(gs_trace *t)
{
    u32 all = t->tb.warps == 32 ? UINT32_MAX : (1u << t->tb.warps) - 1;
    if (!(t->named & 2)) {
        return gs_trace_fail(t, "a TB without its thread block line");
    }
    if (t->warps_seen != all) {
        return gs_trace_fail(t, "TB %u,%u,%u has no warp %u", t->tb.x, t->tb.y, t->tb.z,
                             gs_ctz(all & ~t->warps_seen));
    }
    t->tb.warp = t->warp;
    t->tb.insts = t->insts;
    t->tb.addresses = t->addresses;
    t->tbs_done++;
    t->state = BETWEEN;
    t->delivered = true;
    return GS_TRACE_TB;
}

/* `which`: 1 the TB's position, 2 to 4 its cluster's. */
static int named_once(gs_trace *t, u32 which, bool good, const char *p, const char *what)
{
    if (!good) {
        return gs_trace_bad(t, p, what);
    }
    if (t->named >> which & 1 || t->warps_seen) {
        return gs_trace_fail(t, "%s is given twice or after a warp", what);
    }
    t->named |= 1u << which;
    return GS_TRACE_MORE;
}

static int begin_warp(gs_trace *t, const char *p)
{
    if (whole32(t, p, "warp", UINT32_MAX, &t->current)) {
        return GS_TRACE_ERROR;
    }
    if (!(t->named & 2)) {
        return gs_trace_fail(t, "a warp before the thread block line");
    }
    if (t->current >= t->tb.warps) {
        return gs_trace_fail(t, "warp %u of a TB of %u warps", t->current, t->tb.warps);
    }
    if (t->warps_seen >> t->current & 1) {
        return gs_trace_fail(t, "warp %u comes twice", t->current);
    }
    /* The order is checked only now, when it is known whether there is a cluster. */
    if (!t->warps_seen && ((t->named > 2 && in_cluster(t)) || check_order(t))) {
        return GS_TRACE_ERROR;
    }
    t->warps_seen |= 1u << t->current;
    t->left = 0;
    t->state = IN_WARP;
    return GS_TRACE_MORE;
}

static int place_tb(gs_trace *t, const char *p)
{
    const u32 *grid = t->header.grid;
    u32 at[3] = {0};
    const char *next = gs_scan_triple(p, at);
    bool good = next && gs_scan_at_end(next);
    if (good && (at[0] >= grid[0] || at[1] >= grid[1] || at[2] >= grid[2])) {
        return gs_trace_fail(t, "TB %u,%u,%u is outside the grid", at[0], at[1], at[2]);
    }
    t->named_line = t->line;
    t->tb.x = at[0];
    t->tb.y = at[1];
    t->tb.z = at[2];
    return named_once(t, 1, good, p, "thread block");
}

/* A line of a TB outside the instructions. */
static int tb_line(gs_trace *t, const char *line)
{
    static const char *const key[] = {"thread block", "cluster id", "cluster cta", "cluster rank", "warp"};
    u32 i = 0;
    const char *p = gs_scan_word(line, "#END_TB");
    if (p && gs_scan_at_end(p)) {
        return end_tb(t);
    }
    p = NULL;
    for (; i < 5 && !p; i++) {
        p = gs_scan_value(line, key[i]);
    }
    const char *next;
    switch (p ? i : 0) {
    case 1:
        return place_tb(t, p);
    case 2:
    case 3:
        next = gs_scan_triple(p, i == 2 ? t->tb.cluster : t->tb.cta);
        return named_once(t, i, next && gs_scan_at_end(next), p, key[i - 1]);
    case 4:
        next = gs_scan_u32(p, UINT32_MAX, &t->tb.rank);
        return named_once(t, i, next && gs_scan_at_end(next), p, key[i - 1]);
    case 5:
        return begin_warp(t, p);
    default:
        break;
    }
    if (t->warps_seen && line[0] != '#') {
        return gs_trace_fail(t, "warp %u has more instructions than it says, or another line is out of place",
                             t->current);
    }
    return gs_trace_bad(t, line, "line in a TB");
}

/* An offset in the window of shared memory, or an address in it. */
static bool is_shared(const gs_trace *t, const gs_trace_inst *inst)
{
    u64 base = t->header.shared_base, address = t->addresses[inst->first];
    return address < GS_TRACE_WINDOW || (base && address >= base && address - base < GS_TRACE_WINDOW);
}

/* Tracers call their probe once for each memory operand, so that an LDGSTS is two lines of one PC: the shared
   address, then the global one. Nothing executes an instruction twice without another between, so the two are
   one copy; the global line stays. */
static void join_copy(gs_trace *t, gs_trace_warp *warp)
{
    u64 number = t->tb.n_insts - 1;
    gs_trace_inst *inst = t->insts + number, *before = inst - 1;
    if (GS_OPCODE[inst->opcode].kind != GS_KIND_ASYNC_COPY || number == warp->first || t->joined == number ||
        before->opcode != inst->opcode || before->pc != inst->pc || before->mask != inst->mask ||
        before->width != inst->width) {
        return;
    }
    u32 lanes = inst->width ? gs_popcount(inst->mask) : 0;
    if (lanes && (is_shared(t, before) || !is_shared(t, inst))) {
        memmove(t->addresses + before->first, t->addresses + inst->first, lanes * sizeof *t->addresses);
        inst->first = before->first;
        *before = *inst;
    }
    t->tb.n_addresses -= lanes;
    t->tb.n_insts = t->joined = number;
    warp->count--;
}

static int warp_line(gs_trace *t, const char *line)
{
    gs_trace_warp *warp = &t->warp[t->current];
    if (!t->left) {
        const char *p = gs_scan_value(line, "insts");
        if (!p) {
            return gs_trace_bad(t, line, "insts line");
        }
        if (whole32(t, p, "number of instructions", UINT32_MAX, &t->left)) {
            return GS_TRACE_ERROR;
        }
        if (!t->left) {
            return gs_trace_fail(t, "warp %u is empty", t->current);
        }
        *warp = (gs_trace_warp){(u32)t->tb.n_insts, t->left};
        t->lines = t->left;
        return GS_TRACE_MORE;
    }
    if (*line == '#' || *line == 'w' || *line == 't' || *line == 'i') {
        return gs_trace_fail(t, "warp %u has %u of %u instructions", t->current, t->lines - t->left,
                             t->lines);
    }
    if (gs_trace_inst_line(t, line)) {
        return GS_TRACE_ERROR;
    }
    join_copy(t, warp);
    if (--t->left == 0) {
        const gs_trace_inst *inst = t->insts + t->tb.n_insts - 1;
        if (GS_OPCODE[inst->opcode].kind != GS_KIND_EXIT || !inst->mask) {
            return gs_trace_fail(t, "warp %u does not end in EXIT", t->current);
        }
        t->state = IN_TB;
    }
    return GS_TRACE_MORE;
}

/* One line of n bytes before its newline. */
static int any_line(gs_trace *t, const char *line, size_t n)
{
    t->line++;
    if (memchr(line, 0, n)) {
        return gs_trace_fail(t, "a NUL byte");
    }
    line = gs_scan_skip(line);
    if (*line == '\n') {
        return GS_TRACE_MORE;
    }
    switch (t->state) {
    case IN_WARP:
        return warp_line(t, line);
    case IN_TB:
        return tb_line(t, line);
    case IN_HEADER:
        return header_line(t, line);
    default:
        if (is_begin(line)) {
            return begin_tb(t);
        }
        return *line == '#' ? GS_TRACE_MORE : gs_trace_bad(t, line, "line outside a TB");
    }
}

static int finish(gs_trace *t)
{
    switch (t->state) {
    case IN_HEADER:
        return gs_trace_fail(t, "the file ends in the header");
    case IN_TB:
    case IN_WARP:
        return gs_trace_fail(t, "the file ends inside a TB");
    default:
        if (t->tbs_done < t->tbs) {
            return gs_trace_fail(t, "the file ends after %llu of %llu TBs", (unsigned long long)t->tbs_done,
                                 (unsigned long long)t->tbs);
        }
        t->state = ENDED;
        return GS_TRACE_END;
    }
}

static int too_long(gs_trace *t)
{
    t->line++;
    return gs_trace_fail(t, "longer than %u bytes", GS_TRACE_LINE);
}

/* Appends to the current line, whose newline has not been read yet. */
static int keep(gs_trace *t, const char *text, size_t n)
{
    if (n > GS_TRACE_LINE - t->partial_bytes) {
        return too_long(t);
    }
    memcpy(t->partial + t->partial_bytes, text, n);
    t->partial_bytes += (u32)n;
    return 0;
}

static int kept_line(gs_trace *t)
{
    u32 n = t->partial_bytes;
    t->partial[n] = '\n';
    t->partial[n + 1] = 0;
    t->partial_bytes = 0;
    return any_line(t, t->partial, n);
}

int gs_trace_feed(gs_trace *t, const char *text, uint64_t bytes, int last, uint64_t *used)
{
    *used = 0;
    if (t->state == FAILED) {
        return GS_TRACE_ERROR;
    }
    if (t->state == ENDED) {
        return GS_TRACE_END;
    }
    if (t->delivered) {
        t->delivered = false;
        t->tb.n_insts = t->tb.n_addresses = t->joined = 0;
    }
    while (*used < bytes) {
        const char *line = text + *used;
        const char *newline = memchr(line, '\n', bytes - *used);
        size_t n = newline ? (size_t)(newline - line) : bytes - *used;
        int rc;
        *used += n + (newline != NULL);
        if (newline && !t->partial_bytes) {
            rc = n > GS_TRACE_LINE ? too_long(t) : any_line(t, line, n);
        } else {
            rc = keep(t, line, n);
            rc = !rc && newline ? kept_line(t) : rc;
        }
        if (rc != GS_TRACE_MORE) {
            return rc;
        }
    }
    if (!last) {
        return GS_TRACE_MORE;
    }
    int rc = t->partial_bytes ? kept_line(t) : GS_TRACE_MORE;
    return rc == GS_TRACE_MORE ? finish(t) : rc;
}

gs_trace *gs_trace_open(int32_t unknown, uint64_t room)
{
    gs_trace *t = unknown < GS_OPCODES ? calloc(1, sizeof *t) : NULL;
    if (t) {
        t->partial = malloc(GS_TRACE_LINE + 2);
        if (!t->partial) {
            free(t);
            return NULL;
        }
        t->unknown = unknown;
        t->room = room ? gs_min(room, (u64)1 << 48) : (u64)1 << 30;
        t->state = IN_HEADER;
    }
    return t;
}

const char *gs_trace_error(const gs_trace *t)
{
    return t->error;
}

void gs_trace_header_get(const gs_trace *t, gs_trace_header *out)
{
    *out = t->header;
}

void gs_trace_tb_get(const gs_trace *t, gs_trace_tb *out)
{
    *out = t->tb;
}

void gs_trace_close(gs_trace *t)
{
    if (t) {
        free(t->insts);
        free(t->addresses);
        free(t->seen);
        free(t->partial);
        free(t);
    }
}
