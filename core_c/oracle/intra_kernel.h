/* The oracle within a kernel (a stage of one): its TBs may read what others of it write, and only semaphores
   order them. A post publishes what the TB has done, and what it knew; a poll that succeeds learns what all
   posts had published. Two accesses of a byte by two TBs are right if both read it, both add to it, or the
   later TB knows of the earlier access: a vector clock a TB. It works on bytes because TBs often write parts
   of one sector. Which bytes of a sector a TB touches is known for all its accesses of a kind together, also
   for those after a post: a reader of what it stored before then must wait for all that it stores there. */
#pragma once
#include "base/types.h"

enum { GS_INTRA_KERNEL_TBS = 1024 }; /* kernels with more are not checked: clocks grow with the square */

typedef struct gs_intra_kernel gs_intra_kernel;

/* A TB's access that others meet; `touch` is the caller's number of it. */
typedef struct gs_intra_kernel_key {
    u64 sector;
    u32 touch, tb, phase, pad;
    u32 bytes[3]; /* that it reads, stores, adds to (GS_MSG_LOAD to GS_MSG_REDUCE) */
} gs_intra_kernel_key;

/* Sorts the keys; place i is that of keys[i]. NULL: no memory. */
gs_intra_kernel *gs_intra_kernel_create(u32 tbs, u32 semaphores, gs_intra_kernel_key *keys, u64 n);
void gs_intra_kernel_free(gs_intra_kernel *in);
/* An access at a place, of a kind as above. Returns a TB whose access this TB does not know of, with its kind
   in `before`, or GS_NONE. */
u32 gs_intra_kernel_access(gs_intra_kernel *in, u32 place, u32 kind, u32 *before);
/* 0: no memory. */
int gs_intra_kernel_post(gs_intra_kernel *in, u32 tb, u32 semaphore);
/* `count` semaphores from one on were seen complete. */
void gs_intra_kernel_poll(gs_intra_kernel *in, u32 tb, u32 semaphore, u32 count);
