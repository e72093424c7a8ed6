"""Hashes of sets of numbers, by which equal sets are found without a comparison of their elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Words = NDArray[np.uint64]


def mix64(numbers: NDArray[np.generic], salt: int) -> Words:
    """Return a 64-bit hash of each number (the finalizer of SplitMix64); the hash of a set is their sum."""
    x = numbers.astype(np.uint64) + np.uint64(salt * 0x9E3779B97F4A7C15 % (1 << 64))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def list_hashes(numbers: NDArray[np.generic], ptr: Ints) -> list[Words]:
    """Return two independent hashes of each list ``numbers[ptr[i]:ptr[i + 1]]``; no list may be empty."""
    return [np.add.reduceat(mix64(numbers, salt), ptr[:-1]) for salt in (1, 2)]


def distinct_rows(words: Sequence[Words]) -> tuple[Ints, Ints]:
    """Return (first row of each distinct class, class of each row); rows with equal words are one class.

    ``words``: one array of hashes each, all of the same length. Classes come in the order of their first
    rows.
    """
    _, first, inverse = np.unique(words[0], return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    if any(bool((word[first][inverse] != word).any()) for word in words[1:]):
        # the first hash collides
        _, first, inverse = np.unique(np.stack(words, axis=1), axis=0, return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse]
