/* Loops of a class: convert_loop.c. */
#pragma once
#include "trace/convert.h"

/* Finds loops and writes the class's items and places. */
int gs_convert_class(gs_convert *c, gs_stream *s);
