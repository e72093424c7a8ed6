/* The oracle: an independent check that no access sees memory too early (see oracle.c). */
#pragma once
#include "base/state.h"

int gs_oracle_create(gs_sim *sim);
void gs_oracle_free(gs_sim *sim);
/* Checks what the quantum that just ended did; called by one thread. */
int gs_oracle_check(gs_sim *sim);
