"""Dispatch rules of a user in Python: which ready TB is dispatched next, and which SM takes it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pysim.errors import ConfigError, SimError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pysim.machine.config import Config

    from .lower import Lowered
    from .simulation import Sim

    Rows = NDArray[np.void]


class Priority(Protocol):
    """Chooses the ready TB that is dispatched next.

    ``time``: ticks of 1/1024 ns. ``ready``: one row a ready TB, oldest kernel first: ``kernel``, ``tb``,
    ``ready`` (ticks, since when), ``producer_sm`` (where its last producer ran; 0xffff: not known) and
    ``rank`` (of its kernel under scheme.priority). A kernel that started as a whole offers its next TB alone.
    Return the row's number, or None: no TB for now; the rule is asked again when a TB ends or becomes ready.
    """

    def __call__(self, time: int, ready: Rows) -> int | None:
        """Return the number of a row, or None."""


class Placement(Protocol):
    """Chooses the SM that takes a TB.

    ``free``: one row an SM that has room for it, in the order in which an empty GPU is filled: ``sm``,
    ``gpc``, ``tbs`` and ``warps`` (resident). Return the row's number, or None: no TB of this kernel for now.
    """

    def __call__(self, time: int, kernel: int, tb: int, free: Rows) -> int | None:
        """Return the number of a row, or None."""


class UserRule:
    """The rules of one ``simulate`` call. The core calls them at least once a TB: microseconds each."""

    def __init__(self, priority: Priority | None, placement: Placement | None) -> None:
        for name, rule in (("priority", priority), ("placement", placement)):
            if rule is not None and not callable(rule):
                raise ConfigError(f"{name} = {type(rule).__name__}: must be a function")
        self.priority, self.placement = priority, placement
        self.error: BaseException | None = None
        self.ready = self.free = np.zeros(0)

    def check(self, config: Config) -> None:
        """Raise ConfigError for settings that do not go with a rule: prologues and replay."""
        if config["scheme.prologue"]:
            raise ConfigError("scheme.prologue = 1: a rule of yours dispatches only TBs that are ready")
        if config.word("sim.replay") != "off":
            raise ConfigError("sim.replay: a rule of yours would see a part of the job alone")

    @contextmanager
    def installed(self, sim: Sim, lowered: Lowered) -> Iterator[None]:
        """Install the rules in a simulation; an exception of a rule ends the run and is raised again."""
        from pysim._ffi import dtype_of, ffi, lib

        self.error = None
        tbs = sum(kernel.tbs for kernel in lowered.launched.kernels)
        self.ready = np.zeros(tbs, dtype_of("gs_ready_tb"))
        self.free = np.zeros(lowered.values["gpu.sms"], dtype_of("gs_free_sm"))
        handle, rule = ffi.new_handle(self), ffi.new("gs_rule *")
        rule.user = handle
        rule.ready = ffi.cast("gs_ready_tb *", self.ready.ctypes.data)
        rule.sms = ffi.cast("gs_free_sm *", self.free.ctypes.data)
        if self.priority is not None:
            rule.next = lib.pysim_next_tb
        if self.placement is not None:
            rule.place = lib.pysim_place_tb
        lib.gs_set_rule(sim.sim, rule)
        try:
            yield
        except SimError:
            if self.error is None:
                raise
            raise self.error from None

    def _choice(self, found: object, count: int, name: str) -> int:
        if found is None:
            return count
        if isinstance(found, bool) or not isinstance(found, int | np.integer):
            raise ConfigError(f"the {name} rule returned {found!r}: must be the number of a row, or None")
        if not 0 <= found < count:
            raise ConfigError(f"the {name} rule returned {found}: rows are 0 to {count - 1}")
        return int(found)

    def next(self, time: int, count: int) -> int:
        """Ask the priority rule; called by the core."""
        assert self.priority is not None
        return self._choice(self.priority(time, _read_only(self.ready, count)), count, "priority")

    def place(self, time: int, kernel: int, tb: int, count: int) -> int:
        """Ask the placement rule; called by the core."""
        assert self.placement is not None
        return self._choice(
            self.placement(time, kernel, tb, _read_only(self.free, count)), count, "placement"
        )


def _read_only(rows: NDArray[Any], count: int) -> Rows:
    """Return a read-only view of the first ``count`` rows."""
    view = rows[:count]
    view.flags.writeable = False
    return view


def _define_callbacks() -> None:
    """Define the callbacks of the core; they keep an exception of a rule and end the run."""
    from pysim._ffi import ffi

    def failed(_kind: object, value: BaseException, trace: Any) -> int:
        frame = trace.tb_frame.f_locals
        ffi.from_handle(frame["user"]).error = value
        return -1

    @ffi.def_extern(error=-1, onerror=failed)  # type: ignore[untyped-decorator]
    def pysim_next_tb(user: Any, time: int, count: int) -> int:
        rule: UserRule = ffi.from_handle(user)
        return rule.next(time, count)

    @ffi.def_extern(error=-1, onerror=failed)  # type: ignore[untyped-decorator]
    def pysim_place_tb(user: Any, time: int, kernel: int, tb: int, count: int) -> int:
        rule: UserRule = ffi.from_handle(user)
        return rule.place(time, kernel, tb, count)


_define_callbacks()
