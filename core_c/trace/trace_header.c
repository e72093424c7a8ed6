/* The header of a trace: see trace_header.h. */
#include "trace/trace_header.h"

#include "trace/trace.h"
#include <string.h>

enum { TEXT, WHOLE32, WHOLE64, HEX, TRIPLE };

/* A header line `-key = value`. */
typedef struct gs_field {
    const char *key;
    u32 form, at; /* how the value is written, and where it goes in gs_trace_header */
    u64 most;     /* a triple: of each part, which must not be 0 */
    bool needed;
} gs_field;

#define AT(member) (u32) offsetof(gs_trace_header, member)

static const gs_field FIELD[] = {
    {"kernel name", TEXT, AT(name), 0, false},
    {"kernel id", WHOLE64, AT(id), UINT64_MAX, false},
    {"grid dim", TRIPLE, AT(grid), INT32_MAX, true},
    {"block dim", TRIPLE, AT(block), 1024, true},
    {"shmem", WHOLE32, AT(smem), 256u << 10, true},
    {"nregs", WHOLE32, AT(registers), 255, true},
    {"binary version", WHOLE32, AT(binary), UINT32_MAX, true},
    {"cuda stream id", WHOLE64, AT(stream), UINT64_MAX, false},
    {"shmem base_addr", HEX, AT(shared_base), UINT64_MAX, false},
    {"local mem base_addr", HEX, AT(local_base), UINT64_MAX, false},
    {"accelsim tracer version", WHOLE32, AT(version), 6, false},
    {"enable lineinfo", WHOLE32, AT(lineinfo), 1, false},
};
#define FIELDS (u32)(sizeof FIELD / sizeof *FIELD)

static void keep_name(gs_trace_header *h, const char *p)
{
    size_t n = 0, length = 0;
    for (; p[n] != '\n'; n++) {
        length = gs_scan_blank(p[n]) ? length : n + 1;
    }
    length = gs_min(length, sizeof h->name - 1);
    memcpy(h->name, p, length);
    h->name[length] = 0;
}

static const char *scan_dims(const char *p, u64 most, u32 out[3])
{
    const char *next = *p == '(' ? gs_scan_triple(p + 1, out) : NULL;
    for (u32 i = 0; i < 3 && next; i++) {
        next = out[i] > 0 && out[i] <= most ? next : NULL;
    }
    return next && *next == ')' ? next + 1 : NULL;
}

int gs_trace_header_line(gs_trace *t, const char *line)
{
    u32 i = 0;
    const char *p = NULL;
    for (; i < FIELDS && !p; i++) {
        p = gs_scan_value(line + 1, FIELD[i].key);
    }
    if (!p) {
        return 0; /* tracers add fields of their own */
    }
    const gs_field *field = &FIELD[--i];
    if (t->given >> i & 1) {
        return gs_trace_fail(t, "%s is given twice", field->key);
    }
    t->given |= 1u << i;
    unsigned char *out = (unsigned char *)&t->header + field->at;
    u64 value = 0;
    u32 triple[3] = {0}, value32 = 0;
    const char *next;
    switch (field->form) {
    case TEXT:
        keep_name(&t->header, p);
        return 0;
    case TRIPLE:
        next = scan_dims(p, field->most, triple);
        memcpy(out, triple, sizeof triple);
        break;
    case HEX:
        next = gs_scan_hex(p, &value);
        memcpy(out, &value, sizeof value);
        break;
    case WHOLE64:
        next = gs_scan_dec(p, &value);
        memcpy(out, &value, sizeof value);
        break;
    default:
        next = gs_scan_u32(p, (u32)field->most, &value32);
        memcpy(out, &value32, sizeof value32);
    }
    return next && gs_scan_at_end(next) ? 0 : gs_trace_bad(t, p, field->key);
}

int gs_trace_header_end(gs_trace *t)
{
    const gs_trace_header *h = &t->header;
    for (u32 i = 0; i < FIELDS; i++) {
        if (FIELD[i].needed && !(t->given >> i & 1)) {
            return gs_trace_fail(t, "the header ends without %s", FIELD[i].key);
        }
    }
    if (h->binary > 255 || !memchr(GS_SM_VERSION, (int)h->binary, sizeof GS_SM_VERSION)) {
        return gs_trace_fail(t, "binary version %u is not known", h->binary);
    }
    if (h->grid[1] > 65535 || h->grid[2] > 65535) {
        return gs_trace_fail(t, "grid dim %u,%u,%u is not possible", h->grid[0], h->grid[1], h->grid[2]);
    }
    u64 threads = (u64)h->block[0] * h->block[1] * h->block[2];
    if (threads > 1024) {
        return gs_trace_fail(t, "block dim of %llu threads: at most 1024", (unsigned long long)threads);
    }
    t->tbs = (u64)h->grid[0] * h->grid[1] * h->grid[2]; /* below 2^63 */
    t->tb.warps = (u32)(threads + 31) / 32;
    return 0;
}
