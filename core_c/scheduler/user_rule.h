/* Dispatch by a rule of the user's, in place of scheme.priority, scheme.placement and passing kernels over.
 */
#pragma once
#include "base/mailbox.h"

/* Dispatches ready TBs as long as the rule names one that has room. hint: see gs_placement_find. */
void gs_user_rule_dispatch(gs_ctx *ctx, u64 t, u32 hint);
