"""Concatenation of channels, and the copy of some channels out of a concatenation.

PyTorch's ``CatArrayBatchedCopy`` copies up to 128 tensors in a launch, element by element; a gradient of a
concatenation is a view that the next kernel copies first (``contiguous``). Neither was measured for images:
bytes are those of the copies, counts of instructions those of ``library.memory.cat_copy``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.library_kernels import stand_in
from pysim.program.warp_program import Code, Op
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.memory.cat_copy import BEGIN, ELEMENT
from pysim.workloads.library.memory.pointwise_parts import line, paired

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

THREADS, EACH, REGISTERS = 512, 4, 32
CHUNK = THREADS * EACH  # elements of a TB
MOST = 7  # tensors, one argument each


def cat_channels(parts: Sequence[Tensor], whole: Tensor, count: int) -> Kernel:
    """Return the copy of the channels of ``parts`` into those of ``whole``, of ``count`` images.

    Raises WorkloadError for more than seven parts, and for parts that do not fill the whole.
    """
    if (
        len(parts) > MOST
        or sum(p.rows for p in parts) != whole.rows
        or any(p.cols != whole.cols for p in parts)
    ):
        raise WorkloadError(
            f"cat: {len(parts)} tensors into {whole.rows} planes: at most {MOST}, that fill it"
        )
    firsts = np.cumsum([0, *(p.rows * p.cols // count for p in parts)]).tolist()[:-1]
    return _copies("cat", parts, firsts, whole, count, gather=True, library=stand_in("CatArrayBatchedCopy"))


def take_channels(whole: Tensor, first: int, part: Tensor, count: int) -> Kernel:
    """Return the copy of the channels of ``whole`` from ``first`` on into ``part``, of ``count`` images."""
    library = stand_in("elementwise_kernel (contiguous copy)")
    return _copies("take", [part], [first * part.cols], whole, count, gather=False, library=library)


def _copies(
    name: str,
    parts: Sequence[Tensor],
    firsts: Sequence[int],
    whole: Tensor,
    count: int,
    *,
    gather: bool,
    library: str,
) -> Kernel:
    """Return the kernel: TBs in x take chunks of one part after another, y is the image."""
    size = whole.rows * whole.cols // count
    views = [Tensor(p.name, count, p.rows * p.cols // count, p.item, p.address) for p in parts]
    wide = Tensor(whole.name, count, size, whole.item, whole.address)
    code: list[tuple[tuple[Op, ...], ...]] = []
    rows: list[int] = []
    accesses = []
    tbs = sum(-(-view.cols // CHUNK) for view in views)  # of an image
    for number, (view, first) in enumerate(zip(views, firsts, strict=True)):
        begin, chunks = len(rows), -(-view.cols // CHUNK)
        last = view.cols - (chunks - 1) * CHUNK
        for active, many in ((CHUNK, chunks - 1), (last, 1)):
            if many:
                rows += [len(code)] * many
                ops = _code(number, len(views), begin, (view.cols, size), first, view.item, active, gather)
                code.append((ops,) * (THREADS // WARP))
        part = partial(_part, tbs, begin, chunks, view.cols)
        accesses.append(Access(view, "read" if gather else "write", partial(part, 0)))
        accesses.append(Access(wide, "write" if gather else "read", partial(part, first)))
    order = np.tile(np.array(rows, np.uint32), count)
    program = warp_specialized(name, code, order, registers=REGISTERS, smem=0, args=len(views) + 1)
    return Kernel(name, program, (tbs, count, 1), (*views, wide), tuple(accesses), library=library)


def _part(tbs_x: int, begin: int, chunks: int, cols: int, first: int, tbs: Ints) -> Ints:
    """Return the elements of an image that TBs take of a part, ``first`` elements further on."""
    image, x = np.divmod(np.asarray(tbs, np.int64), tbs_x)
    chunk = x - begin
    there = (chunk >= 0) & (chunk < chunks)
    low = np.where(there, chunk * CHUNK, 0)
    high = np.where(there, np.minimum(low + CHUNK, cols), 0)
    return np.stack(
        [image, image + there, np.where(there, low + first, 0), np.where(there, high + first, 0)], 1
    )


def _code(
    arg: int, wide: int, begin: int, sizes: tuple[int, int], first: int, item: int, active: int, gather: bool
) -> tuple[Op, ...]:
    code = Code()
    BEGIN.emit(code)
    for turn in range(-(-active // THREADS)):
        ELEMENT.emit(code)
        at = (turn * THREADS - begin * CHUNK) * item
        left = active - turn * THREADS
        small = line(arg, item, THREADS, base=at, bx=CHUNK * item, by=sizes[0] * item, active=left)
        large = line(
            wide, item, THREADS, base=at + first * item, bx=CHUNK * item, by=sizes[1] * item, active=left
        )
        read, written = (small, large) if gather else (large, small)
        code.load(0, *map(paired, read), level=2)
        code.wait(0)
        code.store(1, *map(paired, written), level=2)
    code.exit()
    return tuple(code.ops)
