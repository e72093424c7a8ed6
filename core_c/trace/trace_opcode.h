/* SASS mnemonics: the row of the table, the width, and what the suffixes say. */
#pragma once
#include "trace/trace.h"

/* The mnemonic at p, decoded; NULL: an error was written. *next: what follows it. */
const gs_mnemonic *gs_trace_mnemonic(gs_trace *t, const char *p, const char **next, gs_mnemonic *spare);
