"""What each stretch of the measured kernels' SASS executes, from cuobjdump of the measured program.

It was built with CUDA 13.0, ``nvcc -O3 -arch=sm_90a``. A run of instructions is ``(stall, wavefronts, {pipe:
instructions})``, see ``code``; in order, ``ld1 a 512`` is a load of slot 1 through pointer
``a`` at 512 bytes, ``wait1`` is where the SASS first uses what slot 1 loads, ``st`` a store, ``bar`` a
BAR.SYNC. Loads whose first use is the same instruction share a slot, and neighbours do where slots run
out. A fourth figure of a run means that the next instruction waits for shared memory except for that
many latest wavefronts; for ``void`` (LDS RZ that no lane executes) nothing waits. Stretches are named by
what the source does there; loops repeat a stretch.
"""

from __future__ import annotations

Run = tuple[int, int, dict[str, int]] | tuple[int, int, dict[str, int], int]
Block = tuple[Run | str, ...]
