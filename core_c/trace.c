/* The trace reader: cuts text into lines, keeps the header and the TB being read. */
#include "trace.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN_HEADER, BETWEEN, IN_TB, IN_WARP, ENDED, FAILED };

/* header fields, a bit each in `given` */
enum {
    NAME = 1,
    ID = 2,
    GRID = 4,
    BLOCK = 8,
    SMEM = 16,
    REGISTERS = 32,
    BINARY = 64,
    STREAM = 128,
    SHARED_BASE = 256,
    LOCAL_BASE = 512,
    VERSION = 1024,
    LINEINFO = 2048
};

int gs_trace_fail(gs_trace *t, const char *format, ...)
{
    if (t->state != FAILED) {
        t->state = FAILED;
        int n = snprintf(t->error, sizeof t->error, "line %llu: ", (unsigned long long)t->line);
        va_list list;
        va_start(list, format);
        vsnprintf(t->error + n, sizeof t->error - (size_t)n, format, list);
        va_end(list);
        for (char *p = t->error; *p; p++) { /* one line, whatever the file holds */
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
    /* doubling must not be what breaks the limit */
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

/* What follows `key =`; NULL: the line has another key. */
static const char *value_of(const char *line, const char *key)
{
    size_t n = strlen(key);
    if (strncmp(line, key, n) != 0) {
        return NULL;
    }
    line = gs_scan_skip(line + n);
    return *line == '=' ? gs_scan_skip(line + 1) : NULL;
}

static bool at_end(const char *p)
{
    return *gs_scan_skip(p) == '\n';
}

/* x,y,z */
static const char *scan_triple(const char *p, u32 out[3])
{
    for (u32 i = 0; i < 3; i++) {
        u64 value;
        if (i && *p++ != ',') {
            return NULL;
        }
        p = gs_scan_dec_open(p, &value);
        if (!p || value > UINT32_MAX) {
            return NULL;
        }
        out[i] = (u32)value;
    }
    return p;
}

static int whole(gs_trace *t, const char *p, const char *what, u64 most, u64 *out)
{
    const char *next = gs_scan_dec(p, out);
    return next && at_end(next) && *out <= most ? 0 : gs_trace_bad(t, p, what);
}

static int whole32(gs_trace *t, const char *p, const char *what, u32 most, u32 *out)
{
    u64 value = 0;
    int rc = whole(t, p, what, most, &value);
    *out = (u32)value;
    return rc;
}

static int dims(gs_trace *t, const char *p, const char *what, const u32 most[3], u32 out[3])
{
    const char *next = *p == '(' ? scan_triple(p + 1, out) : NULL;
    bool good = next && *next == ')' && at_end(next + 1);
    for (u32 i = 0; i < 3 && good; i++) {
        good = out[i] > 0 && out[i] <= most[i];
    }
    return good ? 0 : gs_trace_bad(t, p, what);
}

static int base(gs_trace *t, const char *p, const char *what, u64 *out)
{
    const char *next = gs_scan_hex(p, out);
    return next && at_end(next) ? 0 : gs_trace_bad(t, p, what);
}

static void keep_name(gs_trace *t, const char *p)
{
    const char *end = strchr(p, '\n');
    size_t n = 0;
    if (end) {
        n = gs_min((u64)(end - p), sizeof t->header.name - 1);
    }
    while (n && gs_scan_blank(p[n - 1])) {
        n--;
    }
    memcpy(t->header.name, p, n);
    t->header.name[n] = 0;
}

static int header_field(gs_trace *t, const char *line)
{
    static const u32 most_grid[3] = {INT32_MAX, 65535, 65535}, most_block[3] = {1024, 1024, 64};
    gs_trace_header *h = &t->header;
    const char *p;
    u32 field = 0;
    int rc = 0;
    if ((p = value_of(line, "-kernel name"))) {
        field = NAME;
        keep_name(t, p);
    } else if ((p = value_of(line, "-kernel id"))) {
        field = ID;
        rc = whole(t, p, "kernel id", UINT64_MAX, &h->id);
    } else if ((p = value_of(line, "-grid dim"))) {
        field = GRID;
        rc = dims(t, p, "grid dim", most_grid, h->grid);
    } else if ((p = value_of(line, "-block dim"))) {
        field = BLOCK;
        rc = dims(t, p, "block dim", most_block, h->block);
        if (!rc && (u64)h->block[0] * h->block[1] * h->block[2] > 1024) {
            rc = gs_trace_fail(t, "bad block dim: more than 1024 threads");
        }
    } else if ((p = value_of(line, "-shmem"))) {
        field = SMEM;
        rc = whole32(t, p, "shmem", 256u << 10, &h->smem);
    } else if ((p = value_of(line, "-nregs"))) {
        field = REGISTERS;
        rc = whole32(t, p, "nregs (at most 255)", 255, &h->registers);
    } else if ((p = value_of(line, "-binary version"))) {
        field = BINARY;
        rc = whole32(t, p, "binary version", 255, &h->binary);
        if (!rc && !memchr(GS_SM_VERSION, (int)h->binary, sizeof GS_SM_VERSION)) {
            rc = gs_trace_fail(t, "binary version %u is not known", h->binary);
        }
    } else if ((p = value_of(line, "-cuda stream id"))) {
        field = STREAM;
        rc = whole(t, p, "cuda stream id", UINT64_MAX, &h->stream);
    } else if ((p = value_of(line, "-shmem base_addr"))) {
        field = SHARED_BASE;
        rc = base(t, p, "shmem base_addr", &h->shared_base);
    } else if ((p = value_of(line, "-local mem base_addr"))) {
        field = LOCAL_BASE;
        rc = base(t, p, "local mem base_addr", &h->local_base);
    } else if ((p = value_of(line, "-accelsim tracer version"))) {
        field = VERSION;
        rc = whole32(t, p, "accelsim tracer version (at most 6)", 6, &h->version);
    } else if ((p = value_of(line, "-enable lineinfo"))) {
        field = LINEINFO;
        rc = whole32(t, p, "enable lineinfo", 1, &h->lineinfo);
    }
    if (!rc && (t->given & field)) {
        rc = gs_trace_fail(t, "a header field is given twice");
    }
    t->given |= field;
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

static int end_header(gs_trace *t, const char *line)
{
    static const struct {
        u32 field;
        const char *name;
    } needed[] = {{GRID, "grid dim"},
                  {BLOCK, "block dim"},
                  {SMEM, "shmem"},
                  {REGISTERS, "nregs"},
                  {BINARY, "binary version"}};
    for (u32 i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (!(t->given & needed[i].field)) {
            return gs_trace_fail(t, "the header ends without %s", needed[i].name);
        }
    }
    const gs_trace_header *h = &t->header;
    t->tbs = (u64)h->grid[0] * h->grid[1] * h->grid[2]; /* below 2^63 by the limits of each */
    t->tb.warps = (h->block[0] * h->block[1] * h->block[2] + 31) / 32;
    t->state = BETWEEN;
    if (strncmp(line, "#BEGIN_TB", 9) == 0 && at_end(line + 9)) {
        begin_tb(t);
    }
    return GS_TRACE_HEADER;
}

/* Clusters are dispatched whole, so their TBs come in an order of their own: each once is what is checked. */
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
    if (!(t->named & 1)) {
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

static int named_once(gs_trace *t, u32 bit, bool good, const char *p, const char *what)
{
    if (!good) {
        return gs_trace_bad(t, p, what);
    }
    if (t->named & bit || t->warps_seen) {
        return gs_trace_fail(t, "%s is given twice or after a warp", what);
    }
    t->named |= bit;
    return GS_TRACE_MORE;
}

static int begin_warp(gs_trace *t, const char *p)
{
    if (whole32(t, p, "warp", UINT32_MAX, &t->current)) {
        return GS_TRACE_ERROR;
    }
    if (!(t->named & 1)) {
        return gs_trace_fail(t, "a warp before the thread block line");
    }
    if (t->current >= t->tb.warps) {
        return gs_trace_fail(t, "warp %u of a TB of %u warps", t->current, t->tb.warps);
    }
    if (t->warps_seen >> t->current & 1) {
        return gs_trace_fail(t, "warp %u comes twice", t->current);
    }
    /* the order can be judged only now, when it is known whether there is a cluster */
    if (!t->warps_seen && ((t->named > 1 && in_cluster(t)) || check_order(t))) {
        return GS_TRACE_ERROR;
    }
    t->warps_seen |= 1u << t->current;
    t->left = 0;
    t->state = IN_WARP;
    return GS_TRACE_MORE;
}

/* A line of a TB outside the instructions. */
static int tb_line(gs_trace *t, const char *line)
{
    gs_trace_tb *tb = &t->tb;
    const char *p, *next;
    u32 at[3] = {0};
    if (strncmp(line, "#END_TB", 7) == 0 && at_end(line + 7)) {
        return end_tb(t);
    }
    if ((p = value_of(line, "warp"))) {
        return begin_warp(t, p);
    }
    if ((p = value_of(line, "thread block"))) {
        next = scan_triple(p, at);
        const u32 *grid = t->header.grid;
        bool good = next && at_end(next);
        if (good && (at[0] >= grid[0] || at[1] >= grid[1] || at[2] >= grid[2])) {
            return gs_trace_fail(t, "TB %u,%u,%u is outside the grid", at[0], at[1], at[2]);
        }
        t->named_line = t->line;
        tb->x = at[0];
        tb->y = at[1];
        tb->z = at[2];
        return named_once(t, 1, good, p, "thread block");
    }
    if ((p = value_of(line, "cluster id"))) {
        next = scan_triple(p, tb->cluster);
        return named_once(t, 2, next && at_end(next), p, "cluster id");
    }
    if ((p = value_of(line, "cluster cta"))) {
        next = scan_triple(p, tb->cta);
        return named_once(t, 4, next && at_end(next), p, "cluster cta");
    }
    if ((p = value_of(line, "cluster rank"))) {
        next = gs_scan_u32(p, UINT32_MAX, &tb->rank);
        return named_once(t, 8, next && at_end(next), p, "cluster rank");
    }
    if (t->warps_seen && line[0] != '#') {
        return gs_trace_fail(t, "warp %u has more instructions than it says, or another line is out of place",
                             t->current);
    }
    return gs_trace_bad(t, line, "line in a TB");
}

static int warp_line(gs_trace *t, const char *line)
{
    gs_trace_warp *warp = &t->warp[t->current];
    if (!t->left) {
        const char *p = value_of(line, "insts");
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
        return GS_TRACE_MORE;
    }
    if (*line == '#' || *line == 'w' || *line == 't' || *line == 'i') {
        return gs_trace_fail(t, "warp %u has %u of %u instructions", t->current, warp->count - t->left,
                             warp->count);
    }
    if (gs_trace_inst_line(t, line)) {
        return GS_TRACE_ERROR;
    }
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
        if (*line == '#') {
            return end_header(t, line);
        }
        return *line == '-' ? header_field(t, line) : gs_trace_bad(t, line, "header line");
    default:
        if (strncmp(line, "#BEGIN_TB", 9) == 0 && at_end(line + 9)) {
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

/* Adds to the line whose end has not come yet. */
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
        t->tb.n_insts = t->tb.n_addresses = 0;
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
