"""Wrong input is one clear line that says what and where."""

from __future__ import annotations

import numpy as np
import pytest

from pysim import simulate
from pysim.errors import ConfigError, DependenceError, SimError, WorkloadError
from pysim.machine.config import Config
from pysim.machine.devices import device
from pysim.program.job import Access, Job, Kernel, Memory, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiling import Tiling
from pysim.workloads.registry import make
from tests.core.harness import tiny


def plain(warps=1, registers=32, smem=0, grid=(1, 1, 1), name="mine"):
    code = Code()
    code.compute(fp32=4)
    code.exit()
    return Kernel(name, Program(name, (tuple(code.ops),), warps, registers, smem, 0), grid, (), ())


def refused(kind, *words, call):
    """The call raises ``kind`` with one line that holds all words."""
    with pytest.raises(SimError) as caught:
        call()
    assert isinstance(caught.value, kind), repr(caught.value)
    text = str(caught.value)
    assert text
    assert "\n" not in text
    for word in words:
        assert word in text, text


def run(job, schemes="stream", **overrides):
    return simulate(tiny(**overrides), job, schemes, threads=1)


def reason(job, **overrides):
    """Why a run was refused: a row, not an exception, where only the job does not fit."""
    rows = run(job, **overrides).tables()["runs"]
    assert rows["status"].tolist() == [b"refused"]
    return rows["reason"][0].decode()


def stopped(word, job):
    """A job whose definition is wrong is an exception, whatever the scheme."""
    refused(WorkloadError, word, call=lambda: run(job))


@pytest.mark.parametrize(
    ("kernel", "word"),
    [
        (plain(warps=65), "warps"),
        (plain(warps=64, registers=255), "registers"),
        (plain(smem=100_000), "shared memory"),
    ],
)
def test_a_tb_that_fits_no_sm(kernel, word):
    text = reason(Job("j", [kernel]))
    assert word in text
    assert "mine" in text
    assert "\n" not in text


@pytest.mark.parametrize("grid", [(0, 1, 1), (1, -1, 1), (1, 1, 0), (-5, -5, 1)])
def test_grids_of_no_size(grid):
    refused(WorkloadError, "mine", "grid", "positive", call=lambda: plain(grid=grid))


@pytest.mark.parametrize("grid", [(1 << 31, 1, 1), (65536, 65536, 1), (1 << 20, 1 << 6, 1 << 6)])
def test_grids_of_too_many_tbs(grid):
    refused(WorkloadError, "mine", "grid", str(2**31 - 1), call=lambda: plain(grid=grid))


@pytest.mark.parametrize("name", ["rows", "cols", "item"])
@pytest.mark.parametrize("value", [0, -3])
def test_tensors_of_no_size(name, value):
    sizes = {"rows": 4, "cols": 4, "item": 4} | {name: value}
    refused(WorkloadError, "mine", name, str(value), call=lambda: Memory().tensor("mine", **sizes))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "gemm:m=0",
            "gemm:n=-1",
            "gemm:k=0",
            "gru:hidden=0",
            "gru:batch=-1",
            "gru:timesteps=0",
            "gru:layers=0",
        ),
        *(
            "copy:nbytes=0",
            "copy:nbytes=-4",
            "pointwise:elements=0",
            "empty:tbs=0",
            "read:chunk=0",
            "read:tbs=0",
        ),
        *("chase:stride=0", "chase:footprint=0", "ffma:tbs=-1", "ffma:iterations=0", "random_dag:kernels=0"),
    ],
)
def test_workloads_of_no_size(text):
    refused(WorkloadError, call=lambda: make(text))


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("gem", "gemm"),
        ("gemm:l=3", "gemm"),
        ("gemm:m=x", "integer"),
        ("gru:hiden=3", "hidden"),
        ("gemm:m=1,m=2", "once"),
    ],
)
def test_unknown_workloads(text, near):
    refused(WorkloadError, near, call=lambda: make(text))


@pytest.mark.parametrize("tiling", [{"split_k": 0}, {"slices": 3}, {"slices": 0}])
def test_tilings_that_do_not_divide(tiling):
    refused(WorkloadError, call=lambda: Tiling("t", 32, 32, 8, 4, **tiling))


def test_unknown_devices():
    refused(ConfigError, "titan_w", "titan_v", call=lambda: device("titan_w"))
    refused(ConfigError, "h9000", call=lambda: simulate("h9000", Job("j", [plain()])))
    refused(ConfigError, "none.toml", call=lambda: device("none.toml"))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("gpu.smss", 3, ("gpu.smss", "gpu.sms")),
        ("gpu.sms", 0, ("gpu.sms",)),
        ("gpu.sms", -1, ("gpu.sms",)),
        ("gpu.sms", "many", ("gpu.sms",)),
        ("gpu.sm.warps", 63, ("gpu.sm.warps", "multiple of 4")),
        ("gpu.l2.size", 1_000_000, ("gpu.l2.size",)),
        ("gpu.l2.size", "1GiB", ("gpu.l2.size",)),
        ("gpu.l2.latency", 60, ("gpu.l2.latency",)),
        ("gpu.dram.latency", 200, ("gpu.dram.latency",)),
        ("gpu.dram.banks", 12, ("gpu.dram.banks", "power of two")),
        ("gpu.noc.latency", 1, ("gpu.noc.latency",)),
        ("gpu.clock", float("nan"), ("gpu.clock",)),
        ("gpu.clock", float("inf"), ("gpu.clock",)),
        ("scheme.priority", "oldst", ("scheme.priority", "oldest")),
        ("sim.quantum", -1, ("sim.quantum",)),
    ],
)
def test_parameters(path, value, words):
    def call():
        conf = Config.resolve(device("titan_v"), {path: value})
        # what the table of parameters allows, the core may still refuse
        result = simulate(conf, Job("j", [plain()]), "stream", threads=1)
        rows = result.tables()["runs"]
        assert rows["status"].tolist() == [b"refused"]
        raise ConfigError(rows["reason"][0].decode())

    refused(ConfigError, *words, call=call)


