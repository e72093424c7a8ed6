"""Networks as PyTorch launches them: kernels and TBs beside profiles, and templates that came with them."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from pysim import Job, Memory
from pysim.errors import WorkloadError
from pysim.machine.system import resolve
from pysim.program.pattern_check import check_patterns
from pysim.workloads.framework import operations as op
from pysim.workloads.framework.bert import Bert, bert_network
from pysim.workloads.framework.layers import Layer, transformer_layer
from pysim.workloads.framework.llama import Llama, llama_network
from pysim.workloads.framework.math_attention import math_attention
from pysim.workloads.framework.recurrent import Stack, recurrent_network
from pysim.workloads.framework.resnet import ResNet, resnet_network
from pysim.workloads.framework.tape import Tape
from pysim.workloads.library.attentions.attention import Places, attention
from pysim.workloads.library.attentions.attention_problem import Attention, Planes
from pysim.workloads.library.gemms.launches import gemm
from pysim.workloads.library.memory import memory_bound
from pysim.workloads.library.memory.cat_copy import Columns, cat_columns
from pysim.workloads.library.memory.embedding_backward import embedding_backward
from pysim.workloads.library.memory.head_copies import Heads
from pysim.workloads.library.memory.images import Images, Window, batch_norm, max_pool
from pysim.workloads.library.memory.strided import View, dense, strided
from pysim.workloads.validation.cases import tables_of
from pysim.workloads.validation.torch_kernels import convolutions_of

MEASURED = Path(__file__).parents[2] / "workloads/measured/h100_networks.csv"
# What PyTorch 2.11 launched for one layer as a captured graph on an H100: kernels and their TBs
BERT_LAYER = """
hopper_gemm 128, hopper_gemm 128, hopper_gemm 128, fill 1, fill 1, where 256, cast 1536, cast 1536, cast 1536,
mul_scalar 768, mul_scalar 768, copy_heads 3072, copy_heads 3072, staged_64x64x8_3 384, add_bias 3072,
softmax 1536, is_lowest 1536, reduce 768, fill 1, where 6144, cast 1536, copy_heads 3072,
staged_64x64x8_3 192, cast 768, copy_merge 1536, hopper_gemm 128, add 768, layer_norm 1024, hopper_gemm 128,
gelu 3072, hopper_gemm 128, add 768, layer_norm 1024
"""
# without GEMMs and attention, for four sequences
LLAMA_ATTENTION = """
cast 16384, square 8192, reduce 256, add_scalar 4, rsqrt 4, mul_rows 32768, cast 8192, mul_columns 16384,
mul_cosine 16384, negate 8192, cat 528, mul_sine 16384, add 16384, mul_cosine 4096, negate 2048, cat 528,
mul_sine 4096, add 4096, copy_repeated 16384, copy_repeated 16384, fill 1, fill 1, where 8192, add 8192
"""
# on an H200; kernels that flip filters are part of their transforms here
RESNET_END = """
conv_staged_128x32x8_3 208, batch_norm 16384, relu 784, conv_staged_128x32x8_3 208, batch_norm 16384, add 784,
relu 784, reduce 1024
"""


def listed(text):
    """Return (name, TBs) of a list."""
    return [(words.split()[0], int(words.split()[1])) for words in text.split(",")]


def launched(kernels):
    """Return (name, TBs) of kernels."""
    return [(kernel.name, kernel.tbs) for kernel in kernels]


def profiled(name):
    """Return how many kernels a profile of a network has."""
    with MEASURED.open(newline="") as text:
        return next(
            int(r["kernels"]) for r in csv.DictReader(text) if r["workload"] == name and r["part"] == "span"
        )


def test_bert_launches_what_pytorch_launched():
    network = bert_network(Bert(768, 12, 3072, 12, 8, 128), Memory(), 2)
    assert network.launches == profiled("bert_base_b8_s128_fp16_fwd")
    layer = listed(BERT_LAYER)
    assert launched(network.kernels)[15 : 15 + 2 * len(layer)] == 2 * layer
    assert set(network.pieces[0].counts) == {1, 11}


def test_llama_launches_what_pytorch_launched():
    """A quarter of the batch has a quarter of the TBs, where a launch has more than some for each SM."""
    network = llama_network(Llama(2048, 32, 8, 5632, 8, 1, 1024), Memory(), 1)
    own = [k for k in network.kernels if not k.name.startswith(("hopper", "memset", "cudnn"))]
    for kernel, (name, tbs) in zip(own[36:], listed(LLAMA_ATTENTION), strict=False):
        assert (kernel.name, kernel.tbs) == (name, tbs if name in ("fill", "cat") else tbs // 4)


def test_a_resnet_launches_what_pytorch_launched_but_for_flips():
    name = "resnet18_b32_fp32_fwd"
    network = resnet_network(ResNet(32, (2, 2, 2, 2)), Memory(), convolutions_of(name))
    flips = 3
    assert network.launches == profiled(name) - flips
    assert launched(network.kernels)[-len(listed(RESNET_END)) - 2 : -2] == listed(RESNET_END)


def test_a_resnet_refuses_other_numbers_of_kernels():
    told = convolutions_of("resnet18_b32_fp32_fwd")
    with pytest.raises(WorkloadError, match="more convolutions than kernels"):
        resnet_network(ResNet(32, (2, 2, 2, 3)), Memory(), told)


def test_both_directions_of_a_recurrent_layer_write_their_half():
    network = recurrent_network(Stack("gru", 96, 64, 2, 16, 3, both=True), Memory())
    assert network.launches == len(network.kernels)
    cells = [kernel for kernel in network.kernels if kernel.name == "gru_cell"]
    assert len(cells) == 2 * 2 * 3
    y = {}
    for kernel in cells:
        for access in kernel.accesses:
            if access.mode == "write" and access.tensor.name == "y":
                y.setdefault(access.tensor.address, []).append(access.regions(np.arange(kernel.tbs)))
    for regions in y.values():
        rows = np.concatenate(regions)
        assert ((rows[:, 1] - rows[:, 0]) * (rows[:, 3] - rows[:, 2])).sum() == 16 * 3 * 2 * 64


def test_fused_attention_of_a_layer_copies_no_heads_forward():
    kernels = transformer_layer(Layer(1024, 16, 4096, 8, 512, fused=True), Memory())
    names = [kernel.name for kernel in kernels]
    assert len(names) == 50  # as the profile of bert_large_layer_b8_s512_fp16_fwdbwd_sdpa
    assert [n for n in names if n.startswith("copy")] == ["copy_merge"]
    assert names[4:7] == ["philox_state", "memset", "cudnn_fprop"]


def test_a_gpt_layer_trains():
    layer = Layer(256, 4, 1024, 2, 128, pre=True, causal=True)
    names = [kernel.name for kernel in transformer_layer(layer, Memory())]
    assert names.count("gelu_backward") == 1
    assert names.count("layer_norm_grad_input") == 2


# ------------------------------------------------------------------------------------------ operands in views


def covered(kernel, tensor, mode="write"):
    """Return how often each element of a tensor is in an access of a kernel."""
    count = np.zeros((tensor.rows, tensor.cols), int)
    for access in kernel.accesses:
        if access.tensor.address == tensor.address and access.mode == mode:
            for r0, r1, c0, c1 in access.regions(np.arange(kernel.tbs)):
                flat = access.tensor.rows == 1
                view = count.reshape(1, -1) if flat else count
                view[r0:r1, c0:c1] += 1
    return count


def test_attention_writes_heads_side_by_side_once():
    memory, p = Memory(), Attention(2, 4, 4, 256, 256, 64)
    qkv, o = memory.tensor("qkv", 512, 3 * 256, 2), memory.tensor("o", 512, 256, 2)
    operands = tuple(Planes(qkv, 256, 4, 64, part * 256) for part in range(3))
    places = Places(operands, (Planes(o, 256, 4, 64),))
    kernel = attention(p, memory, backend="cudnn", places=places).kernels[1]
    assert (covered(kernel, o) == 1).all()
    with pytest.raises(WorkloadError, match="must have 256 rows"):
        attention(p, memory, backend="cudnn", places=Places(operands, (Planes(o, 128, 4, 64),)))


def test_products_side_by_side_read_their_own_columns():
    memory = Memory()
    wide = memory.tensor("qkv", 256, 3 * 512, 2)
    within = (1536, 512), (1536, 0)
    operands = wide, wide
    kernels, _ = gemm(256, 256, 128, memory=memory, trans_a="T", batch=4, operands=operands, within=within)
    read = covered(kernels[-1], wide, "read")
    assert (read[:, :1024] > 0).all()
    assert not read[:, 1024:].any()


def test_batched_ffma_products_make_each_result_once():
    kernels, c = gemm(128, 128, 64, memory=Memory(), dtype="fp32", batch=6)
    assert kernels[0].tbs == 2 * 2 * 6
    assert (covered(kernels[0], c) == 1).all()


@pytest.mark.parametrize("sizes", [(64, 32, 4, 2), (64, 16, 4, 2, 3)])
def test_strided_kernels_move_each_element_once(sizes):
    memory, size = Memory(), int(np.prod(sizes))
    source, target = memory.tensor("a", size // 64, 64, 4), memory.tensor("b", size // 64, 64, 4)
    order = [0, *range(len(sizes) - 1, 0, -1)]  # of the dimensions in the source
    strides, wide = [0] * len(sizes), 1
    for at in order:
        strides[at], wide = wide, wide * sizes[at]
    kernel = strided(
        "copy", sizes, [View(source, tuple(strides))], dense(target, sizes), memory_bound.costs.COPY, 2
    )
    assert (covered(kernel, target) == 1).all()
    assert (covered(kernel, source, "read") == 1).all()
    tables_of(resolve("h200"), Job("copy", [kernel]), "stream")  # refuses patterns outside of the accesses


@pytest.mark.parametrize("sizes", [(60, 7), (7, 60), (3, 5, 7, 11), (1001, 3), (700, 2, 3, 5)])
def test_strided_kernels_end_at_rows_that_tbs_would_cut(sizes):
    """The target is dense; rows of the source are further apart than they are long."""
    memory, (row, *others) = Memory(), sizes
    source = memory.tensor("a", math.prod(others), row + 3, 4)
    target = memory.tensor("b", 1, math.prod(sizes), 4)
    strides = (1, *((row + 3) * math.prod(others[:at]) for at in range(len(others))))
    work = memory_bound.costs.COPY
    kernel = strided("copy", sizes, [View(source, strides)], dense(target, sizes), work, 2)
    check_patterns(Job("copy", [kernel]), every=True)
    assert (covered(kernel, target) == 1).all()
    read = covered(kernel, source, "read")
    assert (read[:, :row] == 1).all()
    assert not read[:, row:].any()


def test_strided_kernels_refuse_more_dimensions_than_a_grid_has():
    memory, sizes = Memory(), (700, 3, 5, 7, 11, 13)
    source, target = (memory.tensor(name, 1, math.prod(sizes), 4) for name in "ab")
    view = View(source, (1, 0, 700, 0, 3500, 0))
    with pytest.raises(WorkloadError, match="TBs"):
        strided("copy", sizes, [view], dense(target, sizes), memory_bound.costs.COPY, 2)


def test_columns_are_put_side_by_side_once():
    memory = Memory()
    a, b, c = memory.tensor("a", 64, 32, 2), memory.tensor("b", 64, 64, 2), memory.tensor("c", 64, 64, 2)
    kernel = cat_columns([Columns(a), Columns(b, 32)], 32, c)
    assert (covered(kernel, c) == 1).all()
    assert (covered(kernel, b, "read")[:, 32:] == 1).all()
    assert not covered(kernel, b, "read")[:, :32].any()


# ---------------------------------------------------------------------------------------- images, embeddings


def test_pooling_and_normalising_run_and_write_each_pixel_once():
    memory, images, window = Memory(), Images(4, 16, 32, 32), Window(3, 2, 1)
    x, y = memory.tensor("x", 64, 1024, 4), memory.tensor("y", 64, 1024, 4)
    norm = batch_norm(x, memory.tensor("s", 4, 16, 4), y, images)
    z, at = memory.tensor("z", 64, 256, 4), memory.tensor("at", 64, 256, 8)
    pool = max_pool(y, z, at, images, window)
    assert (covered(norm, y) == 1).all()
    assert (covered(pool, z) == 1).all()
    tables_of(resolve("h200"), Job("images", [norm, pool]), "stream")
    with pytest.raises(WorkloadError, match="are not"):
        batch_norm(x, memory.tensor("s", 4, 16, 4), z, images)


def test_the_gradient_of_an_embedding_updates_the_rows_that_were_taken():
    tape, taken = Tape(Memory()), np.arange(64) % 5
    table = tape.value("table", 100, 64, 4)
    y = op.embedding(tape, table, taken, "fp32")
    tape.backward(y, tape.memory.tensor("gradient", 64, 64, 4))
    assert [kernel.name for kernel in tape.kernels] == ["gather", "fill", "embedding_backward"]
    updated = covered(tape.kernels[-1], table.gradient, "update")
    assert (updated[:5] > 0).all()
    assert not updated[5:].any()
    with pytest.raises(WorkloadError, match="at most 3072"):
        embedding_backward(
            tape.memory.tensor("g", 4096, 64, 4),
            tape.memory.tensor("i", 1, 4096, 8),
            table.tensor,
            np.zeros(4096, int),
        )


def test_a_sum_of_columns_after_other_code_takes_as_much_longer_as_measured():
    """1.74 to 1.78 us, h200_cold_code.csv."""

    def time(cold):
        memory = Memory()
        kernels = memory_bound.sum_columns(memory, memory.tensor("a", 1024, 1024, 2), cold=cold).kernels
        return tables_of(resolve("h200"), Job("sum", list(kernels)), "graph")["kernels"]["complete_us"][-1]

    assert 1.5 < time(True) - time(False) < 2.1


def test_attention_by_products_is_forward_alone():
    tape = Tape(Memory())
    q = tape.value("q", 256, 128, 2)
    with pytest.raises(WorkloadError, match="forward"):
        math_attention(tape, (q, q, q), tape.memory.tensor("mask", 2, 128, 1), Heads(2, 128, 2, 64))
