/* Generated from the tables in pysim/ by build.py. Do not edit. */
#pragma once

/* what the core was built from; pysim/_ffi.py compares it with the tables it imports */
#define GS_TABLES_HASH 0xd4a2cb66ae62cfb6ULL
