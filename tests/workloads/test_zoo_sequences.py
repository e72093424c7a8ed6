"""DeepSpeech2 and GNMT of the zoo: totals against what was published, order of kernels, small runs."""

from collections import Counter

import numpy as np
import pytest

from pysim import Memory, simulate
from pysim.dependence.dependences import dependences
from pysim.engine.replay import contract
from pysim.errors import WorkloadError
from pysim.program.pattern_check import check_patterns
from pysim.workloads.framework import operations as op
from pysim.workloads.framework.sequences.columns import cat_rows
from pysim.workloads.framework.sequences.layer import Layer, recurrent
from pysim.workloads.framework.sequences.speech import Speech, speech
from pysim.workloads.framework.tape import Tape
from pysim.workloads.library.recurrences.recurrent import Recurrent
from pysim.workloads.library.recurrences.rnn import rnn
from pysim.workloads.networks.recurrent.deepbench import LISTS
from pysim.workloads.networks.shapes import SPEECH, TRANSLATION
from pysim.workloads.registry import make
from pysim.workloads.validation.deepbench import GEMM
from pysim.workloads.validation.table import packaged, rows_of

GNMT = "gnmt:batch=16,source=4,target=3,vocabulary=256,hidden=512,layers=2"
SPEECH_SMALL = "deepspeech2:batch=16,steps=6,layers=2,hidden=64"


def counted(kernels):
    return Counter(kernel.name for kernel in kernels)


def test_gnmt_has_the_parameters_published():
    """All 44 of NVIDIA's apex (both biases of an LSTM are one here), to the last."""
    job = make("gnmt:batch=16,source=2,target=2")
    assert job.totals.parameters == TRANSLATION["gnmt"].published * 1e6 == 160_671_297


def test_gnmt_computes_what_its_layers_do():
    """Two a weight and token (LSTMs, classifier, queries and keys), scores, and the attended keys."""
    batch, source, target, h, words = 16, 24, 16, 1024, 32320
    gates = 4 * h
    encoder = 2 * gates * 2 * h + gates * 3 * h + 2 * gates * 2 * h
    decoder = gates * 2 * h + 3 * gates * 3 * h + h * h + words * h
    attention = h * h * source + target * source * 2 * h
    wanted = 2 * batch * (encoder * source + decoder * target + attention)
    text = f"gnmt:batch={batch},source={source},target={target}"
    assert make(text).totals.flops == pytest.approx(wanted, rel=0.01)
    assert make(f"{text},pass=training").totals.flops == pytest.approx(3 * wanted, rel=0.01)


def test_deepspeech2_has_the_parameters_reported():
    """52M with 7 layers of 768 units and 73 labels: SeanNaren/deepspeech.pytorch, issue 608."""
    tape = Tape(Memory(), training=False)
    speech(Speech("gru", 768, 7, 73, 16, 2, "fp16"), tape)
    assert tape.parameters == pytest.approx(52e6, rel=0.01)
    made = make("deepspeech2:steps=2").totals.parameters
    assert made == pytest.approx(SPEECH["deepspeech2"].published * 1e6, rel=0.01)


def test_deepspeech2_computes_what_its_layers_do():
    batch, steps, h = 16, 6, 800
    conv = 32 * 451 * 81 * steps + 32 * 7392 * 41 * steps
    gates = 3 * h
    layers = 2 * gates * (1312 + h) + 4 * 2 * gates * 2 * h
    wanted = 2 * batch * (conv + (layers + 29 * h) * steps)
    assert make(f"deepspeech2:batch={batch},steps={steps}").totals.flops == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize("text", [GNMT, SPEECH_SMALL])
def test_a_training_step_has_gradients_of_all_parameters(text):
    """Forward launches come first; each LSTM or GRU, step and loss has its way back."""
    forward, training = make(text), make(f"{text},pass=training")
    ahead, names = counted(forward.kernels), counted(training.kernels)
    cell = "persistent_lstm" if text is GNMT else "gru_cell"
    assert names[cell] == ahead[cell] == names[f"{cell}_back"] > 0
    assert training.totals.parameters == forward.totals.parameters
    step = [kernel for kernel in training.kernels if kernel.name in ("adamw", "foreach_add")]
    stepped = {a.tensor.address for kernel in step for a in kernel.accesses if a.mode != "read"}
    assert stepped


