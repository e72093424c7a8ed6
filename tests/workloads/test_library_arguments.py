"""Wrong arguments of public calls: one line of a WorkloadError names the argument, and nothing hangs."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from pysim import Job, Memory
from pysim.errors import WorkloadError
from pysim.workloads import library
from pysim.workloads.framework.bert import Bert, bert_network
from pysim.workloads.framework.layers import Layer, transformer_layers
from pysim.workloads.framework.llama import Llama, llama_network
from pysim.workloads.library.attentions.attention import attention
from pysim.workloads.library.attentions.attention_problem import Attention
from pysim.workloads.library.memory import memory_bound as mb
from pysim.workloads.library.recurrences.recurrent import Recurrent
from pysim.workloads.library.recurrences.rnn import rnn, rnn_parts

PASS = {
    "cell": "gru",
    "hidden": 256,
    "batch": 16,
    "steps": 3,
    "dtype": "fp16",
    "direction": "forward_training",
}
HEADS = {"batch": 1, "heads": 2, "kv_heads": 2, "q": 128, "k": 128, "d": 64}
LAYER = {"d": 128, "heads": 2, "ffn": 256, "batch": 1, "seq": 128}
BERT = {"d": 128, "heads": 2, "ffn": 256, "layers": 1, "batch": 1, "seq": 128, "vocabulary": 100}
LLAMA = {**BERT, "kv_heads": 1}
SIZED = [(Recurrent, PASS), (Attention, HEADS), (Layer, LAYER), (Bert, BERT), (Llama, LLAMA)]
SIZES = [
    (kind, right, name) for kind, right in SIZED for name, value in right.items() if isinstance(value, int)
]
NO_SIZES = ["16", 16.0, True, None, 0, -1, 2**41, 10**5000]
NO_SIZE_NAMES = ["text", "float", "bool", "None", "zero", "negative", "large", "huge"]
NAMES = [
    *((Recurrent, PASS, name) for name in ("cell", "dtype", "direction")),
    (Layer, LAYER, "dtype"),
]
FLAGS = [
    (Attention, HEADS, "causal"),
    *((Layer, LAYER, name) for name in ("pre", "causal", "fused", "training")),
]
MANY = [
    (Recurrent, PASS, {"hidden": 2**20, "batch": 2**20}, "batch x steps"),
    (Recurrent, PASS, {"hidden": 2**20}, "gates x weights"),
    (Attention, HEADS, {"batch": 2**20, "heads": 2**10, "q": 2**12}, "batch x heads x q x d"),
    (
        Attention,
        HEADS,
        {"batch": 2**20, "heads": 2**10, "kv_heads": 2**10, "q": 1, "k": 2**12},
        "batch x kv_heads x k x d",
    ),
    (Layer, LAYER, {"batch": 2**20, "seq": 2**14}, "batch x seq x features"),
    (Layer, LAYER, {"seq": 2**20}, "batch x heads x seq x seq"),
    (Layer, LAYER, {"d": 2**20}, "d x features"),
    (Bert, BERT, {"batch": 2**20, "seq": 2**14}, "batch x seq x features"),
    (Bert, BERT, {"vocabulary": 2**35}, "vocabulary x d"),
    (Llama, LLAMA, {"seq": 2**21}, "batch x seq x seq"),
    (Llama, LLAMA, {"vocabulary": 2**35}, "batch x seq x vocabulary"),
]


def refused(words, call):
    """Check that a call is refused in one short line which has these words."""
    with pytest.raises(WorkloadError) as caught:
        call()
    text = str(caught.value)
    assert words in text
    assert "\n" not in text
    assert len(text) < 300


@pytest.mark.parametrize(("kind", "right", "name"), SIZES)
@pytest.mark.parametrize("value", NO_SIZES, ids=NO_SIZE_NAMES)
def test_sizes(kind, right, name, value):
    kind(**right)
    refused(f": {name} = ", lambda: kind(**{**right, name: value}))


@pytest.mark.parametrize(("kind", "right", "name"), NAMES)
@pytest.mark.parametrize("value", ["fp17", "", "x\n" * 99, 4, None, ["fp16"]], ids=repr)
def test_names(kind, right, name, value):
    refused(f": {name} = ", lambda: kind(**{**right, name: value}))


@pytest.mark.parametrize(("kind", "right", "name"), FLAGS)
@pytest.mark.parametrize("value", ["yes", 1, None])
def test_flags(kind, right, name, value):
    refused(f": {name} = ", lambda: kind(**{**right, name: value}))


@pytest.mark.parametrize(("kind", "right", "sizes", "words"), MANY)
def test_elements(kind, right, sizes, words):
    refused(words, lambda: kind(**{**right, **sizes}))


PROBLEM, LAYERS = Attention(**HEADS), Layer(**LAYER)
GRU = Recurrent(**PASS)
LONG = replace(PROBLEM, q=2**20, k=2**20)
CALLS = {
    "layer: d = 127": lambda m: replace(LAYERS, d=127),
    "BERT: seq = 1048576": lambda m: Bert(**{**BERT, "seq": 2**20}),
    "BERT: d = 127": lambda m: Bert(**{**BERT, "d": 127}),
    "LLaMA: heads = 2: must be a multiple of kv_heads = 4": lambda m: Llama(**{**LLAMA, "kv_heads": 4}),
    "p = 'gru'": lambda m: rnn("gru"),
    "shown = -1": lambda m: rnn_parts(GRU, -1),
    "shown = 1.0": lambda m: rnn_parts(GRU, 1.0),
    "steps = 1000000": lambda m: rnn(replace(GRU, steps=10**6)),
    "inputs = 1.5": lambda m: replace(GRU, inputs=1.5),
    "kernels = []": lambda m: replace(GRU, kernels=[]),
    "role = 'hiden'": lambda m: replace(GRU, kernels={"hiden": 1}),
    "kernels['hidden'] = 'gemm'": lambda m: replace(GRU, kernels={"hidden": "gemm"}),
    "cost = 3": lambda m: replace(GRU, cost=3),
    "problem = 1": lambda m: attention(1, m),
    "memory = None: must be a Memory": lambda m: attention(PROBLEM, None),
    "backend = ['flash']": lambda m: attention(PROBLEM, m, backend=["flash"]),
    "backward = 'no'": lambda m: attention(PROBLEM, m, backward="no"),
    "dropout = 0.1": lambda m: attention(PROBLEM, m, backend="cudnn", dropout=0.1),
    "bias = True": lambda m: attention(PROBLEM, m, backend="cudnn", bias=True),
    "places = 1": lambda m: attention(PROBLEM, m, backend="cudnn", places=1),
    "q = 1048576, k = 1048576": lambda m: attention(LONG, m, backend="cudnn"),
    "layer = 1": lambda m: transformer_layers(1, 1, m),
    "count = 0": lambda m: transformer_layers(LAYERS, 0, m),
    "count = 1048576": lambda m: transformer_layers(LAYERS, 2**20, m),
    "memory = 'm'": lambda m: transformer_layers(LAYERS, 1, "m"),
    "bert = 1": lambda m: bert_network(1, m),
    "BERT: shown = -2": lambda m: bert_network(Bert(**BERT), m, -2),
    "BERT: layers = 1000000": lambda m: Bert(**{**BERT, "layers": 10**6}),
    "llama = 1": lambda m: llama_network(1, m),
    "LLaMA: shown = '1'": lambda m: llama_network(Llama(**LLAMA), m, "1"),
    "op = 'ad'": lambda m: mb.launch("ad", 1, 1, "fp32"),
    "op = []": lambda m: mb.launch([], 1, 1, "fp32"),
    "dtype = 'fp8'": lambda m: mb.launch("add", 1, 1, "fp8"),
    "rows = 1.0": lambda m: mb.launch("add", 1.0, 1, "fp32"),
    "cols = '1'": lambda m: mb.launch("add", 1, "1", "fp32"),
    "decided_by = True": lambda m: mb.launch("add", 1, 1, "fp32", m, True),
    "rows x cols = 1048576 x 2097152": lambda m: mb.launch("add", 2**20, 2**21, "fp32"),
    "operation: memory = 0": lambda m: mb.launch("add", 1, 1, "fp32", 0),
    "fill: cols = 0": lambda m: mb.fill(m, 1, 0, "fp32"),
    "kernel: dtype = ['fp32']": lambda m: mb.fill(m, 1, 1, ["fp32"]),
    "source = 4": lambda m: mb.cast(m, m.tensor("a", 1, 1, 4), 4, "fp16"),
    "target = 'fp8'": lambda m: mb.cast(m, m.tensor("a", 1, 1, 4), "fp32", "fp8"),
    "approximate = 1": lambda m: mb.gelu(m, m.tensor("a", 1, 1, 4), 1),
    "cold = 1": lambda m: mb.sum_rows(m, m.tensor("a", 1, 64, 4), cold=1),
    "taken = [1]": lambda m: mb.embedding(m, m.tensor("a", 9, 64, 4), [1]),
    "taken = array([0.])": lambda m: mb.embedding(m, m.tensor("a", 9, 64, 4), np.zeros(1)),
    "moments = 1": lambda m: mb.adamw(m, *(m.tensor("a", 1, 64, 4) for _ in "pg"), 1),
    "layer_norm: columns of a": lambda m: mb.launch("layer_norm", 1, 2**30, "fp16"),
    "sum_columns: columns of a": lambda m: mb.launch("sum_columns", 1, 2**34, "fp16"),
    "indices = 1073741824": lambda m: mb.launch("embedding", 2**30, 64, "fp16"),
    "a has 1099511627776 B": lambda m: mb.launch("sum_all", 2**19, 2**20, "fp16"),
}  # fmt: skip


@pytest.mark.parametrize("words", CALLS)
def test_calls(words):
    refused(words, lambda: CALLS[words](Memory()))


ONE_TENSOR = (
    "add_scalar", "all_of_rows", "copy", "dropout", "gelu", "is_lowest", "mul_scalar", "relu", "rsqrt",
    "silu", "softmax", "square", "sum_all", "sum_columns", "sum_rows", "tanh", "transpose_copy",
)  # fmt: skip


@pytest.mark.parametrize("name", ONE_TENSOR)
def test_tensors(name):
    memory, call = Memory(), getattr(mb, name)
    refused(f"{name}: a = 'x'", lambda: call(memory, "x"))
    refused(f"{name}: memory = ", lambda: call(None, memory.tensor("a", 4, 64, 4)))
    refused(f"{name}: a has ", lambda: call(memory, memory.tensor("a", 2**20, 2**20, 1)))


@pytest.mark.parametrize("name", ["add", "mul", "softmax_backward", "adamw", "layer_norm", "dropout"])
def test_elements_of_other_types(name):
    memory = Memory()
    a, more = memory.tensor("a", 4, 64, 8), {"adamw": 2, "layer_norm": 2, "dropout": 0}.get(name, 1)
    operands = [a, a, (a, a)] if name == "adamw" else [a] * (1 + more)
    refused("elements of 8 B", lambda: getattr(mb, name)(memory, *operands))


def test_calls_return_what_the_docstring_says():
    m = Memory()
    kernels, c = library.gemm(64, 64, 64, memory=m)
    assert (type(kernels), c.rows) == (tuple, 64)
    for made in (library.attention(PROBLEM, m), library.memory_bound.launch("add", 4, 64, "fp32", m)):
        assert (type(made.kernels), type(made.outputs)) == (tuple, tuple)
    conv = library.convolution_of(1, 64, (8, 8), 64, (3, 3), padding=(1, 1))
    assert isinstance(conv, library.Convolution)
    main, others = library.choose_convolution(conv)
    assert (type(main), type(others)) == (library.Told, tuple)
    assert type(library.convolution(main, others, conv, m)) is list
    assert type(library.rnn(library.Recurrent(**PASS))) is Job
    assert library.choose_gemm(64, 64, 64).name
    assert type(library.told_of("gemmSN_TN_kernel|8x1x1|96|13824")) is library.Told
    assert dir(library) == sorted(library.__all__)


def test_names_are_imported_when_they_are_used():
    code = "import sys; from pysim.workloads import library; {}; print(*sys.modules)"
    place = "pysim.workloads.library.convolutions.convolution"
    for use, there in (("library.choose_gemm", False), ("library.convolution", True)):
        done = subprocess.run(
            [sys.executable, "-c", code.format(use)], capture_output=True, text=True, check=True, timeout=60
        )
        assert (place in done.stdout.split()) == there
