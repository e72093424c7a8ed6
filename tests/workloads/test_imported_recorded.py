"""Training steps of a CNN and of a recurrent module, against what PyTorch 2.11 launched for them on an H200.

Recorded kernels (one iteration, eager, TF32 off) carry names of our templates and their thread blocks. Parts
of a call that depend on the algorithm of a library (``PARTS``) are left out on both sides.
"""

from collections import Counter
from pathlib import Path

import pytest

from pysim.workloads.imported.building.kernels import job_of
from pysim.workloads.imported.graph import Graph

GRAPHS = Path(__file__).resolve().parents[1] / "data" / "imported"
PARTS = "memset", "tile_sum", "split_k_sum", "conv_fill", "conv_scalePackedTensor_kernel"
# LeNet, batch 64: convolutions 1 -> 6 -> 16, each with tanh and average pooling, 400 -> 120 -> 84 -> 10
LENET = (
    "conv 1568, add_bias 1176, tanh 294, average_pool 74, conv 200, add_bias 400, tanh 100, average_pool 25, "
    "gemm 14, tanh 8, gemm 30, tanh 6, gemm 12, softmax 4, nll_loss 1, fill 1, fill 1, nll_loss_backward 1, "
    "softmax_backward 4, gemm 6, gemm 3, sum 1, tanh_backward 6, gemm 22, gemm 12, sum 1, tanh_backward 8, "
    "gemm 26, gemm 52, sum 1, average_pool_backward 100, tanh_backward 100, conv 768, conv 320, "
    "bias_gradient 1, average_pool_backward 294, tanh_backward 294, conv 128, bias_gradient 6"
)
# GRU of 512 units, batch 32, 25 steps, without gradient of the first state; the profile orders four streams
GRU = {
    "fill 16": 2, "fill 1539": 1, "gemm": 1 + 25 + 25 + 1 + 3, "gru_cell 64": 25, "gru_cell_back 64": 25,
    "bias_gradient 16": 1,
}  # fmt: skip
# why our thread blocks are others than those of the recording
OTHER_TBS = {
    "gemm": "tiles and parts of k that the library would choose, as far as trees of the sweep say it",
    "add_bias": "whole rows", "average_pool": "256 threads instead of 1,024, whole planes",
    "average_pool_backward": "as average_pool", "softmax": "8 rows instead of 16",
    "softmax_backward": "as softmax", "sum": "columns of few rows have no template: bytes stand in",
}  # fmt: skip


def kind(name):
    """Return the name of a template without tiles."""
    if name.startswith("conv_"):
        return "conv"
    return "gemm" if name.startswith(("staged_", "hopper_gemm", "vector_dots")) else name


def kernels_of(name):
    job = job_of(Graph.from_json((GRAPHS / f"{name}.jsonl").read_text()))
    return [(kind(k.name), k) for k in job.kernels if k.name not in PARTS and not k.name.startswith("multi")]


@pytest.fixture(scope="module")
def lenet():
    return kernels_of("lenet_training")


def test_a_step_of_lenet_has_the_kernels_of_the_recording_in_their_order(lenet):
    assert [name for name, _ in lenet] == [each.split()[0] for each in LENET.split(", ")]


def test_thread_blocks_are_those_of_the_recording_but_where_it_is_explained(lenet):
    recorded = [int(each.split()[1]) for each in LENET.split(", ")]
    other = {name for (name, kernel), tbs in zip(lenet, recorded, strict=True) if kernel.tbs != tbs}
    assert other == set(OTHER_TBS)


def test_sums_of_channels_have_the_blocks_of_the_recording(lenet):
    """Of 16 channels a TB adds all, a row of threads each; of 6, whose images are larger, each has a TB."""
    sums = [kernel for name, kernel in lenet if name == "bias_gradient"]
    assert [(k.grid, 32 * k.program.warps, k.program.smem) for k in sums] == [
        ((1, 1, 1), 512, 16), ((6, 1, 1), 512, 2064),
    ]  # fmt: skip


def test_nothing_of_a_cnn_is_approximate_and_gradients_reach_the_optimiser():
    *before, step = job_of(Graph.from_json((GRAPHS / "lenet_training.jsonl").read_text())).kernels
    assert not any("approximate" in kernel.library for kernel in before)
    made = [a.tensor for kernel in before for a in kernel.accesses if a.mode != "read"]
    stepped = {a.tensor.address for a in step.accesses if a.mode != "read"}
    gradients = [a.tensor for a in step.accesses if a.mode == "read" and a.tensor.address not in stepped]
    assert len(gradients) == 10
    assert all(any(tensor.overlaps(other) for other in made) for tensor in gradients)


def test_a_step_of_a_gru_has_as_many_kernels_of_each_kind_as_the_recording():
    """Ours begins backward with a mean, which the recorded step does not: a sum, a fill and a division."""
    found = Counter(
        name if name == "gemm" else f"{name} {kernel.tbs}" for name, kernel in kernels_of("gru_training")
    )
    loss = {"reduce 50": 1, "fill 1": 1, "div 1600": 1}
    assert found == Counter(GRU) + Counter(loss)


def test_backward_of_a_gru_reads_what_forward_left():
    kernels = kernels_of("gru_training")
    cells = [k for name, k in kernels if name == "gru_cell"]
    back = [k for name, k in kernels if name == "gru_cell_back"]
    for forth, last in zip(cells, reversed(back), strict=True):
        left = {a.tensor.address for a in forth.accesses if a.mode == "write"}
        assert any(a.tensor.address in left for a in last.accesses if a.mode == "read")
