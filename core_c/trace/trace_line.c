/* Instruction lines: see trace_line.h. */
#include "trace/trace_line.h"

#include "trace/trace.h"
#include "trace/trace_form.h"
#include "trace/trace_opcode.h"

/* Each take_ function reads the field at *at and moves *at past it; false: an error was written. */
static inline bool take_u32(gs_trace *t, const char **at, u32 most, const char *what, u32 *out)
{
    const char *next = gs_scan_u32(*at, most, out);
    if (!next) {
        gs_trace_bad(t, *at, what);
        return false;
    }
    *at = next;
    return true;
}

static inline bool take_hex(gs_trace *t, const char **at, u64 most, const char *what, u64 *out)
{
    const char *next = gs_scan_hex(*at, out);
    if (!next || *out > most) {
        gs_trace_bad(t, *at, what);
        return false;
    }
    *at = next;
    return true;
}

static inline bool take_register(gs_trace *t, const char **at, u16 *out)
{
    const char *p = gs_scan_skip(*at);
    const char *start = p;
    u32 class = GS_REG_R;
    if (*p == 'U') {
        class = GS_REG_UR;
        p++;
    }
    if (*p == 'P') {
        class += GS_REG_P;
    }
    bool named = *p == 'P' || *p == 'R';
    u64 number = 0;
    const char *next = named && (u32)(u8)p[1] - '0' < 10 ? gs_scan_dec(p + 1, &number) : NULL;
    if (!next || number > (class >= GS_REG_P ? 15u : 255u)) {
        gs_trace_bad(t, start, "register");
        return false;
    }
    *out = (u16)(class << 12 | (u32)number);
    *at = next;
    return true;
}

static inline bool take_registers(gs_trace *t, const char **at, u32 most, const char *what, u8 *count,
                                  u16 *out)
{
    u32 n = 0;
    if (!take_u32(t, at, most, what, &n)) {
        return false;
    }
    *count = (u8)n;
    for (u32 i = 0; i < n; i++) {
        if (!take_register(t, at, &out[i])) {
            return false;
        }
    }
    return true;
}

static bool in_window(u64 address, u64 base, u64 other)
{
    u64 size = other > base ? gs_min(GS_TRACE_WINDOW, other - base) : GS_TRACE_WINDOW;
    return address >= base && address - base < size;
}

static u8 space_of(const gs_trace *t, const gs_mnemonic *op, u64 address)
{
    if (op->space != GS_SPACE_GENERIC) {
        return op->space;
    }
    u64 shared = t->header.shared_base, local = t->header.local_base;
    if (!shared || !local) { /* the windows are not known: the rule of Accel-Sim */
        return op->kind == GS_KIND_ATOMIC ? GS_SPACE_GLOBAL : GS_SPACE_SHARED;
    }
    if (in_window(address, shared, local)) {
        return GS_SPACE_SHARED;
    }
    return in_window(address, local, shared) ? GS_SPACE_LOCAL : GS_SPACE_GLOBAL;
}

/* There is no address, base, stride or delta at p. */
static bool mismatch(gs_trace *t, const char *p, const char *what)
{
    if (*gs_scan_skip(p) == '\n') {
        gs_trace_fail(t, "the address list does not match the mask: %s missing", what);
    } else {
        gs_trace_bad(t, p, what);
    }
    return false;
}

static bool has_prefix(const char *p)
{
    return p[0] == '0' && (p[1] | 32) == 'x';
}

static bool take_address(gs_trace *t, const char **at, const char *what, u64 *out)
{
    const char *next = gs_scan_hex(*at, out);
    if (!next) {
        return mismatch(t, *at, what);
    }
    *at = next;
    return true;
}

static bool take_delta(gs_trace *t, const char **at, const char *what, u64 *out, bool *negative)
{
    const char *next = gs_scan_signed(*at, out, negative);
    if (!next) {
        return mismatch(t, *at, what);
    }
    *at = next;
    return true;
}

