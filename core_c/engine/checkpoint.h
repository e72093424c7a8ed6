/* A checkpoint: the state between two calls of gs_run, when every part is at the end of the same quantum and
   all messages are in mailboxes of the arena. It is the arena's pages that are not zero. Tables of the caller
   and the oracle are outside the arena: the caller has the former again when he restores, and a simulation
   with an oracle has no checkpoint. */
#pragma once
#include "base/state.h"

enum { GS_PAGE = 4096 };

/* The head of a run of pages that are not zero; the pages follow it. */
typedef struct gs_page_run {
    u64 first, pages;
} gs_page_run;
