"""SeqPoint: which iterations are chosen, what they project, and the lengths and batches of epochs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pysim import Config, WorkloadError
from pysim.machine.devices import device
from pysim.workloads.studies.epochs import CHANGES, NETWORKS, changed, epoch, projections
from pysim.workloads.studies.seqpoint import SeqPoint, select, total
from pysim.workloads.studies.sequence_lengths import (
    HOURS,
    PAIRS,
    POLICIES,
    UTTERANCES,
    Lengths,
    from_file,
    iterations,
    iwslt15,
    librispeech,
    scaled,
    thinned,
)

EVEN = dict.fromkeys(range(1, 21), 3)
LINEAR = {length: 2.0 * length for length in EVEN}


def test_few_lengths_are_all_taken() -> None:
    chosen = select({4: 7, 9: 1}, {4: 1.5, 9: 4.0})
    assert chosen.points == (SeqPoint(4, 7, 4, 4), SeqPoint(9, 1, 9, 9))
    assert (chosen.bins, chosen.error, chosen.reduction) == (0, 0.0, 4.0)
    assert chosen.projected({4: 1.5, 9: 4.0}) == total({4: 7, 9: 1}, {4: 1.5, 9: 4.0}) == 14.5


def test_a_bin_is_represented_by_what_is_closest_to_its_mean() -> None:
    # bins 1..5, 6..10, 11..15, 16..20: with a linear statistic the middle of each is its mean
    chosen = select(EVEN, LINEAR, bins=4)
    assert [point.length for point in chosen.points] == [3, 8, 13, 18]
    assert {point.weight for point in chosen.points} == {15}
    assert [(point.first, point.last) for point in chosen.points][:2] == [(1, 5), (6, 10)]
    assert (chosen.bins, chosen.error) == (4, 0.0)


def test_the_mean_of_a_bin_counts_iterations() -> None:
    counts = dict(EVEN) | {5: 97}
    # of the first bin: (2 + 4 + 6 + 8) * 3 + 10 * 97 over 109 is 9.45, closest to length 5
    assert select(counts, LINEAR, bins=4, tolerance=0.5).points[0] == SeqPoint(5, 109, 1, 5)


def test_of_equally_close_lengths_the_frequent_one_is_taken() -> None:
    counts = {1: 1, 2: 3, 3: 5, 4: 5}
    values = {1: 2.0, 2: 2.0, 3: 6.0, 4: 7.0}
    # lengths 1 and 2 take the same; the mean of 3 and 4 is between them
    chosen = select(counts, values, bins=2, few=0, tolerance=0.5)
    assert [point.length for point in chosen.points] == [2, 3]


def test_bins_grow_until_the_error_is_small() -> None:
    steps = {length: 1.0 + (length > 7) * 9 for length in EVEN}
    coarse = select(EVEN, steps, bins=1, tolerance=0.5)
    fine = select(EVEN, steps, bins=1, tolerance=0.01)
    assert len(coarse.points) < len(fine.points)
    assert 0.01 < abs(coarse.error) <= 0.5
    assert abs(fine.error) <= 0.01
    for chosen in (coarse, fine):
        assert chosen.projected(steps) / total(EVEN, steps) - 1 == pytest.approx(chosen.error)


def test_a_bin_for_each_length_ends_the_search() -> None:
    odd = {length: 1.0 + (length * length) % 17 for length in EVEN}
    chosen = select(EVEN, odd, tolerance=0.0)
    assert chosen.error == pytest.approx(0, abs=1e-12)
    assert sum(point.weight for point in chosen.points) == chosen.iterations == 60


def test_empty_bins_have_no_seqpoint() -> None:
    counts = dict.fromkeys((1, 2, 3, 4, 5, 6, 95, 96, 97, 98, 99, 100), 2)
    chosen = select(counts, {n: float(n) for n in counts}, bins=10, tolerance=0.9)
    assert (len(chosen.points), chosen.bins) == (2, 10)


@pytest.mark.parametrize(
    ("counts", "statistic", "more", "text"),
    [
        ({}, {}, {}, "no iteration"),
        ({0: 1}, {0: 1.0}, {}, "length 0: must be a positive integer"),
        ({3: 0}, {3: 1.0}, {}, "0 iterations of length 3"),
        ({3: 1.5}, {3: 1.0}, {}, "1.5 iterations of length 3"),
        ({3: 1}, {}, {}, "no statistic of length 3"),
        ({3: 1}, {3: float("nan")}, {}, "statistic of length 3 = nan"),
        ({3: 1}, {3: -1.0}, {}, "must be positive and finite"),
        ({3: 1}, {3: 1.0}, {"tolerance": 1.0}, "tolerance = 1.0"),
        ({3: 1}, {3: 1.0}, {"bins": 0}, "bins = 0"),
        ({3: 1}, {3: 1.0}, {"few": -1}, "few = -1"),
    ],
)
def test_bad_input_is_one_line(counts, statistic, more, text) -> None:
    with pytest.raises(WorkloadError) as caught:
        select(counts, statistic, **more)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_length_cannot_be_projected() -> None:
    with pytest.raises(WorkloadError, match="no statistic of length 3"):
        select(EVEN, LINEAR, bins=4).projected({1: 1.0})


def test_a_constant_factor_is_projected_without_error() -> None:
    chosen = select(EVEN, LINEAR, bins=3, tolerance=0.1)
    half = {length: value / 2 for length, value in LINEAR.items()}
    bent = {length: value + 5 * (length > 17) for length, value in LINEAR.items()}
    times = {("base", "stream"): LINEAR, ("base", "graph"): half, ("clock", "stream"): bent}
    log, graph, clock = projections(EVEN, times, chosen, ("base", "stream"))
    assert (log.speedup, log.speedup_error) == (1, 0)
    assert graph.speedup == pytest.approx(2)
    assert graph.speedup_error == pytest.approx(0)
    assert clock.actual_us == total(EVEN, bent)
    # the SeqPoint of the longest bin is length 17, which sees nothing of nine iterations' 5 us
    assert clock.speedup_error == pytest.approx((total(EVEN, LINEAR) + 45) / total(EVEN, LINEAR) - 1)


def test_iwslt15_has_all_sentences() -> None:
    found = iwslt15()
    assert sum(found.counts.values()) == PAIRS
    words = sum(length * count for length, count in found.counts.items()) / PAIRS - 2
    assert words == pytest.approx(20.3, abs=0.05)
    assert max(found.counts) == 391 + 2


def test_librispeech_has_the_published_figures() -> None:
    found = librispeech()
    assert sum(found.counts.values()) == UTTERANCES
    hours = sum(length * count for length, count in found.counts.items()) * 0.02 / 3600
    # steps are rounded up, half a step on average
    assert hours == pytest.approx(HOURS, rel=1e-3)
    assert min(found.counts) >= 70
    assert max(found.counts) <= 1225
    assert "ASSUMED" in found.about


def test_scaled_counts_add_up() -> None:
    assert scaled({1: 1, 2: 1, 3: 1}, 10) == {1: 4, 2: 3, 3: 3}
    assert scaled({1: 9, 2: 1}, 4) == {1: 4}


def test_batches_of_a_sorted_set_are_padded_to_their_longest() -> None:
    lengths = Lengths({1: 3, 2: 1, 5: 3}, "made up")
    # 1 1 1 | 2 5 5 | 5 is dropped
    assert iterations(lengths, 3, "sorted") == {1: 1, 5: 1}


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_makes_an_epoch(policy: str) -> None:
    lengths = iwslt15().up_to(50)
    made = iterations(lengths, 64, policy)
    whole = sum(lengths.counts.values()) // 64
    assert whole - 5 <= sum(made.values()) <= whole
    assert made == iterations(lengths, 64, policy)
    assert set(made) <= set(lengths.counts)
    if policy in ("random", "shards"):
        assert made != iterations(lengths, 64, policy, seed=1)
    # padding: sorting saves it
    padded = sum(length * count for length, count in made.items())
    assert padded >= sum(length * count for length, count in iterations(lengths, 64, "sorted").items()) * 0.99


def test_thinned_lengths_are_rounded_up() -> None:
    counts = dict.fromkeys(range(3, 13), 1)
    assert thinned(counts, 5) == {4: 2, 6: 2, 8: 2, 10: 2, 12: 2}
    assert thinned(counts, 1) == {12: 10}
    assert thinned(counts, 10) == thinned(counts, 1000) == counts
    assert max(thinned({7: 1, 20: 4}, 3)) == 20


def test_an_epoch_names_its_iterations() -> None:
    made = epoch("gnmt:layers=2", lengths=4)
    assert made.workload(7) == "gnmt:layers=2,pass=training,batch=64,source=7,target=7"
    assert len(made.counts) == 4
    assert max(made.counts) == 50
    assert epoch("deepspeech2:batch=32").workload(99) == "deepspeech2:batch=32,pass=training,steps=99"
    assert {row.policy for row in NETWORKS.values()} <= POLICIES.keys()


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ("gru", {}, "gru: no network that is trained on sequences: gnmt, deepspeech2"),
        ("gnmt:source=3", {}, "source is the length of an iteration"),
        ("gnmt", {"longest": 2}, "no sequence has at most 2 steps"),
        ("gnmt:batch=200000", {}, "fill no batch"),
        ("gnmt", {"policy": "bins"}, "policy = bins: must be sorted"),
    ],
)
def test_an_epoch_that_there_is_not(text, more, said) -> None:
    with pytest.raises(WorkloadError) as caught:
        epoch(text, **more)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "line 1: must be length,count"),
        (b"tokens,count\n1,2\n", "line 1: must be length,count"),
        (b"length,count\n", "no length"),
        (b"length,count\n3,4\n3,1\n", "line 3: "),
        (b"length,count\n3\n", "line 2: must be two positive integers"),
        (b"length,count\n-3,4\n", "line 2: must be two positive integers"),
        (b"length,count\n\xff,4\n", "no table in CSV"),
    ],
)
def test_a_damaged_histogram_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "h.csv"
    path.write_bytes(data)
    with pytest.raises(WorkloadError) as caught:
        from_file(path)
    assert said in str(caught.value)
    assert "h.csv" in str(caught.value)


def test_changes_that_a_machine_takes() -> None:
    config = Config.resolve(device("titan_v"))
    made, refused = changed([*CHANGES], config)
    assert not refused
    assert made["sms"] == {"gpu.sms": 100}
    assert made["clock"]["gpu.clock"] == pytest.approx(1.2 * config.number("gpu.clock"))
    assert made["l2"]["gpu.l2.size"] == 2 * config.number("gpu.l2.size")
    assert len(made["launch"]) == 3
