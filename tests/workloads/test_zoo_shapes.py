"""Networks of the zoo on sizes that are no multiples of anything: each builds."""

import pytest

from pysim.program.library_kernels import stands_in
from pysim.program.pattern_check import check_patterns
from pysim.workloads.registry import ZOO, arguments_of, make
from tests.support.thin import thin

ODD = (1, 100), (3, 77)
LENGTHS = "seq", "steps", "source", "target", "side"
SHORT = {"gnmt": "layers=2", "moe-block": "hidden=192,ffn=320", "rnn-net": "layers=1"}
NAMES = [name for name in ZOO if name != "deepbench"]
CASES = [(name, each, way) for name in NAMES for each in ODD for way in ("forward", "training")]
USUAL = {
    *((name, each, "training") for name in ("bert-base", "llama-7b") for each in ODD),
    *(
        (name, (3, 77), "training")
        for name in ("gpt2", "gpt2-xl", "gpt3-760m", "gpt3-2.7b", "llama-70b", "lenet")
    ),
    *((name, (1, 100), "forward") for name in ("gpt2", "gpt3-2.7b", "llama-70b", "moe-block", "resnet18")),
    ("moe-block", (3, 77), "training"),
    ("deepspeech2", (1, 100), "training"),
    ("rnn-net", (3, 77), "training"),
    ("gnmt", (3, 77), "forward"),
}


def _text(name, batch, length, way):
    keys, given = arguments_of(name), [f"batch={batch}", f"pass={way}"]
    given += [f"{key}={length}" for key in LENGTHS if key in keys]
    given += [SHORT[name]] if name in SHORT else ["layers=1"] if "layers" in keys else []
    return f"{name}:{','.join(given)}"


@pytest.mark.parametrize(("name", "each", "way"), thin(CASES, USUAL))
def test_sizes_may_be_odd(name, each, way):
    text = _text(name, *each, way)
    job = make(text)
    assert job.totals.flops > 0
    check_patterns(job)


BEFORE = [(name, gpu) for name in ("bert-base", "gpt3-2.7b", "llama-7b") for gpu in ("v100", "a100")]


@pytest.mark.parametrize(
    ("name", "gpu"), thin(BEFORE, {("bert-base", "v100"), ("gpt3-2.7b", "a100"), ("llama-7b", "v100")})
)
def test_sizes_may_be_odd_before_hopper(name, gpu):
    job = make(f"{name}:batch=3,seq=77,layers=1,pass=training,dtype=fp16", gpu)
    check_patterns(job)
    gemms = [k for k in job.kernels if k.name == "gemm" and not stands_in(k)]
    assert gemms
    assert all(k.library for k in job.kernels)


def test_odd_sizes_compute_what_even_ones_do():
    """FLOP of a layer are linear in tokens but for attention, which is quadratic; padding is not counted."""
    flops = {seq: make(f"gpt2:batch=1,seq={seq},layers=1").totals.flops for seq in (64, 77)}
    d, words = 768, 50257
    for seq, found in flops.items():
        assert found == seq * (24 * d**2 + 2 * d * words) + 4 * seq**2 * d


def test_heads_of_any_width_stand_in_where_threads_have_nothing_to_do():
    """On an H200 TBs of PyTorch's copies are whole rows of 64 columns, and of 128 keys, not of 80 columns."""
    for name, stands in (("gpt2", 0), ("gpt3-2.7b", 3)):
        job = make(f"{name}:batch=2,seq=128,layers=1,attention=products")
        copies = [k for k in job.kernels if k.name.startswith("copy_")]
        assert (len(copies), sum(map(stands_in, copies))) == (4, stands)
