"""Kernels that make a plane of an image from a plane: pooling, its gradients, biases, depthwise filters.

A thread makes a result of a window (native/cuda of PyTorch 2.11: AveragePool2d, DilatedMaxPool2d,
DepthwiseConv2d). The forward maximum of measured shapes is ``library.memory.images.max_pool``; these were not
measured: bytes, grids and loops are those of the source, counts of instructions by reason.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.program.job import Memory, Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.memory.images import INDEX, Images, Window, max_pool
from pysim.workloads.library.memory.offsets import offset_work
from pysim.workloads.library.memory.pointwise_costs import REDUCE_COLD
from pysim.workloads.library.memory.pointwise_parts import Work
from pysim.workloads.library.memory.pointwise_reduce import Reduction, reduce_kernels, reduction

from .channels import Pass, channel_kernel
from .planes import Band, plane_kernel

if TYPE_CHECKING:
    from pysim.program.job import Kernel

BEGIN = 60  # integer instructions of a result: three divisions for its place
PIXEL = 10  # of a pixel of a window: its address and bounds
PLANES = replace(
    REDUCE_COLD[True], load=replace(offset_work(2, 1), fp32=1)
)  # place in an image, and the image
BIAS_EACH = 2  # elements of a thread of elementwise_kernel<128, 2>: 512 of 256 threads here


def _work(values: int, fp32: int) -> Work:
    return Work(fp32=fp32 * values, ints=BEGIN + PIXEL * values, control=4 + values)


def _around(window: Window, width: int) -> int:
    """Return the pixels before and behind a TB's own that windows reach, a row of rounding included."""
    return (window.side + window.stride) * width


def average_windows(x: Tensor, y: Tensor, images: Images, window: Window) -> Kernel:
    """Return the kernel that averages windows."""
    values = window.side**2
    bands = [Band(x, values, _around(window, images.width))]
    made = plane_kernel("average_pool", bands, [], [y], images.channels, _work(values, 1))
    return replace(made, library=stand_in("avg_pool2d_out_cuda_frame"))


def average_windows_backward(gradient: Tensor, of_x: Tensor, images: Images, window: Window) -> Kernel:
    """Return the kernel that gives each pixel its share of the gradients of the windows over it."""
    values = (-(-window.side // window.stride)) ** 2
    bands = [Band(gradient, values, _around(window, window.out(images.width)))]
    made = plane_kernel("average_pool_backward", bands, [], [of_x], images.channels, _work(values, 2))
    return replace(made, library=stand_in("avg_pool2d_backward_out_cuda_frame"))


def largest(x: Tensor, y: Tensor, places: Tensor, images: Images, window: Window) -> Kernel:
    """Return the kernel that takes the largest pixel of each window, and its place (8 B).

    It is PyTorch's as measured where a template has the shape; else one of the same bytes stands in.
    """
    try:
        return max_pool(x, y, places, images, window)
    except WorkloadError:
        values = window.side**2
        view = Tensor(places.name, y.rows, y.cols, INDEX, places.address)
        bands = [Band(x, values, _around(window, images.width))]
        made = plane_kernel("max_pool", bands, [], [y, view], images.channels, _work(values, 2))
        return replace(made, library=stand_in("max_pool_forward_nchw"))


def largest_backward(
    gradient: Tensor, places: Tensor, of_x: Tensor, images: Images, window: Window
) -> Kernel:
    """Return the kernel that gives each pixel the gradients of the windows that it is the largest of."""
    values = (-(-window.side // window.stride)) ** 2
    view = Tensor(places.name, gradient.rows, gradient.cols, INDEX, places.address)
    around = _around(window, window.out(images.width))
    bands = [Band(each, values, around) for each in (gradient, view)]
    made = plane_kernel("max_pool_backward", bands, [], [of_x], images.channels, _work(values, 2))
    return replace(made, library=stand_in("max_pool_backward_nchw"))


def add_bias(x: Tensor, bias: Tensor, channels: int) -> Kernel:
    """Return the kernel that adds a number of its channel to each pixel, in place."""
    made = plane_kernel("add_bias", [Band(x)], [bias], [x], channels, Work(fp32=1, ints=20), each=BIAS_EACH)
    return replace(made, library=stand_in("elementwise_kernel<128, 2> (add)"))


def bias_gradient(gradient: Tensor, of_bias: Tensor, channels: int) -> Kernel:
    """Return the kernel that sums each channel over all images.

    Where a thread adds few elements one thread block has several channels, as PyTorch launches it; else
    a thread block a channel stands in. Planes of a channel are read as if they were one behind another.
    """
    pixels = gradient.cols
    if pixels > 1:
        plan = reduction(channels, gradient.rows // channels * pixels, gradient.item, True, apart=True)
        if plan.split == 1 and plan.block[0] >= WARP:
            return _few_sums(gradient, of_bias, plan)
    passes = [Pass((0,), (), Work(fp32=1, ints=2))]
    made = channel_kernel("bias_gradient", [gradient], [(of_bias, "write")], passes, channels)
    return replace(made, library=stand_in("reduce_kernel<512, 1>"))


def _few_sums(gradient: Tensor, of_bias: Tensor, plan: Reduction) -> Kernel:
    """Return the sums of channels by thread blocks none of which shares a channel with another."""
    (kernel,) = reduce_kernels(gradient, of_bias, plan, PLANES, Memory())
    return replace(kernel, name="bias_gradient", library=stand_in("planes one behind another"))


def depthwise(x: Tensor, filters: Tensor, y: Tensor, images: Images, window: Window) -> Kernel:
    """Return the kernel that convolves each channel for itself; ``filters``: [channels, side x side]."""
    values = window.side**2
    bands = [Band(x, values, _around(window, images.width))]
    made = plane_kernel("depthwise", bands, [filters], [y], images.channels, _work(values, 1))
    return replace(made, library=stand_in("conv_depthwise2d_forward_kernel"))


def depthwise_backward(
    gradient: Tensor, filters: Tensor, of_x: Tensor, images: Images, window: Window
) -> Kernel:
    """Return the kernel of the gradient of the images."""
    values = (-(-window.side // window.stride)) ** 2
    bands = [Band(gradient, values, _around(window, window.out(images.width)))]
    made = plane_kernel("depthwise_backward", bands, [filters], [of_x], images.channels, _work(values, 1))
    return replace(made, library=stand_in("conv_depthwise2d_backward_kernel"))


def depthwise_filters(x: Tensor, gradient: Tensor, of_filters: Tensor, channels: int) -> Kernel:
    """Return the kernel of the gradient of the filters, whose TBs each sum one channel over all images."""
    taps = of_filters.rows * of_filters.cols // channels
    passes = [Pass((0,), (), Work(ints=4)), Pass((1,), (), Work(fp32=taps, ints=4 * taps))]
    made = channel_kernel("depthwise_filters", [x, gradient], [(of_filters, "write")], passes, channels)
    return replace(made, library=stand_in("conv_depthwise2d_grad_weight_kernel"))
