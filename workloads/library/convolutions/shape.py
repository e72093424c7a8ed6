"""A convolution, and the GEMM that it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from pysim.errors import WorkloadError
from pysim.workloads.library.choices.choice import Problem

Direction = Literal["forward", "backward_data", "backward_weights"]
DTYPES = ("fp16", "tf32", "fp32")
MOST = 2**31 - 1  # elements of a tensor: cuDNN's kernels count them in int


@dataclass(frozen=True, slots=True)
class Convolution:
    """``images`` of ``size`` (H, W) and ``channels``, convolved to ``out`` (P, Q) of ``filters``.

    ``taps``: of a filter; ``stride``: product of both strides. ``item``: bytes of an element. ``last``:
    channels are contiguous.
    """

    images: int
    channels: int
    size: tuple[int, int]
    filters: int
    out: tuple[int, int]
    taps: int
    stride: int
    direction: Direction
    dtype: str
    last: bool

    def __post_init__(self) -> None:
        """Refuse sizes that are not positive, too large or no integers, and types without a kernel."""
        for name in ("size", "out"):
            pair = getattr(self, name)
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise WorkloadError(f"convolution: {name} = {pair!r}: must be rows and columns")
        sizes = (self.images, self.channels, *self.size, self.filters, *self.out, self.taps, self.stride)
        if any(not isinstance(size, int) or isinstance(size, bool) for size in sizes):
            raise WorkloadError(f"convolution: sizes {', '.join(map(repr, sizes))}: must be integers")
        if min(sizes) < 1 or self.dtype not in DTYPES or self.direction not in get_args(Direction):
            raise WorkloadError(
                f"convolution: sizes {', '.join(map(str, sizes))}, {self.dtype}, {self.direction}: must be"
                f" positive, one of {', '.join(DTYPES)} and of {', '.join(get_args(Direction))}"
            )
        if not isinstance(self.last, bool):
            raise WorkloadError(f"convolution: last = {self.last!r}: must be True or False")
        images, filters = self.inputs * self.channels, self.channels * self.taps * self.filters
        if max(images, filters, self.pixels * self.filters) > MOST:
            raise WorkloadError(
                f"convolution: {images} elements of images, {filters} of filters,"
                f" {self.pixels * self.filters} of the result: must be at most {MOST}"
            )

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return 2 if self.dtype == "fp16" else 4

    @property
    def pixels(self) -> int:
        """Pixels of the result of all images."""
        return self.images * self.out[0] * self.out[1]

    @property
    def inputs(self) -> int:
        """Pixels of all images."""
        return self.images * self.size[0] * self.size[1]

    @property
    def flops(self) -> float:
        """FLOP: each output has a multiply and an add for each tap and channel."""
        return 2.0 * self.pixels * self.filters * self.channels * self.taps

    @property
    def nbytes(self) -> float:
        """Bytes of images, filters and result."""
        weights = self.filters * self.channels * self.taps
        return float(self.item) * (self.inputs * self.channels + weights + self.pixels * self.filters)

    def gemm(self, last: bool) -> tuple[Problem, tuple[int, int]]:
        """Return the GEMM with channels ``last`` or first, and the pitches of A and B in bytes; 0: own."""
        if self.direction == "backward_weights":
            if not last and self.taps == 1 and self.stride == 1:
                return Problem(self.channels, self.filters, self.pixels, "T", "N", self.dtype), (0, 0)
            if not last:
                raise WorkloadError("convolution: backward weights with channels first: no template")
            return self._weights()
        back = self.direction == "backward_data"
        rows, deep = (self.channels, self.filters) if back else (self.filters, self.channels)
        pixels, others = (self.inputs, self.pixels) if back else (self.pixels, self.inputs)
        k = max(1, deep * self.taps // (self.stride if back else 1))
        held = deep * others * self.item  # bytes that are read
        overlaps = self.taps > 1 or self.stride > 1
        if last:
            pitch = -(-held // pixels // 16) * 16 if overlaps else 0
            trans_a = "N" if back else "T"
            return Problem(rows, pixels, k, trans_a, "N", self.dtype), (0, pitch)
        pitch = max(4, held // k // 4 * 4) if overlaps else 0
        return Problem(pixels, rows, k, "N", "T" if back else "N", self.dtype), (pitch, 0)

    def _weights(self) -> tuple[Problem, tuple[int, int]]:
        m = self.channels * self.taps
        held = self.inputs * self.channels * self.item
        pitch = -(-held // self.pixels // 16) * 16 if self.taps > 1 or self.stride > 1 else 0
        return Problem(m, self.filters, self.pixels, "N", "T", self.dtype), (pitch, 0)


def convolution_of(
    images: int,
    channels: int,
    size: tuple[int, int],
    filters: int,
    taps: tuple[int, int],
    *,
    stride: tuple[int, int] = (1, 1),
    padding: tuple[int, int] = (0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
    direction: str = "forward",
    dtype: str = "fp16",
    last: bool = True,
) -> Convolution:
    """Return the convolution with filters of ``taps`` (rows, columns); the result's size follows.

    Raises WorkloadError for sizes that leave no result, and for groups and dilation, which were not measured.
    """
    pairs = {"size": size, "taps": taps, "stride": stride, "padding": padding, "dilation": dilation}
    for name, pair in pairs.items():
        least = int(name != "padding")
        if (
            not isinstance(pair, tuple)
            or len(pair) != 2
            or any(type(n) is not int or n < least for n in pair)
        ):
            raise WorkloadError(f"convolution: {name} = {pair!r}: must be two integers of at least {least}")
    if type(groups) is not int or groups != 1 or dilation != (1, 1):
        raise WorkloadError(
            f"convolution: groups {groups!r}, dilation {dilation}: must be 1 and (1, 1), as measured"
        )
    rows, cols = ((size[axis] + 2 * padding[axis] - taps[axis]) // stride[axis] + 1 for axis in range(2))
    if min(rows, cols) < 1:
        raise WorkloadError(f"convolution: filters of {taps} on images of {size}: no result")
    return Convolution(
        images, channels, size, filters, (rows, cols), taps[0] * taps[1], stride[0] * stride[1], direction,  # type: ignore[arg-type]
        dtype, last,
    )  # fmt: skip
