/* Replies of L2: they pass the port of the SM, or of SMs that share it, and wake the warps that wait for
   them. */
#pragma once
#include "base/mailbox.h"

/* Applies the replies among a group's messages; 1: there are other messages. */
int gs_lsu_replies(gs_ctx *ctx, gs_sm *sms, const gs_msg *m, u32 n);
