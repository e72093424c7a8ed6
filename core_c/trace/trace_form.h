/* What the suffixes of a mnemonic say about its operands and its work. */
#pragma once
#include "trace/trace.h"

/* A part of a mnemonic, between dots. */
typedef struct gs_span {
    const char *at;
    u32 length;
} gs_span;

/* Cuts the part at *p off; *p is what follows its dot, or `end`. */
gs_span gs_next_part(const char **p, const char *end);
int gs_part_is(gs_span part, const char *word);

/* Fills `form` for the mnemonic from p to before `end`, which is of `row` in OPCODES. */
void gs_trace_form(gs_form *form, const gs_opcode *row, const char *p, const char *end);
/* The number of registers of each operand of an instruction; its immediate is known. */
void gs_trace_operands(gs_trace_inst *inst, const gs_form *form);
