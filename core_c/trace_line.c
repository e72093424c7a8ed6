/* One instruction line of a trace. */
#include "trace.h"
#include <string.h>

#define GS_WINDOW ((u64)1 << 24) /* bytes of the window of shared or local memory in the generic space */

static bool in_window(u64 address, u64 base, u64 other)
{
    u64 size = other > base ? gs_min(GS_WINDOW, other - base) : GS_WINDOW;
    return base && address >= base && address - base < size;
}

static u8 space_of(const gs_trace *t, const gs_mnemonic *op, u64 address)
{
    if (op->space != GS_SPACE_GENERIC) {
        return op->space;
    }
    u64 shared = t->header.shared_base, local = t->header.local_base;
    if (!shared || !local) { /* the windows are not known: the peer's rule */
        return op->kind == GS_KIND_ATOMIC ? GS_SPACE_GLOBAL : GS_SPACE_SHARED;
    }
    if (in_window(address, shared, local)) {
        return GS_SPACE_SHARED;
    }
    return in_window(address, local, shared) ? GS_SPACE_LOCAL : GS_SPACE_GLOBAL;
}

static const char *scan_registers(gs_trace *t, const char *p, u32 most, const char *what, u8 *count, u16 *out)
{
    u32 n;
    const char *next = gs_scan_u32(p, most, &n);
    if (!next) {
        gs_trace_bad(t, p, what);
        return NULL;
    }
    *count = (u8)n;
    for (u32 i = 0; i < n; i++) {
        p = gs_scan_skip(next);
        bool uniform = *p == 'U';
        const char *at = p + uniform;
        bool predicate = *at == 'P';
        u64 number = 0;
        next = NULL;
        if ((predicate || *at == 'R') && (u32)(u8)at[1] - '0' < 10) {
            next = gs_scan_dec(at + 1, &number);
        }
        if (!next || number > (predicate ? 15u : 255u)) {
            gs_trace_bad(t, p, "register");
            return NULL;
        }
        u32 class = predicate ? GS_REG_P : GS_REG_R;
        out[i] = (u16)((class + uniform) << 12 | (u32)number);
    }
    return next;
}

static const char *mismatch(gs_trace *t, const char *p, const char *what)
{
    p = gs_scan_skip(p);
    if (*p == '\n') {
        gs_trace_fail(t, "the address list does not match the mask: %s missing", what);
    } else {
        gs_trace_bad(t, p, what);
    }
    return NULL;
}

static bool add(u64 *address, u64 delta, bool negative)
{
    u64 before = *address;
    *address = before + delta;
    return !delta || (negative ? *address < before : *address > before);
}

/* An address for each of n lanes, first to last. */
static const char *list_all(gs_trace *t, const char *p, u32 n, u64 *out)
{
    bool prefix = false;
    for (u32 i = 0; i < n; i++) {
        p = gs_scan_skip(p);
        bool has = p[0] == '0' && (p[1] | 32) == 'x';
        if (i && has != prefix) { /* that is the immediate */
            gs_trace_fail(t, "the address list does not match the mask: %u of %u addresses", i, n);
            return NULL;
        }
        prefix = has;
        const char *next = gs_scan_hex(p, &out[i]);
        if (!next) {
            return mismatch(t, p, "address");
        }
        p = next;
    }
    return p;
}

static const char *base_stride(gs_trace *t, const char *p, u32 mask, u32 n, u64 *out)
{
    u64 base, stride;
    bool negative;
    const char *next = gs_scan_hex(p, &base);
    if (!next) {
        return mismatch(t, p, "base address");
    }
    p = gs_scan_signed(next, &stride, &negative);
    if (!p) {
        return mismatch(t, next, "stride");
    }
    u32 run = mask ? mask >> gs_ctz(mask) : 0;
    if (run & (run + 1)) {
        gs_trace_fail(t, "the address list does not match the mask: base and stride for lanes %08x", mask);
        return NULL;
    }
    for (u32 i = 0; i < n; i++) {
        if (i && !add(&base, stride, negative)) {
            gs_trace_fail(t, "an address does not fit 64 bits");
            return NULL;
        }
        out[i] = base;
    }
    return p;
}

/* n addresses: the base, and n - 1 deltas against the address before */
static const char *deltas(gs_trace *t, const char *p, u64 base, u64 n, u64 *out)
{
    for (u64 i = 0; i < n; i++) {
        if (i) {
            u64 delta;
            bool negative;
            const char *next = gs_scan_signed(p, &delta, &negative);
            if (!next) {
                return mismatch(t, p, "delta");
            }
            if (!add(&base, delta, negative)) {
                gs_trace_fail(t, "an address does not fit 64 bits");
                return NULL;
            }
            p = next;
        }
        out[i] = base;
    }
    return p;
}

