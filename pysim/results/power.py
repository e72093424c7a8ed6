"""What a board's power limit leaves of the SM clock, where the same work goes on and on.

A board measures its power over some tens of milliseconds, far longer than most jobs last (50 ms on an H200,
h200_clock_long.csv), so a job by itself never meets the limit. With ``sim.sustained`` it is simulated as one
of many like it, ``sim.pause`` between two: with the clocks that it was given first, and if it takes more than
``gpu.power_limit`` allows, again with all SMs' clocks slowed down until it does not. With the clock falls the
voltage, and with it what an event takes (``gpu.power_slope``); network, L2 and DRAM keep their clocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pysim.errors import ConfigError

if TYPE_CHECKING:
    from pysim.machine.config import Config

NEAR = 0.03  # of the limit; as boards hold it: 678 to 723 W of 700 (h200_power.csv, h200_power_second.csv)
RUNS = 4  # at most: the first tells about what the second needs, as what waits for DRAM takes its time
LEAST = 0.25  # of the clock, as sim.clock_share


class Watts(NamedTuple):
    """Mean board power of a run: of what falls with the voltage, what goes by its rate alone, the rest."""

    scaled: float
    rate: float
    rest: float

    @property
    def all(self) -> float:
        """Return the sum."""
        return self.scaled + self.rate + self.rest

    def allowed(self, limit: float, pause: float) -> float:
        """Return what a run may take behind which the board rests, ``pause`` times as long as it."""
        return limit + (limit - self.rest) * pause

    def at(self, slower: float, slope: float) -> float:
        """Return about the power if everything happened so much more slowly (SMs that wait do not)."""
        scaled: float = self.scaled * slower ** (1 + slope)
        return scaled + self.rate * slower + self.rest


def check(config: Config) -> None:
    """Refuse what has no meaning: ``sim.sustained`` on a GPU whose power nobody measured."""
    if config.integer("sim.sustained") and not config.device.energies:
        raise ConfigError(f"sim.sustained = 1: {config.device.name} has no table of energies")


def next_share(share: float, watts: Watts, limit: float, slope: float, most: float = 1.0) -> float:
    """Return the share of the clock at which the board would take ``limit`` W, by a run at ``share``.

    Not more than ``most``; ``share`` itself where that run was near enough.
    """
    if abs(watts.all - limit) <= NEAR * limit:
        return share
    if watts.at(most / share, slope) <= limit:
        return most
    low, high = LEAST, most
    for _ in range(40):
        middle = (low + high) / 2
        if watts.at(middle / share, slope) > limit:
            high = middle
        else:
            low = middle
    return round(low, 4)
