/* The state of the trace reader, its scanners, and how it fails. */
#pragma once
#include "base/types.h"
#include "gen/gs_opcodes.h"
#include "gs_trace.h"
#include <stdbool.h>

#define GS_TRACE_LINE      65536u         /* longest line in bytes */
#define GS_TRACE_WINDOW    ((u64)1 << 24) /* bytes of shared or local memory in the generic space */
#define GS_TRACE_WARPS     32u            /* of a TB: 1024 threads */
#define GS_MNEMONICS       512u           /* slots of the table of decoded mnemonics, a power of two */
#define GS_MNEMONIC_LENGTH 55u            /* longer ones are decoded each time */

/* What a mnemonic says about its operands, in registers (0: one), and about its work. */
typedef struct gs_form {
    u8 d, a, b, c; /* result, and the first three sources */
    u8 math;
    u32 fma;
} gs_form;

/* A mnemonic with its suffixes, decoded. */
typedef struct gs_mnemonic {
    char text[GS_MNEMONIC_LENGTH];
    u8 length; /* 0: free slot */
    u16 opcode, variant;
    u8 width, kind, space;
    gs_form form;
    bool gmma, bulk; /* has the extra fields of version 6 */
} gs_mnemonic;

struct gs_trace {
    gs_trace_header header;
    u32 given; /* header fields seen, a bit each */
    i32 unknown;
    u64 room; /* bytes that a TB may take */
    u64 line; /* lines begun */
    u32 state;
    u64 tbs, tbs_done;
    /* The current TB. */
    gs_trace_tb tb;
    gs_trace_warp warp[GS_TRACE_WARPS];
    u32 named;         /* lines that name its position, a bit each */
    u64 named_line;    /* the line of its thread block line */
    u32 current, left; /* warp, and lines of instructions still to come */
    u32 lines;         /* of the warp */
    u64 joined;        /* the last instruction that was made of two lines, + 1; 0: none in this TB */
    u32 warps_seen;    /* a bit each */
    u64 insts_room, addresses_room, seen_words;
    gs_trace_inst *insts;
    u64 *addresses;
    u64 *seen; /* clusters: TBs come in any order, a bit each; else NULL */
    bool delivered;
    char *partial; /* the line whose end has not come yet */
    u32 partial_bytes;
    u32 mnemonics;
    gs_mnemonic mnemonic[GS_MNEMONICS];
    char error[320];
};

/* Writes `line N: ` and the message unless an error is there already; always GS_TRACE_ERROR. */
__attribute__((format(printf, 2, 3))) int gs_trace_fail(gs_trace *t, const char *format, ...);
/* The same for the field that should begin at p. */
int gs_trace_bad(gs_trace *t, const char *p, const char *what);
/* Makes room for so many more instructions and addresses; 0 or GS_TRACE_ERROR. */
int gs_trace_reserve(gs_trace *t, u64 insts, u64 addresses);

/* Every line that the scanners see ends in a newline, and no field contains one: they need no other end. */
/* Control characters count as blanks. */
static inline bool gs_scan_ends(char c)
{
    return (u8)c <= ' ';
}

static inline bool gs_scan_blank(char c)
{
    return gs_scan_ends(c) && c != '\n';
}

static inline const char *gs_scan_skip(const char *p)
{
    while (gs_scan_blank(*p)) {
        p++;
    }
    return p;
}

/* A hexadecimal digit's value + 1; 0: none. */
static const u8 gs_hex_digit[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/* Each returns what follows the number, which must end there; NULL: no such number, or it does not fit. */
static inline const char *gs_scan_dec_open(const char *p, u64 *out)
{
    u64 value = 0;
    p = gs_scan_skip(p);
    const char *start = p;
    for (u32 digit = (u32)(u8)*p - '0'; digit < 10; digit = (u32)(u8) * ++p - '0') {
        if (GS_UNLIKELY(value > (UINT64_MAX - digit) / 10)) {
            return NULL;
        }
        value = value * 10 + digit;
    }
    *out = value;
    return p == start ? NULL : p;
}

static inline const char *gs_scan_dec(const char *p, u64 *out)
{
    p = gs_scan_skip(p);
    u32 digit = (u32)(u8)*p - '0';
    if (digit < 10 && gs_scan_ends(p[1])) { /* most numbers are counts */
        *out = digit;
        return p + 1;
    }
    p = gs_scan_dec_open(p, out);
    return p && gs_scan_ends(*p) ? p : NULL;
}

static inline const char *gs_scan_hex(const char *p, u64 *out)
{
    u64 value = 0;
    p = gs_scan_skip(p);
    if (p[0] == '0' && (p[1] | 32) == 'x') {
        p += 2;
    }
    const char *start = p;
    u32 digit;
    while ((digit = gs_hex_digit[(u8)*p]) != 0) {
        if (GS_UNLIKELY(value >> 60)) {
            return NULL;
        }
        value = value << 4 | (digit - 1);
        p++;
    }
    *out = value;
    return p != start && gs_scan_ends(*p) ? p : NULL;
}

/* As a 64-bit pattern: -9223372036854775808 to 18446744073709551615. */
static inline const char *gs_scan_signed(const char *p, u64 *out, bool *negative)
{
    p = gs_scan_skip(p);
    *negative = *p == '-';
    if (*negative && (u32)(u8)p[1] - '0' >= 10) {
        return NULL;
    }
    p = gs_scan_dec(p + *negative, out);
    if (!p || (*negative && *out > (u64)1 << 63)) {
        return NULL;
    }
    if (*negative) {
        *out = 0 - *out;
    }
    return p;
}

static inline const char *gs_scan_u32(const char *p, u32 most, u32 *out)
{
    u64 value = 0;
    p = gs_scan_dec(p, &value);
    *out = (u32)value;
    return p && value <= most ? p : NULL;
}

/* x,y,z: returns what follows, which need not be the end. */
static inline const char *gs_scan_triple(const char *p, u32 out[3])
{
    for (u32 i = 0; i < 3; i++) {
        u64 value = 0;
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

/* Returns what follows the word at p; NULL: it is another. Not strncmp, which may read past the newline. */
static inline const char *gs_scan_word(const char *p, const char *word)
{
    for (; *word; word++, p++) {
        if (*p != *word) {
            return NULL;
        }
    }
    return p;
}

/* Returns what follows `key =`; NULL: the line has another key. */
static inline const char *gs_scan_value(const char *line, const char *key)
{
    line = gs_scan_word(line, key);
    line = line ? gs_scan_skip(line) : NULL;
    return line && *line == '=' ? gs_scan_skip(line + 1) : NULL;
}

static inline bool gs_scan_at_end(const char *p)
{
    return *gs_scan_skip(p) == '\n';
}
