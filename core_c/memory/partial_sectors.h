/* Lines of L2 with sectors that stores have written in part, and of which L2 has no more. A slice keeps two
   of them for each of its sets; when a third comes, L2 reads what is missing of the one written least lately
   from DRAM, as it does when such a line is pushed out or a load asks for it (measured on an H200:
   tests/hw/memory/partial.cu). What is kept of a sector is how many of its eight words are missing, not which: a
   word that is written twice counts twice. */
#pragma once
#include "base/mailbox.h"
#include "base/time_series.h"

/* A store reaches a way whose sectors `had` are valid; `words`: how many it writes of each, 0: all. */
GS_COLD void gs_partial_store(gs_sim *sim, gs_slice *s, gs_set *set, u32 way, u32 had, u32 mask, u32 words,
                              u64 t);
/* Takes from the way the sectors that a load asks for and that are not whole: they are fetched as if L2 did
   not have them. Returns them. */
GS_COLD u32 gs_partial_load(gs_sim *sim, const gs_slice *s, gs_set *set, u32 way, u32 mask);
/* The way, which has an entry, is given to another line: what is missing of its own is read. */
GS_COLD void gs_partial_evict(gs_sim *sim, gs_slice *s, const gs_set *set, u32 way, u64 t);
/* The same for a way that has an entry, but nothing is read. */
GS_COLD void gs_partial_forget(gs_sim *sim, const gs_slice *s, const gs_set *set, u32 way);