@pytest.mark.deep
@pytest.mark.parametrize("gpu", ["h200", "titan_v"])
@pytest.mark.parametrize("text", [GNMT, SPEECH_SMALL])
def test_small_steps_run_under_streams_and_tables(text, gpu):
    result = simulate(gpu, make(f"{text},pass=training", gpu), "stream,tb_static", tables="kernels")
    assert [row["status"] for row in result.tables()["runs"]] == [b"ok"] * 2


def test_what_stands_in_before_hopper_says_so():
    kernels = make(f"{SPEECH_SMALL},pass=training", "titan_v").kernels
    assert not [kernel.name for kernel in kernels if not kernel.library]
    assert any("cuDNN's cell" in kernel.library for kernel in kernels)


def test_directions_run_in_streams_of_their_own_between_events():
    job = make(f"{SPEECH_SMALL}")
    other = [i for i, kernel in enumerate(job.kernels) if kernel.stream == 1]
    assert len(other) == 2 * 6 * 2  # of two layers: a GEMM and a cell a step
    assert len(job.events) == 4
    assert all(job.kernels[a].stream != job.kernels[b].stream for a, b in job.events)
    assert not any(kernel.stream for kernel in make(f"{SPEECH_SMALL},streams=1").kernels)


def test_recurrent_layers_are_launched_as_in_a_profile():
    """Order and count of ``gru_ds2_h800_bi5_b16_t75_fp32_fwd`` on an H100: 1,512 launches, five layers."""
    tape = Tape(Memory(), training=False)
    x = tape.value("x", 16 * 75, 1312, 4)
    for _ in range(5):
        forth, back = recurrent(tape, x, Layer("gru", 800, 16, 75, "fp32", both=True))
        assert (forth.tensor.rows, back.tensor.cols) == (1200, 800)
        x = tape.value("both", 16 * 75, 1600, 4)
    names = counted(tape.kernels)
    # a profile has 750 cells and 750 GEMMs of steps, ten of inputs, a clear and a last linear layer
    assert names["gru_cell"] == 750
    sums = sum(n for name, n in names.items() if name in ("tile_sum", "split_k_sum", "memset"))
    gemms = sum(n for name, n in names.items() if name.startswith("staged"))
    assert gemms == 750 + 10
    assert sum(names.values()) == 750 + 760 + sums + names["clear_h"]


def test_reverse_passes_add_their_gradient_of_inputs_in_place():
    tape = Tape(Memory())
    x = tape.value("x", 16 * 3, 64, 2)
    forth, back = recurrent(tape, x, Layer("gru", 64, 16, 3, "fp16", both=True))
    y = op.add(tape, forth, back)
    tape.backward(y, tape.memory.tensor("g", 48, 64, 2))
    writers = [
        i
        for i, kernel in enumerate(tape.kernels)
        if any(a.mode != "read" and a.tensor.address == x.gradient.address for a in kernel.accesses)
    ]
    assert len(writers) == 2
    assert all(weight.gradient is not None for weight in tape.weights)


def test_columns_side_by_side_are_copied_once():
    memory = Memory()
    parts = [memory.tensor(name, 6, 512, 2) for name in "ab"]
    kernel = cat_rows(parts, memory.tensor("whole", 6, 1024, 2))
    for access in kernel.accesses:
        regions = access.regions(np.arange(kernel.tbs))
        assert ((regions[:, 1] - regions[:, 0]) * (regions[:, 3] - regions[:, 2])).sum() == 6 * 512


