/* Messages between parts, and the boxes that they wait in: see mailbox.h. */
#pragma once
#include "base/sizes.h"
#include "base/types.h"

/* A message of 16 bytes: key = time << 20 | sender << 8 | late, modulo 2^64. Those that a part takes have the
   time from the beginning of its quantum on, so simulated time may need more bits than a key has. `late` is
   greater the later a message was sent, counted in quanta; 0: it was sent before its box was known. So a
   sender's order is kept whichever host threads run it in different quanta; within a quantum its thread's box
   keeps it. */
typedef struct gs_msg {
    u64 key, pay;
} gs_msg;

_Static_assert(GS_RING < 1 << GS_LATE_BITS, "late counts quanta of mailboxes");

static inline u32 gs_key_sender(u64 key)
{
    return (u32)(key >> GS_LATE_BITS) & ((1u << GS_SENDER_BITS) - 1);
}

typedef struct gs_chunk {
    u32 next, n; /* n: not set in a box's last chunk */
    u64 pad;
    gs_msg m[GS_CHUNK];
} gs_chunk;

_Static_assert(sizeof(gs_chunk) == sizeof(gs_msg) * (GS_CHUNK + 1), "a chunk's head takes a message's place");

/* `at`: where the next message goes, counted in messages from the first chunk on. A multiple of GS_CHUNK + 1:
   the last chunk is full, or there is none. The last chunk's count follows from `at`, so a sender writes to
   the chunk without reading it. */
typedef struct gs_box {
    u32 head, at;
} gs_box;

typedef struct gs_far_msg {
    gs_msg m;
    u64 time;
    u32 box, pad;
} gs_far_msg;
