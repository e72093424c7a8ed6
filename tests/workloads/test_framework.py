"""Operations on a tape, and layers in the order in which PyTorch launches their kernels."""

import csv
from pathlib import Path

import numpy as np
import pytest

from pysim.errors import WorkloadError
from pysim.program.job import Job, Memory
from pysim.program.library_kernels import stands_in
from pysim.program.pattern_check import check_patterns
from pysim.workloads.framework import operations as op
from pysim.workloads.framework.layers import Layer, transformer_layer
from pysim.workloads.framework.tape import Tape
from pysim.workloads.library.memory.head_copies import Heads, head_copy
from pysim.workloads.validation.suites import SUITES, cases_of

# What PyTorch 2.11 launched for a layer of BERT-large (batch 8, 128 tokens, fp16) as a captured graph on an
# H200: kernels and their TBs (workloads/measured/h200_torch.csv counts them)
FORWARD = """
fill 1, fill 1, hopper_gemm 128, copy_split 2048, copy_split_turned 2048, hopper_gemm 128, mul_scalar 2048,
softmax 2048, dropout 1056, copy_split 2048, hopper_gemm 128, copy_merge 2048, hopper_gemm 128,
dropout 1056, add 1024, layer_norm 1024, hopper_gemm 128, gelu 4096, hopper_gemm 128, dropout 1056,
add 1024, layer_norm 1024
"""
BACKWARD = """
layer_norm_grad_input 1024, gamma_beta 32, masked_scale 1024, hopper_gemm 128, hopper_gemm 128, memset 1,
reduce 128, gelu_backward 4096, hopper_gemm 128, hopper_gemm 128, memset 1, reduce 512, add 1024,
layer_norm_grad_input 1024, gamma_beta 32, masked_scale 1024, hopper_gemm 128, hopper_gemm 128, memset 1,
reduce 128, copy_split 2048, hopper_gemm 128, hopper_gemm 128, masked_scale 2048, mul 2048,
softmax_backward 2048, mul_scalar 2048, hopper_gemm 128, hopper_gemm 132, cat 792, copy_merge 6144,
hopper_gemm 128, hopper_gemm 128, memset 1, reduce 384, add 1024
"""


def listed(text):
    """Return (name, TBs) of a list."""
    return [(words.split()[0], int(words.split()[1])) for words in text.split(",")]


def test_a_bert_layer_launches_what_pytorch_launched():
    """One product, of 128 x 64 x 128, got 128 TBs there: its transposes are not in the sweep of batches."""
    kernels = transformer_layer(Layer(1024, 16, 4096, 8, 128), Memory())
    assert [(kernel.name, kernel.tbs) for kernel in kernels] == listed(FORWARD) + listed(BACKWARD)


def test_spans_of_the_suite_are_those_measured():
    with (Path(__file__).parents[1] / "hw/library/h200_library_sequences.csv").open(newline="") as text:
        measured = {row["workload"]: float(row["queued_us"]) for row in csv.DictReader(text)}
    spans = [case for case in cases_of(SUITES["h200-torch"])[0] if case.part == "span"]
    assert len(spans) == 14
    assert all(case.measured_us == measured[case.task[0]] for case in spans)


def test_evaluation_launches_neither_dropout_nor_backward():
    kernels = transformer_layer(Layer(1024, 16, 4096, 8, 128, training=False), Memory())
    wanted = [pair for pair in listed(FORWARD) if pair[0] not in ("fill", "dropout")]
    assert [(kernel.name, kernel.tbs) for kernel in kernels] == wanted


def test_a_second_gradient_is_added_when_it_is_there():
    """x is used twice: by a sum and by a GELU, whose gradient comes later."""
    tape = Tape(Memory())
    x = tape.value("x", 128, 128, 2)
    y = op.add(tape, x, op.gelu(tape, x, "none"))
    tape.backward(y, tape.memory.tensor("g", 128, 128, 2))
    assert [kernel.name for kernel in tape.kernels] == ["gelu", "add", "gelu_backward", "add"]
    assert x.gradient is tape.kernels[-1].args[-1] or x.gradient.address == tape.kernels[-1].args[-1].address


def test_what_was_recorded_last_goes_back_first():
    tape = Tape(Memory())
    x, w = tape.value("x", 128, 128, 2), tape.value("w", 1, 128, 2)
    scaled, normed = op.scale(tape, x), op.layer_norm(tape, x, w, tape.value("b", 1, 128, 2))
    tape.backward(op.add(tape, scaled, normed), tape.memory.tensor("g", 128, 128, 2))
    back = [kernel.name for kernel in tape.kernels[3:]]
    assert back == ["layer_norm_grad_input", "gamma_beta", "mul_scalar", "add"]


def test_nothing_recorded_has_no_way_back():
    tape = Tape(Memory(), training=False)
    y = op.scale(tape, tape.value("x", 128, 128, 2))
    with pytest.raises(WorkloadError, match="nothing was recorded"):
        tape.backward(y, y.tensor)


def elements(access, tbs):
    """Return the elements of an access, each as (row, column), as often as TBs use them."""
    return [
        (row, col)
        for r0, r1, c0, c1 in access.regions(np.arange(tbs))
        for row in range(r0, r1)
        for col in range(c0, c1)
    ]


@pytest.mark.parametrize("way", ["split", "merge", "split_turned"])
@pytest.mark.parametrize("seq", [32, 1024])
def test_copies_of_heads_move_each_element_once(way, seq):
    memory, heads = Memory(), Heads(1 if seq > 512 else 2, seq, 2, 64)
    wide = memory.tensor("wide", heads.batch * seq, 2 * 64, 2)
    planes = heads.batch * 2
    shape = (planes * 64, seq) if way == "split_turned" else (planes * seq, 64)
    kernel = head_copy(way, heads, wide, memory.tensor("heads", *shape, 2))
    for access in kernel.accesses:
        found = elements(access, kernel.tbs)
        assert len(found) == len(set(found)) == wide.rows * wide.cols


@pytest.mark.parametrize("way", ["split", "merge", "split_turned"])
@pytest.mark.parametrize("heads", [Heads(1, 7, 1, 64), Heads(2, 77, 3, 64), Heads(1, 100, 2, 80)])
def test_heads_that_tbs_would_cut_are_copied_by_tbs_that_end_at_rows(way, heads):
    memory, planes = Memory(), heads.batch * heads.heads
    wide = memory.tensor("wide", heads.batch * heads.seq, heads.heads * heads.d + 16, 2)
    turned = way == "split_turned"
    shape = (planes * heads.d, heads.seq) if turned else (planes * heads.seq, heads.d)
    kernel = head_copy(way, heads, wide, memory.tensor("heads", *shape, 2), 16)
    assert stands_in(kernel)
    check_patterns(Job("copy", [kernel]))
    for access in kernel.accesses:
        found = elements(access, kernel.tbs)
        assert len(found) == len(set(found)) == planes * heads.seq * heads.d
