"""Batch normalisation with channels first: in training, its gradient, and in evaluation of any type.

In training cuDNN has a TB a channel (``bn_fw_tr_1C11``, ``bn_bw_1C11``): sums of a channel, then the channel
again. These kernels were not measured; passes and bytes are those of the algorithm, counts by reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pysim.program.library_kernels import stand_in
from pysim.workloads.library.memory.images import ITEM, Images, batch_norm
from pysim.workloads.library.memory.pointwise_parts import Work

from .channels import Pass, channel_kernel
from .planes import Band, plane_kernel

if TYPE_CHECKING:
    from pysim.program.job import Kernel, Mode, Tensor

# a mean and a variance as they come (Welford's division is left to the end of a thread's share); then the
# difference, times a number, plus a number
STATISTICS, NORMALISE = Work(fp32=3, ints=2), Work(fp32=2, ints=2)
# two sums, of the gradients and of their products with the normalised pixels; then the gradient of a pixel
GRADIENT_SUMS, GRADIENT = Work(fp32=5, ints=2), Work(fp32=5, ints=2)
KEPT = 2  # mean and 1 / deviation of a channel, kept for the way back
NUMBERS = 4  # of a channel in evaluation: scale, shift, mean, variance


def batch_norm_training(
    x: Tensor, affine: tuple[Tensor, Tensor], running: Sequence[Tensor], kept: Sequence[Tensor], y: Tensor
) -> Kernel:
    """Return the kernel that normalises each channel by its own mean and deviation.

    ``affine``: scale and shift, [channels, 1]; ``running``: averages of both statistics, which it updates, as
    one tensor [channels, 2] or two [channels, 1]; ``kept``: statistics for the way back, likewise. ``x`` and
    ``y``: [images * channels, pixels].
    """
    passes = Pass((0,), (), STATISTICS), Pass((0,), (1,), NORMALISE)
    own: list[tuple[Tensor, Mode]] = [(each, "read") for each in (*affine, *running)]
    own += [(each, "write") for each in (*running, *kept)]
    made = channel_kernel("batch_norm_training", (x, y), own, passes, affine[0].rows)
    return replace(made, library=stand_in("bn_fw_tr_1C11_kernel_NCHW"))


def batch_norm_backward(
    gradient: Tensor,
    x: Tensor,
    scale: Tensor,
    kept: Sequence[Tensor],
    of_x: Tensor,
    of_affine: tuple[Tensor, Tensor],
) -> Kernel:
    """Return the kernel that makes the gradients of ``x`` and of scale and shift, [channels, 1]."""
    passes = Pass((0, 1), (), GRADIENT_SUMS), Pass((0, 1), (2,), GRADIENT)
    own: list[tuple[Tensor, Mode]] = [(each, "read") for each in (scale, *kept)]
    own += [(each, "write") for each in of_affine]
    made = channel_kernel("batch_norm_backward", (gradient, x, of_x), own, passes, scale.rows)
    return replace(made, library=stand_in("bn_bw_1C11_kernel_new"))


def batch_norm_evaluation(x: Tensor, numbers: Tensor, y: Tensor, images: Images) -> Kernel:
    """Return the kernel that normalises by known statistics; ``numbers``: [4, channels].

    For fp32 it is cuDNN's, as measured; another one of the same bytes stands in for other types.
    """
    if x.item == ITEM:
        return batch_norm(x, numbers, y, images)
    made = plane_kernel("batch_norm", [Band(x)], [numbers], [y], images.channels, NORMALISE, each=4)
    return replace(made, library=stand_in("bn_fw_inf_1C11_kernel_NCHW"))
