"""BERT, GPT and LLaMA of the zoo: totals against what was published, order of kernels, small runs."""

import re
from collections import Counter
from functools import cache

import pytest

from pysim import Memory, simulate
from pysim.errors import WorkloadError
from pysim.program.pattern_check import check_patterns
from pysim.workloads.framework.collectives import Links
from pysim.workloads.framework.language import LanguageModel, language_model
from pysim.workloads.framework.layers import Layer, transformer_layer
from pysim.workloads.framework.tape import Tape
from pysim.workloads.networks.passes import job_of
from pysim.workloads.networks.shapes import BERT, GPT, LLAMA
from pysim.workloads.registry import make
from tests.support.thin import thin

SEQ = 128


@cache
def _one_and_two(name):
    return [make(f"{name}:batch=1,seq={SEQ},layers={layers},attention=products").totals for layers in (1, 2)]


def _whole(name, layers, what):
    """Return a total of all layers: each adds as much as the second."""
    one, two = (getattr(totals, what) for totals in _one_and_two(name))
    return one + (layers - 1) * (two - one)


@pytest.mark.parametrize("name", [*BERT, *GPT])
def test_parameters_are_those_published(name):
    shape = (BERT | GPT)[name]
    assert _whole(name, shape.layers, "parameters") == pytest.approx(shape.published * 1e6, rel=0.01)


@pytest.mark.parametrize("name", [*BERT, *GPT])
def test_flops_are_those_of_megatron(name):
    """24 B s l h^2 (1 + s / 6h) + 2 B s h V: Narayanan et al. 2021, section 5.1, without recomputation."""
    shape = (BERT | GPT)[name]
    layers, d, tokens = shape.layers, shape.d, SEQ
    formula = 24 * tokens * layers * d**2 * (1 + SEQ / (6 * d)) + 2 * tokens * d * shape.vocabulary
    assert _whole(name, layers, "flops") == pytest.approx(formula, rel=0.01)


@pytest.mark.parametrize("name", list(LLAMA))
def test_parameters_of_llama_are_those_published(name):
    shape = LLAMA[name]
    one, two = (make(f"{name}:seq={SEQ},layers={layers}").totals for layers in (1, 2))
    more = shape.layers - 1
    assert one.parameters + more * (two.parameters - one.parameters) == pytest.approx(
        shape.published * 1e6, rel=0.001
    )
    # two of each weight and token, but for the table of words, and 4 s^2 d of attention: Kaplan et al. 2020
    used = two.parameters - one.parameters
    assert two.flops - one.flops == pytest.approx(2 * used * SEQ + 4 * SEQ**2 * shape.d, rel=0.01)


@pytest.mark.parametrize(
    ("name", "gpu", "dtype"),
    [
        ("gpt2", "h200", "fp16"),
        ("gpt2", "h200", "amp"),
        ("gpt2", "v100", "fp16"),
        ("llama-7b", "h200", "amp-bf16"),
        ("llama-70b", "h200", "bf16"),
        ("llama-70b", "v100", "fp16"),
    ],
)
def test_a_token_is_decoded_over_a_cache(name, gpu, dtype):
    """Attention adds 4 n d FLOP to two of each weight; keys and values are read once, both are extended."""
    shape = (GPT | LLAMA)[name]
    keys, batch = 512, 2
    job = make(f"{name}:pass=decode,layers=1,batch={batch},seq={keys},dtype={dtype}", gpu)
    check_patterns(job)
    shared = getattr(shape, "kv_heads", 0) and gpu == "v100"
    assert [kernel.name for kernel in job.kernels].count("copy_repeated") == (2 if shared else 0)
    weights = job.totals.parameters - shape.vocabulary * shape.d  # a LLaMA has a table for each end
    if name == "gpt2":
        weights = job.totals.parameters - shape.positions * shape.d
    assert job.totals.flops == pytest.approx(batch * (2 * weights + 4 * keys * shape.d), rel=0.01)
    assert [kernel.name for kernel in job.kernels].count("append") == 2
    written = {a.tensor.address for k in job.kernels if k.name == "append" for a in k.accesses[2:]}
    read = {a.tensor.address for k in job.kernels for a in k.accesses if a.mode == "read"}
    assert len(written) == 2
    assert written <= read


def test_two_layers_are_twice_one():
    """The totals of a whole network are what its first layers say."""
    assert make(f"bert-base:batch=1,seq={SEQ}").totals.parameters == _whole("bert-base", 12, "parameters")


