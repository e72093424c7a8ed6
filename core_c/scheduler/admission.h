/* Which kernels are in the window, and when those behind barriers start: admission.c. */
#pragma once
#include "base/mailbox.h"

/* when the window takes its next kernel, if it can take one now */
void gs_admit_plan(gs_sim *sim, u64 t);
/* how long its ranges are compared with those in the window before it is in */
u64 gs_admit_check_time(const gs_sim *sim, u32 kernel);
void gs_admit_next(gs_sim *sim, u64 t);
/* behind barriers: all predecessors have ended and the gap is over */
void gs_admit_start(gs_sim *sim, u32 kernel, u32 cause_kernel, u32 cause_tb, u64 t);
/* a kernel starts: if others run, all SMs lose what they hold of code and parameters */
void gs_admit_concurrent(gs_ctx *ctx, u32 kernel, u64 t);
/* behind barriers: a kernel has ended; those behind it follow */
void gs_admit_successors(gs_ctx *ctx, u32 kernel, u32 tb, u64 t);
/* a kernel of a table scheme has no TB left: it ends now, or with those before it */
void gs_admit_table_kernel_end(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* its place in the window is free */
void gs_admit_leave_window(gs_sim *sim, u32 kernel);
