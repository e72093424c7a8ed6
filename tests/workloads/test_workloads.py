"""Workloads touch exactly the bytes that their footprints name and issue the work that theory demands."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim import simulate
from pysim.errors import WorkloadError
from pysim.program.job import Memory
from pysim.workloads import make
from pysim.workloads.kernels import micro
from pysim.workloads.kernels.batched_gemm import batched_gemm
from pysim.workloads.kernels.copy import copy, fill
from pysim.workloads.kernels.gemm import gemm
from pysim.workloads.kernels.gemm_case import column_major
from pysim.workloads.kernels.gemm_choice import FP16, FP32, choose_tiling, occupancy
from pysim.workloads.kernels.implicit_gemm import conv_chain
from pysim.workloads.kernels.machine_hints import MachineHints
from pysim.workloads.kernels.pointwise import Field, elementwise, pointwise
from pysim.workloads.kernels.row_reductions import layernorm, softmax
from pysim.workloads.kernels.tiling import Tiling
from pysim.workloads.networks.mlp_pair import mlp_pair, tiling
from pysim.workloads.registry import parse
from tests.support.walker import check_footprints, footprint, touched

SMALL = (
    Tiling("t", 16, 16, 8, 2),
    Tiling("t", 8, 32, 16, 1),
    Tiling("t", 32, 16, 8, 2, stages=1),
    Tiling("t", 32, 32, 32, 4, slices=4),
    Tiling("t", 16, 32, 8, 2, split_k=3),
    Tiling("t", 16, 32, 8, 2, column_raster=True),
    Tiling("t", 16, 32, 8, 2, split_k=3, column_raster=True),
)


def product(m, n, k, tiling, a_t=False, b_t=False, beta=0.0):
    memory = Memory()
    item = 4 if tiling.math == "ffma" else 2
    a = memory.tensor("a", *((k, m) if a_t else (m, k)), item)
    b = memory.tensor("b", *((n, k) if b_t else (k, n)), item)
    return gemm("g", a, b, memory.tensor("c", m, n, item), tiling, a_t=a_t, b_t=b_t, beta=beta)


sizes = st.integers(1, 70)


@settings(max_examples=60, deadline=None)
@given(sizes, sizes, sizes, st.sampled_from(SMALL), st.booleans(), st.booleans(), st.booleans())
def test_gemm_touches_its_footprint_and_computes_all(m, n, k, tiling, a_t, b_t, beta):
    kernel = product(m, n, k, tiling, a_t, b_t, float(beta))
    check_footprints(kernel)
    covered = np.sort(np.concatenate([footprint(kernel, tb, "write") for tb in range(kernel.tbs)]))
    c = kernel.args[2]
    if tiling.split_k == 1:
        assert np.array_equal(covered, c.address + np.arange(c.nbytes))
    # FFMA: whole tiles in M and N, K exact; scaling and sums of the epilogue are known
    gx, gy, _ = tiling.grid(m, n, k)
    mine = tiling.tm * tiling.tn // (32 * tiling.warps)
    extra = mine * (1 + (tiling.slices - 1) + (1 if beta and tiling.split_k == 1 else 0))
    total = sum(touched(kernel, tb).pipes["fp32"] for tb in range(kernel.tbs))
    main = total - extra * tiling.warps * kernel.tbs
    assert main * 32 == gx * tiling.tn * gy * tiling.tm * k


@pytest.mark.parametrize("tiling", FP32)
def test_ffma_of_whole_tiles_is_mnk(tiling):
    m, n, k = tiling.tm * 2, tiling.tn, tiling.tk * 3
    kernel = product(m, n, k, tiling)
    check_footprints(kernel)
    scale = tiling.tm * tiling.tn // 32 * tiling.slices * kernel.tbs
    assert sum(touched(kernel, tb).pipes["fp32"] for tb in range(kernel.tbs)) - scale == m * n * k // 32


@pytest.mark.parametrize("tiling", FP16)
def test_tensor_steps(tiling):
    m, n, k = tiling.tm, tiling.tn * 2, tiling.tk * 2
    kernel = product(m, n, k, tiling, b_t=True)
    check_footprints(kernel)
    assert sum(touched(kernel, tb).pipes["tensor"] for tb in range(kernel.tbs)) == m * n * k // 256
    check_footprints(product(tiling.tm + 3, tiling.tn - 5, 37, tiling, a_t=True))


@pytest.mark.parametrize("tiling", FP32 + FP16)
def test_tilings_fit_a_volta_sm(tiling):
    item = 4 if tiling.math == "ffma" else 2
    assert occupancy(tiling, item, MachineHints()) >= 1
    rows, cols = tiling.warp_tile
    assert rows * cols == tiling.outputs * 32
    assert (tiling.tm % rows, tiling.tn % cols) == (0, 0)
    if tiling.math == "ffma":
        rows, cols = tiling.thread_tile
        assert rows * cols == tiling.outputs


def test_known_resources():
    tile = FP32[0]
    assert (tile.registers(4), tile.smem(4)) == (128, 16384)
    assert (tile.warp_tile, tile.thread_tile) == ((32, 64), (8, 8))


def test_choice_follows_shape():
    assert choose_tiling(4096, 4096, 4096).name == "sgemm_128x128"
    narrow = choose_tiling(*column_major(4608, 32, 1536, False, False)[:3])
    assert narrow.tm <= 32
    assert choose_tiling(8, 512, 500000, beta=1.0).split_k > 1
    assert choose_tiling(4096, 4096, 4096, "fp16").math == "hmma"


def test_unaligned_pitch_loads_single_words():
    kernel = product(16, 16, 33, SMALL[0])
    widths = {p.width for op in kernel.program.variants[7] for p in op.patterns if p.arg == 0}
    assert widths == {4}


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(1, 200), st.integers(1, 3))
def test_pointwise_copy_fill(rows, cols, inputs):
    memory = Memory()
    ins = [memory.tensor(f"i{i}", rows, cols, 4) for i in range(inputs)]
    out = memory.tensor("o", rows, cols, 4)
    kernels = (pointwise("p", ins, [out], threads=64), copy("c", ins[0], out, threads=64), fill("f", out))
    for kernel in kernels:
        check_footprints(kernel)
        written = np.concatenate([footprint(kernel, tb, "write") for tb in range(kernel.tbs)])
        assert np.array_equal(np.sort(written), out.address + np.arange(out.nbytes))


@pytest.mark.parametrize("mode", ["per-step", "skip", "hoisted"])
@pytest.mark.parametrize("name", ["gru", "lstm", "vanilla"])
def test_recurrent_networks(name, mode):
    job = make(f"{name}:hidden=64,batch=8,timesteps=3,layers=2,input={mode}")
    products = {"per-step": 6, "skip": 0, "hoisted": 2}[mode]
    names = [k.name for k in job.kernels]
    assert names.count("gemm_ih") == products
    assert names.count("gemm_hh") == names.count(f"{name}_cell") == 6
    for kernel in job.kernels:
        check_footprints(kernel)
    # a step's hidden product reads what the cell before wrote
    cells = [k for k in job.kernels if k.name == f"{name}_cell"]
    hidden = [k for k in job.kernels if k.name == "gemm_hh"]
    written = np.concatenate([footprint(cells[0], tb, "write") for tb in range(cells[0].tbs)])
    assert np.isin(footprint(hidden[1], 0, "read"), written).any()


def test_networks_share_programs_and_odd_shapes_work():
    job = make("gru:hidden=48,batch=3,timesteps=4,layers=1,dtype=fp16,split=1")
    for kernel in job.kernels:
        check_footprints(kernel)
    products = [k.program for k in job.kernels if k.name == "gemm_hh"]
    assert all(p is products[0] for p in products)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_random_dags_never_race(seed, streams):
    job = make(f"random_dag:kernels=14,streams={streams},tensors=3,elements=600,largest=200,seed={seed}")
    before: list[set[int]] = []
    bytes_of = []
    for index, kernel in enumerate(job.kernels):
        check_footprints(kernel)
        mine = {
            mode: np.concatenate([footprint(kernel, tb, mode) for tb in range(kernel.tbs)])
            for mode in ("read", "write")
        }
        direct = [j for j in range(index) if job.kernels[j].stream == kernel.stream]
        direct += [a for a, b in job.events if b == index]
        ancestors = set(direct).union(*(before[j] for j in direct))
        for j, other in enumerate(bytes_of):
            modes = (("read", "write"), ("write", "read"), ("write", "write"))
            clash = any(np.intersect1d(mine[p], other[q]).size for p, q in modes)
            assert not clash or j in ancestors
        before.append(ancestors)
        bytes_of.append(mine)


def test_elementwise_blocks_of_rows():
    memory = Memory()
    a, b = memory.tensor("a", 11, 96, 4), memory.tensor("b", 11, 40, 4)
    kernel = elementwise(
        "e", [Field(a, 8), Field(a, 48)], [Field(b)], cols=40, per_element={"fp32": 1}, rows_per_tb=4
    )
    assert kernel.grid == (1, 3, 1)
    check_footprints(kernel)


def test_micro():
    kernel = micro.read(Memory(), 3, 2, 16384, unroll=2, passes=2, shared=False)
    check_footprints(kernel)
    assert sum(len(a) for _, a in touched(kernel, 1).loads) == 2 * 16384
    chase = micro.chase(Memory(), 131072 * 4, 4, 2)
    assert max(op.count for op in chase.program.variants[0]) <= 65535
    small = micro.chase(Memory(), 4096, 128, 3)
    check_footprints(small)
    assert sum(len(a) for _, a in touched(small, 0).loads) == 3 * 32 * 4
    assert touched(micro.ffma(1, 2, 64, 5), 0).pipes["fp32"] == 2 * 64 * 5
    assert [k.stream for k in micro.mixed().kernels] == [0, 1]


def test_registry():
    assert parse("gru:hidden=64,batch=0x10") == ("gru", {"hidden": 64, "batch": 16})
    bad = ("gruu", "gru:hiden=3", "gru:hidden=x", "gru:hidden", "gru:input=no", "gru:batch=0", "gemm:tile=x")
    for wrong in bad:
        with pytest.raises(WorkloadError):
            make(wrong)
    assert all(make(name).name == name for name in ("empty", "ffma", "tensor", "pointwise", "copy", "read"))


def test_wrong_shapes_are_refused():
    memory = Memory()
    a, b, c = (memory.tensor(n, 8, 16, 4) for n in "abc")
    with pytest.raises(WorkloadError, match="shapes must agree"):
        gemm("g", a, b, c, SMALL[0])
    with pytest.raises(WorkloadError, match="power of two"):
        Tiling("t", 24, 16, 8, 1)


def test_a_pair_of_products_is_tiled_as_its_table_says():
    first = tiling("256x128x32x128x64x32", 2, 4)
    assert (first.tm, first.tn, first.tk, first.warps, first.split_k) == (256, 128, 32, 4, 4)
    job = mlp_pair((300, 512, 1024, 256, 512), first, tiling("128x128x32x64x64x32", 2, 1))
    assert [kernel.grid for kernel in job.kernels] == [(4, 2, 4), (2, 3, 1)]
    assert job.kernels[1].args[0] is job.kernels[0].args[2]
    gated = mlp_pair((300, 512, 1024, 256, 128), first, first)
    assert gated.kernels[1].args[0] is not gated.kernels[0].args[2]
    result = simulate("v100", job, "host,stream", overrides={"sim.oracle": 1}, threads=1)
    assert set(result.frame("runs")["status"]) == {"ok"}


@pytest.mark.parametrize(
    ("tile", "message"),
    [
        ("256x128x32", "must be six sizes"),
        ("256x128x32x128x64x64", "must be multiples of the warp's"),
        ("256x128x32x0x64x32", "must be multiples of the warp's"),
        ("160x128x32x80x64x32", "tm = 160: must be a power of two"),
    ],
)
def test_tiles_that_cannot_be(tile, message):
    with pytest.raises(WorkloadError, match=message):
        tiling(tile, 2, 1)


def test_convolutions_read_around_their_pixels_and_split_their_channels():
    job = conv_chain(2, 64, 7, 3, tiling("64x64x32x32x32x32", 2, 2))
    assert [kernel.grid for kernel in job.kernels] == [(1, 2, 2)] * 3
    assert job.kernels[1].args[0] is job.kernels[0].args[2]
    result = simulate("v100", job, "host,stream,tb_static", overrides={"sim.oracle": 1}, threads=1)
    assert set(result.frame("runs")["status"]) == {"ok"}
    # more parts than chunks divide into, and a tile wider than the channels
    wide = conv_chain(8, 128, 14, 2, tiling("64x256x32x32x128x32", 2, 3))
    assert wide.kernels[0].grid == (1, 25, 3)
    assert (
        simulate("v100", wide, "stream", overrides={"sim.oracle": 1}, threads=1).frame("runs")["status"][0]
        == "ok"
    )


@pytest.mark.parametrize(
    ("sizes", "split", "message"),
    [
        ((1, 64, 7, 0), 1, "layers = 0"),
        ((1, 48, 7, 1), 1, "48 channels"),
        ((1, 64, 7, 1), 3, "into 3 parts of 32"),
    ],
)
def test_convolutions_that_cannot_be(sizes, split, message):
    with pytest.raises(WorkloadError, match=message):
        conv_chain(*sizes, tiling("64x64x32x32x32x32", 2, split))


@settings(max_examples=40, deadline=None)
@given(sizes, sizes, sizes, st.integers(1, 4), st.booleans(), st.tuples(*[st.booleans()] * 3))
def test_many_products_touch_their_footprints(m, n, k, batch, b_t, beside):
    memory = Memory()
    shapes = (m, k), (n, k) if b_t else (k, n), (m, n)
    args = [
        memory.tensor(name, *((r, c * batch) if wide else (r * batch, c)), 4)
        for name, (r, c), wide in zip("abc", shapes, beside, strict=True)
    ]
    kernel = batched_gemm("g", *args, (m, n, k), SMALL[0], batch, b_t=b_t)
    check_footprints(kernel)
    covered = np.sort(np.concatenate([footprint(kernel, tb, "write") for tb in range(kernel.tbs)]))
    assert np.array_equal(covered, args[2].address + np.arange(args[2].nbytes))


@pytest.mark.parametrize(("rows", "cols"), [(3, 8), (5, 128), (2, 1000), (4, 3000)])
def test_rows_touch_their_footprints(rows, cols):
    memory = Memory()
    x, y, z = (memory.tensor(name, rows, cols, 4) for name in "xyz")
    gain, bias = memory.tensor("gain", 1, cols, 4), memory.tensor("bias", 1, cols, 4)
    for kernel in (softmax("s", x, y), layernorm("n", [x, y], gain, bias, z)):
        check_footprints(kernel)
        assert kernel.tbs == rows
        assert touched(kernel, 0).pipes["sfu"] * 32 >= (cols if kernel.name == "s" else 0)


def test_transformer():
    job = make("transformer:layers=2,hidden=64,heads=4,sequence=32,batch=2,ffn=128")
    assert len(job.kernels) == 22
    for kernel in job.kernels[:11]:
        check_footprints(kernel)
    scores = job.kernels[3]
    assert scores.grid[2] == 8
    # a layer reads what the layer before made
    assert job.kernels[11].args[0] is job.kernels[10].args[-1]
    with pytest.raises(WorkloadError, match="multiple of heads"):
        make("transformer:hidden=64,heads=3")
