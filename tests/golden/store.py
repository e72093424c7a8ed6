"""Stores the hashes of the golden runs anew: ``python -m tests.golden.store [NAME ...]``."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

from pysim import Result

from .cases import CASES

STORED = Path(__file__).with_name("hashes.json")


def hashes(result: Result) -> dict[str, str]:
    """Return a hash of each table but ``host``, which may differ between machines."""
    return {
        name: hashlib.sha256(str(rows.dtype.descr).encode() + rows.tobytes()).hexdigest()[:16]
        for name, rows in result.tables().items()
        if name != "host"
    }


def stored() -> dict[str, dict[str, str]]:
    """Return the stored hashes: case, then table."""
    return dict(json.loads(STORED.read_text(encoding="utf-8"))) if STORED.exists() else {}


def main(names: list[str]) -> int:
    """Run the named cases, or all, and store what they give."""
    unknown = [name for name in names if name not in CASES]
    if unknown:
        print(f"no golden run {unknown[0]!r}: there are {', '.join(CASES)}", file=sys.stderr)
        return 2
    kept = stored()
    fresh = {name: hashes(CASES[name].run()) for name in names or CASES}
    made = {name: fresh.get(name, kept.get(name)) for name in CASES}
    STORED.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
