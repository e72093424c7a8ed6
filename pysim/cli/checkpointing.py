"""Checkpoints of a script: ``--resume``, ``--max-time``, ``--checkpoint-every`` and signals."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from pysim.errors import ConfigError, TimeUp

from .entry import keep_on_signals

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pysim.engine.checkpoints import Checkpoints
    from pysim.machine.config import Config

    from .options import Options


def start_checkpoints(
    options: Options, config: Config, path: Path, configuration: Mapping[str, Any]
) -> Checkpoints | None:
    """Return the checkpoints of a call, in the folder ``<result>.ckpt``; None: it can have none.

    With ``--resume`` exits with status 0 where the complete result is there. Raises CheckpointError for a
    checkpoint that the call cannot go on from, ConfigError where options contradict each other.
    """
    from pysim.engine.checkpoints import Checkpoints

    folder = path.with_suffix(".ckpt")
    if options.resume and _is_complete(path, configuration):
        # an earlier call may have ended between the two steps: the result is written, the checkpoint removed
        Checkpoints(folder).remove()
        _report_complete(path, options.json)
        sys.exit(0)
    if config["sim.oracle"]:
        for name, given in (("--resume", options.resume), ("--max-time", options.max_time)):
            if given:
                raise ConfigError(f"{name}: not with sim.oracle = 1, whose state is in no checkpoint")
        return None
    say = _silent if options.quiet else _say
    if not options.resume and any(folder.glob("*.ckpt")):
        say(f"{folder} has a checkpoint of an earlier call: --resume goes on from it")
    made = Checkpoints(
        folder,
        options.checkpoint_every,
        resume=options.resume,
        about=configuration,
        seconds=options.max_time,
        say=say,
    )
    keep_on_signals(made)
    return made


def interruption(checkpoints: Checkpoints | None) -> KeyboardInterrupt:
    """Return what ends a call whose result is interrupted."""
    return TimeUp() if checkpoints is not None and checkpoints.time_is_up else KeyboardInterrupt()


def _silent(_text: str) -> None:
    pass


def _say(text: str) -> None:
    # over the progress bar, if there is one
    print(f"\r{text:<79}" if sys.stderr.isatty() else text, file=sys.stderr, flush=True)


def _is_complete(path: Path, configuration: Mapping[str, Any]) -> bool:
    """Return whether a file is the complete result of a configuration."""
    if not path.is_file():
        return False
    from pysim import stats

    try:
        found = stats.load(path)
    except stats.StoreError:
        return False
    same = found.configuration == json.loads(json.dumps(configuration))
    return same and not found.attributes.get(stats.INTERRUPTED)


def _report_complete(path: Path, as_json: bool) -> None:
    from pysim import stats

    text = f"{path} is there and complete: nothing to do"
    if not as_json:
        print(text)
        return
    found = stats.load(path)
    print(stats.to_json({name: found.array(name) for name in found}))
    print(text, file=sys.stderr)
