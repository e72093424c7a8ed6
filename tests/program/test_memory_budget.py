"""Jobs that would not fit into memory are refused before they are built, with their size."""

import contextlib
import time

import numpy as np
import pytest

from pysim import Job, simulate
from pysim.errors import ConfigError, WorkloadError
from pysim.program import memory_budget
from pysim.program.regions import overlapping_pairs
from pysim.workloads import make
from pysim.workloads.registry import WORKLOADS, ZOO


@pytest.fixture
def gibibyte():
    memory_budget.set_limit(1 << 30)
    yield
    memory_budget.set_limit(None)


@pytest.mark.parametrize(
    ("workload", "size"),
    [
        ("gru:layers=1000000", "457.8 GiB"),
        ("lstm:layers=200000,timesteps=100", "305.2 GiB"),
        ("transformer:layers=1000000", "71.0 GiB"),
        ("transformer:layers=50000", "3.6 GiB"),
        ("persistent_rnn:timesteps=65000,layers=1024", "15.9 GiB"),
    ],
)
@pytest.mark.usefixtures("gibibyte")
def test_networks_are_refused_before_they_are_built(workload, size):
    begin = time.process_time()
    with pytest.raises(WorkloadError, match=rf"layers.* launches: about {size} .* 1\.0 GiB \(--max-memory\)"):
        make(workload)
    assert time.process_time() - begin < 2


@pytest.mark.usefixtures("gibibyte")
def test_a_long_block_is_refused_before_it_is_split():
    result = simulate("titan_v", make("ffma:count=1000000000"), "stream", tables="none")
    row = result.frame("runs").iloc[0]
    assert row.status == "refused"
    assert row.reason.startswith("program ffma: blocks of 1,000,000,000 instructions: about ")


@pytest.mark.usefixtures("gibibyte")
def test_many_launches_are_refused_before_their_dependences_are_looked_for():
    job = Job("many", list(make("empty").kernels) * 1000000)
    with pytest.raises(WorkloadError, match=r"job many: 1,000,000 launches: about 1\.9 GiB"):
        simulate("titan_v", job, "stream")


SIZES = [
    *("3mm:n", "alexnet:width", "bicg:n", "copy:nbytes", "mvt:n", "pointwise:elements", "read:chunk"),
    *("chase:footprint", "gemm:m", "mlp:width", "columns:rows"),  # of tensors, which take no memory here
]
COUNTS = [
    *(
        "random_dag:kernels",
        "random_dag:tensors",
        "fdtd2d:steps",
        "fft:kernels",
        "gaussian:n",
        "gramschm:cols",
    ),
    *("hotspot:kernels", "lud:n", "nw:n", "pathfinder:kernels", "wavefront:graphs", "wavefront:side"),
    *("empty:kernels", "gemm:repeat", "mlp:layers", "gru:timesteps", "vanilla:layers", "rigid:steps"),
    *("bert-base:layers", "gpt2:layers", "llama-7b:layers"),
    *("network:layers", "persistent_rnn:layers", "persistent_rnn:timesteps", "pointwise:inputs"),
]


@pytest.mark.parametrize("key", SIZES + COUNTS)
@pytest.mark.usefixtures("gibibyte")
def test_absurd_sizes_are_refused_at_once(key):
    begin = time.process_time()
    size = 15 * 7 << 40  # whole tiles of every size
    if key in COUNTS:
        with pytest.raises(WorkloadError):
            make(f"{key}={size}")
    else:
        with contextlib.suppress(WorkloadError):
            assert len(make(f"{key}={size}").kernels) < 100
    with pytest.raises(WorkloadError, match="must be an integer of 64 bits"):
        make(f"{key}={10**400}")
    assert time.process_time() - begin < 2


def test_every_workload_is_tried():
    known = {key.partition(":")[0] for key in SIZES + COUNTS}
    assert known >= set(WORKLOADS) - {"lstm", "transformer", "ffma", "tensor", "mixed"} - set(ZOO)


def test_without_a_limit_it_is_a_share_of_what_is_free():
    free = memory_budget.free_memory()
    assert free > 0
    assert memory_budget.limit() == pytest.approx(memory_budget.SHARE * free, rel=0.2)


@pytest.mark.parametrize(("text", "size"), [("1GiB", 1 << 30), ("1.5MiB", 3 << 19), ("4096", 4096)])
def test_sizes(text, size):
    assert memory_budget.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "much", "0", "infGiB"])
def test_no_sizes(text):
    with pytest.raises(ConfigError, match="must be a size"):
        memory_budget.parse_size(text)


def test_pairs_of_tbs_beyond_the_limit_are_refused_while_they_are_listed(monkeypatch):
    monkeypatch.setattr(memory_budget, "_chosen", [1 << 27])
    ends = np.arange(1, 4097)
    with pytest.raises(WorkloadError, match=r"pairs of TBs .* \(--max-memory\)"):
        overlapping_pairs(0 * ends, ends, 0 * ends, ends)
    few = np.arange(100)
    assert len(overlapping_pairs(few, few + 1, few, few + 1)[0]) == 100
