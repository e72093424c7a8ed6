/* The oracle inside a kernel (a stage of one): TBs of it may read what others of it write, and only
   semaphores order them. A TB that posts passes on what it has done, and what it knew; a TB that polls comes
   to know what all who have posted had passed on. Two accesses of a sector by two TBs, one a read and one a
   write, are right if the later TB knows of the earlier access: a vector clock a TB. Stores of two TBs to one
   sector may be to different bytes of it, and are not compared. */
#pragma once
#include "base.h"

enum { GS_INSIDE_TBS = 1024 }; /* kernels with more are not checked: clocks grow with the square */

typedef struct gs_inside gs_inside;

/* an access of a TB that others meet; `touch` is the caller's number of it */
typedef struct gs_inside_key {
    u64 sector;
    u32 touch, tb, phase, pad;
} gs_inside_key;

/* Sorts the keys; place i is that of keys[i]. NULL: no memory. */
gs_inside *gs_inside_create(u32 tbs, u32 semaphores, gs_inside_key *keys, u64 n);
void gs_inside_free(gs_inside *in);
/* A TB reads or writes; returns a TB whose access it does not know of, or GS_NONE. */
u32 gs_inside_access(gs_inside *in, u32 place, u32 tb, int write);
/* 0: no memory */
int gs_inside_post(gs_inside *in, u32 tb, u32 semaphore);
/* `count` semaphores from one on were seen complete */
void gs_inside_poll(gs_inside *in, u32 tb, u32 semaphore, u32 count);