def test_training_computes_three_times_what_forward_does():
    forward, training = (make(f"gpt2:seq=128,layers=2,pass={p}").totals for p in ("forward", "training"))
    assert training.parameters == forward.parameters
    assert training.flops == 3 * forward.flops


def test_shards_share_the_work():
    """Of two shards each has half of the products of a layer, and half of the logits."""
    whole, half = (make(f"gpt3-350m:layers=1,seq=128,shards={shards}", "v100") for shards in (1, 2))
    assert half.totals.flops == pytest.approx(whole.totals.flops / 2, rel=0.01)
    assert [k.name for k in half.kernels].count("all_reduce") == 3  # embeddings, attention, feed-forward
    assert not [k for k in whole.kernels if k.name == "all_reduce"]


def test_all_reduces_take_what_was_measured():
    """Among 8 V100, of GPT-3 175B: 274, 502 and 994 us for 512, 1,024 and 2,048 tokens."""
    for tokens, measured_us in ((512, 274), (1024, 502), (2048, 994)):
        job = make(f"gpt3-175b:layers=1,batch={tokens // 128},seq=128,shards=8", "v100")
        alone = next(kernel for kernel in job.kernels if kernel.name == "all_reduce")
        cycles = sum(op.count for op in alone.program.variants[0])
        assert cycles / 1530 == pytest.approx(measured_us, rel=0.02)


def test_layers_that_are_alike_share_programs():
    jobs = [make(f"gpt2:layers={layers},seq=128,pass=training,optimizer=none") for layers in (2, 4)]
    two, four = (len({id(kernel.program) for kernel in job.kernels}) for job in jobs)
    assert two == four


def test_totals_survive():
    import pickle

    job = make("bert-base:layers=1,batch=1,seq=32")
    assert pickle.loads(pickle.dumps(job)).totals == job.totals is not None
    assert job.with_arguments({"a": 1}).totals == job.totals


@pytest.mark.parametrize(
    ("text", "gpu", "message"),
    [
        ("bert-base:pass=decode", "h200", "bert-base: pass = decode: must be forward, training"),
        ("gpt2:seq=2048", "h200", "gpt2: seq = 2048: at most 1024, the positions that it was trained for"),
        (
            "gpt2:pass=decode,seq=1025,attention=fused",
            "h200",
            "gpt2: seq = 1025: at most 1024, the positions",
        ),
        ("gpt3-13b:pass=decode,seq=2049", "h200", "gpt3-13b: seq = 2049: at most 2048, the positions"),
        ("bert-large:seq=513,pass=training", "h200", "bert-large: seq = 513: at most 512, the positions"),
        ("llama-70b:seq=4097,pass=decode", "h200", "llama-70b: seq = 4097: at most 4096, the positions"),
        ("gpt2:optimizer=rmsprop", "h200", "gpt2: optimizer = rmsprop: must be adamw, lamb, sgd, none"),
        ("gpt2:attention=fused,seq=100", "h200", "gpt2: attention = fused: seq = 100, heads of 64 columns"),
        ("gpt3-2.7b:attention=fused", "h200", "gpt3-2.7b: attention = fused: seq = 1024, heads of 80"),
        ("gpt2:attention=fused,layers=1", "v100", "gpt2: fused attention on v100: measured were kernels of"),
        (
            "bert-large:dtype=bf16,layers=1",
            "v100",
            "bert-large: dtype = bf16: must be fp32 or fp16 or amp on",
        ),
        ("gpt2:layers=-1", "h200", "gpt2: layers = -1: must be 0"),
        ("bert-base:batch=0", "h200", "bert-base: Transformer layer: batch = 0: must be an integer"),
        ("deepbench:kind=allreduce,dtype=fp16", "h200", "deepbench: dtype = fp16: must be fp32 on h200"),
        ("gpt2:shards=5", "v100", "gpt2: Transformer layer: shards = 5: must divide heads = 12"),
        ("llama-7b:layers=1", "v100", "llama-7b: dtype = bf16: must be fp32 or fp16 or amp on v100"),
        ("llama-7b:simulated=2", "h200", "llama-7b: simulated = 2: must be 0 (all layers), or 3"),
        ("bert-base", "titan_x_pascal", "bert-base: GPU titan_x_pascal: there are kernels for h200"),
    ],
)
def test_what_has_no_kernels_is_refused_in_one_line(text, gpu, message):
    with pytest.raises(WorkloadError, match=re.escape(message)) as error:
        make(text, gpu)
    assert "\n" not in str(error.value)
    assert str(error.value).count(f"{text.partition(':')[0]}: ") == 1


