"""How many lines an SM may have under way: of loads, of copies into shared memory, of stores."""

import pytest

from pysim.program.job import Job, Kernel, Memory
from pysim.program.warp_program import Code, Pattern, Program

from .harness import config, execute

OPS, LINES, LATENCY = 48, 32, 8000  # a warp-wide op asks for one sector of each of so many lines


def cycles(first, second="", **settings):
    """Cycles that one warp takes to ask for so many lines, then for as many in another way."""
    memory, code = Memory(), Code()
    kinds = [what for what in (first, second) if what]
    buffers = [memory.tensor(f"{i}", OPS * LINES, 32, 4) for i in range(len(kinds))]
    for arg, what in enumerate(kinds):
        for i in range(OPS):
            place = Pattern(arg, 4, base=i * LINES * 128, s0=128)
            if what == "store":
                code.store(1, place)
            else:
                code.load(0, place, bypass_l1=True, smem=int(what == "copy"))
    code.exit()
    program = Program("ask", (tuple(code.ops),), 1, 32, 4096, len(kinds))
    kernel = Kernel("ask", program, (1, 1, 1), tuple(buffers), (), 0)
    alone = {"gpu__sms": 1, "gpu__gpcs": 1, "gpu__dram__latency": LATENCY}
    tbs = execute(Job("ask", [kernel]), "stream", config("h200", **alone, **settings)).tbs
    return (int(tbs["end"][0]) - int(tbs["start"][0])) / 1024 * 1.98


@pytest.mark.parametrize(
    ("what", "limit"), [("load", "in_flight"), ("copy", "copies_in_flight"), ("store", "stores_in_flight")]
)
def test_each_kind_waits_for_its_own_limit(what, limit):
    """Twice as many under way take half as long, however few of the others there may be."""
    names = {"in_flight", "copies_in_flight", "stores_in_flight"} - {limit}
    others = {f"gpu__l1__{name}": 32 for name in names}
    few, more = (cycles(what, **others, **{f"gpu__l1__{limit}": n}) for n in (96, 192))
    assert few / more == pytest.approx(2, rel=0.15)


def test_copies_count_as_loads_where_they_have_no_limit():
    settings = {"gpu__l1__in_flight": 96}
    assert cycles("copy", gpu__l1__copies_in_flight=0, **settings) == pytest.approx(
        cycles("copy", gpu__l1__copies_in_flight=96, **settings), rel=0.01
    )
    shared = cycles("copy", "load", gpu__l1__copies_in_flight=0, **settings)
    apart = cycles("copy", "load", gpu__l1__copies_in_flight=1536, **settings)
    assert shared > 1.7 * apart


def test_all_copies_of_a_product_may_be_under_way():
    """As measured (h100_flight.csv): 1,536 lines are under way at once, of loads 256."""
    assert cycles("copy") < 1.5 * LATENCY < 3 * LATENCY < cycles("load")


def test_more_lines_than_loads_may_have_come_in_their_turn():
    """1,536 whole lines that come faster than the SM takes them, and loads from shared memory among them."""
    memory, code = Memory(), Code()
    source = memory.tensor("source", 32 * 12 * 4, 32, 4)
    for i in range(12):
        code.load(0, Pattern(0, 16, base=i * 512, warp=12 * 512, s0=16), bypass_l1=True, smem=1)
    for _ in range(200):
        code.compute(smem=4, smem_ops=1, chain=30)
    code.exit()
    program = Program("burst", (tuple(code.ops),), 32, 32, 200 << 10, 1)
    job = Job("burst", [Kernel("burst", program, (16, 1, 1), (source,), (), 0)])

    def ends(threads=(1,), **settings):
        one = config("h200", gpu__sms=16, gpu__gpcs=1, gpu__noc__reply_bytes=32, **settings)
        return list(execute(job, "stream", one, threads=threads).tbs["end"])

    want = ends()
    assert ends(sim__quantum=7) == want
    assert ends(sim__quantum=40, threads=(2, 1)) == want
