"""What PyTorch dispatches for a model, recorded on tensors without data."""

import itertools
import types
import warnings
from collections import Counter

import pytest

import pysim
from pysim.errors import ConfigError, WorkloadError
from pysim.program.library_kernels import stands_in

torch = pytest.importorskip("torch")
nn = torch.nn

from pysim.workloads.imported.from_torch import recorded  # noqa: E402


def mlp():
    return nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.LayerNorm(128), nn.Linear(128, 32)
    )


def operators(graph):
    return [node.op.partition(".")[2] for node in graph.nodes]


def count(graph):
    return Counter(operators(graph))


def encoder(layers=1):
    with torch.device("meta"):
        layer = nn.TransformerEncoderLayer(256, 4, 512, batch_first=True)
        return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).half()


def test_forward_drops_views_and_dropout():
    graph = recorded(mlp(), torch.empty(16, 64))
    assert operators(graph) == ["addmm", "relu", "native_layer_norm", "addmm"]
    assert graph.parameters == 64 * 128 + 128 + 256 + 128 * 32 + 32


def test_a_training_step_is_in_eager_order():
    found = operators(recorded(mlp(), torch.empty(16, 64), train="adamw"))
    assert found[:5] == ["addmm", "relu", "native_dropout", "native_layer_norm", "addmm"]
    back = "mm mm sum native_layer_norm_backward native_dropout_backward threshold_backward mm sum"
    at = found.index("mm")
    assert found[at : at + 8] == back.split()
    assert all(name.startswith("_foreach") for name in found[at + 8 :])


@pytest.mark.parametrize(
    ("train", "operator", "form"),
    [
        ("adamw", "_foreach_addcdiv_", "foreach"),
        ("adamw_fused", "_fused_adamw_", "fused"),
        ("sgd", "_foreach_add_", "foreach"),
        (lambda parameters: torch.optim.Adam(parameters, fused=True), "_fused_adam_", "fused"),
        (lambda parameters: torch.optim.SGD(parameters, lr=0.1, foreach=False), "add_", "after another"),
    ],
)
def test_the_form_of_the_optimiser_is_that_of_cuda(train, operator, form):
    graph = recorded(mlp(), torch.empty(16, 64), train=train)
    assert operator in operators(graph)
    assert form in graph.notes[0]


def test_the_model_is_not_changed():
    model = mlp()
    model.weight_tied = model[0].weight
    before = {name: value.clone() for name, value in model.state_dict().items()}
    pysim.from_torch(model, torch.empty(16, 64), train="sgd", approximate=True)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(p.grad is None and p.device.type == "cpu" for p in model.parameters())
    assert model.training


@pytest.mark.parametrize("cell", ["GRU", "LSTM", "RNN"])
def test_recurrent_modules_stay_whole(cell):
    model = getattr(nn, cell)(64, 64, 2, batch_first=True)
    graph = recorded(model, torch.empty(8, 5, 64))
    assert count(graph)["rnn"] == 1
    job = pysim.from_torch(model, torch.empty(8, 5, 64))
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[cell]
    assert job.totals.flops == 2 * 2 * gates * 64 * 128 * 8 * 5
    graph = recorded(model, torch.empty(8, 5, 64), train="sgd")
    assert count(graph)["rnn_backward"] == 1


def test_attention_is_one_operation_and_reads_the_projection():
    model = encoder()
    job = pysim.from_torch(model, torch.empty(2, 128, 256).half())
    assert [k.name for k in job.kernels].count("cudnn_fprop") == 1
    assert not any("approximate" in kernel.library for kernel in job.kernels)
    graph = recorded(model, torch.empty(2, 128, 256).half(), train="adamw")
    assert count(graph)["_scaled_dot_product_cudnn_attention_backward"] == 1


@pytest.mark.parametrize("gpu", ["h200", "titan_v"])
def test_attention_in_fp32_has_no_template_and_products_stand_in(gpu):
    job = pysim.from_torch(encoder().float(), torch.empty(2, 128, 256), device=gpu)
    marked = [k for k in job.kernels if "for fmha_cutlassF" in k.library]
    assert [k.name for k in marked].count("softmax") == 1
    assert len(marked) == 3
    assert all(stands_in(k) and "not measured" in k.library for k in marked)


def test_attention_of_heads_that_no_fused_kernel_takes_is_products_and_a_softmax():
    """Widths in fp32 must be multiples of four: of six PyTorch computes by batched products."""

    class Attends(nn.Module):
        def forward(self, x):
            return nn.functional.scaled_dot_product_attention(x, x, x)

    graph = recorded(Attends(), torch.empty(2, 4, 64, 6))
    assert count(graph)["bmm"] == 2


