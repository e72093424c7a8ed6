"""Convolutional networks of the zoo: totals against what was published, order of kernels, small runs."""

import re
from collections import Counter

import pytest

from pysim import Memory, simulate
from pysim.dependence.dependences import dependences
from pysim.errors import WorkloadError
from pysim.program.job import Job
from pysim.program.pattern_check import check_kernel_patterns, check_patterns
from pysim.workloads.framework.tape import Tape
from pysim.workloads.framework.vision import layers as la
from pysim.workloads.framework.vision.convolve import conv2d
from pysim.workloads.library.images.cat import cat_channels, take_channels
from pysim.workloads.library.images.windows import average_windows, average_windows_backward, largest
from pysim.workloads.library.memory.images import INDEX, Images, Window
from pysim.workloads.networks.experts import drawn_tokens
from pysim.workloads.networks.shapes import CELLS, LENET, PLAIN, RANDWIRE, RESNET
from pysim.workloads.registry import make

PUBLISHED = {**RESNET, **PLAIN, "nasnet-a": CELLS["nasnet-a"]}
# What PyTorch 2.11 launched for a pass of ResNet-18 on an H100 (h100_networks): convolutions C, batch norm B,
# ReLU R, pool P, addition A, mean M, GEMM G and the sum of its parts. Three convolutions were five kernels of
# an FFT each, which are one here: cuDNN's choice is predicted to be an implicit GEMM.
RESNET_18 = "CBRP" + 2 * "CBRCBAR" + 3 * ("CBRCBCBAR" + "CBRCBAR") + "MG"
# and for forward and backward of LeNet-5 on an H200 (lenet_b64_fp32_fwdbwd): bias D, tanh T, pool P, log
# softmax S, loss N, fill F; their gradients in lower case, sums for biases d. Without memsets and sums of
# parts.
LENET_STEP = "CDTPCDTP" + "GTGTG" + "SN" + "F" + "Fns" + "GGd" + 2 * "tGGd" + "pt" + "CCd" + "pt" + "Cd"
LETTERS = {
    "conv_": "C", "batch_norm": "B", "relu": "R", "max_pool": "P", "average_pool_backward": "p",
    "average_pool": "P", "add_bias": "D", "add": "A", "reduce": "M", "tanh_backward": "t", "tanh": "T",
    "log_softmax_backward": "s", "log_softmax": "S", "nll_loss_backward": "n", "nll_loss": "N", "fill": "F",
    "bias_gradient": "d", "sum_columns": "d", "staged": "G", "vector_dots": "G",
}  # fmt: skip
BESIDE = re.compile(r"split_k_sum|tile_sum|memset|foreach|conv_(fill|scale|toN|memset)")
SMALL = {
    "resnet18": "side=32", "vgg19": "side=32", "alexnet-torch": "side=64", "lenet": "batch=2",
    "nasnet-a": "side=32,layers=1", "amoebanet-a": "side=32,layers=1", "randwire": "side=32,layers=3",
}  # fmt: skip


def letters(kernels):
    """Return a letter a kernel."""
    known = [kernel.name for kernel in kernels if not BESIDE.match(kernel.name)]
    return "".join(
        next((letter for start, letter in LETTERS.items() if name.startswith(start)), f"<{name}>")
        for name in known
    )


@pytest.mark.parametrize(
    "name",
    [*(n for n in PUBLISHED if n != "nasnet-a"), pytest.param("nasnet-a", marks=pytest.mark.deep)],
)
def test_parameters_and_work_are_those_published(name):
    totals, shape = make(name).totals, PUBLISHED[name]
    assert totals.parameters == pytest.approx(shape.published * 1e6, rel=0.01)
    assert totals.flops == pytest.approx(2e9 * shape.gmacs, rel=0.01)


def test_parameters_of_lenet_and_of_a_network_that_is_drawn():
    assert make("lenet").totals.parameters == pytest.approx(1e3 * LENET[0], rel=0.001)
    drawn = [make(f"randwire:seed={seed}").totals for seed in (1, 2)]
    for totals in drawn:  # 5.6 M and 583 M as published, over graphs
        assert totals.parameters == pytest.approx(RANDWIRE.published * 1e6, rel=0.03)
        assert totals.flops == pytest.approx(2e9 * RANDWIRE.gmacs, rel=0.03)
    assert drawn[0] != drawn[1]


