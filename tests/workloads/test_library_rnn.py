"""Recurrent passes of cuDNN: what their kernels compute and move, what follows what, what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from pysim import Job, Memory, simulate
from pysim.errors import WorkloadError
from pysim.machine.system import resolve
from pysim.workloads.library.choices.choice import Problem
from pysim.workloads.library.gemms.told import told_hopper, told_launches, told_of, told_staged
from pysim.workloads.library.recurrences.recurrent import Recurrent
from pysim.workloads.library.recurrences.rnn import rnn, rnn_parts
from pysim.workloads.library.recurrences.rnn_cells import bias_gradient, transpose
from pysim.workloads.validation import library_rnn
from pysim.workloads.validation.library_rnn import RNN
from pysim.workloads.validation.table import packaged, rows_of

SMALL = told_of("nvjet_sm90_hsh_64x16_64x16_2x1_v_bz_TNT|2x8x1|168|180692")
BACK = told_of("nvjet_sm90_hsh_64x16_64x16_2x1_v_bz_NNT|2x2x1|168|180692")
ROLES = {"input": SMALL, "hidden": SMALL, "back": BACK, "input_back": BACK}
ROLES |= dict.fromkeys(("weights", "weights_first", "weights_hidden"), BACK)


def small(cell="gru", direction="forward_backward", dtype="fp16"):
    return Recurrent(cell, 256, 16, 3, dtype, direction, ROLES)


@pytest.mark.parametrize("cell", ["gru", "vanilla"])
def test_a_pass_has_the_launches_of_its_steps(cell):
    forward = rnn(small(cell, "forward_training"))
    both = rnn(small(cell))
    names = [kernel.name for kernel in both.kernels]
    assert names.count(f"{cell}_cell") == names.count(f"{cell}_cell_back") == 3
    assert [kernel.name for kernel in forward.kernels] == names[: len(forward.kernels)]


def test_steps_follow_each_other_and_weights_do_not():
    table = simulate("h200", rnn(small()), "graph", tables="kernels").tables()["kernels"]
    names = [kernel.name for kernel in rnn(small()).kernels]
    cells = [i for i, name in enumerate(names) if name == "gru_cell"]
    assert np.all(np.diff(table["complete_us"][cells]) > 0)
    for i in cells:
        assert table["ready_us"][i] >= table["complete_us"][i - 1]  # the GEMM of the state
    last = table["complete_us"][[i for i, name in enumerate(names) if name == "gru_cell_back"]].max()
    end = [i for i in range(len(names)) if table["ready_us"][i] >= last and "gemm" in names[i]]
    assert len({table["ready_us"][i] for i in end[1:]}) < len(end)  # some start together


def test_shown_steps_are_those_of_the_pass():
    parts = rnn_parts(small(), 2)
    assert list(parts) == ["begin", "forward", "backward", "end"]
    assert parts["forward"].steps == 2
    assert len(parts["forward"].kernels) == 4
    assert rnn_parts(small("gru", "forward_inference"), 0)["forward"].steps == 3


def test_a_bias_gradient_and_a_transposition_touch_each_element_once():
    memory = Memory()
    dgates, sums = memory.tensor("dgates", 48, 192, 2), memory.tensor("sums", 1, 192, 2)
    kernel = bias_gradient("bias", dgates, sums, 3)
    turned = transpose("turn", memory.tensor("w", 64, 96, 2), memory.tensor("wt", 96, 64, 2))
    for made in (kernel, turned):
        for access in made.accesses:
            area = 0
            for row, row_end, col, col_end in access.regions(np.arange(made.tbs)):
                area += (row_end - row) * (col_end - col)
            full = access.tensor.rows * access.tensor.cols
            assert area == (full // 3 if made is kernel else full)
    simulate("h200", Job("both", [kernel, turned]), "graph")  # addresses are those declared


def test_vector_gemms_read_their_operands_once():
    memory = Memory()
    problem = Problem(64, 2, 512, "T", "N", "fp32")
    a, b = memory.tensor("A", 64, 512, 4), memory.tensor("B", 2, 512, 4)
    kernels, c = told_launches(told_of("gemmSN_TN_kernel|8x1x1|96|13824"), problem, memory, (a, b))
    result = simulate("h200", Job("dots", list(kernels)), "graph", tables="kernels").tables()["kernels"]
    assert result["load_bytes"][0] == a.nbytes + 8 * b.nbytes  # each TB of eight reads B
    assert result["store_bytes"][0] == c.nbytes


def test_parts_of_k_follow_from_the_grid():
    told = told_of("nvjet_sm90_hsh_64x16_64x16_4x1_v_bz_splitK_NNT|4x24x1|168|180676")
    assert told_hopper(told, Problem(2048, 16, 8192, "N", "N", "fp16")).split_k == 3


SIMT = "cutlass_80_simt_sgemm_64x64_8x5_nn_align1|8x4x4|76|20480"
XMMA = (
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4"
    "_execute_kernel__5x_cublas|4x2x4|128|13056"
)
HALF = "cutlass_75_tensorop_f16_s1688gemm_f16_128x128_nn_align1|8x1x4|128|32768|sum"


@pytest.mark.parametrize(
    ("text", "dtype", "names", "item"),
    [
        (SIMT, "fp32", ["memset", "staged"], 4),
        (SIMT + "|sum", "fp32", ["staged", "split_k_sum"], 4),
        (XMMA, "fp32", ["memset", "staged"], 4),
        (XMMA + "|sum", "fp32", ["staged", "tile_sum"], 4),
        (HALF, "fp16", ["staged", "split_k_sum"], 2),
    ],
)
def test_parts_of_k_are_added_as_the_text_says(text, dtype, names, item):
    """A counter is reset before TBs add parts in turn; a kernel reads parts of its GEMM's element."""
    told, memory = told_of(text), Memory()
    problem = Problem(512, 128, 1024, "N", "N", dtype)
    kernels, c = told_launches(told, problem, memory, None)
    assert len(kernels) == len(names)
    assert all(kernel.name.startswith(name) for kernel, name in zip(kernels, names, strict=True))
    assert (c.rows, c.cols, c.item) == (128, 512, problem.item)
    assert kernels[-1].args[0].item == item
    assert told_staged(told, problem).reduction == told.launch.reduction


