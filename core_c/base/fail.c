/* How a simulation fails: see fail.h. */
#include "base/fail.h"

#include <stdarg.h>
#include <stdio.h>

int gs_fail(gs_sim *sim, int code, const char *format, ...)
{
    /* threads may fail at once: the first sets code and message */
    int none = GS_OK;
    if (__atomic_compare_exchange_n(&sim->error_code, &none, code, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        va_list args;
        va_start(args, format);
        vsnprintf(sim->error, sizeof sim->error, format, args);
        va_end(args);
    }
    return code;
}

const char *gs_error(const gs_sim *sim)
{
    return sim->error;
}
