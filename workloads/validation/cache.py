"""Cache of outcomes of earlier runs, by a hash of all that decides them.

A key is the hash of: the bytes of the compiled core, all Python sources of ``pysim`` and ``workloads``, every
parameter of the configuration, and suite and task. So nothing that could change an outcome keeps its key,
and an outcome is only ever read back by the code that made it. Files are in ``results/cache``; removing the
folder is safe at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pysim import Config, ConfigError
from pysim.results.digests import code_digest

from .cases import Outcome

FOLDER = Path("results") / "cache"


def key_of(suite: str, task: tuple[str, ...], config: Config) -> str:
    """Return the key of a task."""
    what = {"code": code_digest(), "suite": suite, "task": task, "parameters": config.as_dict()}
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def path_of(key: str, folder: Path = FOLDER) -> Path:
    """Return the path of the outcome of a key."""
    return folder / key[:2] / f"{key}.json"


def get(key: str, folder: Path = FOLDER, kind: type[Outcome] = Outcome) -> Outcome | None:
    """Return what is kept under a key; a file that cannot be read or is damaged counts as none."""
    try:
        kept: dict[str, Any] = json.loads(path_of(key, folder).read_text(encoding="utf-8"))
        if kept.pop("key") != key:
            return None
        outcome = kind(**kept)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return outcome if _sound(outcome) else None


def _sound(outcome: Outcome) -> bool:
    numbers = (outcome.times_us, outcome.cycles)
    texts = (outcome.detail, outcome.reason, outcome.trace)
    return all(
        isinstance(part, Mapping) and all(isinstance(value, float) for value in part.values())
        for part in numbers
    ) and all(isinstance(text, str) for text in texts)


def put(key: str, outcome: Outcome, folder: Path = FOLDER) -> None:
    """Keep an outcome; the file appears whole or not at all."""
    path = path_of(key, folder)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_text(
                json.dumps({"key": key, **asdict(outcome)}, sort_keys=True), encoding="utf-8"
            )
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from None