static const char *base_delta(gs_trace *t, const char *p, u32 n, u64 *out)
{
    u64 base = 0;
    p = gs_scan_skip(p);
    /* with no lane active the base may be left out; an immediate has no 0x */
    if (n || (p[0] == '0' && (p[1] | 32) == 'x')) {
        const char *next = gs_scan_hex(p, &base);
        if (!next) {
            return mismatch(t, p, "base address");
        }
        p = next;
    }
    return deltas(t, p, base, n, out);
}

/* The addresses of an ordinary memory instruction. */
static const char *scan_lanes(gs_trace *t, const char *p, gs_trace_inst *inst, const gs_mnemonic *op)
{
    u32 mode, n = gs_popcount(inst->mask);
    const char *next = gs_scan_u32(p, 2, &mode);
    if (!next) {
        gs_trace_bad(t, p, "address mode");
        return NULL;
    }
    if (gs_trace_reserve(t, 0, n)) {
        return NULL;
    }
    u64 *out = t->addresses + t->tb.n_addresses;
    p = mode == 0   ? list_all(t, next, n, out)
        : mode == 1 ? base_stride(t, next, inst->mask, n, out)
                    : base_delta(t, next, n, out);
    if (p && op->space) {
        inst->width = op->width;
        inst->space = space_of(t, op, n ? out[0] : 0);
        inst->first = (u32)t->tb.n_addresses;
        t->tb.n_addresses += n;
    }
    return p;
}

/* Bulk copies: the transaction barrier, who receives, bytes, and a list of addresses of its own length. */
static const char *scan_bulk(gs_trace *t, const char *p, gs_trace_inst *inst, const gs_mnemonic *op)
{
    u32 multicast, bytes, outside, mode;
    u64 ctas = 1, base = 0, n = 0;
    const char *next = gs_scan_hex(p, &inst->barrier);
    if (!next || !(next = gs_scan_u32(p = next, 1, &multicast)) ||
        (multicast && !(next = gs_scan_hex(p = next, &ctas))) ||
        !(next = gs_scan_u32(p = next, UINT32_MAX, &bytes)) ||
        !(next = gs_scan_u32(p = next, bytes, &outside)) || !(next = gs_scan_u32(p = next, 4, &mode)) ||
        mode < 3 || (mode == 4 && !(next = gs_scan_hex(p = next, &base))) ||
        !(next = gs_scan_dec(p = next, &n))) {
        gs_trace_bad(t, p, "field of a bulk copy");
        return NULL;
    }
    if (ctas >> 32 || !ctas) {
        gs_trace_fail(t, "a bulk copy to no CTA or to more than 32");
        return NULL;
    }
    if (n > GS_TRACE_LINE / 2) { /* more than a line can hold */
        gs_trace_fail(t, "the address list of a bulk copy is cut short");
        return NULL;
    }
    if (gs_trace_reserve(t, 0, n)) {
        return NULL;
    }
    u64 *out = t->addresses + t->tb.n_addresses;
    p = mode == 3 ? list_all(t, next, (u32)n, out) : deltas(t, next, base, n, out);
    if (p) {
        inst->width = (u8)gs_popcount((u32)ctas);
        inst->space = op->space;
        inst->variant |= multicast ? GS_VARIANT_MULTICAST : 0;
        inst->bytes = bytes - outside;
        inst->first = (u32)t->tb.n_addresses;
        inst->imm = (i32)n;
        t->tb.n_addresses += n;
    }
    return p;
}

/* Version 6: the values of the registers, which timing does not need, are checked and left out. */
static const char *skip_values(gs_trace *t, const char *p, u32 registers)
{
    p = gs_scan_skip(p);
    if (*p == '\n') {
        return p; /* early writers of this version have no such field */
    }
    if (strncmp(p, "NoVal", 5) == 0 && gs_scan_ends(p[5])) {
        return p + 5;
    }
    if (strncmp(p, "Val", 3) != 0 || !gs_scan_ends(p[3])) {
        gs_trace_bad(t, p, "NoVal or Val");
        return NULL;
    }
    p += 3;
    for (u32 i = 0; i < registers; i++) {
        u32 n;
        u64 value;
        const char *next = gs_scan_u32(p, 32, &n);
        if (!next || (n != 1 && n != 32)) {
            gs_trace_bad(t, p, "number of register values");
            return NULL;
        }
        for (p = next; n > 0; n--, p = next) {
            next = gs_scan_hex(p, &value);
            if (!next) {
                gs_trace_bad(t, p, "register value");
                return NULL;
            }
        }
    }
    return p;
}

