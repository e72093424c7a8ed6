/* The oracle within a kernel, or within a stage of one, whose TBs read what other TBs of it write. Only
   semaphores order such TBs, so each TB has a vector clock. A post publishes the TB's clock; a poll that
   succeeds merges the clocks of all posts. Two accesses of a byte by two TBs are correctly ordered if both
   read it, both add to it, or the later TB's clock covers the earlier access. The unit is a byte, because
   TBs often write different parts of a sector. The bytes that a TB touches in a sector are known only for
   all its accesses of a kind together, including those after a post, so a reader must wait for all stores
   of that TB to the bytes. */
#pragma once
#include "base/types.h"

enum { GS_INTRA_KERNEL_TBS = 1024 }; /* kernels with more are not checked: clocks grow with the square */

typedef struct gs_intra_kernel gs_intra_kernel;

/* A sector that a TB accesses and other TBs of its kernel access too. touch: the caller's number of the
   access. */
typedef struct gs_intra_kernel_key {
    u64 sector;
    u32 touch, tb, phase, pad;
    u32 bytes[3]; /* that it reads, stores, adds to (GS_MSG_LOAD to GS_MSG_REDUCE) */
} gs_intra_kernel_key;

/* Sorts the keys; place i is that of keys[i]. NULL: no memory. */
gs_intra_kernel *gs_intra_kernel_create(u32 tbs, u32 semaphores, gs_intra_kernel_key *keys, u64 n);
void gs_intra_kernel_free(gs_intra_kernel *in);
/* A TB whose access this TB does not know of (GS_NONE: there is none) and the kind of that access. `stale`:
   it knows of the access, a store, and L1 serves it memory from before it. */
typedef struct gs_intra_kernel_found {
    u32 tb, kind;
    int stale;
} gs_intra_kernel_found;

/* An access at a place, of a kind as above, at a time; `seen`: L1 serves memory as of then, GS_NEVER: L2
 * does. */
gs_intra_kernel_found gs_intra_kernel_access(gs_intra_kernel *in, u32 place, u32 kind, u64 time, u64 seen);
/* 0: no memory. */
int gs_intra_kernel_post(gs_intra_kernel *in, u32 tb, u32 semaphore);
/* `count` semaphores from one on were seen complete. */
void gs_intra_kernel_poll(gs_intra_kernel *in, u32 tb, u32 semaphore, u32 count);
