/* Instruction lines of a trace. */
#pragma once
#include "trace/trace.h"

/* Appends the instruction of one line, which ends in a newline; 0 or GS_TRACE_ERROR. */
int gs_trace_inst_line(gs_trace *t, const char *p);
