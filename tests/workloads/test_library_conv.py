"""Convolutions of cuDNN as GEMMs: their work, what they read of the images, what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from pysim import Job, Memory, simulate
from pysim.errors import WorkloadError
from pysim.machine.system import resolve
from pysim.workloads.library.convolutions.chooser import choose_convolution, named_choice
from pysim.workloads.library.convolutions.convolution import convolution
from pysim.workloads.library.convolutions.shape import Convolution, convolution_of
from pysim.workloads.library.convolutions.told_gemm import told_convolution
from pysim.workloads.library.gemms.told import told_of
from pysim.workloads.validation.library_conv import CONV
from pysim.workloads.validation.table import packaged, rows_of

THREE = Convolution(2, 64, (14, 14), 128, (14, 14), 9, 1, "forward", "fp16", last=True)
WGMMA = told_of(
    "sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize64x64x64_warpgroupsize1x1x1_g1"
    "_execute_segment_k_off|14x1x1|168|231424"
)
MMA = told_of("cutlass_tensorop_f16_s16816fprop_optimized_f16_64x64_64x5_nhwc_align8|14x1x1|118|81920")
FFMA = told_of(
    "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize32x32x8_stage3_warpsize1x2x1_g1"
    "_ffma_aligna4_alignc4|4x13x1|92|6528"
)


@pytest.mark.parametrize("direction", ["forward", "backward_data", "backward_weights"])
def test_work_is_that_of_the_convolution(direction):
    conv = replace(THREE, direction=direction)
    problem, _ = conv.gemm(last=True)
    assert 2.0 * problem.m * problem.n * problem.k == conv.flops


def test_pixels_overlap():
    problem, (_, pitch) = THREE.gemm(last=True)
    assert problem.k == 9 * 64
    assert pitch == 64 * 2  # a pixel after the one before: its channels
    strided = replace(THREE, size=(28, 28), stride=4)
    assert strided.gemm(last=True)[1][1] == 4 * 64 * 2
    assert replace(THREE, taps=1).gemm(last=True)[1] == (0, 0)
    assert replace(THREE, last=False, dtype="fp32").gemm(last=False)[1][0] == 392 * 4 // 9 // 4 * 4


@pytest.mark.parametrize("told", [WGMMA, MMA, FFMA])
def test_images_come_from_memory_once(told):
    conv = THREE if told is not FFMA else replace(THREE, dtype="fp32", last=False)
    job = Job("conv", convolution(told, (), conv, Memory()))
    dram = int(simulate("h200", job, "graph").tables()["runs"]["dram_bytes"][0])
    assert dram < 1.5 * conv.nbytes  # an unfolded image would be nine times as large


def test_layouts_change_before_and_after():
    others = (told_of("toNhwc|7x2x2|32|2112"), told_of("toNchw|7x4x2|36|2112"))
    kernels = convolution(MMA, others, THREE, Memory())
    assert [kernel.name for kernel in kernels][::2] == ["toNhwc", "toNchw"]
    table = simulate("h200", Job("conv", kernels), "graph", tables="kernels").tables()["kernels"]
    assert all(table["ready_us"][1:] >= table["complete_us"][:-1])


def test_what_is_refused():
    with pytest.raises(WorkloadError, match="no template for kernel fft2d"):
        told_convolution(MMA, (told_of("fft2d_r2c_32x32|1x1x1|32|0"),), THREE)
    with pytest.raises(WorkloadError, match="of grid 1x1x1: must be forward, 13x4x1"):
        told_convolution(told_of("implicit_convolve_sgemm|1x1x1|92|2304"), (), THREE)
    with pytest.raises(WorkloadError, match="channels first"):
        told_convolution(FFMA, (), replace(THREE, direction="backward_weights", last=False, dtype="fp32"))


def test_a_measured_convolution():
    rows = rows_of(CONV.file, packaged(CONV.file), CONV.columns)
    case = next(c for c in CONV.cases(rows) if c.case.startswith("14.0:fp16 nhwc forward"))
    outcome = CONV.run(resolve("h200"), *case.task)
    assert 0.8 < outcome.cycles["call"] / case.measured_cycles < 1.2


FIRST = replace(THREE, dtype="fp32", last=False)


@pytest.mark.parametrize(
    ("told", "others", "direction", "work"),
    [
        ("implicit_convolve_sgemm|13x4x1|64|2304", "", "forward", 1),
        ("dgrad_engine|9x7x2|96|3328", "scalePackedTensor_kernel|98x1x1|22|0", "backward_data", 1),
        ("wgrad_alg0_engine|18x4x2|80|2304", "", "backward_weights", 1),
        (
            "sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4"
            "|2x1x36|114|12288",
            "winogradWgradData4x4|4x2x1|64|24704;winogradWgradDelta4x4|8x2x1|64|16896;"
            "winogradWgradOutput4x4|2x16x1|64|9216",
            "backward_weights",
            4,  # 36 multiplies make 9 taps of 16 pixels
        ),
    ],
)
def test_direct_kernels_and_winograd(told, others, direction, work):
    conv = replace(FIRST, direction=direction)
    launches = tuple(told_of(text) for text in others.split(";") if text)
    gemm = told_convolution(told_of(told), launches, conv)
    flops = 2.0 * gemm.m * gemm.n * gemm.k
    assert conv.flops / work * 0.99 <= flops <= conv.flops / work * 1.35  # tiles beyond the image
    kernels = convolution(told_of(told), launches, conv, Memory())
    table = simulate("h200", Job("conv", kernels), "graph", tables="kernels").tables()["kernels"]
    assert all(table["ready_us"][1:] >= table["complete_us"][:-1])


def test_arguments_are_checked():
    for change in ({"images": 0}, {"images": 2.0}, {"size": 14}, {"dtype": "int8"}, {"filters": 2**31}):
        with pytest.raises(WorkloadError):
            replace(THREE, **change)
    with pytest.raises(WorkloadError, match="groups 2"):
        convolution_of(1, 64, (14, 14), 64, (3, 3), groups=2)
    with pytest.raises(WorkloadError, match="stride = "):
        convolution_of(1, 64, (14, 14), 64, (3, 3), stride=(0, 1))
    with pytest.raises(WorkloadError, match="no result"):
        convolution_of(1, 64, (2, 2), 64, (3, 3))
    with pytest.raises(WorkloadError, match="positive"):
        told_of("dgrad_engine|0x7x2|96|3328")
    with pytest.raises(WorkloadError, match="groups True"):
        convolution_of(1, 64, (14, 14), 64, (3, 3), groups=True)
    for change in (
        {"grid": (True, 1, 1)},
        {"grid": (2**40, 1, 1)},
        {"registers": 0},
        {"smem": -1},
        {"name": 1},
    ):
        with pytest.raises(WorkloadError):
            replace(MMA, **change)
    with pytest.raises(WorkloadError, match="others = NoneType"):
        convolution(MMA, None, THREE, Memory())


def test_a_choice_runs():
    told, others = choose_convolution(replace(FIRST, direction="backward_weights"))
    assert "sm80_xmma_gemm" in told.name
    assert len(others) == 3  # Winograd: transforms of images, of gradients and of the result
    assert named_choice(2, 64, 14, 14, 128, 3, 3, padding=1)[0].name.startswith(("sm90", "cutlass"))
    assert convolution(None, (), THREE, Memory())


def test_dependences_of_convolutions_are_those_of_whole_kernels():
    """Which pixel a thread block touches is not known: all need all of the kernel before."""
    conv = convolution_of(4, 64, (28, 28), 64, (3, 3), padding=(1, 1))
    for kernel in convolution(None, (), conv, Memory()):
        for access in kernel.accesses:
            regions = access.regions(np.arange(kernel.tbs))
            assert (regions == [0, access.tensor.rows, 0, access.tensor.cols]).all()


@pytest.mark.parametrize(
    ("sizes", "direction", "dtype", "last", "tbs", "others"),
    [
        # 9 tiles of the gradient share 50,176 pixels: 110 TBs were seen, and a kernel that adds parts
        ((16, 64, (56, 56), 64, (3, 3)), "backward_weights", "fp16", True, (99, 132), ["sm90_xmma_wgrad"]),
        # 72 tiles of few k-steps: one a TB
        ((8, 256, (14, 14), 256, (3, 3)), "backward_weights", "fp16", True, (36, 72), []),
        # a GEMM an image, as 8 x 2 x 8 TBs were seen
        ((8, 256, (56, 56), 64, (1, 1)), "forward", "tf32", False, (128, 448), []),
        ((16, 192, (28, 28), 64, (1, 1)), "backward_weights", "tf32", False, (16, 132), ["reduce_wgrad_nc"]),
    ],
)
def test_predicted_grids_fill_the_gpu(sizes, direction, dtype, last, tbs, others):
    padding = sizes[-1][0] // 2, sizes[-1][1] // 2
    conv = convolution_of(*sizes, padding=padding, direction=direction, dtype=dtype, last=last)
    told, beside = choose_convolution(conv)
    assert tbs[0] <= told.tbs <= tbs[1]
    assert [other.name[:15] for other in beside] == others
