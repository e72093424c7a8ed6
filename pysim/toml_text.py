"""TOML of users: read with bounded memory."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from .errors import ConfigError

MOST_BYTES = 1 << 20
MOST_PARTS = 64  # of a dotted key: tomllib takes memory with their square
_BEFORE_A_KEY = re.compile(rb"[\n{,]")


def parse_toml(data: bytes) -> dict[str, Any]:
    """Return what TOML says; ConfigError in one line for what is no TOML, too long or nested too deeply."""
    if len(data) > MOST_BYTES:
        raise ConfigError(f"a TOML file has at most {MOST_BYTES >> 20} MiB")
    keys = [_BEFORE_A_KEY.split(part)[-1] for part in data.split(b"=")]
    keys += [line for line in data.splitlines() if line.lstrip().startswith(b"[")]
    if any(key.partition(b"]")[0].count(b".") >= MOST_PARTS for key in keys):
        raise ConfigError(f"not valid TOML: a key of more than {MOST_PARTS} parts")
    try:
        return tomllib.loads(data.decode())
    except ValueError as error:
        raise ConfigError(f"not valid TOML: {' '.join(str(error).split())[:200]}") from None
    except RecursionError:
        raise ConfigError("not valid TOML: nested too deeply") from None
