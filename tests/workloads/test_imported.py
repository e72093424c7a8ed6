"""Recorded graphs become kernels; none of this needs PyTorch."""

import builtins
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import pysim
from pysim import simulate
from pysim.errors import MissingLibraryError, WorkloadError
from pysim.program.job import Job, Memory
from pysim.workloads.imported.building.kernels import job_of
from pysim.workloads.imported.building.slices import slices
from pysim.workloads.imported.graph import Graph, Node, Ref, Storage

GRAPHS = Path(__file__).resolve().parents[1] / "data" / "imported"
STORED = GRAPHS / "blocks_training.jsonl"
# Kernels and TBs of a layer of BERT-large, batch 8, 512 tokens, forward and backward, as PyTorch 2.11
# launched them on an H200 in eager mode; names of templates for those of the profile
BERT_LAYER = (
    "memset 1, hopper_gemm 132, philox_state 1, memset 1, cudnn_fprop 132, hopper_gemm 128, dropout "
    "1056, add 4096, layer_norm 4096, memset 1, hopper_gemm 132, gelu 16384, hopper_gemm 128, dropout "
    "1056, add 4096, layer_norm 4096, layer_norm_grad_input 4096, gamma_beta 32, masked_scale 4096, "
    "memset 1, hopper_gemm 132, hopper_gemm 128, memset 1, reduce 512, gelu_backward 16384, "
    "hopper_gemm 128, hopper_gemm 128, memset 1, reduce 2048, add 4096, layer_norm_grad_input 4096, "
    "gamma_beta 32, masked_scale 4096, hopper_gemm 128, hopper_gemm 128, memset 1, reduce 512, memset "
    "1, attention_dots 4096, cudnn_bprop 132, attention_convert 2048, cat 792, copy 24576, "
    "hopper_gemm 128, hopper_gemm 128, memset 1, reduce 1536, add 4096"
)


class Drawn:
    """A graph that is drawn by hand: contiguous tensors, each a storage."""

    def __init__(self):
        self.graph = Graph("drawn")

    def new(self, *shape, dtype="fp16", kind="input"):
        strides = tuple(int(np.prod(shape[at + 1 :])) for at in range(len(shape)))
        made = Ref(len(self.graph.storages), 0, tuple(shape), strides, dtype)
        self.graph.storages.append(Storage(made.elements * made.item, kind))
        return made

    def add(self, op, outputs, written=(), /, **args):
        self.graph.nodes.append(Node(op, "", args, tuple(outputs), tuple(written)))
        return outputs[0] if outputs else None

    def unary(self, op, x):
        return self.add(op, [self.new(*x.shape, dtype=x.dtype, kind="")], self=x)


def names(job):
    return [kernel.name for kernel in job.kernels]


@pytest.fixture(scope="module")
def stored():
    return Graph.from_json(STORED.read_text())


@pytest.fixture(scope="module")
def blocks(stored):
    return job_of(stored)


def test_a_graph_is_the_same_after_it_was_text(stored):
    again = Graph.from_json(stored.to_json())
    assert again.to_json() == stored.to_json() == STORED.read_text()
    assert again.nodes == stored.nodes


def test_two_blocks_launch_what_their_layers_launch(blocks):
    """Of a block: four products forward, two backward for each; LayerNorm, attention, GELU and dropout."""
    count = Counter(names(blocks))
    assert count["hopper_gemm"] == 2 * (4 + 8)
    assert count["layer_norm"] == count["layer_norm_grad_input"] == count["gamma_beta"] == 2
    assert count["cudnn_fprop"] == count["cudnn_bprop"] == 2
    assert count["gelu"] == count["gelu_backward"] == count["dropout"] == count["masked_scale"] == 2
    forward = (
        "layer_norm hopper_gemm memset cudnn_fprop hopper_gemm add hopper_gemm gelu dropout hopper_gemm add"
    )
    assert names(blocks)[:11] == forward.split()
    assert [name for name in names(blocks) if name.startswith("multi")][-1] == "multi_addcdiv"


@pytest.mark.deep
def test_a_layer_launches_what_a_profile_has():
    """The recorded step ends with a gradient, ours begins backward with a mean: six kernels more."""
    job = job_of(Graph.from_json((GRAPHS / "bert_large_layer.jsonl").read_text()))
    found = [f"{kernel.name} {kernel.tbs}" for kernel in job.kernels]
    loss = names(job).index("copy")
    assert names(job)[loss : loss + 6] == ["copy", "memset", "reduce", "fill", "div", "copy"]
    del found[loss : loss + 6]
    assert found == BERT_LAYER.split(", ")


