"""cuSync's models end to end: their parts, what the tables say of them, and the script."""

from __future__ import annotations

import numpy as np
import pytest

from pysim import Config, simulate, stats
from pysim.errors import WorkloadError
from pysim.machine.devices import device
from pysim.program.job import Job, Memory
from pysim.results.schema import DTYPES
from pysim.stats.studies.models import BEST, Layer, format_layers, layer_rows
from pysim.workloads.kernels.cutlass import cutlass_gemm, multistage
from pysim.workloads.kernels.pointwise import Field, elementwise
from pysim.workloads.validation.cusync_models import STREAM_K, THEIRS, pieces_of, published, schemes_of
from tests.support.calls import caller, refused

run = caller("cusync_models", "--threads", "1", "--quiet")


def config(name):
    return Config.resolve(device(name), {"sim.oracle": 1})


@pytest.mark.parametrize("policy", ["row", "tile", "strided"])
def test_policies_obey_the_dependences_of_attention(policy):
    """The oracle watches Q, K and V, the kernel that reads all three, and the product behind it."""
    memory, kind = Memory(), multistage("64x64x32x32x32x32", 3, 1)
    sizes = {
        "x": (96, 64),
        "w": (64, 384),
        "qkv": (96, 384),
        "mixed": (96, 128),
        "w2": (128, 64),
        "out": (96, 64),
    }
    at = {name: memory.tensor(name, *size, 2) for name, size in sizes.items()}
    kernels = [
        cutlass_gemm("qkv", at["x"], at["w"], at["qkv"], kind),
        elementwise(
            "softmax", [Field(at["qkv"], i * 128) for i in range(3)], [Field(at["mixed"])], cols=128,
            per_element={"fp32": 4}, threads=32, rows_per_tb=16,
        ),
        cutlass_gemm("out", at["mixed"], at["w2"], at["out"], kind),
    ]  # fmt: skip
    schemes = [
        f"cusync:{policy}+{more}" for more in ("streams", "streams+wait_early+tile_order", "pdl+poll_each")
    ]
    over = {"sim.oracle": 1, "scheme.hypothetical": 1}
    found = simulate("a100", Job("attention", kernels), schemes, threads=1, tables="none", overrides=over)
    rows = found.frame("runs")
    assert (rows["status"] == "ok").all(), rows["reason"].tolist()


def test_strided_semaphores_are_of_q_k_and_v_together():
    own = config("v100")
    attention = pieces_of(own, "llama", 32)[0]
    kernels = attention.build("stream")[0].kernels
    assert [kernel.name for kernel in kernels] == ["qkv", "softmax_dropout", "out"]
    # a part of the columns of each head in each of the three
    read = [a for a in kernels[1].accesses if a.mode == "read"]
    assert [int(a.regions(np.array([0]))[0][2]) for a in read] == [0, 1024, 2048]
    assert attention.build("cusync:strided")[1].startswith("cusync:strided+")
    assert attention.build("cusync:tile")[1].startswith("cusync:tile+")


def test_tiles_are_those_of_the_mode():
    own = config("v100")
    part = pieces_of(own, "resnet38", 4)[1]
    tbs = {scheme: part.build(scheme)[0].kernels[0].tbs for scheme in schemes_of("resnet38", part.name)}
    assert tbs["stream"] == tbs["host"] == tbs["pool"] != tbs["cusync:tile"]
    assert tbs["stream" + THEIRS] == tbs["tb_static" + THEIRS] == tbs["cusync:tile"]
    mlp = pieces_of(config("a100"), "gpt3", 512)[1]
    # as many TBs as the chip holds at once share all steps
    assert [kernel.tbs for kernel in mlp.build(STREAM_K)[0].kernels] == [108, 108]


def test_layers_are_as_often_as_in_the_network():
    own = config("v100")
    assert [piece.times for piece in pieces_of(own, "resnet38", 1)] == [3, 4, 6, 3]
    assert [len(piece.build("stream")[0].kernels) for piece in pieces_of(own, "vgg19", 1)] == [2, 2, 4, 4]


def test_what_was_measured_of_a_part():
    assert published("v100", ("resnet38", 1, 64)) == (49.94, 40.22)
    base, best = published("a100", ("gpt3", 1024, 0))
    assert 1400 < best < base < 1600
    assert published("a100", ("", 1024, 0)) is None


@pytest.mark.parametrize(("model", "size"), [("gpt3", 511), ("resnet38", 3), ("bert", 1)])
def test_sizes_without_tiles_are_refused_in_one_line(model, size):
    def build():
        for piece in pieces_of(config("v100"), model, size):
            piece.build("stream")

    with pytest.raises(WorkloadError) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_sums_of_parts():
    values = (
        *(("m a", scheme, time) for scheme, time in
          (("stream", 10.0), ("cusync:row", 9.0), ("cusync:tile", 8.0), ("host", 16.0))),
        *(("m b", scheme, time) for scheme, time in (("stream", 20.0), ("cusync:row", 19.0), ("host", 24.0))),
    )  # fmt: skip
    runs = np.zeros(len(values), DTYPES["runs"])
    for row, (workload, scheme, time) in zip(runs, values, strict=True):
        row["workload"], row["scheme"], row["status"], row["time_us"] = (
            workload.encode(),
            scheme.encode(),
            b"ok",
            time,
        )
    layer = Layer("m", (("m a", "a", 3), ("m b", "b", 1)), ((10.0, 8.5), (20.0, 20.0)), "1-2 %")
    head, body, sums = layer_rows(runs, [layer])
    found = dict(zip(head, body[-1], strict=True))
    assert sums["m"]["stream"] == 50
    assert sums["m"][BEST] == 3 * 8 + 19
    # a policy that a part cannot have leaves it in stream order
    assert found["cusync:tile"] == "12.0%"
    assert found[BEST] == "14.0%"
    assert found["best against host"] == f"{1 - 43 / 72:.1%}"
    assert found["published"] == "9.0% (1-2 %)"
    assert format_layers(head, body).count("\n") == 4


@pytest.mark.deep
def test_script(tmp_path):
    pytest.importorskip("matplotlib")
    done = run(tmp_path, "--subset", "quick", "--out", "c.h5", "--picture", "yes")
    assert done.returncode == 0, done.stderr
    runs = stats.load(tmp_path / "c.h5")["runs"]
    assert set(runs["workload"]) == {f"resnet38 1 {n} channels" for n in (64, 128, 256, 512)}
    assert (runs["status"] == "ok").all()
    assert "best against host" in done.stdout
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--models", "gpt"), "--models: no model 'gpt'"),
        (("--sizes", "1,x"), "--sizes: must be a positive integer, not 'x'"),
        (("--gpu", "h200"), "no tile sizes are known for h200"),
        (("--tables", "none"), "no --tables"),
    ],
)
def test_bad_options_are_one_line(tmp_path, args, text):
    refused(run(tmp_path, *args), text)
