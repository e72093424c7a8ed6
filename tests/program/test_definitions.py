"""What a kernel's definition says is checked before anything runs: one line names kernel, op and field."""

from dataclasses import replace

import numpy as np
import pytest

from pysim import Access, Code, Job, Kernel, Memory, Pattern, Program, Tensor, WorkloadError, simulate
from pysim.program.pattern_check import check_patterns, sample_tbs
from pysim.program.warp_program import OP, Op, Stage
from pysim.workloads import make
from pysim.workloads.applications.acs import GRAPHS
from pysim.workloads.applications.blockmaestro import APPS
from pysim.workloads.kernels import copy as copies
from pysim.workloads.mirrored import TEMPLATES, job_of
from pysim.workloads.registry import WORKLOADS, ZOO

ROWS, COLS = 8, 1024


def rows(tbs):
    """A TB touches its row."""
    return np.stack([tbs, tbs + 1, 0 * tbs, 0 * tbs + COLS], axis=1)


def code_of(change=lambda code: None, mode="read", pattern=None):
    """A warp passes over its TB's row, a line at a time."""
    code = Code()
    loop = code.loop_begin()
    line = pattern or Pattern(0, 4, bx=4 * COLS, step=128, s0=4)
    {"read": code.load, "write": code.store, "update": code.reduce}[mode](0, line)
    code.wait(0)
    code.loop_end(loop, COLS * 4 // 128)
    change(code)
    code.exit()
    return code


def kernel_of(code=None, mode="read", regions=rows, **fields):
    x = Memory().tensor("x", ROWS, COLS, 4)
    program = Program("p", ((code or code_of(mode=mode)).ops,), 1, 16, 0, 1)
    made = {"program": program, "grid": (ROWS, 1, 1), "args": (x,), "accesses": (Access(x, mode, regions),)}
    return Kernel("k", **(made | fields))


def refused(kernel, says, gpu="titan_v"):
    with pytest.raises(WorkloadError, match=says) as caught:
        simulate(gpu, Job("j", [kernel]), "stream")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("mode", ["read", "write", "update"])
def test_what_is_right_runs(mode):
    result = simulate("titan_v", Job("j", [kernel_of(mode=mode)]), "stream,tb_static")
    assert set(result.tables()["runs"]["status"].tolist()) == {b"ok"}


STAGE = Stage((2, 1, 1), 0, 0, (0,) * 8)
OPS = {
    "iterations": (lambda code: code.ops.append(Op(OP["LOOP"], count=0)), r"op 3 \(LOOP\): iterations = 0"),
    "pipe": (lambda code: code.compute(fp32=8, int=-2), r"op 3 \(COMPUTE\): int = -2"),
    "smem": (lambda code: code.compute(fp32=8, smem=-1), "smem = -1"),
    "slot": (lambda code: code.wait(5), r"op 3 \(WAIT\): slot = 5: must be an integer from 0 to 4"),
    "stages": (lambda code: code.wait(1, stages=5), "stages = 5"),
    "level": (lambda code: code.wait(0, level=3), "level = 3"),
    "delay": (lambda code: code.delay(-5), r"op 3 \(DELAY\): count = -5"),
    "float": (lambda code: code.delay(1.5), r"count = 1.5: must be an integer"),
    "mark": (lambda code: code.loop_end(99, 3), r"op 3 \(LOOP\): mark = 99"),
    "pattern": (lambda code: code.load(0, (Pattern(0, 4),)), r"op 3 \(LOAD\): tuple is no Pattern"),
    "patterns": (lambda code: code.load(0, Pattern(0, 4), Pattern(0, 4)), r"2 patterns: must be 1, or one a"),
    "argument": (lambda code: code.load(0, Pattern(1, 4)), "arg 1: the program has 1"),
    "width": (lambda code: code.load(0, Pattern(0, 3)), "width = 3: must be one of 1, 2, 4, 8, 16"),
    "lanes": (lambda code: code.load(0, Pattern(0, 4, lanes=1 << 32)), "lanes = 4294967296"),
    "minor": (lambda code: code.load(0, Pattern(0, 4, minor=0)), "minor = 0"),
    "offsets": (lambda code: code.load(0, Pattern(0, 4, offsets=[0, 4])), "2 offsets: must be 32"),
    "distance": (lambda code: code.load(0, Pattern(0, 4, step=1 << 63)), "step = 9223372036854775808"),
    "stage": (
        lambda code: code.ops.append(Op(OP["DEPEND"], stage=Stage((2, 1, 1), 0, 0, (0,) * 8))),
        "stage",
    ),
    "flag": (lambda code: code.mark_tb_wait(2), "op 3: flag 2: the kernel has 0 of tb_semaphores"),
}


@pytest.mark.parametrize(("change", "says"), OPS.values(), ids=OPS)
def test_ops(change, says):
    refused(kernel_of(code_of(change)), f"job j: kernel 0 \\(k\\): program p, variant 0.*{says}")


def test_the_last_op_ends_the_warp():
    code = code_of()
    code.ops.pop()
    refused(kernel_of(code), r"variant 0: the last op must be EXIT \(code.exit\(\)\)")


KERNELS = {
    "args": ({"args": ()}, "0 args, its program takes 1"),
    "stream": ({"stream": -1}, "stream = -1"),
    "lines": ({"parameter_lines": -1}, "parameter_lines = -1"),
    "semaphores": ({"tb_semaphores": np.array([1.5])}, "tb_semaphores is float64"),
    "large": ({"tb_semaphores": np.array([1 << 32])}, "tb_semaphores is int64"),
    "edges": ({"tb_edges": np.array([1, 0])}, r"tb_edges is int64 \(2,\): must be int64 \(n, 2\)"),
    "forward": ({"tb_edges": np.array([[0, 1]])}, "TB 0 waits for TB 1: must be a lower TB"),
    "itself": ({"tb_edges": np.array([[1, 1]])}, "TB 1 waits for TB 1"),
    "far": ({"tb_edges": np.array([[99, 0]])}, "TB 99 waits for TB 0: must be a lower TB, of 0 to 7"),
}


@pytest.mark.parametrize(("fields", "says"), KERNELS.values(), ids=KERNELS)
def test_kernels(fields, says):
    refused(kernel_of(**fields), says)


@pytest.mark.parametrize("name", ["warps", "registers", "smem"])
def test_programs(name):
    program = replace(kernel_of().program, **{name: -1})
    refused(kernel_of(program=program), f"program p: {name} = -1: must be an integer")


def test_a_tensor_among_other_things():
    kernel = kernel_of()
    program = replace(kernel.program, args=2)
    refused(kernel_of(program=program, args=(*kernel.args, 5)), r"args\[1\] is int: must be a Tensor")


def test_access_words():
    x = Memory().tensor("x", ROWS, COLS, 4)
    refused(
        kernel_of(accesses=(Access(x, "reads", rows),)), r"accesses\[0\]: mode = 'reads': must be one of read"
    )


REGIONS = {
    "shape": (
        lambda t: np.stack([t, t + 1, 0 * t, 0 * t + COLS]),
        r"int64 \(4, 5\): must be int64 \(5, 4\)",
    ),
    "floats": (lambda t: rows(t) * 1.0, "regions of x returned float64"),
    "nothing": (lambda t: None, "regions of x returned object"),
    "error": (lambda t: t[100:][0], "regions of x: IndexError"),
    "rows": (
        lambda t: rows(t) + np.array([0, 8, 0, 0]),
        "TB 0 reads rows 0 to 9 and columns 0 to 1024 of x, which has 8 x",
    ),
    "before": (lambda t: rows(t) - [1, 0, 0, 0], "TB 0 reads rows -1 to 1"),
    "columns": (lambda t: rows(t) + np.array([0, 0, 0, 1]), "columns 0 to 1025"),
}


@pytest.mark.parametrize(("regions", "says"), REGIONS.values(), ids=REGIONS)
def test_regions(regions, says):
    refused(kernel_of(regions=regions), f"kernel 0 \\(k\\).*{says}")


GRIDS = [(8, 1), (8,), (8, 1, 1, 1), 8, None, "811", [8, 1, 1]]


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_grids_of_other_lengths(grid):
    with pytest.raises(WorkloadError, match=r"kernel k: grid = .*: must be three sizes"):
        kernel_of(grid=grid)


@pytest.mark.parametrize("grid", [(0, 1, 1), (8, -1, 1), (8.0, 1, 1)], ids=str)
def test_sizes_of_grids(grid):
    with pytest.raises(WorkloadError, match="every size must be a positive integer"):
        kernel_of(grid=grid)


def test_grids_of_numpy_do_not_overflow():
    size = np.int32(65536)
    with pytest.raises(WorkloadError, match="has 4294967296 TBs: at most"):
        kernel_of(grid=(size, size, np.int32(1)))


TENSORS = {
    "rows": ((-1, 4, 4, 0), "rows = -1: must not be negative"),
    "fraction": ((1.5, 4, 4, 0), "rows = 1.5: must be an integer"),
    "address": ((4, 4, 4, -256), "address = -256: must not be negative"),
}


@pytest.mark.parametrize(("fields", "says"), TENSORS.values(), ids=TENSORS)
def test_tensors(fields, says):
    with pytest.raises(WorkloadError, match=f"tensor x: .*{says}"):
        Tensor("x", *fields)


def test_what_memory_cannot_hold():
    for sizes, says in (((0, 4, 4), "rows = 0: must be positive"), ((1 << 60, 4, 4), "ends beyond")):
        with pytest.raises(WorkloadError, match=f"tensor x: .*{says}"):
            Memory().tensor("x", *sizes)


def test_sizes_of_numpy_do_not_overflow():
    assert Memory().tensor("x", np.uint8(80), np.uint8(200), 4).nbytes == 64000


def test_lists_of_ops_are_taken():
    code = code_of()
    assert Program("p", [code.ops], 1, 16, 0, 1) == Program("p", (tuple(code.ops),), 1, 16, 0, 1)
    with pytest.raises(WorkloadError, match="variant 0 is Code: must be a tuple of ops: give its ops"):
        Program("p", (code,), 1, 16, 0, 1)
    with pytest.raises(WorkloadError, match="variants = Code: must be a tuple"):
        Program("p", code, 1, 16, 0, 1)
    with pytest.raises(WorkloadError, match="offsets = int"):
        Pattern(0, 4, offsets=5)


def test_a_cooperative_kernel_is_resident():
    code = Code()
    code.exit()
    kernel = Kernel("k", Program("p", (code.ops,), 32, 16, 0, 0), (161, 1, 1), (), (), cooperative=True)
    runs = simulate("titan_v", Job("j", [kernel]), "stream").tables()["runs"]
    assert runs["reason"][0] == b"kernel k: cooperative, with 161 TBs: the GPU holds 160"


# addresses against regions


def halo(tbs):
    """A TB's row and the ones beside it."""
    return np.stack([np.maximum(tbs - 1, 0), np.minimum(tbs + 2, ROWS), 0 * tbs, 0 * tbs + COLS], axis=1)


@pytest.mark.parametrize(("mode", "does"), [("read", "reads"), ("write", "writes"), ("update", "updates")])
@pytest.mark.parametrize(
    ("pattern", "at"),
    [
        (Pattern(0, 4, base=128, bx=4 * COLS, step=128, s0=4), "row 1, column 0"),
        (Pattern(0, 4, base=4 * COLS, bx=4 * COLS, step=128, s0=4), "row 1, column 0"),
        (Pattern(0, 4, base=-4, bx=4 * COLS, step=128, s0=4), "byte -4"),
        (Pattern(0, 4, bx=4 * COLS, step=256, s0=4), "row 1, column"),
        (Pattern(0, 16, bx=4 * COLS, step=128, s0=4, base=8), "row 0, column 102"),
    ],
    ids=["late", "next row", "before", "step", "wide"],
)
def test_addresses_outside_of_the_regions(mode, does, pattern, at):
    kernel = kernel_of(code_of(mode=mode, pattern=pattern), mode)
    refused(kernel, rf"kernel 0 \(k\): TB \(.*\): op 0 \(.*\) {does} {at}.* of x .*, which no access of mode")


def test_a_missing_halo_is_found_on_every_device():
    above = Pattern(0, 4, base=-4 * COLS, bx=4 * COLS, step=128, s0=4)
    code = code_of(pattern=above)
    for gpu in ("titan_v", "a100", "h200"):
        refused(kernel_of(code), "TB .* reads .* of x", gpu)
    # TB 0 has no row above it: eight variants, of which the first row's loads nothing
    inside = kernel_of(code, regions=halo)
    with pytest.raises(WorkloadError, match=r"TB \(0, 0, 0\)"):
        simulate("titan_v", Job("j", [inside]), "stream")


def test_reads_do_not_excuse_writes():
    kernel = kernel_of(code_of(mode="write"), mode="read")
    refused(kernel, "writes row 0, column 0 of x .*, which no access of mode write or update declares")


def test_two_accesses_of_one_tensor():
    x = Memory().tensor("x", ROWS, COLS, 4)
    left, right = (
        lambda t, a=a: np.stack([t, t + 1, 0 * t + a, 0 * t + a + COLS // 2], axis=1) for a in (0, COLS // 2)
    )
    both = (Access(x, "read", left), Access(x, "read", right))
    simulate("titan_v", Job("j", [kernel_of(args=(x,), accesses=both)]), "stream")
    refused(kernel_of(args=(x,), accesses=both[:1]), "reads row 0, column 544")


def test_samples_hold_the_corners():
    assert sample_tbs((3, 1, 1)).tolist() == [0, 1, 2]
    found = set(sample_tbs((10, 10, 2)).tolist())
    assert {0, 9, 90, 99, 100, 109, 190, 199} <= found
    assert len(found) < 12


TEXTS = [
    *(name for name in WORKLOADS if name not in ZOO),  # whose tests are those of networks
    *(f"{name}:{app.small}" for name, app in APPS.items()),
    *(g.small for g in GRAPHS.values()),
]


@pytest.mark.parametrize("text", TEXTS)
def test_every_workload_touches_what_it_declares(text):
    """A sample of the default sizes, on two machines."""
    for gpu in ("titan_v", "h200"):
        assert check_patterns(make(text, gpu)) > 0


SMALL = [
    "gemm:m=200,n=136,k=72", "gemm:m=100,n=64,k=60,dtype=fp16,a_t=1", "gemm:m=96,n=80,k=40,b_t=1,beta=0",
    "gru:hidden=64,batch=4,timesteps=2,layers=1", "lstm:hidden=64,batch=4,timesteps=2",
    "transformer:layers=1,hidden=64,heads=2,sequence=32,batch=2,ffn=128", "mlp:layers=2,width=128,batch=32",
    "gemm:m=256,n=128,k=4096,stream_k=two_tile", "network:kind=squeezenet", "network:kind=routing,layers=3",
]  # fmt: skip


@pytest.mark.parametrize("text", [*SMALL, *(f"{name}:{app.small}" for name, app in APPS.items())])
def test_small_workloads_touch_what_they_declare(text):
    """All TBs and iterations."""
    for gpu in ("titan_v", "h200"):
        check_patterns(make(text, gpu), every=True)


@pytest.mark.parametrize("name", TEMPLATES)
def test_mirrored_kernels_touch_what_they_declare(name):
    check_patterns(job_of(name, ""))


def test_copies_have_nothing_to_compare():
    memory = Memory()
    a, b = (memory.tensor(name, 1, 4096, 4) for name in "ab")
    assert check_patterns(Job("copy", [copies.copy("copy", a, b)])) == 1
