"""Kernels that wait for tiles: an edge that a third kernel seems to imply is waited for where it does not."""

from __future__ import annotations

import pytest

from pysim.dependence import sync_coverage
from pysim.dependence.dependences import dependences
from pysim.dependence.producer_tiles import producer_edges
from pysim.errors import WorkloadError
from pysim.program.job import Job, Memory
from pysim.program.warp_program import Affine
from pysim.workloads.kernels.cutlass import cutlass_gemm as cutlass
from pysim.workloads.kernels.cutlass import multistage
from pysim.workloads.kernels.gemm import gemm
from pysim.workloads.kernels.implicit_gemm import convolution
from pysim.workloads.kernels.pointwise import Field, elementwise
from pysim.workloads.kernels.region import Block, region_kernel
from pysim.workloads.kernels.stream_k import stream_k, workspace
from pysim.workloads.networks.mlp_pair import tiling
from pysim.workloads.registry import make
from tests.core.harness import execute, oracle
from tests.core.workloads_small import F32
from tests.oracle.random_shapes import rows_of

EACH = 4  # rows of a TB, one behind another
ROWS = 40 * EACH  # an SM holds 32 TBs: the last ones run beside those of the next kernels
LAST = ROWS - EACH
SCHEMES = ("cusync:tile+streams+no_gate", "cusync:row+streams+no_gate", "cusync:tile+pdl", "fused:tile")


def kernel(name, reads, writes, *, work=1, col0=0, cols=128):
    fields = [Field(t, col0) for t in (*reads, writes)]
    counts = {"fp32": work}
    return elementwise(name, fields[:-1], fields[-1:], cols=cols, per_element=counts, rows_per_tb=EACH)


def tensors(names):
    memory = Memory()
    return [memory.tensor(name, ROWS, 128, 4) for name in names]


def two_makers():
    """Two kernels make the halves of the rows that a third reads; the second takes long."""
    x, y, z = tensors("xyz")
    halves = [kernel(f"half{at}", [x], y, col0=at, cols=64, work=1 + 40 * at) for at in (0, 64)]
    return Job("halves", [*halves, kernel("both", [y], z)])


def other_rows():
    """The second kernel needs of the first its first rows, the third those and the last, which come late."""
    x, y, z, out = tensors("xyzo")
    second = kernel("second", [rows_of(y, 0, EACH)], rows_of(z, 0, EACH))
    third = kernel("third", [rows_of(z, 0, EACH), rows_of(y, LAST, EACH)], rows_of(out, 0, EACH))
    return Job("other rows", [kernel("first", [x], y, work=4000), second, third])


def used_again(first):
    """The third kernel writes over rows that the second reads, late in its TBs."""
    x, y, z = tensors("xyz")
    third = kernel("third", [rows_of(z, 0, EACH)], rows_of(y, first, EACH))
    return Job("used again", [kernel("first", [x], y), kernel("second", [y], z, work=4000), third])


JOBS = {
    "two makers": two_makers,
    "other rows": other_rows,
    "the same rows again": lambda: used_again(0),
    "other rows again": lambda: used_again(LAST),
}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", list(JOBS))
def test_nothing_is_broken(name, scheme):
    """On one SM, where TBs of a kernel start long after each other."""
    execute(JOBS[name](), scheme, oracle(gpu__sms=1, scheme__hypothetical=1))


def found(job, policy="tile"):
    edges = producer_edges(job, dependences(job), policy)
    return edges.after_all, [sorted(each) for each in edges.producers]


def test_what_is_waited_for():
    assert found(two_makers()) == ([True, False, False], [[], [], [0, 1]])
    # of the first kernel, too: it made other rows than those that the second has waited for
    assert found(other_rows()) == ([True, False, False], [[], [0], [0, 1]])
    # the same rows: who made them for the second kernel is done, and so is the second
    assert found(used_again(0)) == ([True, False, False], [[], [0], [1]])
    # other rows may still be read: no semaphore tells, so the kernel comes behind the whole second one
    assert found(used_again(LAST)) == ([True, False, True], [[], [0], []])


def read_before_the_wait(multiply, item):
    """B of a product is what the kernel before its A's maker made: it is loaded before A is waited for."""
    memory = Memory()
    x, y, z, out = (memory.tensor(name, 64, 64, item) for name in ("x", "y", "z", "o"))
    first, second = kernel("first", [x], y, work=4000, cols=64), kernel("second", [y], z, cols=64)
    return Job("early B", [first, second, multiply("third", z, y, out)])


@pytest.mark.parametrize("scheme", SCHEMES[:3])
@pytest.mark.parametrize(
    ("multiply", "item", "waits"),
    [
        (lambda *args: cutlass(*args, multistage("64x64x32x32x32x32", 3, 1)), 2, ([True, False, True], [])),
        (lambda *args: gemm(*args, F32), 4, ([True, False, False], [0, 1])),
    ],
)
def test_what_is_known_only_later_does_not_count(multiply, item, waits, scheme):
    """CUTLASS loads B before it waits for A, and says nothing of B; others wait for A step by step."""
    job = read_before_the_wait(multiply, item)
    joins, edges = found(job)
    assert (joins, edges[2]) == waits
    execute(job, scheme, oracle(gpu__sms=6, scheme__hypothetical=1))


