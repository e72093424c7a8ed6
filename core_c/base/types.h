/* Fixed-width types and small helpers that every unit uses. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef uint64_t u64;
typedef int64_t i64;
typedef uint32_t u32;
typedef int32_t i32;
typedef uint16_t u16;
typedef uint8_t u8;

#define GS_NONE        0xffffffffu
#define GS_NEVER       UINT64_MAX
#define GS_LIKELY(x)   __builtin_expect(!!(x), 1)
#define GS_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* for functions whose callers pass constants, so that the compiler makes a version for each */
#define GS_ALWAYS_INLINE inline __attribute__((always_inline))
/* for functions that are seldom called, to keep them out of the hot loop */
#define GS_COLD __attribute__((cold, noinline))

static inline u64 gs_max(u64 a, u64 b)
{
    return a > b ? a : b;
}

static inline u64 gs_min(u64 a, u64 b)
{
    return a < b ? a : b;
}

static inline u32 gs_max32(u32 a, u32 b)
{
    return a > b ? a : b;
}

static inline u32 gs_min32(u32 a, u32 b)
{
    return a < b ? a : b;
}

static inline u32 gs_ctz(u64 x)
{
    return (u32)__builtin_ctzll(x);
}

static inline u32 gs_popcount(u32 x)
{
    return (u32)__builtin_popcount(x);
}

static inline u32 gs_popcount64(u64 x)
{
    return (u32)__builtin_popcountll(x);
}

/* x / d by a stored reciprocal, exact for all 64-bit x. A hardware division would cost 20 to 40 cycles a
   message. */
typedef struct gs_div {
    u64 d, inv;
} gs_div;

static inline gs_div gs_div_make(u64 d)
{
    return (gs_div){d, d > 1 ? UINT64_MAX / d : UINT64_MAX};
}

static inline u64 gs_div_by(u64 x, gs_div r)
{
    u64 q = (u64)((unsigned __int128)x * r.inv >> 64);
    u64 rest = x - q * r.d;
    return q + (rest >= r.d);
}

static inline u64 gs_mix(u64 h, u64 x)
{
    return (h ^ x) * 0x9E3779B97F4A7C15ull;
}