def test_what_is_refused():
    with pytest.raises(WorkloadError, match="cell = 'lstn': must be vanilla, gru, lstm"):
        Recurrent("lstn", 256, 16, 3, "fp16", "forward_training")
    with pytest.raises(WorkloadError, match="multiples of 256 B"):
        Recurrent("gru", 32, 1, 3, "fp16", "forward_training")
    with pytest.raises(WorkloadError, match="no template"):
        told_launches(
            told_of("sgemm_largek_lds64|2x1x1|40|4868"), Problem(64, 2, 64, "T", "N", "fp32"), Memory(), ()
        )
    with pytest.raises(WorkloadError, match="must be name"):
        told_of("gemm|1x1")
    with pytest.raises(WorkloadError, match="two kernels of another kind"):
        rnn(replace(small("lstm", "forward_training"), batch=128))


def test_a_small_lstm_is_one_kernel():
    for batch in (16, 64):
        lstm = replace(small("lstm"), batch=batch)
        parts = rnn_parts(lstm)
        assert [kernel.name for kernel in parts["forward"].kernels] == ["clear_states", "persistent_lstm"]
        simulate("h200", parts["forward"], "graph")
    assert not replace(lstm, batch=24).persistent


def test_a_measured_pass():
    rows = rows_of(RNN.file, packaged(RNN.file), RNN.columns)
    case = next(c for c in RNN.cases(rows) if c.case.startswith("46:fp16 forward_training"))
    outcome = RNN.run(resolve("h200"), *case.task)
    assert 0.8 < outcome.times_us["pass"] / case.measured_us < 1.2


def test_roles_that_are_not_told_take_the_kernels_of_cublas():
    kernels = {kernel.name for kernel in rnn(replace(small(), kernels={})).kernels}
    assert any(name.startswith(("hopper_gemm", "staged", "vector")) for name in kernels)


def test_a_long_pass_is_as_long_as_its_steps_and_its_gemms(monkeypatch):
    config = resolve("h200")
    p = Recurrent("vanilla", 512, 64, 12, "fp32", "forward_training")
    whole = library_rnn.simulated(config, p, "pass")
    monkeypatch.setattr(library_rnn, "MOST_FLOPS", {"fp32": 5 * p.flops / 2 / p.steps})
    some = library_rnn.simulated(config, p, "pass")
    assert some.times_us["pass"] == pytest.approx(whole.times_us["pass"], rel=0.05)
    assert whole.detail == "4 steps of 12 (sampled)"
    assert some.detail == "4 steps of 12, GEMMs of all steps one by one (sampled)"