@pytest.mark.parametrize("scheme", [*SCHEMES[:3], "fused:grid"])
def test_what_is_made_in_two_places_has_no_semaphore(scheme):
    """Two fields of one tensor, of which the next kernel reads the second."""
    memory = Memory()
    x, y, z = (memory.tensor(name, ROWS, 512, 4) for name in "xyz")
    counts = {"fp32": 4000}
    first = elementwise(
        "first", [Field(x)], [Field(y, 0), Field(y, 128)], cols=128, per_element=counts, rows_per_tb=EACH
    )
    second = elementwise(
        "second", [Field(y, 128)], [Field(z)], cols=128, per_element={"fp32": 1}, rows_per_tb=EACH
    )
    job = Job("two fields", [first, second])
    assert found(job) == ([True, True], [[], []])
    if scheme.startswith("fused"):
        execute(job, scheme, oracle(gpu__sms=1))
        return
    with pytest.raises(
        WorkloadError, match=r"reads what kernel 0 \(first\) makes, and their programs do not"
    ):
        execute(job, scheme, oracle(gpu__sms=1, scheme__hypothetical=1))


def test_what_is_not_proven_is_said():
    """Of rows that another kernel may not have written yet."""
    job = used_again(LAST)
    assert producer_edges(job, dependences(job), "tile").reason == (
        "kernel 2 (third) writes memory that kernel 0 (first) uses,"
        " which is not known to be done by the tiles that it waits for"
    )


def test_more_than_can_be_looked_at_is_not_taken_to_be_proven(monkeypatch):
    assert found(used_again(0)) == ([True, False, False], [[], [0], [1]])
    monkeypatch.setattr(sync_coverage, "_MAX_BYTES", 0)
    assert found(used_again(0)) == ([True, False, True], [[], [0], []])


def with_itself(multiply, item=4):
    """A product of what was made, with itself."""
    memory = Memory()
    x, y, z = (memory.tensor(name, 256, 256, item) for name in "xyz")
    made = elementwise("first", [Field(x)], [Field(y)], cols=256, per_element={"fp32": 400}, rows_per_tb=EACH)
    return Job("with itself", [made, multiply("second", y, y, z)])


@pytest.mark.parametrize("scheme", SCHEMES[:-1])
def test_two_arguments_that_are_one_tensor(scheme):
    """Both are waited for, where the program says so of both."""
    job = with_itself(lambda *args: gemm(*args, F32))
    assert found(job) == ([True, False], [[], [0]])
    execute(job, scheme, oracle(gpu__sms=2, scheme__hypothetical=1))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_argument_of_which_nothing_is_said(scheme):
    """CUTLASS's products say what they need of A alone: B is taken to be there."""
    job = with_itself(lambda *args: cutlass(*args, multistage("64x64x32x32x32x32", 3, 1)), 2)
    with pytest.raises(WorkloadError, match=r"kernel 1 \(second\) reads what kernel 0 \(first\) makes, and"):
        execute(job, scheme, oracle(scheme__hypothetical=1))


