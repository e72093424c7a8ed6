"""The SM clock that the board's power limit allows for sustained work.

A board averages its power over tens of milliseconds, longer than most jobs run (50 ms on an H200,
h200_clock_long.csv), so a single job never reaches the limit. With ``sim.sustained`` the job repeats, with
``sim.pause`` between two runs. It is simulated at the configured clock first. If its mean power exceeds
``gpu.power_limit``, it is simulated again with slower SM clocks until it does not. A slower clock lowers the
voltage and so the energy of events (``gpu.power_slope``); network, L2 and DRAM keep their clocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pysim.errors import ConfigError

if TYPE_CHECKING:
    from pysim.machine.config import Config

# share of the limit; boards hold 700 W within 678 to 723 W (h200_power.csv, h200_power_second.csv)
TOLERANCE = 0.03
MAX_RUNS = 4  # more than two may be needed, as time bound by DRAM does not scale with the clock
MIN_CLOCK_SHARE = 0.25  # least sim.clock_share


class MeanPower(NamedTuple):
    """Mean board power of a run in watts.

    ``voltage_scaled``: events whose energy falls with the SM voltage; ``by_rate``: events of constant energy;
    ``constant``: power of the idle board.
    """

    voltage_scaled: float
    by_rate: float
    constant: float

    @property
    def total(self) -> float:
        """Return the total power in watts."""
        return self.voltage_scaled + self.by_rate + self.constant

    def allowed_watts(self, limit: float, pause: float) -> float:
        """Return the mean watts a run may take if the board idles after it, ``pause`` times as long."""
        return limit + (limit - self.constant) * pause

    def watts_at_speed(self, slower: float, slope: float) -> float:
        """Return about the power at ``slower`` times the clock of the run; ``slope``: of voltage."""
        scaled: float = self.voltage_scaled * slower ** (1 + slope)
        return scaled + self.by_rate * slower + self.constant


def check_power(config: Config) -> None:
    """Raise ConfigError for ``sim.sustained`` on a GPU without a table of energies."""
    if config.integer("sim.sustained") and not config.device.energies:
        raise ConfigError(f"sim.sustained = 1: {config.device.name} has no table of energies")


def next_clock_share(share: float, watts: MeanPower, limit: float, slope: float, most: float = 1.0) -> float:
    """Return the clock share at which the board would take ``limit`` W, from a run at ``share``.

    ``watts``: mean power of that run; ``slope``: ``gpu.power_slope``; ``most``: upper limit of the result.
    It is ``share`` itself if that run was within ``TOLERANCE``.
    """
    if abs(watts.total - limit) <= TOLERANCE * limit:
        return share
    if watts.watts_at_speed(most / share, slope) <= limit:
        return most
    low, high = MIN_CLOCK_SHARE, most
    for _ in range(40):
        middle = (low + high) / 2
        if watts.watts_at_speed(middle / share, slope) > limit:
            high = middle
        else:
            low = middle
    return round(low, 4)
