"""Linear layers and batched GEMMs of Hopper: what they move, what they wait for, what they refuse."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pysim import Job, simulate
from pysim.errors import WorkloadError
from pysim.program.job import Access, Memory
from pysim.workloads.kernels.pointwise import pointwise
from pysim.workloads.library.gemms.gemm_launches import gemm_launches
from pysim.workloads.library.gemms.hopper_gemm import HopperGemm, hopper_gemm
from pysim.workloads.library.memset import memset

MEMSETS = Path(__file__).parents[1] / "hw/launch/h200_memset.csv"

SMALL = HopperGemm(256, 128, 128, (64, 64), 4, (2, 1), 8, smem=100_000)


def first(tbs):
    """The first element of a tensor, for each TB."""
    return np.tile(np.array([0, 1, 0, 1]), (len(tbs), 1))


def covered(kernel, name):
    """Elements of a tensor that the TBs of a kernel touch, each as often as it is touched."""
    found = [access for access in kernel.accesses if access.tensor.name == name]
    rows, cols = found[0].tensor.rows, found[0].tensor.cols
    count = np.zeros((rows, cols), int)
    for access in found:
        for r0, r1, c0, c1 in access.regions(np.arange(kernel.tbs)):
            count[r0:r1, c0:c1] += 1
    return count


def end_us(gemm):
    kernels, _ = gemm_launches(gemm, Memory())
    result = simulate(
        "h200", Job("gemm", list(kernels)), "graph", threads=1, tables="kernels", baseline=False
    )
    return float(result.tables()["runs"]["time_us"][0])


@pytest.mark.parametrize("along", [(True, False), (False, True)])
def test_products_of_a_batch_use_their_own_matrices(along):
    gemm = replace(SMALL, batch=3, tbs=24, trans_a=along[0], trans_b=along[1])
    kernel, c = hopper_gemm(gemm, Memory())
    assert (c.rows, c.cols) == (3 * 128, 256)
    assert (covered(kernel, "C") == 1).all()
    # each row of A is read by the TBs of two columns of tiles, each column of B by those of four rows
    assert (covered(kernel, "A") == 2).all()
    assert (covered(kernel, "B") == 4).all()


def test_planes_of_a_batch_lie_one_behind_another():
    kernel, _ = hopper_gemm(replace(SMALL, batch=3, tbs=24), Memory())
    one, _ = hopper_gemm(SMALL, Memory())
    third = [access.regions(np.arange(16, 24)) for access in kernel.accesses]
    first = [access.regions(np.arange(8)) for access in one.accesses]
    for high, mine, alone in zip((256, 128, 128), third, first, strict=True):
        np.testing.assert_array_equal(mine - alone, np.tile([2 * high, 2 * high, 0, 0], (8, 1)))


def test_batches_and_parts_of_k_exclude_each_other():
    with pytest.raises(WorkloadError, match="3 products of 2 parts of k: one of both"):
        hopper_gemm(replace(SMALL, batch=3, split_k=2), Memory())


def test_a_bias_is_an_operand():
    gemm = replace(SMALL, epilogue="bias")
    kernel, _ = hopper_gemm(gemm, Memory())
    assert [tensor.name for tensor in kernel.args] == ["A", "B", "C", "bias"]
    assert (covered(kernel, "bias") == 2).all()  # by the TBs of two columns of tiles
    a, b = (Memory().tensor(name, 128, 128, 2) for name in "AB")
    with pytest.raises(WorkloadError, match="2 operands: must be A, B, bias"):
        hopper_gemm(gemm, Memory(), (a, b))


def test_an_epilogue_costs_what_its_results_cost():
    """A GELU waits for itself 22 cycles a result of a thread; a thread has 32 of a tile."""
    times = {
        name: end_us(replace(SMALL, epilogue=name)) for name in ("none", "bias", "bias_relu", "bias_gelu")
    }
    assert times["none"] < times["bias"] < times["bias_relu"] < times["bias_gelu"]
    cycles = (times["bias_gelu"] - times["bias"]) * 1980
    assert 0.8 * 32 * 22 < cycles < 1.4 * 32 * 22


@pytest.mark.parametrize("splits", [1, 2])
def test_a_split_k_adds_the_bias_with_its_parts(splits):
    kernels, c = gemm_launches(replace(SMALL, epilogue="bias", split_k=splits, tbs=8 * splits), Memory())
    assert [len(kernel.args) for kernel in kernels] == [4] if splits == 1 else [3, 3]
    assert [kernel.name for kernel in kernels][-1] == ("split_k_sum" if splits > 1 else "hopper_gemm")
    assert (covered(kernels[-1], "bias") == (2 if splits == 1 else kernels[-1].tbs)).all()
    assert c.item == 2


def test_a_memset_in_a_chain_costs_what_it_was_measured_to_cost():
    """Rows of kernels of 132 TBs, memsets of at most 256 B: a memset before each makes the chain longer."""
    with MEMSETS.open(newline="") as text:
        rows = [row for row in csv.DictReader(text) if row["tbs"] == "132" and int(row["bytes"]) <= 256]
    longer = np.median([float(row["with_ns"]) - float(row["alone_ns"]) for row in rows]) / 1000
    memory = Memory()
    data, counter = memory.tensor("data", 132, 256, 4), memory.tensor("counter", 1, 64, 4)

    def chain(resets):
        kernels = []
        for _ in range(8):
            kernel = pointwise("kernel", [data], [data])
            if resets:
                kernels.append(memset(counter))
                kernel = replace(kernel, accesses=(*kernel.accesses, Access(counter, "update", first)))
            kernels.append(kernel)
        result = simulate("h200", Job("chain", kernels), "graph", threads=1, tables="kernels", baseline=False)
        return float(result.tables()["runs"]["time_us"][0]) / 8

    assert chain(True) - chain(False) == pytest.approx(longer, rel=0.05)


def test_tiles_by_a_counter_wait_for_its_reset():
    """Three tiles a TB come from a counter, which a memset resets; more of them cost the producer's wait."""
    gemm = replace(SMALL, batch=3, tbs=8)
    kernels, _ = gemm_launches(gemm, Memory())
    assert [kernel.name for kernel in kernels] == ["memset", "hopper_gemm"]
    assert kernels[1].accesses[-1].mode == "update"
    assert kernels[1].accesses[-1].tensor is kernels[0].args[0]
    twice = end_us(replace(gemm, batch=6)) - end_us(gemm)
    assert twice * 1980 > 3 * 900
