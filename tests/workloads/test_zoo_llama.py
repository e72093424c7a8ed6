"""LLaMA of the zoo: types of its tensors, layers that stand for all, one token."""

import pytest

from pysim.program.pattern_check import check_patterns
from pysim.workloads.registry import make


def test_a_llama_under_autocast_has_parameters_of_fp32_and_products_of_16_bits():
    """Heads are fp32 once they are rotated, and converted back for attention and for gradients."""
    job = make("llama-7b:seq=32,layers=1,pass=training,dtype=amp", "v100")
    check_patterns(job)
    own = {a.tensor.item for k in job.kernels if k.name == "adamw" for a in k.accesses}
    products = {t.item for k in job.kernels if "mma" in k.library or "884" in k.library for t in k.args}
    rotated = {t.item for k in job.kernels if k.name == "mul_cosine" for t in k.args}
    assert (own, products, rotated) == ({4}, {2}, {2, 4})
    assert job.totals == make("llama-7b:seq=32,layers=1,pass=training,dtype=fp16", "v100").totals
    assert [k.name for k in job.kernels].count("unscale_and_check") > 0


def test_a_llama_of_fp32_has_nothing_to_convert():
    names = [k.name for k in make("llama-7b:seq=128,layers=1,pass=training,dtype=fp32").kernels]
    assert "cast" not in names
    assert "softmax" in " ".join(names)  # fused kernels take 16 bits


@pytest.mark.parametrize("way", ["forward", "training", "decode"])
def test_layers_of_a_llama_that_are_held_stand_for_all(way):
    """Held and left out make the whole network; a training step has periods on both ways."""
    short = make(f"llama-7b:seq=32,layers=7,pass={way},simulated=3")
    whole = make(f"llama-7b:seq=32,layers=7,pass={way}")
    assert short.totals == whole.totals
    names = short.shortened.whole([kernel.name for kernel in short.kernels])
    assert names == [kernel.name for kernel in whole.kernels]
    assert len(short.kernels) < len(whole.kernels)


def test_one_token_is_a_sequence():
    check_patterns(make("llama-7b:batch=1,seq=1,layers=1"), every=True)