def test_training_computes_the_gradients_of_all_but_the_first_images():
    forward, training = (make(f"alexnet-torch:pass={p}").totals for p in ("forward", "training"))
    first = 2 * 55 * 55 * 64 * 3 * 11 * 11
    assert training.parameters == forward.parameters
    assert training.flops == 3 * forward.flops - first


def test_resnet_18_launches_what_pytorch_launched():
    kernels = make("resnet18:batch=32", "h100").kernels
    assert letters(kernels) == RESNET_18
    assert not any("stands in" in kernel.library for kernel in kernels)


def test_lenet_launches_what_pytorch_launched():
    kernels = make("lenet:batch=64,pass=training").kernels
    assert letters(kernels) == LENET_STEP
    assert [kernel.name for kernel in kernels[-3:]] == ["foreach_mul", "foreach_add", "foreach_add"]


@pytest.mark.parametrize("gpu", ["h200", "v100", "a100"])
@pytest.mark.parametrize(
    "text",
    [
        "lenet:batch=2,pass=training",
        pytest.param("resnet18:batch=2,side=32,pass=training", marks=pytest.mark.deep),
        pytest.param("randwire:side=32,layers=3,pass=training", marks=pytest.mark.deep),
        pytest.param("alexnet-torch:batch=2,pass=training", marks=pytest.mark.deep),
    ],
)
def test_kernels_touch_what_they_declare(text, gpu):
    check_patterns(make(text, gpu))


@pytest.mark.parametrize(
    "name", ["lenet", *(pytest.param(name, marks=pytest.mark.deep) for name in SMALL if name != "lenet")]
)
def test_small_networks_run_under_schemes(name):
    gpu = "v100" if name in ("resnet18", "nasnet-a") else "h200"
    job = make(f"{name}:{SMALL[name]}", gpu)
    times = simulate(gpu, job, "stream,graph,tb_static").frame("runs").set_index("scheme")["time_us"]
    assert 0 < times["tb_static"] <= times["graph"] < times["stream"]


@pytest.mark.deep
def test_a_small_training_step_runs():
    job = make("lenet:batch=2,pass=training")
    assert simulate("h200", job, "graph").tables()["runs"]["time_us"][0] > 0


def _two_convolutions(device):
    tape = Tape(Memory(), training=False, device=device)
    images = Images(1, 64, 56, 56)
    x = tape.value("x", 64, images.pixels, 4)
    for _ in range(2):
        x, images = conv2d(tape, x, images, 64, Window(3, 1, 1), "fp32")
    return tape.kernels


def test_before_hopper_a_tb_waits_for_the_rows_of_its_windows():
    first, second = _two_convolutions("v100")
    deps = dependences(Job("two", [first, second]))
    waits = [len(deps.producers(1, tb)) for tb in range(second.tbs)]
    assert 0 < max(waits) < first.tbs / 2
    assert first.library.startswith("stands in")


def test_on_hopper_a_tb_waits_for_the_whole_convolution():
    kernels = _two_convolutions("h200")
    deps = dependences(Job("two", kernels))
    assert all(len(deps.producers(1, tb)) == kernels[0].tbs for tb in range(kernels[1].tbs))


@pytest.mark.parametrize(("pixels", "window"), [(7, Window(3, 2, 1)), (55, Window(3, 2)), (56, Window(2, 2))])
@pytest.mark.parametrize("channels", [5, 64])
def test_windows_read_and_write_all_pixels(pixels, window, channels):
    memory, images = Memory(), Images(2, channels, pixels, pixels)
    out, planes = window.out(pixels), 2 * channels
    x, y = memory.tensor("x", planes, pixels**2, 4), memory.tensor("y", planes, out**2, 4)
    places = memory.tensor("places", planes, out**2, INDEX)
    made = [average_windows(x, y, images, window), average_windows_backward(y, x, images, window)]
    made.append(largest(x, y, places, images, window))
    for kernel, target in zip(made, (y, x, y), strict=True):
        check_kernel_patterns(kernel.name, kernel, every=True)
        assert _covered(kernel, target) == target.rows * target.cols


def _covered(kernel, target):
    """Return the elements of a tensor that TBs write, each counted as often as it is written."""
    (access,) = (a for a in kernel.accesses if a.mode == "write" and a.tensor.address == target.address)
    row0, row1, col0, col1 = access.regions(range(kernel.tbs)).T
    return (
        int(((row1 - row0) * (col1 - col0).clip(0)).sum())
        if access.tensor.rows > 1
        else target.rows * target.cols
    )


