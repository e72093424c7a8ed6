"""Mixed precision of networks of the zoo, and fp16 convolutions on Ampere."""

import re
from collections import Counter

import pytest

from pysim.errors import WorkloadError
from pysim.program.library_kernels import stands_in
from pysim.program.pattern_check import check_patterns
from pysim.workloads.registry import make

NETWORKS = "gpt2:layers=1,seq=64", "bert-base:layers=1,batch=1,seq=64", "resnet18:side=32"


def _made(text, dtype, way="training", gpu="h200"):
    return make(f"{text},pass={way},dtype={dtype}", gpu)


def _writers(job, kernels=("cast",)):
    """Return how often kernels of such names write elements of so many bytes."""
    return Counter(k.args[-1].item for k in job.kernels if k.name in kernels)


@pytest.mark.parametrize("text", NETWORKS)
def test_autocast_has_the_totals_of_fp32_and_products_of_16_bits(text):
    plain, amp = _made(text, "fp32"), _made(text, "amp")
    assert amp.totals == plain.totals
    check_patterns(amp)
    items = {a.tensor.item for k in amp.kernels if "gemm" in k.name or "staged" in k.name for a in k.accesses}
    assert 2 in items
    step = [k for k in amp.kernels if k.name in ("adamw", "lamb_stage_2", "foreach_add")]
    assert step
    assert {a.tensor.item for k in step for a in k.accesses} == {4}  # parameters, gradients, what was found


def test_a_parameter_is_converted_once_and_its_gradient_back():
    """Of a GPT's layer: four products, biases apart, and the words, whose table is gathered in fp32, too."""
    forward, training = (_made(NETWORKS[0], "amp", way) for way in ("forward", "training"))
    to_half, to_full = 2, 4
    parameters = 4 * 2 + 1
    activations = 2 + 1 + 1  # after two norms of the layer and the last one; shares of attention
    assert _writers(forward)[to_half] == parameters + activations
    # training: what is dropped of a mixed sum is converted back, twice; so are gradients of scores and logits
    assert _writers(training)[to_half] - _writers(forward)[to_half] == 2 + 1 + 1
    more = _writers(training)[to_full] - _writers(forward)[to_full]
    assert more == parameters + activations + 1  # logits for the loss


def test_a_loss_scale_is_checked_before_the_step_in_fp16_alone():
    half, brain = _made(NETWORKS[0], "amp"), _made(NETWORKS[0], "amp-bf16")
    names = [k.name for k in half.kernels]
    check, step, update = (names.index(each) for each in ("unscale_and_check", "adamw", "update_scale"))
    assert check < step < update == len(names) - 1
    found = {a.tensor.address for a in half.kernels[check].accesses if a.mode == "update"}
    read = {a.tensor.address for a in half.kernels[step].accesses if a.mode == "read"}
    assert found & read
    assert not {"unscale_and_check", "update_scale"} & {k.name for k in brain.kernels}
    muls = Counter(k.name for k in brain.kernels)["mul"]
    assert Counter(names)["mul"] == muls + 2  # the loss and its gradient


def test_pure_half_precision_converts_nothing_in_a_layer():
    assert not _writers(_made(NETWORKS[0], "fp16"))


@pytest.mark.parametrize(
    ("text", "gpu", "message"),
    [
        ("gpt2:dtype=amp-bf16", "v100", "gpt2: dtype = amp-bf16: must be fp32 or fp16 or amp on v100"),
        ("gpt2:dtype=amp,shards=2", "h200", "gpt2: shards = 2: dtype = amp: must be fp32, bf16, fp16"),
        ("resnet18:dtype=amp-bf16", "v100", "resnet18: dtype = amp-bf16: must be fp32 or fp16 or amp on"),
    ],
)
def test_what_autocast_there_is_not_is_refused(text, gpu, message):
    with pytest.raises(WorkloadError, match=re.escape(message)):
        make(text, gpu)


def test_bf16_has_the_convolutions_of_fp16_and_says_so():
    half, brain = _made("resnet18:side=32", "fp16"), _made("resnet18:side=32", "bf16")
    assert [k.name for k in brain.kernels] == [k.name for k in half.kernels]
    kinds = {("for bf16" in k.library) for k in brain.kernels if k.name.startswith("conv_")}
    assert kinds == {True}
    assert _made("resnet18:side=32", "amp-bf16").totals == _made("resnet18:side=32", "amp").totals


@pytest.mark.parametrize("name", ["resnet18", "lenet"])
def test_convolutions_of_16_bits_on_ampere_are_kernels_for_ampere(name):
    job = _made(f"{name}:side=32", "fp16", gpu="a100")
    check_patterns(job)
    convolutions = [k for k in job.kernels if "implicit_gemm" in k.library]
    assert len(convolutions) >= 3 * (2 if name == "lenet" else 20) - 1  # the images need no gradient
    assert all(stands_in(k) and "sm80_xmma" in k.library for k in convolutions)
