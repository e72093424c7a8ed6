"""Dispatch rules of a user in Python: which ready TB is dispatched next, and which SM takes it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from numbers import Integral
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pysim.errors import ConfigError, DeadlockError, SimError, WorkloadError, brief

from .simulation import SLICE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

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
    The rows are a read-only copy, which the rule may keep. Return the row's number, or None: no TB for now;
    the rule is asked again when a TB ends or becomes ready. If none can any more, that is a DeadlockError.
    """

    def __call__(self, time: int, ready: Rows) -> int | None:
        """Return the number of a row, or None."""


class Placement(Protocol):
    """Chooses the SM that takes a TB.

    ``free``: one row an SM that has room for it, in the order in which an empty GPU is filled: ``sm``,
    ``gpc``, ``tbs`` and ``warps`` (resident); a read-only copy, which the rule may keep. Return the row's
    number, or None: no TB of this kernel for now.
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
        self.declined = ""  # which rule's last answer was None
        self.ready = self.free = np.zeros(0)
        self.asked = 0.0  # when stop() was called last
        self.sim: Sim | None = None
        self.progress: Callable[[int], None] = lambda done: None
        self.stop: Callable[[], bool] = lambda: False

    def check(self, config: Config) -> None:
        """Raise ConfigError for settings that do not go with a rule: prologues and replay."""
        if config["scheme.prologue"]:
            raise ConfigError("scheme.prologue = 1: a rule of yours dispatches only TBs that are ready")
        if config.word("sim.replay") != "off":
            raise ConfigError("sim.replay: a rule of yours would see a part of the job alone")

    def installed(
        self, sim: Sim, lowered: Lowered, progress: Callable[[int], None], stop: Callable[[], bool]
    ) -> AbstractContextManager[None]:
        """Return the context of a run with the rules. An exception of a rule ends it and is raised again.

        ``progress`` and ``stop`` are called between calls of a rule, as slow rules make long slices. Once
        ``stop()`` is true, no rule is called and nothing is dispatched any more; ``sim.stopped`` says so.
        """
        from pysim._ffi import dtype_of, ffi, lib

        self.error, self.declined, self.sim = None, "", sim
        self.progress, self.stop, self.asked = progress, stop, perf_counter()
        for kernel in lowered.launched.kernels:
            if kernel.tiles is not None and kernel.tiles.cluster != (1, 1):
                raise WorkloadError(f"kernel {kernel.name}: a rule of yours dispatches TBs, not clusters")
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
        return _Installed(self, handle)

    def _is_stopped(self) -> bool:
        """Call ``progress`` and ``stop`` if it is time to; return whether the run is to end."""
        sim, now = self.sim, perf_counter()
        assert sim is not None
        if not sim.stopped and now - self.asked > SLICE_SECONDS:
            self.progress(sim.tbs_done)
            sim.stopped = bool(self.stop())
            self.asked = perf_counter()
        return sim.stopped

    def _choice(self, found: object, count: int, name: str) -> int:
        self.declined = name if found is None else ""
        if found is None:
            return count
        if isinstance(found, bool) or not isinstance(found, Integral):
            what = f"the {name} rule returned {brief(found)}"
            raise ConfigError(f"{what}: must be the number of a row, or None")
        row = int(found)
        if not 0 <= row < count:
            raise ConfigError(f"the {name} rule returned {brief(row)}: rows are 0 to {count - 1}")
        return row

    def next(self, time: int, count: int) -> int:
        """Ask the priority rule; called by the core."""
        assert self.priority is not None
        if self._is_stopped():
            return count
        return self._choice(self.priority(time, _own_rows(self.ready, count)), count, "priority")

    def place(self, time: int, kernel: int, tb: int, count: int) -> int:
        """Ask the placement rule; called by the core."""
        assert self.placement is not None
        if self._is_stopped():
            return count
        return self._choice(self.placement(time, kernel, tb, _own_rows(self.free, count)), count, "placement")


class _Installed(AbstractContextManager[None]):
    """The context of one run; no generator, in which a StopIteration of a rule would become another error."""

    def __init__(self, rule: UserRule, handle: object) -> None:
        self.rule, self.handle = rule, handle  # the core has the handle as long as it runs

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        rule = self.rule
        if isinstance(error, SimError) and rule.error is not None:
            raise rule.error from None
        if isinstance(error, DeadlockError) and rule.declined:
            raise DeadlockError(f"{error}: the {rule.declined} rule returned None, no TB for now") from None


def _own_rows(rows: NDArray[Any], count: int) -> Rows:
    """Return a copy of the first ``count`` rows: the core believes its own, and writes them again.

    The copy is read-only, so that writing to it is an error and not without effect.
    """
    own = rows[:count].copy()
    own.flags.writeable = False
    return own


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
