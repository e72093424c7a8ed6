/* Where the local memory of a kernel's threads lies. */
#pragma once
#include "trace/convert.h"

/* A new kernel: its local memory begins behind that of the one before, in pages of its own. */
void gs_local_begin(gs_convert *c);
/* Before a TB's instructions are taken: learns from the kernel's first TB with local memory how that is used.
   GS_OK or GS_ERR_MEM. */
int gs_local_measure(gs_convert *c, const gs_trace_tb *tb);
/* Moves the addresses of an access of `width` bytes by a warp of TB `tb`, one for each set bit of `mask`. */
void gs_local_place(gs_convert *c, u64 tb, u32 warp, u32 mask, u32 width, u64 *a);
