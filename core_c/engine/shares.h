/* Which thread runs which boxes (groups of slices, groups of SMs) in a quantum. Each thread has a share; a
   thread that has finished its share steals boxes from others. No simulated result depends on it. */
#pragma once
#include "base/mailbox.h"
#include "engine/team.h"

enum { GS_SHARE_SLICES, GS_SHARE_SMS };
#define GS_NO_BOX 0xffffffffu

/* Gives all threads equal numbers of boxes. */
void gs_shares_split(gs_sim *sim, u32 threads);
/* Prepares a thread's share for a quantum; no thread may be stealing from it. */
void gs_shares_lay_out(gs_team *t, u32 kind, u32 thread);
/* Moves boxes between neighbours' shares. Called between quanta. */
void gs_shares_adapt(gs_team *t);
/* The next box that a thread runs: the first left of its own share, else the last of another share, which its
   owner comes to last. GS_NO_BOX: none is left. */
u32 gs_steal_work(gs_team *t, gs_ctx *ctx, u32 kind);
