"""Applications of BlockMaestro: published counts, exact footprints, patterns, no scheme breaks them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pysim.dependence.dependences import dependences
from pysim.errors import WorkloadError
from pysim.program.job import Memory
from pysim.program.warp_program import Affine
from pysim.workloads import make
from pysim.workloads.applications.blockmaestro import APPS
from pysim.workloads.kernels.region import Block, region_kernel
from tests.core.harness import FAMILY, execute, tiny
from tests.support.thin import thin
from tests.support.walker import check_footprints, touched


def small(name):
    return make(f"{name}:{APPS[name].small}")


@pytest.mark.parametrize("name", [n for n, app in APPS.items() if app.kernels])
def test_kernel_counts_are_those_published(name):
    assert len(make(name).kernels) == APPS[name].kernels


@pytest.mark.parametrize("name", [n for n in APPS if n not in ("alexnet", "3mm")])
def test_footprints_are_exact(name):
    job = small(name)
    shapes = {}
    for kernel in job.kernels:
        shapes.setdefault((kernel.name, kernel.grid), kernel)
    for kernel in list(shapes.values())[:12]:
        check_footprints(kernel)


def test_footprints_of_layers_are_exact():
    # the first convolutions are large: one of the last and one of each other kind stand for the rest
    job = small("alexnet")
    for name in ("conv5", "norm", "pool", "relu", "fc8"):
        check_footprints(next(k for k in reversed(job.kernels) if k.name == name))


# each scheme with every other application: their number is odd
SCHEMES = (*FAMILY, "graph", "tb_static", "tb_learned", "tb_ideal")


@pytest.mark.parametrize(("name", "scheme"), thin(itertools.product(APPS, SCHEMES), 2))
def test_no_scheme_breaks_an_order(name, scheme):
    job = small(name)
    ran = execute(job, scheme, tiny(sim__oracle=1))
    assert int(ran.totals.tbs_done) == sum(k.tbs for k in job.kernels)


def producers(job, kernel):
    """TBs of the kernel before that each TB of a kernel needs."""
    deps = dependences(job)
    start, stop = deps.offsets[kernel - 1], deps.offsets[kernel]
    found = {tb: set() for tb in range(job.kernels[kernel].tbs)}
    for group in deps.groups:
        if group.kernel == kernel:
            near = {int(p - start) for p in group.producers if start <= p < stop}
            for tb in group.consumers.tolist():
                found[tb] |= near
    return found


def test_a_diagonal_needs_one_or_two_of_the_one_before():
    job = small("nw")
    assert [k.tbs for k in job.kernels] == [1, 2, 3, 4, 5, 6, 7, 8, 7, 6, 5, 4, 3, 2, 1]
    growing, shrinking = producers(job, 4), producers(job, 10)
    assert growing == {0: {0}, 1: {0, 1}, 2: {1, 2}, 3: {2, 3}, 4: {3}}
    assert shrinking == {tb: {tb, tb + 1} for tb in range(5)}


@pytest.mark.parametrize("name", ["bicg", "mvt"])
def test_two_independent_kernels(name):
    assert not dependences(small(name)).groups


def test_transforms_follow_one_to_one():
    assert producers(small("fft"), 2) == {tb: {tb} for tb in range(8)}


def test_a_column_of_blocks_overlaps():
    # 12 columns a TB of which each neighbour reads two
    assert producers(small("pathfinder"), 2) == {
        tb: {t for t in (tb - 1, tb, tb + 1) if 0 <= t < 5} for tb in range(5)
    }


def test_wavefronts_do_not_touch_each_other():
    job = small("wavefront")
    deps = dependences(job)
    half = len(job.kernels) // 2
    assert not deps.preds[half]


def test_work_and_bytes_of_a_loop():
    memory = Memory()
    a, b = memory.tensor("a", 8, 96, 4), memory.tensor("b", 8, 24, 4)
    reads = [Block(a, 8, 32, col=Affine(step=32))]
    kernel = region_kernel("k", (3, 1), 2, reads, [Block(b, 8, 8, col=Affine(bx=8))], {"fp32": 5}, steps=3)
    check_footprints(kernel)
    seen = touched(kernel, 0)
    assert seen.pipes["fp32"] == 5 * 3 * 2
    assert sum(len(addresses) for _, addresses in seen.loads) == a.nbytes
    assert len(np.unique(np.concatenate([x for _, x in seen.stores]))) == b.nbytes // 3


def test_a_block_outside_is_refused():
    a = Memory().tensor("a", 8, 32, 4)
    with pytest.raises(WorkloadError, match=r"kernel k: a: columns 0 to 48 of 32: outside"):
        region_kernel("k", (3, 1), 1, [Block(a, 8, 16, col=Affine(bx=16))], [], {"fp32": 1})
    with pytest.raises(WorkloadError, match=r"row step 3: not 2"):
        region_kernel("k", (1, 1), 1, [Block(a, 2, 16, row=Affine(step=3))], [], {"fp32": 1}, steps=2)


@pytest.mark.parametrize(
    "text", ["bicg:n=100", "fdtd2d:n=0", "alexnet:width=1", "alexnet:thin=3", "wavefront:side=0", "nw:n=8"]
)
def test_bad_sizes_are_one_line(text):
    with pytest.raises(WorkloadError) as caught:
        make(text)
    assert "must be" in str(caught.value)
    assert "\n" not in str(caught.value)
