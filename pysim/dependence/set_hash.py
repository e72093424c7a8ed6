"""Which of many sets of numbers are equal: sums of mixed bits stand for sets, so that nothing is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Words = NDArray[np.uint64]


def mixed(numbers: NDArray[np.generic], salt: int) -> Words:
    """Return 64 well-mixed bits a number: sums of them stand for sets."""
    x = numbers.astype(np.uint64) + np.uint64(salt * 0x9E3779B97F4A7C15 % (1 << 64))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def sums(numbers: NDArray[np.generic], ptr: Ints) -> list[Words]:
    """Return two sums of mixed bits for each list of numbers; no list is empty."""
    return [np.add.reduceat(mixed(numbers, salt), ptr[:-1]) for salt in (1, 2)]


def alike(words: Sequence[Words]) -> tuple[Ints, Ints]:
    """Return the first row of each distinct kind, and the kind of each row; kinds in order of first rows."""
    _, first, inverse = np.unique(words[0], return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    if any(bool((word[first][inverse] != word).any()) for word in words[1:]):
        # one word alone does not tell them apart
        _, first, inverse = np.unique(np.stack(words, axis=1), axis=0, return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse]