static bool add(gs_trace *t, u64 *address, u64 delta, bool negative)
{
    u64 before = *address;
    *address = before + delta;
    if (delta && (*address < before) != negative) {
        gs_trace_fail(t, "an address does not fit 64 bits");
        return false;
    }
    return true;
}

/* n addresses, one by one. */
static bool list_all(gs_trace *t, const char **at, u64 n, u64 *out)
{
    bool first = false;
    for (u64 i = 0; i < n; i++) {
        *at = gs_scan_skip(*at);
        bool prefix = has_prefix(*at);
        if (i && prefix != first) { /* that is the immediate */
            gs_trace_fail(t, "the address list does not match the mask: %u addresses, not %u", (u32)i,
                          (u32)n);
            return false;
        }
        first = prefix;
        if (!take_address(t, at, "address", &out[i])) {
            return false;
        }
    }
    return true;
}

static bool base_stride(gs_trace *t, const char **at, u32 mask, u32 n, u64 *out)
{
    u64 base = 0, stride = 0;
    bool negative = false;
    if (!take_address(t, at, "base address", &base) || !take_delta(t, at, "stride", &stride, &negative)) {
        return false;
    }
    u32 run = mask ? mask >> gs_ctz(mask) : 0;
    if (run & (run + 1)) {
        gs_trace_fail(t, "the address list does not match the mask: base and stride for lanes %08x", mask);
        return false;
    }
    for (u32 i = 0; i < n; i++) {
        if (i && !add(t, &base, stride, negative)) {
            return false;
        }
        out[i] = base;
    }
    return true;
}

/* n addresses: the base, and n - 1 deltas, each against the address before. */
static bool deltas(gs_trace *t, const char **at, u64 base, u64 n, u64 *out)
{
    for (u64 i = 0; i < n; i++) {
        u64 delta = 0;
        bool negative = false;
        if (i && (!take_delta(t, at, "delta", &delta, &negative) || !add(t, &base, delta, negative))) {
            return false;
        }
        out[i] = base;
    }
    return true;
}

static bool base_delta(gs_trace *t, const char **at, u32 n, u64 *out)
{
    u64 base = 0;
    *at = gs_scan_skip(*at);
    /* with no active lane the base may be missing; an immediate has no 0x */
    if ((n || has_prefix(*at)) && !take_address(t, at, "base address", &base)) {
        return false;
    }
    return deltas(t, at, base, n, out);
}

static u64 *next_addresses(const gs_trace *t)
{
    return t->addresses ? t->addresses + t->tb.n_addresses : NULL; /* NULL: no room was asked for */
}

/* The addresses of an ordinary memory instruction. */
static bool take_lanes(gs_trace *t, const char **at, gs_trace_inst *inst, const gs_mnemonic *op)
{
    u32 mode = 0, n = gs_popcount(inst->mask);
    if (!take_u32(t, at, 2, "address mode", &mode) || gs_trace_reserve(t, 0, n)) {
        return false;
    }
    u64 *out = next_addresses(t);
    bool good = mode == 0   ? list_all(t, at, n, out)
                : mode == 1 ? base_stride(t, at, inst->mask, n, out)
                            : base_delta(t, at, n, out);
    if (good && op->space) { /* addresses of other instructions are read and dropped */
        inst->width = op->width;
        inst->space = space_of(t, op, n ? out[0] : 0);
        inst->first = (u32)t->tb.n_addresses;
        t->tb.n_addresses += n;
    }
    return good;
}

