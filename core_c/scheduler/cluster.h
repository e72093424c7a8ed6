/* Clusters: TBs of a kernel that start together on different SMs of one GPC. */
#pragma once
#include "base/mailbox.h"

/* Dispatches the kernel's next cluster at time t, if some GPC has room. 1: it has. */
int gs_cluster_dispatch(gs_ctx *ctx, u32 kernel, u64 t);
