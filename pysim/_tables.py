"""A hash of what the compiled core takes from the tables (stdlib only: the build reads this too)."""

from __future__ import annotations

import hashlib
from typing import Any


def tables_hash(
    params: dict[str, Any], pipes: Any, counters: dict[str, Any], isa: dict[str, Any], opcodes: dict[str, Any]
) -> int:
    """Return 64 bits over names, order, units and choices.

    ``isa`` and ``opcodes`` are the names of pysim/isa.py and of pysim/opcodes.py.

    Docs, defaults and ranges are left out: they may change without a rebuild, because the core
    never sees them.
    """
    lines = [
        f"param {group}.{row.name} {row.unit} {','.join(row.choices)}"
        for group, rows in params.items()
        for row in rows
    ]
    lines += [f"counter {group}.{row.name} {row.unit}" for group, rows in counters.items() for row in rows]
    lines += [f"pipe {name}" for name, _ in pipes]
    lines += [f"op {name}" for name, _ in isa["OPS"]]
    lines += [f"unneeded {isa['UNNEEDED']}"]
    lines += [f"kind {name}" for name, _ in opcodes.get("KINDS", ())]
    lines += [
        f"opcode {row.name} {row.kind} {row.space} {row.pipe} {row.peer} {row.first} {row.last}"
        for row in opcodes.get("OPCODES", ())
    ]
    lines += [f"sm {version}" for version in opcodes.get("SM_VERSIONS", ())]
    return int.from_bytes(hashlib.sha256("\n".join(lines).encode()).digest()[:8], "big")
