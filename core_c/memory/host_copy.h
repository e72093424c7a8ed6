/* Copies from the host. A copy is a launch of one TB that runs on no SM. The scheduler starts it when what it
   waits for has ended, sends its sectors to the L2 slices piece by piece as the link delivers them, and
   counts its TB as ended with the last piece. So order, dependences and the oracle treat it as any launch. A
   copy that takes no time is one piece. */
#pragma once
#include "base/mailbox.h"

typedef void (*gs_host_copy_visit)(void *user, u64 line, u32 mask);

/* The number of pieces of a copy. */
u32 gs_host_copy_pieces(const gs_sim *sim, const gs_launch *l);
/* Calls `visit` for the lines of a piece as the slices see them, and for the lines of a whole copy. */
void gs_host_copy_lines(const gs_sim *sim, u32 kernel, u32 piece, gs_host_copy_visit visit, void *user);
void gs_host_copy_all_lines(const gs_sim *sim, u32 kernel, gs_host_copy_visit visit, void *user);

/* Payload of a piece: piece 32 bits, kernel 19. */
static inline u64 gs_pay_host_copy(u32 kernel, u32 piece)
{
    return (u64)piece | (u64)GS_MSG_HOST_COPY << 42 | (u64)kernel << 45;
}

#define GS_HOST_COPY_PIECE(p)  ((u32)(p))
#define GS_HOST_COPY_KERNEL(p) ((u32)((p) >> 45))
