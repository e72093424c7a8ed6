"""Schemes: parsing, edges, ranks, occupancy and how programs are cut. Needs no compiled core."""

from __future__ import annotations

import pytest

from pysim.dependence.dependences import dependences
from pysim.errors import ConfigError, WorkloadError
from pysim.machine.config import Config
from pysim.machine.devices import device
from pysim.params import PARAMS, encode
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.occupancy import carveout, occupancy
from pysim.program.ops import alignment, lower_programs, split_block
from pysim.program.warp_program import OP, Code, Op, Pattern, Program
from pysim.schemes.priority import priority_ranks
from pysim.schemes.registry import SCHEMES, parse_schemes

VALUES = {f"{group}.{row.name}": encode(row, row.default) for group, rows in PARAMS.items() for row in rows}


def a_kernel(warps: int = 8, registers: int = 32, smem: int = 0) -> Kernel:
    code = Code()
    code.compute(fp32=100)
    code.exit()
    program = Program("p", (tuple(code.ops),), warps, registers, smem, 0)
    return Kernel("k", program, (4, 1, 1), (), ())


def a_job() -> Job:
    memory = Memory()
    x, y = memory.tensor("x", 4, 64, 4), memory.tensor("y", 4, 64, 4)
    import numpy as np

    def rows(
        tbs: np.ndarray[tuple[int], np.dtype[np.int64]],
    ) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        return np.stack([tbs, tbs + 1, 0 * tbs, 0 * tbs + 64], axis=1)

    program = a_kernel().program
    first = Kernel("a", program, (4, 1, 1), (), (Access(x, "write", rows),))
    other = Kernel("b", program, (4, 1, 1), (), (Access(y, "write", rows),))
    last = Kernel("c", program, (4, 1, 1), (), (Access(x, "read", rows),))
    return Job("j", [first, other, last])


def test_parse() -> None:
    names = [c.name for c in parse_schemes("stream, tb_static:newest+tb,stream")]
    assert names == ["stream", "tb_static:newest+tb"]
    assert parse_schemes("tb_static:newest")[0].pins == {"scheme.priority": "newest"}


def test_a_scheme_says_which_settings_of_the_user_it_fixes() -> None:
    given = {"scheme.priority": "oldest", "scheme.prologue": 0, "scheme.placement": "ahead"}
    config = Config.resolve(device("titan_v"), given)
    (newest, auto) = parse_schemes("tb_static:newest,tb_auto")
    assert newest.overruled(config) == [
        "tb_static:newest: scheme.priority is newest, not oldest: the scheme fixes it"
    ]
    assert auto.overruled(config) == ["tb_auto: scheme.prologue is 1, not 0: the scheme fixes it"]
    assert not auto.overruled(Config.resolve(device("titan_v")))
    assert auto.overruled(Config.resolve(device("titan_v")).replaced({"scheme.prologue": 0}))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("strem", "did you mean 'stream'"),
        ("tb_static:newst", "did you mean 'newest'"),
        ("stream:x", "has no option"),
        ("tb_static:newest+critical", "both set"),
        ("tb_static:newest+tb+newest", "newest[+]tb[+]newest: option newest is given twice"),
        ("stream:sync_code+sync_code", "option sync_code is given twice"),
        ("", "no scheme given"),
    ],
)
def test_parse_refuses(text: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        parse_schemes(text)


def test_edges_of_schemes() -> None:
    job = a_job()
    deps = dependences(job)
    assert SCHEMES["host"].preds(job, deps) == [(), (0,), (1,)]
    assert SCHEMES["stream"].preds(job, deps) == [(), (0,), (1,)]
    assert SCHEMES["graph"].preds(job, deps) == [(), (), (0,)]


def test_orders() -> None:
    job = a_job()
    stream = SCHEMES["stream"].core_order(job, VALUES)
    assert (stream["tb_edges"], stream["invalidate"], stream["gap"]) == (0, 1, VALUES["gpu.cp.stream_gap"])
    table = SCHEMES["tb_static"].core_order(job, VALUES)
    assert (table["tb_edges"], table["invalidate"], table["admit"]) == (1, 3, VALUES["gpu.cp.admit"])
    ideal = SCHEMES["tb_ideal"].core_order(job, VALUES)
    assert (ideal["infinite"], ideal["admit"], ideal["window"]) == (1, 0, 3)


def test_ranks() -> None:
    preds = [(), (), (0,), (2,)]
    times = [1.0, 3.0, 1.0, 5.0]
    assert priority_ranks("oldest", preds, times) == [0, 1, 2, 3]
    assert priority_ranks("newest", preds, times) == [3, 2, 1, 0]
    assert priority_ranks("critical", preds, times) == [0, 3, 1, 2]


def test_occupancy() -> None:
    assert occupancy(a_kernel(8, 32), VALUES) == 8
    assert occupancy(a_kernel(8, 128), VALUES) == 2
    assert occupancy(a_kernel(1, 32), VALUES) == 32
    assert occupancy(a_kernel(8, 32, 40000), VALUES) == 2
    with pytest.raises(WorkloadError, match=r"kernel k.*shared memory"):
        occupancy(a_kernel(8, 32, 100000), VALUES)
    with pytest.raises(WorkloadError, match=r"kernel k.*registers"):
        occupancy(a_kernel(32, 255), VALUES)
    assert carveout(a_kernel(), VALUES, (0, 32768, 98304)) == 0
    assert carveout(a_kernel(8, 32, 4096), VALUES, (0, 32768, 98304)) == 32768


def test_cut_keeps_totals() -> None:
    op = Op(OP["COMPUTE"], smem=77, issue=1000, conflicts=13, chain=9, pipes=(700, 100, 0, 0, 3, 0, 10))
    parts = split_block(op, 64)
    assert sum(p.issue for p in parts) == 1000
    assert max(p.issue for p in parts) <= 64
    assert tuple(map(sum, zip(*(p.pipes for p in parts), strict=True))) == op.pipes
    assert sum(p.smem for p in parts) == 77
    assert sum(p.conflicts for p in parts) == 13
    assert [p.chain for p in parts[:-1]] == [0] * (len(parts) - 1)
    assert parts[-1].chain == 9
    assert all(sum(p.pipes) <= p.issue for p in parts)


def test_programs_are_shared_and_loops_find_their_body() -> None:
    code = Code()
    code.compute(fp32=100)
    mark = code.loop_begin()
    code.load(0, Pattern(0, 4, s0=4))
    code.loop_end(mark, 3)
    code.exit()
    made = [Program("p", (tuple(code.ops),), 2, 32, 0, 1) for _ in range(2)]
    x = Memory().tensor("x", 1, 64, 4)
    kernels = [Kernel("k", p, (1, 1, 1), (x,), ()) for p in made]
    lowered = lower_programs(Job("j", kernels), 64)
    assert lowered.index == [0, 0]
    assert len(lowered.programs) == 1
    loop = next(op for op in lowered.ops if op["kind"] == OP["LOOP"])
    assert lowered.ops[lowered.programs[0]["entry"][0] + loop["target"]]["kind"] == OP["LOAD"]
    assert lowered.patterns[0]["align"] == 4


def test_alignment() -> None:
    assert alignment(Pattern(0, 16, base=4096, bx=512, s0=16), "p") == 16
    with pytest.raises(WorkloadError):
        alignment(Pattern(0, 1, s0=1), "p")
