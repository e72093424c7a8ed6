/* Checks programs and turns them into what the hot loop reads. */
#pragma once
#include "state.h"

typedef struct gs_lowered {
    gs_iop *ops;
    gs_ipattern *patterns;
    gs_template *templates;
    gs_part *parts;
    gs_bytes *bytes; /* of each part; for the oracle alone */
    u64 n_templates, n_parts, room_templates, room_parts, room_bytes;
} gs_lowered;

/* Addresses must lie below this. */
u64 gs_address_top(const gs_sim *sim);
/* Needs sim->params, the derived constants and checked launches; on error writes a message and returns a
 * code. */
int gs_program_lower(gs_sim *sim, const gs_job *job, gs_lowered *out);
void gs_program_drop(gs_lowered *l);

/* ---- between the files of programs ---- */
/* More room in an array that grows; 0: no memory. */
int gs_grow(void **at, u64 *room, u64 need, size_t size);
int gs_pattern_lower(gs_sim *sim, const gs_job *job, u64 index, gs_lowered *l);
/* Refuses a launch that could leave memory or its recorded accesses; its program is checked. */
int gs_reach_check(gs_sim *sim, const gs_job *job, u64 index);