@pytest.mark.parametrize("direction", ["forward_training", "forward_backward"])
def test_steps_of_a_pass_are_found_to_repeat(direction):
    job = rnn(Recurrent("gru", 256, 16, 40, "fp16", direction))
    made = contract(job, dependences(job), 8, 1)
    assert made is not None
    assert made.left_out >= len(job.kernels) // 4
    assert len({run.first for run in made.runs}) == (1 if direction == "forward_training" else 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gnmt:pass=decode", "pass = decode: must be forward, training"),
        ("gnmt:dtype=half", "gnmt: dtype = half: must be fp32 or fp16 or bf16 or amp on h200"),
        (
            "gnmt:dtype=amp-bf16",
            "gnmt: dtype = amp-bf16: must be amp: under autocast of bf16 PyTorch",
        ),
        ("rnn-net:dtype=amp,pointwise=fused,input=skip", "rnn-net: input = skip: under autocast: must be"),
        ("gnmt:hidden=128", "hidden = 128: must be a multiple of 256 in fp16"),
        ("gnmt:layers=1", "layers"),
        ("gnmt:hidden=200", "gnmt"),
        ("deepspeech2:steps=0", "steps = 0"),
        ("deepspeech2:cell=rnn", "cell = rnn: must be vanilla, gru, lstm"),
        ("deepspeech2:streams=3", "streams = 3: must be 1 or 2"),
        ("deepspeech2:optimizer=adam", "optimizer = adam"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(WorkloadError, match=message) as error:
        make(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["gemm", "conv", "rnn", "allreduce"])
def test_deepbench_rows_are_jobs_on_two_generations(kind):
    for gpu in ("h200", "v100"):
        for row in (1, 20):
            job = make(f"deepbench:kind={kind},row={row}", gpu)
            assert job.kernels
            assert job.totals.flops > 0 or kind == "allreduce"


def test_deepbench_lists_are_those_of_the_measured_rows():
    """The suites' tables were copied from the same sheets: all GEMMs, and layers of at most 200 steps."""
    rows = rows_of(GEMM.file, packaged(GEMM.file), GEMM.columns)
    listed = [word.split(",") for word in LISTS["gemm"]]
    wanted = [
        [*(str(row.count(name)) for name in "MNK"), row.text("A_transpose") + row.text("B_transpose")]
        for row in rows
        if row.text("precision") == "fp32"
    ]
    assert listed == wanted
    assert [len(known) for known in LISTS.values()] == [160, 94, 53, 21]


def test_an_all_reduce_takes_as_long_as_measured():
    """4,194,304 floats among 8 P100 take 4.99 ms in DeepBench's sheet; the line gives 5.1."""
    result = simulate("v100", make("deepbench:kind=allreduce,row=9", "v100"), "stream", tables="none")
    assert result.tables()["runs"]["time_us"][0] == pytest.approx(4989, rel=0.05)


@pytest.mark.parametrize(
    ("text", "message"),
    [("kind=sparse", "kind = sparse"), ("row=0", "row = 0"), ("pass=training", "pass = training")],
)
def test_deepbench_refuses(text, message):
    with pytest.raises(WorkloadError, match=message):
        make(f"deepbench:{text}")


def test_a_stack_has_each_way_of_launching_its_steps():
    base = "rnn-net:hidden=256,batch=16,steps=4,layers=2"
    one, stepwise = make(base), make(f"{base},persistent=0")
    assert counted(one.kernels)["persistent_lstm"] == 2
    assert counted(stepwise.kernels)["lstm_cell"] == 2 * 4
    both = make(f"{base},both=1,persistent=0,pass=training")
    assert counted(both.kernels)["lstm_cell_back"] == 2 * 2 * 4
    assert {kernel.stream for kernel in both.kernels} == {0, 1}
    assert both.totals.flops == 3 * 2 * one.totals.flops
    assert one.totals == stepwise.totals


@pytest.mark.parametrize("gpu", ["h200", "v100"])
def test_any_number_of_sequences_is_a_batch(gpu):
    """States that would not begin at multiples of 256 B are those of a larger batch, which does not count."""
    sizes = "steps=4,layers=1,hidden=96,pass=training"
    three, four = (make(f"deepspeech2:batch={batch},{sizes}", gpu) for batch in (3, 4))
    check_patterns(three)
    assert three.totals.flops == four.totals.flops * 3 / 4
    added = counted(three.kernels) - counted(four.kernels)
    assert added["copy"] == 2 * 3  # what goes in, and of both directions what comes out; and their gradients
    padded = [kernel for kernel in three.kernels if "of 4 sequences, for 3" in kernel.library]
    assert {"gru_cell", "gru_cell_back"} <= {kernel.name for kernel in padded}
    assert not any("sequences" in kernel.library for kernel in four.kernels)


@pytest.mark.parametrize("text", [f"{GNMT},pass=training", "rnn-net:steps=3,hidden=128"])
def test_bf16_has_the_kernels_of_fp16_and_says_so(text):
    half, brain = make(text), make(f"{text},dtype=bf16")
    assert [k.name for k in brain.kernels] == [k.name for k in half.kernels]
    assert all("of fp16, for bf16" in kernel.library for kernel in brain.kernels)


def test_a_sentence_alone_is_not_turned():
    names = counted(make("gnmt:batch=1,source=3,target=3,hidden=128,layers=2,dtype=fp32").kernels)
    assert (
        names["copy"]
        < counted(make("gnmt:batch=2,source=3,target=3,hidden=128,layers=2,dtype=fp32").kernels)["copy"]
    )
