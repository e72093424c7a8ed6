/* Tables of the converter: growing arrays, hashes, templates of recorded accesses, pages. */
#pragma once
#include "trace/convert.h"

/* Room for `more` elements after the last; NULL: not enough memory. Does not change n. */
void *gs_vector_room(gs_vector *v, u64 more, size_t size);
u64 gs_hash_bytes(const void *p, u64 n);
/* The first slot that may hold this hash; gs_index_next gives the others, until GS_NOWHERE. */
u32 gs_index_find(const gs_index *x, u64 hash, u64 *at);
u32 gs_index_next(const gs_index *x, u64 hash, u64 *at);
int gs_index_add(gs_index *x, u64 hash, u32 number);
/* One number for each hash: replaces the one before, which is returned (GS_NOWHERE: none). */
u32 gs_index_set(gs_index *x, u64 hash, u32 number);
void gs_index_clear(gs_index *x);
/* The lines of an access, and their template; `from` are `lanes` addresses of `width` bytes. */
int gs_record_access(gs_convert *c, const u64 *from, u32 lanes, u32 width, gs_record *out);
/* The number of the template with these parts. */
int gs_template_intern(gs_convert *c, const gs_part *parts, u32 n, u64 *number);
/* Memory from lo to hi belongs together: its pages stay adjacent. */
int gs_pages_claim(gs_convert *c, u64 lo, u64 hi);
