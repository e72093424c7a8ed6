"""Devices as TOML text, which ``pysim.machine.devices`` reads."""

from __future__ import annotations

import json

from pysim.units import ROWS, show

from .devices import DEVICES, Device
from .devices.fields import checked_text


def toml_of(made: Device) -> str:
    """Return a device as TOML: what differs from the registered device that is nearest to it.

    Raises ConfigError for texts that could not be read back (:func:`checked_text`).
    """

    def differing(base: Device) -> list[str]:
        return [
            path for path, value in made.values.items() if base.values.get(path, ROWS[path].default) != value
        ]

    # energies have no form in the file: they come with the base
    bases = [base for base in DEVICES.values() if base.energies == made.energies]
    base = min(bases, key=lambda each: len(differing(each)))
    name, title = checked_text("name", made.name), checked_text("title", made.title)
    lines = [f"name = {_text(name)}", f"title = {_text(title)}", f'base = "{base.name}"']
    if made.compute_capability != base.compute_capability:
        lines.append('compute_capability = "{}.{}"'.format(*made.compute_capability))
    if made.carveouts != base.carveouts:
        sizes = ", ".join(_text(show(ROWS["gpu.sm.smem"], size)) for size in made.carveouts)
        lines.append(f"carveouts = [{sizes}]")
    if made.mma_rate != base.mma_rate:
        lines.append(f"mma_rate = {made.mma_rate}")
    for path in differing(base):
        value = show(ROWS[path], made.values[path])
        source = checked_text("source", made.sources.get(path, ""))
        lines.append(f'"{path}" = {{ value = {_text(value)}, source = {_text(source)} }}')
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    # JSON escapes as TOML does, but for characters beyond 16 bits, which may stand as they are
    return json.dumps(text, ensure_ascii=False)
