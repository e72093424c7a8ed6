"""Of many cases that are alike ``make test`` runs some; ``make deep`` runs the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def thin(cases: Iterable[Any], usual: int | Collection[Any]) -> list[Any]:
    """Mark all cases as deep but every so manieth from the first on, or but the usual ones.

    A tuple stands for several arguments.
    """
    made = []
    for i, case in enumerate(cases):
        runs = i % usual == 0 if isinstance(usual, int) else case in usual
        values = case if isinstance(case, tuple) else (case,)
        made.append(pytest.param(*values, marks=() if runs else pytest.mark.deep))
    return made


# rounds of drawn examples: one, and by ``make deep`` two more
DRAWS = thin(range(3), [0])
