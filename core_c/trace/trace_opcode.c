/* SASS mnemonics: see trace_opcode.h. */
#include "trace/trace_opcode.h"

#include "trace/trace.h"
#include "trace/trace_form.h"
#include <string.h>

/* The row of that name for an SM version; -1: none, -2: the name exists for other versions only. */
static i32 find(gs_span name, u32 sm)
{
    u32 low = 0, high = GS_OPCODES;
    while (low < high) {
        u32 middle = low + (high - low) / 2;
        const char *at = GS_OPCODE[middle].name;
        u32 length = (u32)strlen(at);
        int order = memcmp(at, name.at, gs_min(length, name.length));
        if (order < 0 || (order == 0 && length < name.length)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    i32 result = -1;
    for (u32 i = low; i < GS_OPCODES && gs_part_is(name, GS_OPCODE[i].name); i++) {
        if (GS_OPCODE[i].first <= sm && sm <= GS_OPCODE[i].last) {
            return (i32)i;
        }
        result = -2;
    }
    return result;
}

/* Bits that a suffix such as 128, U8 or F32 names; 0: none. */
static u32 bits_of(gs_span part)
{
    u32 at = part.length > 1 && strchr("USFB", part.at[0]) ? 1 : 0, bits = 0;
    if (part.length - at > 3) {
        return 0;
    }
    for (; at < part.length; at++) {
        u32 digit = (u32)(u8)part.at[at] - '0';
        if (digit > 9) {
            return 0;
        }
        bits = bits * 10 + digit;
    }
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128 ? bits : 0;
}

static void read_parts(gs_mnemonic *out, const char *p, const char *end)
{
    const gs_opcode *row = &GS_OPCODE[out->opcode];
    bool matrices = strcmp(row->name, "LDSM") == 0 || strcmp(row->name, "STSM") == 0;
    bool barrier = row->kind == GS_KIND_MBARRIER || row->kind == GS_KIND_MBARRIER_ARRIVE ||
                   row->kind == GS_KIND_MBARRIER_WAIT;
    u32 width = 0, count = 1;
    bool strong = false;
    gs_next_part(&p, end);
    while (p < end) {
        gs_span part = gs_next_part(&p, end);
        u32 bits = bits_of(part);
        if (bits && !width) {
            width = bits / 8;
        }
        if (part.length == 1 && (part.at[0] == '2' || part.at[0] == '4')) {
            count = (u32)part.at[0] - '0';
        }
        if ((strong && (gs_part_is(part, "GPU") || gs_part_is(part, "SYS"))) || gs_part_is(part, "CV") ||
            gs_part_is(part, "CG") || (row->kind == GS_KIND_ASYNC_COPY && gs_part_is(part, "BYPASS"))) {
            out->variant |= GS_VARIANT_STRONG;
        }
        if (row->kind == GS_KIND_BARRIER && gs_part_is(part, "ARV")) {
            out->variant |= GS_VARIANT_ARRIVE;
        }
        if (gs_part_is(part, "IVALL")) {
            out->variant |= GS_VARIANT_IVALL;
        }
        strong = gs_part_is(part, "STRONG");
    }
    if (matrices) {
        width = 4 * count; /* a register for each matrix: .16 is the size of an element */
    }
    out->width = (u8)(width ? width : barrier ? 8 : 4);
    if (row->pipe == GS_PIPE_FP16) {
        out->variant |= GS_VARIANT_HALF;
    }
}

static bool decode(gs_trace *t, const char *p, const char *end, gs_mnemonic *out)
{
    const char *at = p;
    gs_span stem = gs_next_part(&at, end);
    i32 row = -1;
    if (at < end) {
        gs_span part = gs_next_part(&at, end);
        row = find((gs_span){p, (u32)(part.at - p) + part.length}, t->header.binary);
    }
    if (row < 0) {
        row = find(stem, t->header.binary);
    }
    if (row < 0 && t->unknown >= 0) {
        row = t->unknown;
        stem.length = 0;
    }
    if (row < 0) {
        int shown = (int)gs_min((u64)(end - p), 60);
        if (row == -2) {
            gs_trace_fail(t, "opcode %.*s is not one of sm_%u", shown, p, t->header.binary);
        } else {
            gs_trace_fail(t, "unknown opcode %.*s", shown, p);
        }
        return false;
    }
    *out = (gs_mnemonic){.opcode = (u16)row};
    out->kind = GS_OPCODE[row].kind;
    out->space = GS_OPCODE[row].space;
    if (stem.length) { /* the suffixes of an unknown mnemonic are unknown, too */
        read_parts(out, p, end);
        gs_trace_form(&out->form, &GS_OPCODE[row], p, end);
    }
    for (at = p; end - at >= 4; at++) {
        out->gmma |= memcmp(at, "GMMA", 4) == 0;
    }
    out->bulk = out->kind >= GS_KIND_BULK_LOAD && out->kind <= GS_KIND_BULK_PREFETCH;
    return true;
}

const gs_mnemonic *gs_trace_mnemonic(gs_trace *t, const char *p, const char **next, gs_mnemonic *spare)
{
    u32 hash = 2166136261u;
    p = gs_scan_skip(p);
    const char *start = p;
    for (; !gs_scan_ends(*p); p++) {
        hash = (hash ^ (u8)*p) * 16777619u;
    }
    *next = p;
    u64 length = (u64)(p - start);
    if ((u32)(u8)*start - 'A' >= 26) {
        gs_trace_bad(t, start, "opcode");
        return NULL;
    }
    gs_mnemonic *slot = spare;
    if (length <= GS_MNEMONIC_LENGTH) {
        u32 i = (hash ^ hash >> 15) & (GS_MNEMONICS - 1);
        for (; t->mnemonic[i].length; i = (i + 1) & (GS_MNEMONICS - 1)) {
            if (t->mnemonic[i].length == length && memcmp(t->mnemonic[i].text, start, length) == 0) {
                return &t->mnemonic[i];
            }
        }
        /* a quarter stays free, so that the search above ends soon */
        if (t->mnemonics < GS_MNEMONICS / 4 * 3) {
            slot = &t->mnemonic[i];
        }
    }
    for (const char *at = start; at < p; at++) {
        bool letter = ((u32)(u8)*at | 32u) - 'a' < 26 || (u32)(u8)*at - '0' < 10;
        if (!letter && *at != '.' && *at != '_') {
            gs_trace_bad(t, start, "opcode");
            return NULL;
        }
    }
    gs_mnemonic decoded;
    if (!decode(t, start, p, &decoded)) {
        return NULL;
    }
    *slot = decoded;
    if (slot != spare) {
        memcpy(slot->text, start, length);
        slot->length = (u8)length;
        t->mnemonics++;
    }
    return slot;
}
