/* Admission: which kernels are in the window, and when kernels ordered by barriers start. Times are in
   ticks. */
#pragma once
#include "base/mailbox.h"

/* Plans when the window takes its next kernel, if it can take one now. */
void gs_admit_plan(gs_sim *sim, u64 t);
/* How long the comparison of a kernel's address ranges with those in the window delays its admission,
   ticks. */
u64 gs_admit_check_time(const gs_sim *sim, u32 kernel);
void gs_admit_next(gs_sim *sim, u64 t);
/* Without a table: all predecessors of the kernel have ended, and the launch gap is over; the kernel
   starts. */
void gs_admit_kernel_start(gs_sim *sim, u32 kernel, u32 cause_kernel, u32 cause_tb, u64 t);
/* A kernel starts while others run: all SMs drop their code and parameters. */
void gs_admit_concurrent(gs_ctx *ctx, u32 kernel, u64 t);
/* Without a table: a kernel has ended; plans the start of successors that wait for no other kernel. */
void gs_admit_successors(gs_ctx *ctx, u32 kernel, u32 tb, u64 t);
/* All TBs of a kernel of a table scheme have ended: the kernel ends now, or when those before it have. */
void gs_admit_table_kernel_end(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* The kernel leaves the window. */
void gs_admit_leave_window(gs_sim *sim, u32 kernel);
