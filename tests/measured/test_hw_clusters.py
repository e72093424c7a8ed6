"""What launches with clusters and hand-overs in a cluster take on an H200 (tests/hw/hopper/clusters.cu)."""

from __future__ import annotations

import csv

import pytest

from tests.support.measured import measured_table

LARGE = 210 * 1024  # shared memory that leaves no room for a second TB
# resident clusters by their TBs, one TB an SM, as cudaOccupancyMaxActiveClusters says and nvjet launches them
# (test_hw_library.py); so a GPC of this card has fewer than 16 SMs
RESIDENT = {1: 132, 2: 66, 4: 30, 8: 15}
BODIES = ("empty", "maps", "barriers", "gemm", "load", "store")


def _rows(name):
    with measured_table(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


PERIODS = {
    (row["edge"], row["body"], *(int(row[k]) for k in ("cluster", "tbs", "smem"))): float(row["period_ns"])
    for row in _rows("h200_clusters_launch.csv")
}


def period(body, cluster, tbs, smem=LARGE):
    """Return ns a kernel in a graph of kernels in a row."""
    return PERIODS["graph", body, cluster, tbs, smem]


@pytest.mark.parametrize(
    ("what", "least", "most"),
    [
        ("mbarrier", 140, 141),
        ("mbarrier of another TB", 225, 235),
        ("mbarrier of another TB with release", 486, 501),
        ("TB barrier", 36, 37),
        ("barrier of 256 threads", 31, 32),
        ("setmaxnreg up", 118, 122),
    ],
)
def test_cycles_of_a_hand_over(what, least, most):
    """Whatever the cluster's size, one cluster or all SMs."""
    found = [float(row["cycles"]) for row in _rows("h200_clusters_sync.csv") if row["what"] == what]
    assert len(found) >= 2
    assert least <= min(found) <= max(found) <= most


def test_cycles_of_a_cluster_barrier():
    """A release waits for the writes of the cluster: 340 to 365 cycles more than relaxed."""
    found = {}
    for row in _rows("h200_clusters_sync.csv"):
        found.setdefault((row["what"], int(row["cluster"])), []).append(float(row["cycles"]))
    for cluster, cycles in {1: 62, 2: 98, 4: 103.5, 8: 107}.items():
        assert found["relaxed cluster barrier", cluster] == pytest.approx([cycles] * 2, abs=0.7)
        for with_release in found["cluster barrier", cluster]:
            more = with_release - cycles
            assert more == pytest.approx(0, abs=0.2) if cluster == 1 else 340 < more < 365


@pytest.mark.parametrize(
    ("cluster", "adds"), [(1, (64, 77, 87, 454, 313)), (2, (54, 200, 80, 438, 289))], ids=("no", "2")
)
def test_what_a_body_adds_to_the_period(cluster, adds):
    """Ns of tensor maps, barriers (and the cluster's), registers handed over, a tile loaded, one stored."""
    found = [period(body, cluster, 128) for body in BODIES]
    for i, more in enumerate(adds):
        assert found[i + 1] - found[i] == pytest.approx(more, abs=1), BODIES[i + 1]


def test_a_cluster_of_two_adds_little_but_its_barrier():
    """128 TBs: 10 to 20 ns if its TBs do not wait for each other, with its barrier 86 to 134."""
    more = {body: period(body, 2, 128) - period(body, 1, 128) for body in BODIES}
    assert 9 < more["maps"] < more["empty"] < 21
    assert all(85 < more[body] < 135 for body in BODIES[2:])


@pytest.mark.parametrize("body", BODIES[3:])
@pytest.mark.parametrize("cluster", RESIDENT)
def test_waves_of_clusters(body, cluster):
    """Clusters of 4 and 8 leave 12 SMs empty: 128 TBs take two waves of them, and one of clusters of 2."""
    waves = {tbs: -(-tbs // cluster // RESIDENT[cluster]) for tbs in (64, 128, 264, 1056)}
    assert waves == {
        64: 1,
        128: 1 if cluster < 4 else 2,
        264: 2 if cluster < 4 else 3,
        1056: 8 if cluster < 4 else 9,
    }
    each = (period(body, cluster, 1056) - period(body, cluster, 264)) / (waves[1056] - waves[264])
    for few, many in ((64, 128), (128, 264)):
        more = (period(body, cluster, many) - period(body, cluster, few)) / each
        # a TB more on an SM adds more to a kernel of few
        assert more == pytest.approx(waves[many] - waves[few], abs=0.25)


def test_small_tbs_of_large_clusters_take_one_wave():
    """Several TBs share an SM if shared memory and registers allow it."""
    for cluster in (4, 8):
        one, two = (period("barriers", cluster, 128, smem) for smem in (1024, LARGE))
        assert period("barriers", cluster, 64, 1024) < one < 1.06 * period("barriers", cluster, 64, 1024)
        assert two > 1.3 * one


def test_tbs_of_a_cluster_start_together():
    """Within 64 ns by a timer of 32 ns steps."""
    assert max(float(row["skew_ns"]) for row in _rows("h200_clusters_launch.csv")) == 64
    assert {row["skew_ns"] for row in _rows("h200_clusters_launch.csv") if row["cluster"] == "1"} == {"0"}