/* Bulk copies: the transaction barrier, the receivers, bytes, and a list of addresses of its own length. */
static bool take_bulk(gs_trace *t, const char **at, gs_trace_inst *inst, const gs_mnemonic *op)
{
    u32 multicast = 0, bytes = 0, outside = 0, mode = 0, n = 0;
    u64 ctas = 1, base = 0;
    if (!take_hex(t, at, UINT64_MAX, "address of the transaction barrier", &inst->barrier) ||
        !take_u32(t, at, 1, "multicast field", &multicast) ||
        (multicast && !take_hex(t, at, UINT32_MAX, "mask of CTAs", &ctas)) ||
        !take_u32(t, at, UINT32_MAX, "number of bytes", &bytes) ||
        !take_u32(t, at, bytes, "number of bytes out of bounds", &outside) ||
        !take_u32(t, at, 4, "address mode", &mode)) {
        return false;
    }
    if (mode < 3) {
        gs_trace_fail(t, "address mode %u of a bulk copy", mode);
        return false;
    }
    if ((mode == 4 && !take_address(t, at, "base address", &base)) ||
        /* no line holds more */
        !take_u32(t, at, GS_TRACE_LINE / 2, "number of addresses", &n)) {
        return false;
    }
    if (gs_trace_reserve(t, 0, n)) {
        return false;
    }
    u64 *out = next_addresses(t);
    if (!(mode == 3 ? list_all(t, at, n, out) : deltas(t, at, base, n, out))) {
        return false;
    }
    inst->width = (u8)gs_popcount((u32)ctas);
    inst->space = op->space;
    inst->variant |= multicast ? GS_VARIANT_MULTICAST : 0;
    inst->bytes = bytes - outside;
    inst->first = (u32)t->tb.n_addresses;
    inst->imm = (i32)n;
    t->tb.n_addresses += n;
    return true;
}

/* Version 6: register values. Timing needs those of the sources of BAR alone; *known: how many of the first
   `registers` have one, in `values`. */
enum { VALUES = 2 };

static bool take_values(gs_trace *t, const char **at, u32 registers, u64 values[VALUES], u32 *known)
{
    const char *p = gs_scan_skip(*at);
    if (*p == '\n') {
        return true; /* early writers of this version do not write the field */
    }
    const char *none = gs_scan_word(p, "NoVal"), *some = gs_scan_word(p, "Val");
    if (none && gs_scan_ends(*none)) {
        *at = none;
        return true;
    }
    if (!some || !gs_scan_ends(*some)) {
        gs_trace_bad(t, p, "NoVal or Val");
        return false;
    }
    *at = some;
    for (u32 i = 0; i < registers; i++) {
        u32 n = 0;
        u64 value = 0;
        if (!take_u32(t, at, 32, "number of register values", &n)) {
            return false;
        }
        if (n != 1 && n != 32) {
            gs_trace_fail(t, "%u register values, not 1 or 32", n);
            return false;
        }
        for (; n > 0; n--) {
            if (!take_hex(t, at, UINT64_MAX, "register value", &value)) {
                return false;
            }
        }
        if (i < VALUES) {
            values[i] = value;
            *known = i + 1;
        }
    }
    return true;
}

/* BAR a, n in registers or immediates: the number of the barrier and of its threads. */
static bool set_barrier(gs_trace *t, gs_trace_inst *inst, const u64 immediate[2], const u64 *values,
                        u32 known)
{
    u64 id = immediate[0], threads = immediate[1];
    if (inst->srcs && known > inst->dsts) {
        id = values[inst->dsts];
        threads = inst->srcs > 1 && known > inst->dsts + 1u ? values[inst->dsts + 1] : immediate[0];
    } else if (inst->srcs) {
        id = threads = 0; /* which registers hold is not in the trace */
    }
    if (id > 15 || threads > 1024) {
        gs_trace_fail(t, "barrier %llu of %llu threads: a TB has barriers 0 to 15, and at most 1024 threads",
                      (unsigned long long)id, (unsigned long long)threads);
        return false;
    }
    inst->imm = (i32)id;
    inst->bytes = (u32)threads;
    return true;
}