def test_channels_that_are_put_together_are_taken_apart():
    memory = Memory()
    parts = [memory.tensor("part", 2 * channels, 49, 4) for channels in (3, 64, 5)]
    whole = memory.tensor("whole", 2 * 72, 49, 4)
    kernel = cat_channels(parts, whole, 2)
    check_kernel_patterns("cat", kernel, every=True)
    back = take_channels(whole, 3, parts[1], 2)
    check_kernel_patterns("take", back, every=True)
    assert len(dependences(Job("cat", [kernel, back])).producers(1, 0)) > 0
    with pytest.raises(WorkloadError, match="that fill it"):
        cat_channels(parts[:2], whole, 2)


def test_in_evaluation_nothing_is_dropped_and_nothing_recorded():
    names = {kernel.name for kernel in make("alexnet-torch").kernels}
    assert "dropout" not in names
    tape = Tape(Memory(), training=False)
    x = tape.value("x", 4, 64, 4)
    assert la.relu(tape, x).operation is None


@pytest.mark.parametrize(
    ("text", "gpu", "message"),
    [
        ("resnet18:pass=decode", "h200", "pass = decode: must be forward, training"),
        ("resnet18:dtype=bf16", "titan_v", "dtype = bf16: must be fp32 or fp16 or amp on titan_v"),
        ("moe-block:dtype=bf16", "v100", "moe-block: dtype = bf16: must be fp32 or fp16 or amp on v100"),
        ("resnet18:batch=0", "h200", "batch = 0: must be an integer from 1"),
        ("alexnet-torch:side=16", "h200", "windows of 3"),
        ("resnet50", "rtx3070", "there are kernels for"),
    ],
)
def test_what_there_is_not_is_refused_in_a_line(text, gpu, message):
    with pytest.raises(WorkloadError, match=re.escape(message)) as error:
        make(text, gpu)
    assert "\n" not in str(error.value)


def test_a_channel_of_16_bits_is_padded_where_no_template_fits():
    job = make("lenet:batch=2,dtype=fp16,pass=training")
    check_patterns(job)
    assert sum("for Ampere, channels padded" in kernel.library for kernel in job.kernels) == 1


def test_groups_of_channels_are_refused():
    tape = Tape(Memory(), training=False)
    x = tape.value("x", 8, 64, 4)
    with pytest.raises(WorkloadError, match="2 groups of 8 channels"):
        conv2d(tape, x, Images(1, 8, 8, 8), 16, Window(3, 1, 1), "fp32", groups=2)


def test_a_block_of_experts_has_its_tokens_and_weights():
    job = make("moe-block:seq=64,hidden=256,ffn=512")
    tokens = [len(taken) for taken in drawn_tokens(64, 8, 2, 1)]
    assert sum(tokens) == 2 * 64
    assert job.totals.parameters == 8 * 3 * 256 * 512 + 8 * 256
    assert job.totals.flops == 2 * 3 * 256 * 512 * sum(tokens) + 2 * 64 * 256 * 8
    added = [kernel for kernel in job.kernels if kernel.name == "index_add"]
    assert [kernel.tbs for kernel in added] == [many for many in tokens if many]
    check_patterns(job)


def test_a_block_of_experts_trains():
    """Three times the FLOP; every weight gets a gradient, the router's through the weights of its best."""
    text = "moe-block:seq=64,hidden=256,ffn=512"
    forward, training = (make(f"{text},pass={way}", "v100") for way in ("forward", "training"))
    check_patterns(training)
    assert training.totals.flops == 3 * forward.totals.flops
    assert [k.name for k in training.kernels[: len(forward.kernels)]] == [k.name for k in forward.kernels]
    experts = sum(kernel.name == "index_add" for kernel in forward.kernels)
    names = Counter(kernel.name for kernel in training.kernels)
    assert names["scatter"] == experts + 1  # weights of each expert's tokens, then scores
    assert names["silu_backward"] == experts
    stepped = {a.tensor.address for k in training.kernels if k.name == "adamw" for a in k.accesses}
    assert len(stepped) >= 4 * (3 * experts + 1)  # weights, gradients and two moments


@pytest.mark.deep
def test_a_block_of_experts_runs():
    job = make("moe-block:seq=32,hidden=256,ffn=256,experts=4")
    times = simulate("h200", job, "stream,graph,tb_static").frame("runs").set_index("scheme")["time_us"]
    assert 0 < times["graph"] < times["stream"]
    assert times["tb_static"] < times["stream"]
