/* Prologues: TBs of a table scheme that are dispatched before their conditions are met. They run the part
   of their program that depends on no other TB, then wait inside the program and keep their slot. Only the
   oldest kernel with TBs left to dispatch may have them. All TBs that they can wait for have then been
   dispatched, and TBs of the oldest unfinished kernel wait for none, so there is no deadlock. They get only
   slots that no ready TB can use. */
#pragma once
#include "base/mailbox.h"

/* The kernel whose TBs may be dispatched to their prologue, given the oldest with TBs left; or GS_NONE. */
u32 gs_prologue_kernel(gs_sim *sim, u32 oldest);
/* Removes the kernel's next TB and returns it; `place`: its index among the residents. */
u32 gs_prologue_next_tb(gs_sim *sim, u32 kernel, u32 place);
/* A TB is dispatched whose conditions are met. */
void gs_prologue_skip(gs_sim *sim, u32 kernel, u32 tb);
/* A TB's own conditions are met; 1: it is in its prologue already. */
int gs_prologue_tb_met(gs_sim *sim, u32 kernel, u32 tb, u64 t);
/* The conditions of a kernel as a whole are met. */
void gs_prologue_kernel_met(gs_sim *sim, u32 kernel, u64 t);
/* Informs the SMs of TBs whose prologue ends. */
void gs_prologue_send(gs_ctx *ctx);