@pytest.mark.parametrize(
    ("schemes", "near"),
    [("strem", "stream"), ("stream:late", "option"), ("", "scheme"), ("tb_static:newest+critical", "both")],
)
def test_schemes(schemes, near):
    refused(ConfigError, near, call=lambda: run(Job("j", [plain()]), schemes))


def test_threads_and_tables():
    job = Job("j", [plain()])
    refused(ConfigError, "threads", call=lambda: simulate(tiny(), job, threads=0))
    refused(ConfigError, "threads", call=lambda: simulate(tiny(), job, threads=-2))
    refused(ConfigError, "tbz", call=lambda: simulate(tiny(), job, tables="tbz"))


def test_more_threads_than_the_core_takes():
    """The default is the machine's cores, which may be many."""
    job = Job("j", [plain(grid=(20, 1, 1))])
    assert simulate(tiny(), job, "stream", threads=64).hash == simulate(tiny(), job, "stream", threads=1).hash


def test_empty_jobs():
    refused(WorkloadError, "nothing", "no kernels", call=lambda: run(Job("nothing", [])))


@pytest.mark.parametrize("event", [(1, 0), (1, 1), (0, 5), (-1, 1), (7, 1)])
def test_events_that_run_backwards_or_nowhere(event):
    job = Job("circle", [plain(name="a"), plain(name="b")], [event])
    refused((DependenceError, WorkloadError), call=lambda: run(job))


def with_tensor(tensor, *, width=4, step=4, base=0, region=None, lanes=0xFFFFFFFF):
    code = Code()
    code.load(0, Pattern(0, width, s0=step, base=base, lanes=lanes))
    code.wait(0)
    code.exit()

    def regions(tbs):
        return np.tile(np.array([region or [0, 1, 0, 32]], np.int64), (len(tbs), 1))

    program = Program("mine", (tuple(code.ops),), 1, 16, 0, 1)
    return Job("j", [Kernel("mine", program, (1, 1, 1), (tensor,), (Access(tensor, "read", regions),))])


def test_addresses():
    run(with_tensor(Tensor("t", 1, 64, 4, 1 << 20)))
    for address in (100, (1 << 20) + 128, 1):
        assert "256" in reason(with_tensor(Tensor("t", 1, 64, 4, address)))
    far = with_tensor(Tensor("t", 1, 64, 4, 1 << 50))
    assert "argument 0" in reason(far)
    odd = reason(with_tensor(Tensor("t", 1, 64, 4, 0), step=3))
    assert "mine" in odd
    assert "odd" in odd
    # a pattern that leaves memory
    below = with_tensor(Tensor("t", 1, 64, 4, 1 << 20), base=-(1 << 21))
    stopped("reads byte -2097152 of t", below)
    stopped("of t (1 x 64", with_tensor(Tensor("t", 1, 64, 4, 1 << 20), base=1 << 40))


def test_arguments_and_patterns():
    tensor = Tensor("t", 1, 64, 4, 1 << 20)
    kernel = with_tensor(tensor).kernels[0]
    none = Kernel("mine", kernel.program, (1, 1, 1), (), ())
    stopped("(mine): 0 args, its program takes 1", Job("j", [none]))
    other = Program("mine", ((*kernel.program.variants[0],),), 1, 16, 0, 0)
    stopped("(mine)", Job("j", [Kernel("mine", other, (1, 1, 1), (), ())]))
    three = Program("mine", kernel.program.variants * 3, 1, 16, 0, 1)
    stopped("3 variants: 1 or 8", Job("j", [Kernel("mine", three, (1, 1, 1), (tensor,), ())]))


def program_of(build, warps=1):
    code = Code()
    build(code)
    code.exit()
    return Job("j", [Kernel("mine", Program("mine", (tuple(code.ops),), warps, 16, 0, 0), (1, 1, 1), (), ())])


def test_loops():
    refused(WorkloadError, "iterations", call=lambda: program_of(lambda c: c.loop_end(c.loop_begin(), 0)))

    def long(code):
        mark = code.loop_begin()
        code.compute(int=1)
        code.loop_end(mark, 70000)

    assert "65535" in reason(program_of(long))


def test_unknown_pipes():
    refused(WorkloadError, "fp23", call=lambda: program_of(lambda c: c.compute(fp23=3)))


def test_a_program_without_an_end():
    program = Program(
        "mine", ((*program_of(lambda c: c.compute(int=1)).kernels[0].program.variants[0][:-1],),), 1, 16, 0, 0
    )
    stopped("EXIT", Job("j", [Kernel("mine", program, (1, 1, 1), (), ())]))


def test_a_result_that_does_not_exist():
    result = run(Job("j", [plain()]))
    refused(ConfigError, "graph", call=lambda: result.time_us("graph"))
    refused(ConfigError, "kernel 4", call=lambda: result.explain("stream", 4, 0))
    refused(ConfigError, "TB 9", call=lambda: result.explain("stream", 0, 9))
    refused(ConfigError, "nope", call=lambda: result.frame("nope"))


def test_a_python_file_is_no_workload():
    refused(
        WorkloadError,
        "no workload 'mine.py'",
        "pysim.simulate(GPU, JOB, SCHEMES)",
        call=lambda: make("mine.py"),
    )
