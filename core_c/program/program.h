/* Lowering of programs: ops are checked and become what the hot loop reads. */
#pragma once
#include "base/state.h"

typedef struct gs_lowered {
    gs_iop *ops;
    gs_ipattern *patterns;
    gs_template *templates;
    gs_part *parts;
    gs_bytes *bytes; /* of each part; NULL without the oracle */
    u64 n_templates, n_parts, room_templates, room_parts, room_bytes;
} gs_lowered;

/* Needs sim->params, the derived constants and checked launches. On error it writes a message and returns a
   code. */
int gs_program_lower(gs_sim *sim, const gs_job *job, gs_lowered *out);
void gs_program_drop(gs_lowered *l);
