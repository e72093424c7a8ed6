/* Admission: which kernels are in the window, and when kernels after barriers start. */
#pragma once
#include "base/mailbox.h"

/* Plans when the window takes its next kernel, if it can take one now. */
void gs_admit_plan(gs_sim *sim, u64 t);
/* How long a kernel's ranges are compared with those in the window before it is admitted. */
u64 gs_admit_check_time(const gs_sim *sim, u32 kernel);
void gs_admit_next(gs_sim *sim, u64 t);
/* Behind barriers: all predecessors have ended, and the gap is over. */
void gs_admit_start(gs_sim *sim, u32 kernel, u32 cause_kernel, u32 cause_tb, u64 t);
/* A kernel starts: if others run, all SMs drop their code and parameters. */
void gs_admit_concurrent(gs_ctx *ctx, u32 kernel, u64 t);
/* Behind barriers: a kernel has ended, and its successors follow. */
void gs_admit_successors(gs_ctx *ctx, u32 kernel, u32 tb, u64 t);
/* All TBs of a kernel of a table scheme have ended: the kernel ends now, or when those before it have. */
void gs_admit_table_kernel_end(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* The kernel leaves the window. */
void gs_admit_leave_window(gs_sim *sim, u32 kernel);
