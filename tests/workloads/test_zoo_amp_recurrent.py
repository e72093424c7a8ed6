"""Autocast of recurrent networks and of a mixture of experts: what is converted, and how often."""

from collections import Counter

import pytest

from pysim import simulate
from pysim.dependence.dependences import dependences
from pysim.program.pattern_check import check_patterns
from pysim.workloads.registry import make

LSTM = "rnn-net:cell=lstm,hidden=128,batch=16,steps=3,layers=2"
GRUS = "rnn-net:cell=gru,hidden=128,batch=16,steps=3,layers=2,both=1"
LOOP = "rnn-net:cell=lstm,hidden=128,batch=16,steps=3,layers=2,pointwise=fused"
WAVES = f"{LOOP.replace('layers=2', 'layers=3')},input=per-step,wavefront=1"
GNMT = "gnmt:batch=16,source=3,target=2,vocabulary=256,hidden=512,layers=2"
SPEECH = "deepspeech2:batch=16,steps=4,layers=2,hidden=64"
EXPERTS = "moe-block:seq=64,hidden=256,ffn=512,experts=4"
STEPPED = {GNMT: "adamw", SPEECH: "foreach_add", EXPERTS: "adamw"}


def _made(text, dtype="amp", way="training", gpu="h200"):
    return make(f"{text},pass={way},dtype={dtype}", gpu)


def _casts(job):
    """Return how often casts write elements of so many bytes."""
    return Counter(kernel.args[-1].item for kernel in job.kernels if kernel.name == "cast")


def _items(job, *names):
    """Return the bytes of an element of all operands of kernels of such names."""
    return {a.tensor.item for k in job.kernels if k.name in names for a in k.accesses}


@pytest.mark.parametrize("text", [GRUS, WAVES, GNMT, SPEECH, EXPERTS])
def test_autocast_has_the_totals_of_fp32_and_no_races(text):
    plain, amp = _made(text, "fp32"), _made(text)
    assert amp.totals == plain.totals
    check_patterns(amp)
    assert not dependences(amp).races


@pytest.mark.parametrize("text", STEPPED)
def test_gradients_and_moments_are_fp32_and_a_loss_scale_is_checked_in_fp16(text):
    job = _made(text)
    names = [kernel.name for kernel in job.kernels]
    assert names.index("unscale_and_check") < names.index(STEPPED[text]) < names.index("update_scale")
    assert _items(job, STEPPED[text], "unscale_and_check") == {4}
    assert "unscale_and_check" not in {k.name for k in _made(text, way="forward").kernels}


def test_cudnn_is_called_in_fp16_with_flattened_weights():
    """Of a layer three parameters, of the first the input and both states, too; back those of parameters."""
    forward, training = _made(LSTM, way="forward"), _made(LSTM)
    assert _casts(forward) == {2: 2 * 3 + 1 + 2}
    assert _casts(training) == {2: 2 * 3 + 1 + 2, 4: 2 * 3}
    assert [k.name for k in _made(LSTM, "amp-bf16").kernels] == [k.name for k in training.kernels]
    assert _items(training, "persistent_lstm", "persistent_lstm_back") == {2}
    (first, *_), (begin, *_) = (
        [k for k in training.kernels if k.name == name] for name in ("cast", "persistent_lstm")
    )
    weights = {kernel.args[-1].address for kernel in training.kernels if kernel.name == "cast"}
    assert begin.args[0].address in weights
    buffer = next(k.args[0] for k in training.kernels if k.name == "fill" and k.args[0].item == 2)
    assert buffer.nbytes >= 2 * 2 * 512 * 128 > first.args[-1].nbytes


def test_both_directions_are_one_call():
    """They share the buffer, the converted input and a tensor of states."""
    job = _made(GRUS, way="forward")
    assert _casts(job) == {2: 2 * 2 * 3 + 1 + 1}
    fills = Counter(k.args[0].item for k in job.kernels if k.name == "fill")
    assert fills == {2: 2, 4: 1}  # buffers of two layers; states of the first


def test_loops_keep_converted_parameters_and_convert_inputs_each_time():
    """A hoisted product converts all inputs at once, a cell of the first layer rows and states it takes."""
    parameters, states, steps = 2 * 4, 2, 3
    assert _casts(_made(f"{LOOP},input=hoisted", way="forward")) == {2: parameters + 1}
    assert _casts(_made(f"{LOOP},input=per-step", way="forward")) == {2: parameters + states + steps}
    unfused = LOOP.replace("fused", "unfused")
    assert _casts(_made(unfused)) == {2: parameters + 1, 4: parameters}


@pytest.mark.parametrize("kernels", ["own", "library"])
def test_networks_of_cells_convert_parameters_once(kernels):
    text = f"gru:hidden=128,batch=8,timesteps=3,layers=2,kernels={kernels}"
    half, amp = make(f"{text},dtype=fp16", "h200"), make(f"{text},dtype=amp", "h200")
    parameters = 2 * (3 if kernels == "library" else 2)  # cells of this project add no bias
    assert _casts(amp) == {2: parameters + 1 + 3}  # the first state, and inputs of three steps
    others = [k.name for k in amp.kernels if k.name != "cast"]
    assert others == [k.name for k in half.kernels]


def test_sums_and_norms_of_speech_are_fp32_and_its_layers_fp16():
    job = _made(SPEECH)
    assert _items(job, "gru_cell", "gru_cell_back") == {2}
    sums = [k for k in job.kernels if k.name == "add" and "both directions" in k.library]
    assert [[a.tensor.item for a in k.accesses] for k in sums] == [[2, 2, 4]] * 2
    assert _items(job, "batch_norm_rows") == {4}
    brain = _made(SPEECH, "amp-bf16")
    assert _casts(brain)[2] == _casts(job)[2] + 2  # from bf16 to the fp16 of the first layer, and back


def test_scores_of_translation_are_fp32_from_their_bias_to_their_product():
    job = _made(GNMT)
    assert _items(job, "tanh_backward") == {4}
    (added,) = (k for k in job.kernels if k.name == "add_repeated" and "with casts" in k.library)
    assert [a.tensor.item for a in added.accesses] == [2, 4, 4]


def test_each_product_of_an_expert_converts_its_rows():
    experts = 4
    job, back = _made(EXPERTS, way="forward"), _made(EXPERTS)
    assert _casts(job) == {2: experts * (3 + 2) + 2, 4: 1}  # the router's weights and input; its scores
    assert _casts(back)[4] == 1 + experts * (3 + 2) + 2
    assert _items(job, "index_add") >= {4}
    products = [k for k in job.kernels if k.name == "mul_rows"]
    assert [[a.tensor.item for a in k.accesses] for k in products] == [[2, 4, 4]] * experts


def test_autocast_lies_between_fp16_and_fp32():
    """Of products in fp16, and of more launches than in pure fp16."""
    text = "gru:hidden=512,batch=16,timesteps=2,layers=1,kernels=library"
    half, amp, full = (
        simulate("h200", make(f"{text},dtype={dtype}", "h200"), "graph", tables="none", baseline=False)
        for dtype in ("fp16", "amp", "fp32")
    )
    assert half.time_us("graph") < amp.time_us("graph") < full.time_us("graph")
