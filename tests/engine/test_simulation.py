"""A run in the core, from outside: its slices."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from pysim._ffi import lib
from pysim.engine.simulation import Sim


def test_slices_that_full_records_end_do_not_grow_without_end() -> None:
    """Slices that take no time ask for more quanta each time; the core takes 64 bits of them."""
    asked: list[int] = []

    def run(_sim: object, _threads: int, quanta: int, _until: int) -> int:
        asked.append(quanta)
        return int(lib.GS_DONE if len(asked) == 80 else lib.GS_MORE)

    core = SimpleNamespace(
        lib=SimpleNamespace(GS_DONE=lib.GS_DONE, gs_run_until=run),
        sim=None,
        stopped=False,
        take_tb_records=lambda room: np.zeros(0),
        totals=lambda: SimpleNamespace(tbs_done=0, now=0),
    )
    rows, done = Sim.run(core, 1, 1, 1, False, lambda tbs: None, lambda: False)  # type: ignore[arg-type]
    assert done
    assert len(rows) == 0
    assert asked[1] > asked[0]
    assert max(asked) < 1 << 64
