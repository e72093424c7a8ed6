/* Generated from the tables in pysim/ by build.py. Do not edit. */
#pragma once

/* what the core was built from; pysim/_ffi.py compares it with the tables it imports */
#define GS_TABLES_HASH 0xb86c3109f7e807f7ULL
