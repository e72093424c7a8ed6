/* How much work of a pipe an instruction is, on one GPU. */
#pragma once
#include "trace/code.h"

/* Instructions of the tensor pipe, as `gpu.sm.tensor_interval` counts them, that this one is; 64ths. */
u64 gs_lower_tensor_work(const gs_lowering *l, const gs_sass *s);
/* The functional unit of `s` that the GPU lacks; NULL: none. */
const char *gs_lower_lacks(const gs_lower_in *in, const gs_sass *s);
