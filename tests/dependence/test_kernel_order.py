"""Order of kernels over several steps: as a closure of all pairs finds it, without its cost."""

import random
import time

import pytest

from pysim.dependence.kernel_order import implied_kernels, reduce_preds


def closure(sources):
    """Return for each kernel the set of all kernels before it."""
    made = []
    for befores in sources:
        made.append(set(befores).union(*(made[k] for k in befores)))
    return made


def random_sources(rng, kernels, most):
    some = [rng.randint(0, most) if rng.random() < 0.8 else 0 for _ in range(kernels)]
    return [rng.sample(range(k), min(k, some[k])) for k in range(kernels)]


@pytest.mark.parametrize("seed", range(20))
def test_implied_is_what_the_closure_says(seed):
    rng = random.Random(seed)
    sources = random_sources(rng, 60, 1 + seed % 5)
    before = closure(sources)
    asked = [rng.randint(0, k) if rng.random() < 0.5 else k for k in range(60)]
    for kernel, implied in enumerate(implied_kernels(sources, asked)):
        over = set().union(*(before[k] for k in sources[kernel]))
        for k in range(asked[kernel], kernel):
            assert implied(k) == (k in over)


@pytest.mark.parametrize("seed", range(20))
def test_reduction_keeps_the_closure_and_no_implied_kernel(seed):
    sources = random_sources(random.Random(seed), 80, 6)
    before, kept = closure(sources), reduce_preds(sources)
    assert closure(kept) == before
    for kernel, befores in enumerate(kept):
        assert befores == tuple(sorted(befores))
        assert set(befores) <= set(sources[kernel])
        assert not any(k in before[other] for k in befores for other in befores)


@pytest.mark.parametrize(
    "sources",
    [
        pytest.param([[k - 1] if k else [] for k in range(200_000)], id="chain"),
        pytest.param([[k - 2] if k > 1 else [] for k in range(200_000)], id="two chains"),
        pytest.param([[max(0, k - 2), k - 1] if k else [] for k in range(200_000)], id="skips"),
        pytest.param([*([] for _ in range(200_000)), list(range(200_000))], id="join"),
    ],
)
def test_long_jobs_are_reduced_in_linear_time(sources):
    begin = time.process_time()
    kept = reduce_preds(sources)
    assert time.process_time() - begin < 10
    assert all(len(befores) <= 1 or len(sources[k]) > 2 for k, befores in enumerate(kept))
