/* Loops of a class: the same instructions again, at addresses that move by a constant step. */
#pragma once
#include "trace/convert.h"

/* Finds loops and writes the class's items and places. */
int gs_convert_class(gs_convert *c, gs_stream *s);
