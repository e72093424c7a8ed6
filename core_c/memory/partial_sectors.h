/* Partially written sectors of L2: stores have written some of their words, and L2 has no others. A slice
   keeps two such lines for each of its sets. A third makes L2 read the missing words of the one that was
   written longest ago from DRAM, as an eviction of such a line or a load does (measured on an H200:
   tests/hw/memory/partial.cu). An entry counts how many of a sector's eight words are missing, not which: a
   word that is written twice counts twice. */
#pragma once
#include "base/mailbox.h"
#include "base/time_series.h"

/* A store reaches a way whose sectors `had` are valid; `words`: how many it writes of each, 0: all. */
GS_COLD void gs_partial_store(gs_sim *sim, gs_slice *s, gs_set *set, u32 way, u32 had, u32 mask, u32 words,
                              u64 t);
/* A load asks for sectors: those that are not whole are dropped from the way, and returned. They are fetched
   as if L2 did not have them. */
GS_COLD u32 gs_partial_load(gs_sim *sim, const gs_slice *s, gs_set *set, u32 way, u32 mask);
/* The line of a way with an entry is evicted: its missing words are read. */
GS_COLD void gs_partial_evict(gs_sim *sim, gs_slice *s, const gs_set *set, u32 way, u64 t);
/* The same, but nothing is read. */
GS_COLD void gs_partial_forget(gs_sim *sim, const gs_slice *s, const gs_set *set, u32 way);
