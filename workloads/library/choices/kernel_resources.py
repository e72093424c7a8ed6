"""Registers and shared memory of cuBLAS's kernels for Turing and Ampere, as launched in the sweep on an H200.

The most that any layout of A and B takes. Kernels for Hopper have 168 registers; what their TBs take of
shared memory leaves room for one on an SM in any case.
"""

from __future__ import annotations

import re

from pysim.errors import WorkloadError

# family: tile and stages, registers a thread, bytes a TB
TABLE = """
75_tensorop_half 128x128:254:32768 128x256:226:49152 128x64:168:24576 256x128:229:49152 64x64:96:16384
75_wmma_half 32x32_128x1:128:18944 32x32_128x2:94:37376 32x32_64x1:128:9728
80_simt_single 128x256_8x4:202:49152 128x32_8x5:80:25600 128x64_8x5:120:30720 256x128_8x4:202:49152
80_simt_single 32x128_8x5:92:25600 64x64_8x5:76:20480
80_tensorop_half 128x128_64x3:240:98304 128x256_32x3:222:73728 128x256_64x3:232:147456
80_tensorop_half 256x128_32x3:222:73728 256x128_64x3:230:147456 64x64_64x6:102:98304
80_tensorop_single 128x128_32x3:230:98304 128x256_32x3:230:147456 128x64_16x6:136:73728
80_tensorop_single 128x64_32x3:168:73728 128x64_32x6:168:147456 256x128_32x3:230:147456
80_tensorop_single 256x64_16x4:215:81920 256x64_32x3:236:122880 64x128_32x3:168:73728 64x128_32x6:168:147456
80_tensorop_single 64x256_32x4:234:163840 64x64_16x6:88:49152 64x64_32x4:168:65536 64x64_32x5:168:81920
80_tensorop_single 64x64_32x6:92:98304
80_wmma_half 32x32_128x2:94:37376 32x32_64x1:72:9728 32x32_64x2:80:17408
xmma_f32 128x128x8_3:255:33792 128x256x8_3:254:66560 128x64x8_3:224:19200 256x128x8_3:254:67584
xmma_f32 256x64x8_3:255:31488 32x128x8_3:255:16896 32x32x8_3:80:6912 32x64x8_3:102:9984 64x128x8_3:220:19200
xmma_f32 64x256x8_3:255:33280 64x32x8_3:121:9600 64x64x8_3:128:13056
xmma_tf32 32x32x64_3:80:49152
"""
HOPPER = 168, 0
# kernels for vectors and few columns, by the beginning of their names: registers a thread, bytes a TB
OTHER = 128, 1024  # of names that say no more, an estimate
VECTOR = {
    "gemmSN_TN_kernel<float, 128, 16, 2, 4, 2": (75, 3072),
    "gemmSN_TN_kernel<float, 128, 16, 2, 4, 4": (96, 6144),
    "gemmSN_TN_kernel<float, 128, 16, 2, 4, 8": (96, 13824),
    "gemmSN_NN_kernel<float, 256, 4, 2, 8, 2": (56, 6144),
    "gemmSN_NN_kernel<float, 256, 4, 2, 8, 4": (64, 12288),
    "sgemm_largek_lds64": (40, 4868),
    "gemv2T": (65, 2560),
    "gemvNSP": (32, 3072),
    "dot": (28, 512),
    "gemvx": (128, 0),  # 160 where a TB has 256 threads or fewer
}
_XMMA = re.compile(r"sm80_xmma_gemm_f32f32_(tf32|f32)f32_f32_.._n_tilesize(\w+?)_stage(\d)")
_CUTLASS = re.compile(
    r"cutlass_(75|80)_(simt|wmma|tensorop)\w*?_(?:b?f16_)?s?(?:sgemm|\d*gemm)(?:_b?f16)?_(\d+x\d+(?:_\d+x\d+)?)_"
)


def resources(name: str, item: int) -> tuple[int, int]:
    """Return registers a thread and bytes of shared memory a TB (0: not known) of a kernel.

    ``item``: bytes of an element. Raises WorkloadError for a tile that the sweep does not have.
    """
    if name.startswith(("nvjet", "sm90")):
        return HOPPER
    if found := _XMMA.match(name):
        family, tile = f"xmma_{found[1]}", f"{found[2]}_{found[3]}"
    elif found := _CUTLASS.match(name):
        family, tile = f"{found[1]}_{found[2]}_{'half' if item == 2 else 'single'}", found[3]
    else:
        return next((known for start, known in VECTOR.items() if name.startswith(start)), OTHER)
    for line in TABLE.split("\n"):
        if line.startswith(f"{family} "):
            for entry in line.split(" ")[1:]:
                size, registers, smem = entry.split(":")
                if size == tile:
                    return int(registers), int(smem)
    raise WorkloadError(f"library GEMM: registers and shared memory of kernel {name[:60]} are not known")