@pytest.mark.parametrize("length", [128, 32])
def test_attention_waits_for_a_bias_that_its_kernel_does_not_read(length):
    class Attends(nn.Module):
        def forward(self, x, bias):
            return nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=bias * 2)

    x, bias = torch.empty(2, 4, length, 64).half(), torch.empty(2, 4, length, length).half()
    job = pysim.from_torch(Attends(), (x, bias))
    made = job.kernels[0].accesses[-1].tensor
    read = [a.tensor.address for k in job.kernels[1:] for a in k.accesses if a.mode == "read"]
    assert made.address in read
    assert "waits for its bias" in job.kernels[-1].library


def test_convolutions_keep_channels_last():
    model = nn.Sequential(nn.Conv2d(16, 32, 3), nn.ReLU()).half().to(memory_format=torch.channels_last)
    graph = recorded(model, torch.empty(2, 16, 8, 8).half().to(memory_format=torch.channels_last))
    assert graph.nodes[0].outputs[0].strides[1] == 1


class Cached(nn.Module):
    """A layer that concatenates a cache, with the names of Hugging Face's."""

    def __init__(self):
        super().__init__()
        self.embedding, self.linear = nn.Embedding(100, 64), nn.Linear(64, 64)

    def forward(self, tokens, past_key_values=None, use_cache=False):
        x = self.linear(self.embedding(tokens))
        if past_key_values is not None:
            x = torch.cat([past_key_values, x], 1)
        return Found(x.sum(1), x if use_cache else None)


class Found:
    def __init__(self, logits, past_key_values):
        self.logits, self.past_key_values = logits, past_key_values


def test_decoding_begins_with_a_cache_that_is_not_recorded():
    graph = recorded(Cached(), torch.zeros(2, 1, dtype=torch.long), decode=31)
    assert operators(graph) == ["embedding", "addmm", "cat", "sum"]
    assert graph.nodes[2].outputs[0].shape == (2, 32, 64)


class Pair(Cached):
    """An encoder, and the layer as its decoder."""

    def __init__(self):
        super().__init__()
        self.config, self.encoder = types.SimpleNamespace(is_encoder_decoder=True), nn.Linear(64, 64)

    def forward(self, input_ids=None, decoder_input_ids=None, encoder_outputs=None, **more):
        if encoder_outputs is None:
            encoder_outputs = (self.encoder(self.embedding(input_ids)),)
        found = super().forward(decoder_input_ids, **more)
        found.logits = found.logits + encoder_outputs[0].sum(1)
        found.encoder_last_hidden_state = encoder_outputs[0]
        return found


def test_a_decoder_takes_what_its_encoder_made():
    tokens = torch.zeros(2, 9, dtype=torch.long)
    graph = recorded(Pair(), {"input_ids": tokens, "decoder_input_ids": tokens[:, :1]}, decode=31)
    assert operators(graph) == ["embedding", "addmm", "cat", "sum", "sum", "add"]
    with pytest.raises(WorkloadError, match="decoder_input_ids must be tokens"):
        recorded(Pair(), tokens, decode=31)


