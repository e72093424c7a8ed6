"""Training steps of recurrent modules and of a CNN: real templates, and no approximate kernels."""

import pytest

import pysim
from pysim.errors import WorkloadError

torch = pytest.importorskip("torch")
nn = torch.nn

from pysim.workloads.imported.from_torch import recorded  # noqa: E402


@pytest.mark.parametrize(
    ("cell", "layers", "both", "first", "dtype"),
    [
        ("GRU", 2, True, True, torch.float32),
        ("LSTM", 2, False, False, torch.float16),
        ("LSTM", 1, True, False, torch.float16),
        ("RNN", 3, True, False, torch.float32),
    ],
)
def test_recurrent_modules_train_without_stand_ins_for_passes(cell, layers, both, first, dtype):
    with torch.device("meta"):
        model = getattr(nn, cell)(96, 128, layers, bidirectional=both, batch_first=first).to(dtype)
    x = torch.empty((16, 4, 96) if first else (4, 16, 96), dtype=dtype, device="meta", requires_grad=True)
    job = pysim.from_torch(model, x, train="sgd", loss=lambda result: result[0].float().mean())
    gates, ways = {"GRU": 3, "LSTM": 4, "RNN": 1}[cell], 2 if both else 1
    wide = [96, *([128 * ways] * (layers - 1))]
    flops = sum(2 * gates * 128 * (into + 128) * 16 * 4 * ways for into in wide)
    assert job.totals.flops == 3 * flops
    made = [a.tensor for k in job.kernels[:-1] for a in k.accesses if a.mode != "read"]
    step = job.kernels[-1]
    changed = {a.tensor.address for a in step.accesses if a.mode != "read"}
    gradients = [a.tensor for a in step.accesses if a.mode == "read" and a.tensor.address not in changed]
    assert len(gradients) == 4 * layers * ways
    assert all(any(g.overlaps(tensor) for tensor in made) for g in gradients)


def test_directions_have_streams_that_meet_after_each_layer():
    job = pysim.from_torch(nn.GRU(64, 64, 2, bidirectional=True), torch.empty(5, 8, 64))
    assert [k.stream for k in job.kernels if k.name == "gru_cell"] == [0, 1] * 10
    (fork, first), (last, join) = job.events[:2]
    streams = [k.stream for k in job.kernels]
    assert streams[fork : first + 1] == [0] * (first - fork) + [1]
    assert (streams[last], streams[join]) == (1, 0)
    runs = pysim.simulate("h200", job, "stream,graph").tables()["runs"]
    assert set(runs["status"].tolist()) == {b"ok"}


def test_weights_of_a_recurrent_module_are_one_storage_as_on_cuda():
    graph = recorded(nn.GRU(64, 64, 2), torch.empty(5, 8, 64), train="sgd")
    (node,) = (node for node in graph.nodes if node.op == "pysim.rnn")
    weights = node.refs_in("weights")
    assert len({ref.storage for ref in weights}) == 1
    assert weights[3].offset == weights[2].offset + 3 * 64
    assert graph.storages[weights[0].storage].nbytes == 4 * graph.parameters


class Images(nn.Module):
    """Each operator of images that has a rule, with its gradient."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU6())
        self.apart = nn.Conv2d(32, 32, 3, padding=1, groups=32, bias=False)
        self.pools = nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(3), nn.Flatten())
        self.last = nn.Linear(288, 16)

    def forward(self, x):
        return self.last(self.pools(self.apart(self.stem(x))))


@pytest.mark.parametrize("device", ["h200", "v100"])
def test_a_cnn_trains_without_approximate_kernels(device):
    job = pysim.from_torch(Images(), torch.empty(4, 3, 32, 32), train="momentum", device=device)
    names = [kernel.name for kernel in job.kernels]
    for name in (
        "batch_norm_training", "batch_norm_backward", "bias_gradient", "depthwise", "depthwise_backward",
        "depthwise_filters", "max_pool", "max_pool_backward",
    ):  # fmt: skip
        assert names.count(name) == 1, name
    assert names.count("average_pool") == names.count("average_pool_backward") == 2
    pixels = 4 * 32 * 32
    assert job.totals.flops == 2 * pixels * 32 * 27 * 2 + 3 * 2 * pixels * 32 * 9 + 3 * 2 * 4 * 288 * 16


def test_what_has_no_template_in_a_cnn_is_listed_at_once():
    groups = nn.Sequential(nn.Conv2d(8, 16, 3, groups=4), nn.MaxPool2d(3, 2, ceil_mode=True))
    with pytest.raises(WorkloadError, match=r"aten.convolution x 1 .*groups 4.*ceil_mode"):
        pysim.from_torch(groups, torch.empty(2, 8, 12, 12))


@pytest.mark.parametrize("side", [1, 8])
def test_a_gradient_that_is_spread_is_copied_first(side):
    """A sum's is one number for all pixels; a convolution wants a tensor, which the node alone needs."""

    class Sums(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(32, 64, 1)

        def forward(self, x):
            return self.conv(x).sum((2, 3))

    job = pysim.from_torch(Sums(), torch.empty(2, 32, side, side, requires_grad=True), train="sgd")
    assert ("contiguous" in [kernel.name for kernel in job.kernels]) == (side > 1)
    made = {t.address for k in job.kernels for t in (*k.args, *(a.tensor for a in k.accesses))}
    assert max(made) < 1 << 40
    runs = pysim.simulate("h200", job, "stream").tables()["runs"]
    assert runs["status"].tolist() == [b"ok"]


def test_dropout_of_any_number_of_elements_trains():
    model = nn.Sequential(nn.Linear(64, 40), nn.Dropout(0.2), nn.Linear(40, 8))
    runs = pysim.simulate("h200", pysim.from_torch(model, torch.empty(3, 64), train="sgd"), "stream").tables()
    assert runs["runs"]["status"].tolist() == [b"ok"]


@pytest.mark.parametrize(("momentum", "lists"), [(0, 2), (0.9, 3)])
def test_a_fused_sgd_is_a_pass_over_parameters(momentum, lists):
    model = nn.Linear(64, 64)
    job = pysim.from_torch(
        model,
        torch.empty(16, 64),
        train=lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=momentum, fused=True),
    )
    (step,) = [kernel for kernel in job.kernels if kernel.name == "sgd"]
    assert "not measured" in step.library
    touched = sum(a.mode == "read" for a in step.accesses)
    assert touched == 2 * lists  # of weight and bias


def test_layer_norm_of_what_is_spread_copies_it_first():
    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(64)

        def forward(self, x):
            return self.norm(x.transpose(0, 1)).transpose(0, 1)

    job = pysim.from_torch(Turned(), torch.empty(4, 8, 64), train="sgd", loss=lambda y: y.pow(2).sum())
    names = [kernel.name for kernel in job.kernels]
    assert names[0] == "copy"
    assert names.count("copy") == 2  # of the input, forward and backward


def test_true_trains_with_adamw():
    first, second = (
        pysim.from_torch(nn.Linear(64, 64), torch.empty(8, 64), train=t) for t in (True, "adamw")
    )
    assert [k.name for k in first.kernels] == [k.name for k in second.kernels]


def test_rows_that_are_no_vectors_are_looked_up_by_a_kernel_that_stands_in():
    job = pysim.from_torch(nn.Embedding(32, 6).half(), torch.zeros(64, dtype=torch.long))
    assert [k.name for k in job.kernels] == ["gather"]
    assert "stands in, not measured" in job.kernels[0].library