def test_totals_are_those_of_the_layers(blocks):
    tokens, d = 256, 128
    linear = 2 * tokens * d * (3 * d + d + 4 * d + 4 * d)
    attention = 4 * 2 * 2 * 128 * 128 * 64  # masked scores count
    assert blocks.totals.parameters == 2 * (12 * d * d + 11 * d)
    assert blocks.totals.flops == 2 * 3 * (linear + attention)


def test_attention_reads_heads_where_the_projection_wrote_them(blocks):
    product, attention = blocks.kernels[1], blocks.kernels[3]
    written = next(a.tensor for a in product.accesses if a.mode == "write")
    read = [t for t in attention.args if t.overlaps(written)]
    assert len(read) == 3
    assert {t.cols for t in read} == {384}
    after = next(a.tensor for a in attention.accesses if a.mode == "write" and a.tensor.cols == 128)
    assert any(after.overlaps(tensor) for tensor in blocks.kernels[4].args)


def test_layers_that_are_alike_share_their_programs(blocks):
    first, second = blocks.kernels[:11], blocks.kernels[11:22]
    assert all(a.program is b.program for a, b in zip(first, second, strict=True))
    assert {a.tensor.address for a in first[1].accesses} != {a.tensor.address for a in second[1].accesses}


def test_the_blocks_run_and_a_graph_is_faster_than_a_stream(blocks):
    forward = Job("feed forward", blocks.kernels[6:11])
    time = simulate("h200", forward, "stream,graph").tables()["runs"]["time_us"]
    assert 0 < time[1] < time[0]


def test_memory_that_no_later_operation_needs_is_used_again():
    drawn = Drawn()
    x = drawn.new(1024, 1024)
    for _ in range(3):
        x = drawn.unary("aten.relu", x)
    job = job_of(drawn.graph)
    targets = [next(a.tensor.address for a in k.accesses if a.mode == "write") for k in job.kernels]
    assert targets[0] == targets[2] != targets[1]


def test_what_a_run_leaves_is_not_overwritten():
    drawn = Drawn()
    x = drawn.new(1024, 1024)
    drawn.add("aten.relu", [drawn.new(1024, 1024, kind="result")], self=x)
    for _ in range(3):
        x = drawn.unary("aten.relu", x)
    kept, *others = job_of(drawn.graph).kernels
    assert not any(k.args[1].overlaps(kept.args[1]) for k in others)


def test_an_error_lists_every_operator_without_a_template():
    drawn = Drawn()
    x = drawn.new(64, 32)
    for op in ("aten.fft", "aten.qr", "aten.fft"):
        x = drawn.unary(op, x)
    with pytest.raises(WorkloadError) as error:
        job_of(drawn.graph)
    text = str(error.value)
    assert "aten.fft x 2 (first: [64, 32] fp16)" in text
    assert "aten.qr x 1" in text
    assert "\n" not in text


def test_an_approximate_kernel_reads_and_writes_as_many_bytes_and_says_so():
    drawn = Drawn()
    drawn.unary("aten.fft", drawn.new(1000, 96))
    (kernel,) = job_of(drawn.graph, approximate=True).kernels
    assert kernel.library == "approximate: aten.fft"
    runs = simulate("h200", Job("one", [kernel]), "stream").tables()["runs"]
    assert runs["dram_bytes"][0] >= 1000 * 96 * 2


def test_slices_take_every_vector_of_every_operand_once():
    memory = Memory()
    operands = [memory.tensor("t", 1, size, 1) for size in (160_000, 48, 77_776)]
    kernel = slices("s", operands[:2], operands[2:])
    taken = [0, 0, 0]
    for row in np.asarray(kernel.program.tb_rows):
        for op in kernel.program.op_lists(int(row))[0]:
            for pattern in op.patterns:
                warps = 1 if len(op.patterns) > 1 else kernel.program.warps
                taken[pattern.arg] += bin(pattern.lanes).count("1") * warps * pattern.width
    assert taken == [160_000, 48, 77_776]