class Placed(nn.Module):
    """Words and places, each with a table of rows that were learned, and a cache that only counts."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(32, 64), nn.Embedding(16, 64)

    def forward(self, tokens, past_key_values=0, use_cache=False):
        at = torch.arange(past_key_values, past_key_values + tokens.shape[1], device=tokens.device)
        made = self.words(tokens) + self.places(at)
        return types.SimpleNamespace(past_key_values=past_key_values + tokens.shape[1]) if use_cache else made


def test_positions_that_were_not_learned_are_refused():
    """On a GPU a row that a table has not is an assertion that fails; tokens of an example may be any."""
    many = torch.full((1, 16), 99)
    assert operators(recorded(Placed(), many))[-3:] == ["embedding", "embedding", "add"]
    with pytest.raises(WorkloadError, match=r"^from_torch: places.weight: row 16: at most 15$"):
        recorded(Placed(), torch.zeros(1, 17, dtype=torch.long))
    one = torch.zeros(1, 1, dtype=torch.long)
    recorded(Placed(), one, decode=15)
    with pytest.raises(WorkloadError, match=r"^from_torch: decode = 16: places.weight: row 16: at most 15$"):
        recorded(Placed(), one, decode=16)

    class Masked(Placed):
        """Places are counted in a mask of ones that are no integers, as in OPT."""

        def forward(self, tokens):
            return self.places((torch.cumsum(torch.ones_like(tokens, dtype=torch.float), 1) - 1).long())

    recorded(Masked(), torch.zeros(1, 16, dtype=torch.long))
    with pytest.raises(WorkloadError, match=r"places.weight: row 16: at most 15$"):
        recorded(Masked(), torch.zeros(1, 17, dtype=torch.long))


def test_a_model_without_a_cache_cannot_decode():
    with pytest.raises(WorkloadError, match="decode: the model takes no cache"):
        recorded(mlp(), torch.empty(16, 64), decode=4)


class Looks(nn.Module):
    def forward(self, x, mask=None):
        if mask is not None:
            return x * 2 if mask.all() else x
        return x * 2 if x.sum() > 0 else x


def test_control_flow_that_depends_on_data_is_refused_in_one_line():
    with pytest.raises(WorkloadError, match=r"test_from_torch.py:\d+\): what runs depends on data") as error:
        recorded(Looks(), torch.ones(4))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("take", [lambda x: x[x > 0], lambda x: torch.tensor(x.numpy())])
def test_shapes_that_depend_on_data_are_refused_like_control_flow(take):
    class Takes(nn.Module):
        def forward(self, x):
            return take(x)

    with pytest.raises(WorkloadError, match="what runs depends on data"):
        recorded(Takes(), torch.ones(4))


@pytest.mark.parametrize(("value", "doubled"), [(True, 1), (False, 0)])
def test_masks_of_the_example_are_known(value, doubled):
    graph = recorded(Looks(), (torch.ones(4), torch.full((4,), value)))
    assert count(graph)["mul"] == doubled


def test_a_slice_leaves_the_rest_of_what_is_known():
    class Positions(nn.Module):
        def forward(self, x):
            at = torch.arange(8, device=x.device)
            first = at[:1] - 1
            return x * 2 if (torch.diff(at, prepend=first) == 1).all() else x

    assert count(recorded(Positions(), torch.ones(4)))["mul"] == 1


def test_a_recording_is_the_same_each_time():
    texts = {recorded(mlp(), torch.empty(16, 64), train="adamw").to_json() for _ in range(2)}
    assert len(texts) == 1


def test_results_and_gradients_outlive_the_run():
    graph = recorded(mlp(), torch.empty(16, 64))
    (out,) = graph.nodes[-1].outputs
    assert graph.storages[out.storage].kind == "result"
    graph = recorded(mlp(), torch.empty(16, 64), train="sgd")
    assert sum(storage.kind == "result" for storage in graph.storages) == 6


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"train": "adagrad"}, ConfigError, "train = 'adagrad': must be sgd"),
        ({"train": 3}, ConfigError, "train = 3"),
        ({"train": lambda parameters: None}, WorkloadError, "must be a torch.optim.Optimizer"),
        ({"train": "sgd", "decode": 3}, ConfigError, "train and decode"),
        ({"train": "sgd", "loss": lambda result: result}, WorkloadError, "loss: must return"),
        ({"decode": -1}, ConfigError, "decode = -1"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, match):
    with pytest.raises(error, match=match):
        recorded(mlp(), torch.empty(16, 64), **arguments)


def test_other_models_and_inputs_are_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated
        scripted = torch.jit.script(nn.Linear(4, 4))
    with pytest.raises(WorkloadError, match="model = int"):
        recorded(3, torch.empty(1))
    with pytest.raises(WorkloadError, match="a scripted model"):
        recorded(scripted, torch.empty(1, 4))
    with pytest.raises(WorkloadError, match="example_inputs = int"):
        recorded(mlp(), 3)
    with pytest.raises(WorkloadError, match=r"Sequential.*RuntimeError: "):
        recorded(mlp(), torch.empty(16, 65))


def test_addresses_of_a_layer_are_used_again_by_the_next():
    job = pysim.from_torch(encoder(4), torch.empty(2, 128, 256).half())
    addresses = {
        tensor.address for kernel in job.kernels for tensor in kernel.args if tensor.name == "tensor"
    }
    assert len(addresses) < len(job.kernels) / 2
    assert len(job.kernels) == 4 * 14
    assert [k.program for k in job.kernels[14:28]] == [
        k.program for k in itertools.islice(job.kernels, 28, 42)
    ]


def test_attention_of_any_length_trains_in_fp32():
    """Rows of products are padded; operations count those that there are."""
    model = encoder().float()
    job = pysim.from_torch(model, torch.empty(1, 13, 256), train="adamw")
    padded = [k for k in job.kernels if "padded to whole vectors" in k.library]
    names = [k.name for k in padded]
    assert names.count("softmax") == 2  # shares are computed again for gradients
    assert names.count("softmax_backward") == 1
    even = pysim.from_torch(model, torch.empty(1, 16, 256), train="adamw")
    assert 12 / 16 < job.totals.flops / even.totals.flops < 13.5 / 16


def test_attention_with_a_bias_waits_for_it_in_training():
    class Biased(nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = nn.Parameter(torch.empty(4, 16, 16))
            self.scale = nn.Linear(64, 64)

        def forward(self, x):
            return nn.functional.scaled_dot_product_attention(self.scale(x), x, x, attn_mask=self.bias * 2)

    job = pysim.from_torch(Biased(), torch.empty(2, 4, 16, 64), train="sgd")
    softmax = next(k for k in job.kernels if k.name == "softmax")
    assert any(a.tensor.nbytes == 4 * 16 * 16 * 4 for a in softmax.accesses)