/* What follows the addresses: immediates and, since version 6, values. */
static const char *scan_rest(gs_trace *t, const char *p, gs_trace_inst *inst, bool bulk)
{
    u32 version = t->header.version, most = version < 4 ? 0 : version < 6 ? 1 : 2;
    for (u32 i = 0; i < most; i++) {
        p = gs_scan_skip(p);
        if (*p == '\n' || *p == 'N' || *p == 'V') {
            if (i == 0 && version >= 5) {
                gs_trace_bad(t, p, "immediate");
                return NULL;
            }
            break;
        }
        u64 value;
        bool negative;
        const char *next = gs_scan_signed(p, &value, &negative);
        if (!next) {
            gs_trace_bad(t, p, "immediate");
            return NULL;
        }
        if (i == 0 && !bulk) {
            inst->imm = (i32)(u32)value;
        }
        p = next;
    }
    if (version >= 6) {
        p = skip_values(t, p, (u32)inst->dsts + inst->srcs);
    }
    return p;
}

/* Versions before 3 name the TB and the warp again. */
static const char *scan_prefix(gs_trace *t, const char *p)
{
    const u32 expect[4] = {t->tb.x, t->tb.y, t->tb.z, t->current};
    for (u32 i = 0; i < 4; i++) {
        u32 value;
        const char *next = gs_scan_u32(p, UINT32_MAX, &value);
        if (!next) {
            gs_trace_bad(t, p, "TB or warp before the PC");
            return NULL;
        }
        if (value != expect[i]) {
            gs_trace_fail(t, "an instruction of another TB or warp");
            return NULL;
        }
        p = next;
    }
    return p;
}

static const char *scan_hex32(gs_trace *t, const char *p, const char *what, u32 *out)
{
    u64 value;
    const char *next = gs_scan_hex(p, &value);
    if (!next || value > UINT32_MAX) {
        gs_trace_bad(t, p, what);
        return NULL;
    }
    *out = (u32)value;
    return next;
}

int gs_trace_inst_line(gs_trace *t, const char *p)
{
    if (gs_trace_reserve(t, 1, 0)) {
        return GS_TRACE_ERROR;
    }
    gs_trace_inst *inst = t->insts + t->tb.n_insts;
    *inst = (gs_trace_inst){.line = (u32)t->line};
    const char *next;
    u64 ignored;
    u32 width;
    if (t->header.version < 3 && !(p = scan_prefix(t, p))) {
        return GS_TRACE_ERROR;
    }
    if (t->header.lineinfo) {
        next = gs_scan_dec(p, &ignored);
        if (!next) {
            return gs_trace_bad(t, p, "source line");
        }
        p = next;
    }
    if (!(p = scan_hex32(t, p, "PC", &inst->pc)) || !(p = scan_hex32(t, p, "mask", &inst->mask)) ||
        !(p = scan_registers(t, p, GS_TRACE_DSTS, "number of destinations", &inst->dsts, inst->dst))) {
        return GS_TRACE_ERROR;
    }
    gs_mnemonic spare;
    const gs_mnemonic *op = gs_trace_mnemonic(t, p, &p, &spare);
    if (!op || !(p = scan_registers(t, p, GS_TRACE_SRCS, "number of sources", &inst->srcs, inst->src))) {
        return GS_TRACE_ERROR;
    }
    inst->opcode = op->opcode;
    inst->variant = op->variant;
    if (op->gmma) {
        u32 commit;
        next = gs_scan_u32(p, 1, &commit);
        if (!next) {
            return gs_trace_bad(t, p, "commit field");
        }
        inst->variant |= commit ? GS_VARIANT_COMMIT : 0;
        p = next;
    }
    next = gs_scan_u32(p, UINT32_MAX, &width);
    if (!next) {
        return gs_trace_bad(t, p, "width");
    }
    p = op->bulk ? scan_bulk(t, next, inst, op) : width ? scan_lanes(t, next, inst, op) : next;
    if (!p || !(p = scan_rest(t, p, inst, op->bulk))) {
        return GS_TRACE_ERROR;
    }
    p = gs_scan_skip(p);
    if (*p != '\n') {
        return gs_trace_fail(t, width || op->bulk
                                    ? "the address list does not match the mask: fields are left over"
                                    : "fields are left over");
    }
    t->tb.n_insts++;
    return 0;
}
