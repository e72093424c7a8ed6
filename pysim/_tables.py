"""What the compiled core is made of: hashes of tables and sources (stdlib only: the build reads this too)."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

# stands in the compiled core before the digest of its sources, where `pysim doctor` finds it
SOURCES_MARK = "pysim sources "


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


def sources_digest(folder: Path) -> str:
    """Return 16 hexadecimal digits over the names and texts of the C files and headers in ``folder``."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".c", ".h")):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(data)}\n".encode() + data)
    return digest.hexdigest()[:16]
