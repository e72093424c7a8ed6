"""tb_auto: how many hints operands take, which form a pair of kernels gets, and what TBs ahead win."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysim import simulate
from pysim.dependence.dependences import dependences
from pysim.machine.config import Config
from pysim.machine.devices import device
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.warp_program import Code, Program
from pysim.schemes.auto.hints import LEVELS, WORD_BYTES, launch_hints, size_of
from pysim.schemes.auto.pair_forms import REASONS, choose
from pysim.schemes.hardware_cost import Sizes, on_chip_bits
from pysim.schemes.registry import parse_scheme
from pysim.workloads import make
from tests.core.harness import execute, oracle, tiny

NOTHING = Code()
NOTHING.exit()
PROGRAM = Program("nothing", (tuple(NOTHING.ops),), 1, 16, 0, 0)


# ---- hints ----
@given(st.lists(st.tuples(st.integers(3, 5), st.integers(-9, 9)), min_size=1, max_size=LEVELS))
def test_nested_loops_are_one_hint(loops):
    """Innermost first: (how often, how far)."""
    places = np.zeros(1, np.int64)
    for level, (count, step) in enumerate(loops):
        places = np.concatenate([places + n * step * 100**level for n in range(count)])
    ones = 0 * places + 1
    hints, words = size_of(np.stack([0 * places, places, ones, ones], axis=1))
    most = 1 + (len(loops) > 1) + (len(loops) > 2)
    assert hints == 1
    assert 1 <= words <= most  # two loops may be one of the same step
    assert words == most or any(step == 0 for _, step in loops)
    assert size_of(np.stack([0 * places, places, 4 * ones, ones], axis=1)) == (1, max(2, words))


def test_what_breaks_a_loop_takes_hints_of_its_own():
    row = np.arange(100)
    table = np.stack([row // 10 * 5, row % 10 * 3, 0 * row + 1, 0 * row + 3], axis=1)
    assert size_of(table) == (1, 2)
    table[37, :2] += 1
    assert 1 < size_of(table)[0] <= 8
    assert size_of(np.random.default_rng(0).integers(1, 1000, (50, 4)))[0] >= 20
    assert size_of(table[:0]) == (0, 0)


def shifted(tensor, halo=0):
    """TB t touches row t, and ``halo`` rows on either side."""

    def regions(tbs):
        lo, hi = np.maximum(tbs - halo, 0), np.minimum(tbs + halo + 1, tensor.rows)
        return np.stack([lo, hi, 0 * tbs, 0 * tbs + tensor.cols], axis=1)

    return regions


def scattered(tensor):
    def regions(tbs):
        rows = np.random.default_rng(1).permutation(tensor.rows)[tbs]
        return np.stack([rows, rows + 1, 0 * tbs, 0 * tbs + tensor.cols], axis=1)

    return regions


def kernel(name, tbs, *accesses):
    return Kernel(name, PROGRAM, (tbs, 1, 1), (), tuple(Access(*each) for each in accesses))


def values(**overrides):
    return tiny(**overrides).encoded()


def test_hints_name_changing_memory_alone_and_are_not_cut_at_the_ends_of_an_operand():
    memory = Memory()
    a, b, w = (memory.tensor(name, 32, 64, 4) for name in "abw")
    one = kernel("one", 32, (w, "read", shifted(w)), (a, "write", shifted(a)))
    two = kernel("two", 32, (a, "read", shifted(a, 1)), (b, "write", shifted(b)))
    job = Job("job", [one, two])
    hints = launch_hints(job, values())
    assert hints.count.tolist() == [1, 2]  # none of weights, one of rows with a halo
    assert hints.by_tb.all()
    assert hints.job is job
    assert hints.rules(1, 0) == 1
    assert hints.packet_bytes.tolist() == [WORD_BYTES, 3 * WORD_BYTES]  # a row is a word, three rows are two


def test_an_operand_without_a_rule_is_stated_as_a_whole():
    memory = Memory()
    a, b = (memory.tensor(name, 200, 64, 4) for name in "ab")
    one = kernel("one", 200, (a, "write", scattered(a)))
    two = kernel("two", 200, (a, "read", shifted(a)), (b, "write", shifted(b)))
    job = Job("job", [one, two])
    few = values(scheme__auto__hints=64)
    hints = launch_hints(job, few)
    assert hints.count.tolist() == [1, 2]
    forms = choose(hints.job, dependences(hints.job), hints, few)
    assert [(p.producer, p.kernel, p.reason, p.form) for p in forms.pairs] == [(0, 1, "most", "kernel")]
    assert forms.whole == [(), (0,)]
    # with room for its many hints, it is told TB by TB
    roomy = values(scheme__auto__hints=200, scheme__auto__store=1024)
    assert choose(job, dependences(job), launch_hints(job, roomy), roomy).pairs[0].form == "tb"


def test_many_operands_share_hints():
    """A launch has so many words of hints at most; beyond them operands are joined."""
    memory = Memory()
    inputs = [memory.tensor(f"i{n}", 1, 64, 4) for n in range(40)]
    makers = [kernel(f"m{n}", 1, (t, "write", shifted(t))) for n, t in enumerate(inputs)]
    out = memory.tensor("out", 1, 64, 4)
    user = kernel("user", 1, *((t, "read", shifted(t)) for t in inputs), (out, "write", shifted(out)))
    assert launch_hints(Job("job", [*makers, user]), values()).count[-1] == 41
    hints = launch_hints(Job("job", [*makers, user]), values(scheme__auto__hints=16))
    assert hints.count[-1] <= 16
    assert not hints.by_tb[-1]
    few = launch_hints(Job("job", [*makers, user]), values(scheme__auto__store=1))
    assert few.count[-1] == 2


def test_a_launch_without_hints_runs_after_barriers():
    job = make("gru:hidden=64,batch=4,timesteps=3,layers=2")
    case = tiny(scheme__auto__missing=1.0)
    all_lost = execute(job, "tb_auto", case).totals.end
    assert all_lost > 1.2 * execute(job, "tb_auto", tiny()).totals.end
    execute(job, "tb_auto", oracle(scheme__auto__missing=0.5))


# ---- forms ----
def chosen(text, **overrides):
    job = make(text)
    settings = values(**overrides)
    return choose(job, dependences(job), launch_hints(job, settings), settings)


def test_each_pair_says_why_it_has_its_form():
    forms = chosen("fdtd2d")
    said = {(pair.reason, pair.form) for pair in forms.pairs}
    assert ("few", "tb") in said
    assert ("covered", "none") in said
    assert {kernel for kernel, each in enumerate(forms.whole) if each} == {
        pair.kernel for pair in forms.pairs if pair.form == "kernel"
    }
    assert {pair.reason for pair in chosen("gru:timesteps=4,layers=2").pairs} >= {"implied", "most"}


def test_the_share_draws_the_line():
    few = [pair for pair in chosen("nw:n=256", scheme__auto__share=1.0).pairs if pair.form == "tb"]
    none = [pair for pair in chosen("nw:n=256", scheme__auto__share=0.0).pairs if pair.form == "tb"]
    assert few
    assert not none


@pytest.mark.parametrize(("name", "limit"), [("rules", 2), ("tbs", 1000)])
def test_kernels_beyond_the_room_wait_for_whole_kernels(name, limit):
    forms = chosen("fdtd2d", **{f"scheme__auto__{name}": limit})
    assert forms.peak_rules <= (limit if name == "rules" else 1024)
    assert forms.peak_tbs <= (limit if name == "tbs" else 16384)
    assert any(pair.reason == "no room" for pair in forms.pairs)
    execute(make("fdtd2d:n=96,steps=3"), "tb_auto", oracle(**{f"scheme__auto__{name}": limit}))


# ---- the scheme ----
@pytest.mark.parametrize("gpu", ["titan_v", "h200"])
def test_it_is_no_slower_than_the_best_of_others(gpu):
    """GRU: kernel edges and TBs ahead; HotSpot: edges between TBs."""
    for text in ("gru:hidden=256,batch=8,timesteps=4,layers=2", "hotspot:n=384"):
        made = simulate(gpu, make(text), "graph,pool,tb_static,tb_static:reduced,tb_auto", baseline=False)
        times = [made.time_us(each) for each in ("graph", "pool", "tb_static", "tb_static:reduced")]
        assert made.time_us("tb_auto") <= 1.02 * min(times)


def test_tbs_ahead_take_an_even_share_of_an_sm():
    """Else SMs that are idle first take too many, and the others none: the whole kernel waits for them."""
    job = make("gru:hidden=768,batch=16,timesteps=3,layers=2")
    made = simulate("titan_v", job, "tb_auto,tb_auto:crowded,tb_auto:held", baseline=False)
    assert made.time_us("tb_auto") < made.time_us("tb_auto:held") < made.time_us("tb_auto:crowded")


def test_what_it_keeps_on_the_chip():
    for gpu in ("titan_v", "h200"):
        case = parse_scheme("tb_auto")
        job = make("gru:timesteps=40,layers=2")
        settings = Config.resolve(device(gpu), dict(case.pins)).encoded()
        kept = case.scheme.structures(Sizes.of(job, 1, settings), settings, {})
        assert 16 < on_chip_bits(kept) / 8192 <= 32


# ---- decisions can be read back ----
def test_each_pair_has_a_row_and_explain_says_why():
    job = make("fdtd2d:n=96,steps=3")
    made = simulate("titan_v", job, "tb_auto,tb_static", baseline=False)
    rows, chosen = made.tables()["decisions"], made.tables()["chosen"]
    edges = {(int(e["kernel"]), int(e["producer_kernel"])) for e in made.tables()["edges"]}
    assert {(int(r["kernel"]), int(r["producer_kernel"])) for r in rows} == edges
    assert set(rows["run"].tolist()) == set(chosen["run"].tolist()) == {0}
    assert chosen["tb_pairs"][0] == (rows["form"] == b"tb").sum() > 0
    assert chosen["none_pairs"][0] + chosen["kernel_pairs"][0] + chosen["tb_pairs"][0] == len(rows)
    assert chosen["hint_bytes"][0] == launch_hints(job, values()).packet_bytes.sum()
    few = rows[rows["form"] == b"tb"][0]
    text = made.explain("tb_auto", int(few["kernel"]), 0)
    times = re.findall(r"^  \w+ +([\d.]+) us", text, re.MULTILINE)
    (end,) = re.findall(r"to ([\d.]+) us", text)
    assert sum(map(float, times)) == pytest.approx(float(end), abs=0.003)
    assert f"edges between TBs to kernel {few['producer_kernel']} (" in text
    assert REASONS["few"].text in text
    assert REASONS["few"].text not in made.explain("tb_static", int(few["kernel"]), 0)


def test_a_kernel_waits_for_room_in_the_store():
    """A small store admits fewer kernels at once, and all run."""
    job = make("gru:hidden=64,batch=4,timesteps=3,layers=2")
    roomy = execute(job, "tb_auto", oracle()).totals.end
    tight = execute(job, "tb_auto", oracle(scheme__auto__store=12)).totals.end
    assert tight > roomy


def test_a_view_that_is_cut_takes_one_hint():
    """Three TBs a row of a gate's columns, the third cut at their end."""
    memory = Memory()
    gates, out = memory.tensor("gates", 4, 240, 4), memory.tensor("out", 4, 240, 4)

    def regions(tbs):
        first = 80 + tbs % 3 * 32
        return np.stack([tbs // 3, tbs // 3 + 1, first, np.minimum(first + 32, 160)], axis=1)

    one = kernel("one", 12, (gates, "write", regions))
    two = kernel("two", 12, (gates, "read", regions), (out, "write", regions))
    hints = launch_hints(Job("job", [one, two]), values())
    assert hints.count.tolist() == [1, 2]
    assert hints.words.tolist() == [2, 4]


def test_runs_of_elements_across_rows_are_one_hint():
    """TB t touches elements 40 t to 40 t + 39 of a matrix with rows of 32: whole rows that hold them."""
    memory = Memory()
    a = memory.tensor("a", 15, 32, 4)

    def regions(tbs):
        return np.stack([tbs * 40 // 32, -(-(tbs + 1) * 40 // 32), 0 * tbs, 0 * tbs + 32], axis=1)

    def uneven(tbs):
        return np.stack([tbs + (tbs > 4), tbs + 2 + (tbs > 7), 0 * tbs, 0 * tbs + 32], axis=1)

    one, two = (kernel(name, 12, (a, "write", each)) for name, each in (("one", regions), ("two", uneven)))
    hints = launch_hints(Job("job", [one, two]), values())
    assert (hints.count[0], hints.words[0]) == (1, 2)
    assert hints.count[1] > 1
