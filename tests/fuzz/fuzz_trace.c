/* libFuzzer harness of the trace reader: whatever the bytes, it ends without a fault, and the way that the
   text is cut into pieces changes nothing. */
#include "gen/gs_opcodes.h"
#include "gs_trace.h"
#include <stdlib.h>
#include <string.h>

typedef struct result {
    uint64_t hash;
    uint64_t tbs;
    int rc;
    char error[400];
} result;

static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ p[i]) * 1099511628211u;
    }
    return hash;
}

static void add_tb(const gs_trace *trace, result *out)
{
    gs_trace_tb tb;
    gs_trace_tb_get(trace, &tb);
    const uint32_t place[] = {tb.x, tb.y, tb.z, tb.rank, tb.warps};
    out->hash = mix(out->hash, place, sizeof place);
    out->hash = mix(out->hash, tb.warp, tb.warps * sizeof *tb.warp);
    out->hash = mix(out->hash, tb.insts, tb.n_insts * sizeof *tb.insts);
    if (tb.n_addresses) {
        out->hash = mix(out->hash, tb.addresses, tb.n_addresses * sizeof *tb.addresses);
    }
    for (uint64_t i = 0; i < tb.n_insts; i++) {
        const gs_trace_inst *inst = &tb.insts[i];
        uint32_t kind = GS_OPCODE[inst->opcode].kind;
        int bulk = kind >= GS_KIND_BULK_LOAD && kind <= GS_KIND_BULK_PREFETCH;
        uint64_t count = bulk ? (uint64_t)inst->imm : (uint64_t)__builtin_popcount(inst->mask);
        if (inst->width && inst->first + count > tb.n_addresses) {
            abort();
        }
    }
    out->tbs++;
}

/* Pieces of 1 to `step` bytes, the size moved by the bytes themselves; each is copied to a block of its own,
   so that a read past its end is seen. */
static result run(const uint8_t *data, size_t size, size_t step)
{
    result out = {.hash = 14695981039346656037u};
    /* the length, which says nothing else, picks the options */
    gs_trace *trace = gs_trace_open(size % 4 == 1 ? 0 : -1, size % 8 >= 6 ? 1 << 13 : 1 << 20);
    if (!trace) {
        abort();
    }
    size_t at = 0;
    do {
        size_t left = size - at, n = step < left ? 1 + data[at] % step : left;
        n = n < left ? n : left;
        char *piece = malloc(n + !n);
        if (n) {
            memcpy(piece, data + at, n);
        }
        at += n;
        uint64_t done = 0;
        do {
            uint64_t used;
            out.rc = gs_trace_feed(trace, piece + done, n - done, at == size, &used);
            done += used;
            if (out.rc == GS_TRACE_TB) {
                add_tb(trace, &out);
            } else if (out.rc == GS_TRACE_HEADER) {
                gs_trace_header header;
                gs_trace_header_get(trace, &header);
                out.hash = mix(out.hash, &header.grid, sizeof header.grid);
                out.hash = mix(out.hash, header.name, strlen(header.name));
            }
        } while (out.rc > GS_TRACE_MORE && out.rc != GS_TRACE_END);
        free(piece);
    } while (at < size && out.rc == GS_TRACE_MORE);
    strncpy(out.error, gs_trace_error(trace), sizeof out.error - 1);
    int known = out.rc == GS_TRACE_ERROR ? strncmp(out.error, "line ", 5) == 0 : out.rc == GS_TRACE_END;
    if (!known || strchr(out.error, '\n')) {
        abort();
    }
    gs_trace_close(trace);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) {
        return 0;
    }
    result whole = run(data, size, size + 1);
    result cut = run(data, size, 1 + size / 7);
    if (whole.hash != cut.hash || whole.tbs != cut.tbs || whole.rc != cut.rc ||
        strcmp(whole.error, cut.error) != 0) {
        abort();
    }
    return 0;
}
