/* The header of a trace: which fields there are, and what each may be. */
#pragma once
#include "trace/trace.h"

/* A header line, which begins with a minus; and the first line after the header. 0 or GS_TRACE_ERROR. */
int gs_trace_header_line(gs_trace *t, const char *line);
int gs_trace_header_end(gs_trace *t);
