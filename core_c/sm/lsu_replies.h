/* Replies of L2: they pass the port of the SM, or that SMs share, and end what waits for them. */
#pragma once
#include "base/mailbox.h"

/* Applies the replies from L2 among a group's messages; 1: there are others. */
int gs_lsu_replies(gs_ctx *ctx, gs_sm *sms, const gs_msg *m, u32 n);
