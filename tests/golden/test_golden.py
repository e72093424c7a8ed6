"""Golden runs: every table of small jobs is, byte for byte, what was stored (``cases.py``)."""

import pytest

from .cases import CASES
from .store import hashes, stored

pytestmark = pytest.mark.golden


def test_each_case_is_stored():
    assert list(stored()) == list(CASES), "python -m tests.golden.store"


@pytest.mark.parametrize("name", CASES)
def test_tables_are_the_stored_ones(name):
    result = CASES[name].run(threads=2)
    found, kept = hashes(result), stored()[name]
    changed = [table for table in {**kept, **found} if found.get(table) != kept.get(table)]
    assert not changed, f"{name}: tables changed: {', '.join(changed)}"
    assert set(result.tables()["runs"]["status"].tolist()) == {b"ok"}