def _small(gpu, optimizer, links=None, **changed):
    """Return a training step of one layer with a small vocabulary."""
    d = 512 if links else 128
    layer = Layer(d, d // 64, 512, 1, 128, **changed)
    tape = Tape(Memory(), device=gpu)
    language_model(LanguageModel(layer, 1, 256, 128), tape, links)
    return job_of("small", tape, 1, optimizer)


@pytest.mark.parametrize(("seq", "fused"), [(64, False), (128, True)])
def test_attention_is_fused_where_there_is_a_template(seq, fused):
    """Fused kernels take whole tiles of 128 queries."""
    names = [kernel.name for kernel in make(f"gpt2:layers=1,seq={seq}").kernels]
    assert any("softmax" in name for name in names) != fused


SMALL = {
    "bert": ("h200", "lamb", None, {}),
    "gpt": ("h200", "adamw", None, {"pre": True, "causal": True, "fused": True}),
    "shard": ("v100", "adamw", Links(20.0, 50.0, 1530.0), {"pre": True, "causal": True, "shards": 2}),
}


@pytest.mark.parametrize("kind", thin(SMALL, ["gpt"]))
def test_a_small_training_step_runs(kind):
    gpu, *parts, changed = SMALL[kind]
    runs = simulate(gpu, _small(gpu, *parts, **changed), ["stream", "graph", "tb_static"]).tables()["runs"]
    assert (runs["bound_us"] <= runs["time_us"]).all()
    assert runs["time_us"][0] > runs["time_us"].min()


@pytest.mark.deep
def test_every_address_lies_where_kernels_say():
    for *parts, changed in SMALL.values():
        check_patterns(_small(*parts, **changed), every=True)


def test_a_layer_is_that_of_a_profile():
    """The kernels that one more layer adds to a step are those of the layer that was profiled on an H200."""
    one, two = (
        [k.name for k in make(f"bert-large:layers={n},pass=training,optimizer=none").kernels] for n in (1, 2)
    )
    layer = [k.name for k in transformer_layer(Layer(1024, 16, 4096, 8, 128), Memory())]
    added = Counter(two) - Counter(one)
    assert added == Counter(layer[2:])  # without the seeds of a captured graph
    # by eager's profile (bert_large_layer_b8_s128_fp16_fwdbwd): all products, and 56 kernels
    assert sum(count for name, count in added.items() if "gemm" in name or "staged" in name) == 18
    assert added.total() == 56


def test_a_llama_trains_as_its_forward_kernels_are():
    """Three times the FLOP of a forward pass; each operation's gradient has kernels of its own."""
    forward, training = (make(f"llama-7b:seq=128,layers=1,pass={way}") for way in ("forward", "training"))
    assert training.totals.flops == 3 * forward.totals.flops
    assert training.totals.parameters == forward.totals.parameters
    names = Counter(kernel.name for kernel in training.kernels)
    assert names["rsqrt"] == 3  # two norms of a layer and the last one
    assert names["div_rows"] == 3  # their means' gradients
    assert names["silu"] == names["silu_backward"] == 1
    assert (names["mul_cosine"], names["negate"], names["copy_slice"]) == (4, 4, 4)  # of queries and keys
    assert (names["cudnn_fprop"], names["cudnn_bprop"], names["adamw"] > 0) == (1, 1, True)
    gradients = {a.tensor.address for k in training.kernels if k.name == "adamw" for a in k.accesses}
    assert len(gradients) >= 4 * 12  # weights, gradients and two moments of all parameters


def test_heads_that_share_keys_add_up_their_gradients():
    names = Counter(k.name for k in make("llama-70b:seq=128,layers=1,pass=training").kernels)
    assert names["sum_repeated"] == 2  # of keys and of values


@pytest.mark.parametrize(("name", "columns"), [("gpt3-760m", 96), ("gpt3-2.7b", 80)])
def test_decode_of_other_heads_takes_products_that_are_marked(name, columns):
    """Keys and values are appended by as many lanes as a head has vectors; attention stands in."""
    job = make(f"{name}:batch=2,seq=64,layers=1,pass=decode")
    check_patterns(job, every=True)
    assert sum("FlashAttention" in kernel.library for kernel in job.kernels) >= 4
    assert sum(kernel.name == "append" for kernel in job.kernels) == 2
    assert {kernel.args[1].cols for kernel in job.kernels if kernel.name == "append"} == {columns}