/* What follows the addresses: immediates and, since version 6, values. */
static bool take_rest(gs_trace *t, const char **at, gs_trace_inst *inst, const gs_mnemonic *op)
{
    const bool barrier = op->kind == GS_KIND_BARRIER;
    u32 version = t->header.version, most = version < 4 ? 0 : version < 6 && !barrier ? 1 : 2, known = 0;
    u64 immediate[2] = {0}, values[VALUES] = {0};
    for (u32 i = 0; i < most; i++) {
        const char *p = gs_scan_skip(*at);
        if (*p == '\n' || *p == 'N' || *p == 'V') {
            if (i == 0 && version >= 5) {
                gs_trace_bad(t, p, "immediate");
                return false;
            }
            break;
        }
        bool negative = false;
        const char *next = gs_scan_signed(p, &immediate[i], &negative);
        if (!next) {
            gs_trace_bad(t, p, "immediate");
            return false;
        }
        if (i == 0 && !op->bulk) {
            inst->imm = (i32)(u32)immediate[0];
        }
        *at = next;
    }
    return (version < 6 || take_values(t, at, (u32)inst->dsts + inst->srcs, values, &known)) &&
           (!barrier || set_barrier(t, inst, immediate, values, known));
}

/* Versions before 3 repeat TB and warp. */
static bool take_prefix(gs_trace *t, const char **at)
{
    const u32 expect[4] = {t->tb.x, t->tb.y, t->tb.z, t->current};
    for (u32 i = 0; i < 4; i++) {
        u32 value = 0;
        if (!take_u32(t, at, UINT32_MAX, "TB or warp before the PC", &value)) {
            return false;
        }
        if (value != expect[i]) {
            gs_trace_fail(t, "an instruction of another TB or warp");
            return false;
        }
    }
    return true;
}

/* All fields before the opcode. */
static bool take_front(gs_trace *t, const char **at, gs_trace_inst *inst)
{
    u32 source_line = 0;
    u64 pc = 0, mask = 0;
    if ((t->header.version < 3 && !take_prefix(t, at)) ||
        (t->header.lineinfo && !take_u32(t, at, UINT32_MAX, "source line", &source_line)) ||
        !take_hex(t, at, UINT32_MAX, "PC", &pc) || !take_hex(t, at, UINT32_MAX, "mask", &mask)) {
        return false;
    }
    inst->pc = (u32)pc;
    inst->mask = (u32)mask;
    return take_registers(t, at, GS_TRACE_DSTS, "number of destinations", &inst->dsts, inst->dst);
}

int gs_trace_inst_line(gs_trace *t, const char *p)
{
    if (gs_trace_reserve(t, 1, 0)) {
        return GS_TRACE_ERROR;
    }
    gs_trace_inst *inst = t->insts + t->tb.n_insts;
    *inst = (gs_trace_inst){.line = (u32)t->line};
    if (!take_front(t, &p, inst)) {
        return GS_TRACE_ERROR;
    }
    gs_mnemonic spare;
    const gs_mnemonic *op = gs_trace_mnemonic(t, p, &p, &spare);
    u32 commit = 0, width = 0;
    if (!op || !take_registers(t, &p, GS_TRACE_SRCS, "number of sources", &inst->srcs, inst->src) ||
        (op->gmma && !take_u32(t, &p, 1, "commit field", &commit)) ||
        !take_u32(t, &p, UINT32_MAX, "width", &width)) {
        return GS_TRACE_ERROR;
    }
    inst->opcode = op->opcode;
    inst->variant = op->variant | (commit ? GS_VARIANT_COMMIT : 0);
    bool memory = width || op->bulk;
    if ((memory && !(op->bulk ? take_bulk(t, &p, inst, op) : take_lanes(t, &p, inst, op))) ||
        !take_rest(t, &p, inst, op)) {
        return GS_TRACE_ERROR;
    }
    inst->math = op->form.math;
    inst->fma = op->form.fma;
    gs_trace_operands(inst, &op->form);
    if (*gs_scan_skip(p) != '\n') {
        return gs_trace_fail(t, memory ? "the address list does not match the mask: fields are left over"
                                       : "fields are left over");
    }
    t->tb.n_insts++;
    return 0;
}