def test_lines_of_what_a_stage_wrote_are_read_anew():
    """Of a persistent kernel: L1 holds what a stage has read and a later one writes in part."""
    x, y, z = tensors("xyz")
    half = kernel("half", [rows_of(z, 0, ROWS // 2)], rows_of(x, 0, ROWS // 2))
    stages = [kernel("first", [x], y), half, kernel("last", [x], y)]
    execute(Job("anew", stages), "fused:grid", oracle(gpu__sms=2))


def rows_summed(name, reads, writes, work=1):
    fields = [Field(tensor) for tensor in (*reads, writes)]
    counts = {"fp32": work}
    return elementwise(name, fields[:-1], fields[-1:], cols=32, per_element=counts, rows_per_tb=EACH)


def test_a_tb_that_posts_before_its_end_is_not_known_to_be_done():
    """Of Stream-K: who waits for a TB's first tile knows nothing of its second."""
    memory = Memory()
    sizes = {"a": (96, 2048), "b": (2048, 32), "y": (96, 32), "z": (32, 32), "o": (32, 32)}
    a, b, y, z, o = (memory.tensor(name, *size, 4) for name, size in sizes.items())
    shared = stream_k("shared", a, b, y, F32, workspace(memory, "s", F32, 2), kind="basic", slots=2)
    second, third = (
        rows_summed("second", [rows_of(y, 64, 32)], z),
        rows_summed("third", [z, rows_of(y, 32, 32)], o),
    )
    job = Job("two tiles", [shared, second, third])
    assert found(job) == ([True, False, False], [[], [0], [0, 1]])
    execute(job, "cusync:tile+pdl", oracle(gpu__sms=6, scheme__hypothetical=1))


@pytest.mark.parametrize("policy", ["conv", "tile"])
def test_a_part_of_a_split_waits_for_its_share(policy):
    """Its accesses say that it reads all channels: who stores over what made them must know better."""
    memory, tiles = Memory(), [tiling("64x32x32x32x32x32", 2, split) for split in (1, 8)]
    x, y = (memory.tensor(name, 8 * 8 + 2 * 9, 256, 2) for name in "xy")
    weights = [memory.tensor(f"w{i}", 256, 9 * 256, 2) for i in range(2)]
    there = convolution("there", x, weights[0], y, 8, tiles[0])
    job = Job("there and back", [there, convolution("back", y, weights[1], x, 8, tiles[1])])
    assert found(job, policy) == ([True, True], [[], []])


def test_stages_with_other_tiles_wait_for_those():
    """A kernel made anew with the warps of another has as many TBs, but tiles of other sizes."""
    memory = Memory()
    x, y, z = (memory.tensor(name, 64, 1152, 4) for name in "xyz")
    first = elementwise("first", [Field(x)], [Field(y)], cols=1152, per_element={"fp32": 4000}, rows_per_tb=4)
    blocks = [Block(tensor, 4, 128, Affine(by=4), Affine(bx=128)) for tensor in (y, z)]
    second = region_kernel("second", (9, 16), 6, blocks[:1], blocks[1:], {"fp32": 1}, smem=4096)
    execute(Job("resized", [first, second]), "fused:tile", oracle(gpu__sms=6))


def test_kernels_whose_tbs_wait_for_each_other_do_not_fuse():
    job = make("persistent_rnn:hidden=64,batch=4,timesteps=4,layers=2,gpu=titan_v,sms=6")
    for scheme in ("fused:grid", "fused:tile"):
        with pytest.raises(WorkloadError, match="its TBs wait for each other: they do not fuse"):
            execute(job, scheme, oracle(gpu__sms=6))


def test_another_view_of_what_is_read_has_no_semaphore():
    memory = Memory()
    x, y = (memory.tensor(name, 160, 128, 4) for name in "xy")
    z = memory.tensor("z", 80, 128, 4)

    def rows(tensor, base=0):
        return Block(tensor, 4, 128, Affine(base=base, bx=4))

    makes = [rows(y), rows(rows_of(y, 80, 80))]
    first = region_kernel("first", (20, 1), 4, [rows(x)], makes, {"fp32": 4000}, registers=128)
    second = region_kernel("second", (20, 1), 1, [rows(y, 80)], [rows(z)], {"fp32": 1})
    assert found(Job("views", [first, second])) == ([True, True], [[], []])


EDGES = ("cusync:tile+streams+no_gate", "cusync:row+streams+no_gate", "cusync:tile+pdl", "cusync:tile+graph")


@pytest.mark.parametrize("scheme", EDGES)
@pytest.mark.parametrize("below", [True, False], ids=["rows", "columns"])
def test_semaphores_are_of_whole_tiles_where_the_first_one_is_at_an_edge(below, scheme):
    """Stream-K's first TB makes the last tile, which is smaller: others post once for all that they make."""
    memory = Memory()
    rows, cols, depth = (104, 32, 512) if below else (64, 40, 4096)
    a, b = memory.tensor("a", rows, depth, 4), memory.tensor("b", depth, cols, 4)
    y = memory.tensor("y", rows, cols, 4)
    first = stream_k("first", a, b, y, F32, workspace(memory, "sums", F32, 1), kind="basic", slots=1)
    if below:
        z = memory.tensor("z", rows, cols, 4)
        second = elementwise(
            "second", [Field(y)], [Field(z)], cols=cols, per_element={"fp32": 1}, rows_per_tb=4
        )
    else:
        z = memory.tensor("z", rows, 8, 4)
        reads, writes = (
            Block(y, 32, 8, Affine(bx=32), Affine(base=8)),
            Block(z, 32, 8, Affine(bx=32)),
        )
        second = region_kernel("second", (2, 1), 1, [reads], [writes], {"fp32": 1})
    execute(Job("edge", [first, second]), scheme, oracle(scheme__hypothetical=1))


@pytest.mark.parametrize("scheme", [*SCHEMES, "cusync:tile+graph"])
def test_all_parts_of_an_argument_have_semaphores(scheme):
    """The second part reaches further down than the first: no TB waits for another kernel's semaphore."""
    memory = Memory()
    x, y, z, out = (memory.tensor(name, 128, 128, 4) for name in "xyzo")
    parts = [Block(y, high, 128, Affine(bx=1)) for high in (1, 6)]
    last_first = Block(z, 1, 128, Affine(base=122, bx=-1))
    second = region_kernel("second", (123, 1), 1, parts, [last_first], {"fp32": 1})
    ends = [Block(tensor, 1, 128, Affine(bx=1)) for tensor in (z, out)]
    third = region_kernel("third", (123, 1), 1, ends[:1], ends[1:], {"fp32": 1})
    job = Job("further down", [kernel("first", [x], y, work=10), second, third])
    execute(job, scheme, oracle(scheme__hypothetical=1))