def test_a_product_takes_operands_as_they_lie():
    drawn = Drawn()
    x, w = drawn.new(256, 128), drawn.new(512, 128)
    turned = Ref(w.storage, 0, (128, 512), (1, 128), "fp16")
    out = drawn.add("aten.mm", [drawn.new(256, 512, kind="")], self=x, mat2=turned)
    apart = Ref(out.storage, 0, (64, 128), (512 * 4, 4), "fp16")  # neither dimension is contiguous
    drawn.add("aten.mm", [drawn.new(64, 512, kind="")], self=apart, mat2=turned)
    job = job_of(drawn.graph)
    assert names(job) == ["hopper_gemm", "copy_operand", "hopper_gemm"]
    assert "_TN" in job.kernels[0].library
    assert job.totals.flops == 2 * 256 * 512 * 128 + 2 * 64 * 512 * 128


def test_rows_that_no_template_cuts_are_taken_whole():
    """A bias of 96 columns for 35 rows, turned, with a mask of bytes: the simulation checks addresses."""
    drawn = Drawn()
    x, bias, mask = drawn.new(35, 96), drawn.new(96), drawn.new(35, 1, dtype="bool")
    y = drawn.add("aten.add", [drawn.new(35, 96, kind="")], self=x, other=bias)
    turned = Ref(y.storage, 0, (96, 35), (1, 96), "fp16")
    z = drawn.add("aten.clone", [drawn.new(96, 35, kind="")], self=turned)
    back = Ref(z.storage, 0, (35, 96), (1, 35), "fp16")
    drawn.add("aten.where", [drawn.new(35, 96, kind="result")], condition=mask, self=back, other=bias)
    job = job_of(drawn.graph)
    assert names(job) == ["add", "copy", "where"]
    assert job.kernels[0].library == "stands in: TBs of whole rows"
    runs = simulate("h200", job, "stream,tb_static").tables()["runs"]
    assert set(runs["status"]) in ({"ok"}, {b"ok"})


@pytest.mark.parametrize("first", [1, 2, 4, 60])
def test_views_that_begin_anywhere_are_read_where_they_are(first):
    """The core takes arguments at multiples of 256 B, and refuses addresses outside of what is declared."""
    drawn = Drawn()
    x = drawn.new(8192, dtype="fp32")
    part = Ref(x.storage, first, (4096,), (1,), "fp32")
    drawn.add("aten.relu", [drawn.new(4096, dtype="fp32", kind="result")], self=part)
    job = job_of(drawn.graph)
    read = next(a.tensor for a in job.kernels[0].accesses if a.mode == "read")
    assert read.address % 256 == 4 * first % 256
    runs = simulate("h200", job, "stream,tb_static", overrides={"sim.oracle": 1}).tables()["runs"]
    assert set(runs["status"].tolist()) == {b"ok"}


def test_an_embedding_of_positions_takes_rows_in_order():
    drawn = Drawn()
    table = drawn.new(64, 128)
    at = drawn.add("aten.arange", [drawn.new(32, dtype="int64", kind="")], end=32)
    drawn.add("aten.embedding", [drawn.new(32, 128, kind="")], weight=table, indices=at)
    gather = job_of(drawn.graph).kernels[1]
    regions = next(a.regions for a in gather.accesses if a.tensor.rows == 64)
    assert regions(np.arange(32))[:, 0].tolist() == list(range(32))


def test_numbers_beside_lists_take_a_kernel_each():
    """``_foreach_div`` by tensors of one element has no fast path in PyTorch."""
    drawn = Drawn()
    a, b = drawn.new(64, 64, dtype="fp32"), drawn.new(128, 64, dtype="fp32")
    steps = drawn.new(dtype="fp32"), drawn.new(dtype="fp32")
    drawn.add("aten._foreach_div_", [], ("self",), self=(a, b), other=steps)
    drawn.add("aten._foreach_mul_", [], ("self",), self=(a, b), scalar=0.9)
    assert names(job_of(drawn.graph)) == ["div", "div", "multi_mul"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"form": 99}', "no graph"])
def test_a_text_that_is_no_graph_is_refused_in_one_line(text):
    with pytest.raises(WorkloadError, match="graph: ") as error:
        Graph.from_json(text)
    assert "\n" not in str(error.value)


def test_another_device_is_refused(stored):
    with pytest.raises(WorkloadError, match="device"):
        job_of(stored, device="gtx")


def test_without_pytorch_the_error_names_the_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "torch":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingLibraryError, match=r"\[torch\]"):
        pysim.from_torch(None, None)
