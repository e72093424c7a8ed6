"""The opcode that stands in for unknown ones (``--unknown-opcode as=INT``)."""

from __future__ import annotations

from pysim.errors import ConfigError
from pysim.opcodes import OPCODES

# a pipe's name stands for its plainest opcode
_PIPES = {
    "FP32": "FFMA",
    "INT": "IADD3",
    "FP16": "HFMA2",
    "FP64": "DFMA",
    "SFU": "MUFU",
    "TENSOR": "HMMA",
    "CONTROL": "NOP",
}


def resolve_unknown(text: str) -> int:
    """Return the row of ``OPCODES`` that ``as=INT`` or ``as=IADD3`` names, or raise ConfigError.

    The rows of instructions that touch memory are refused: an unknown opcode's addresses are dropped.
    """
    key, equals, name = text.partition("=")
    rows = {row.name: i for i, row in enumerate(OPCODES) if row.kind in ("ALU", "NOP")}
    names = [*_PIPES, *rows]
    if key != "as" or not equals:
        raise ConfigError(f"unknown opcodes: {text!r} is not as=NAME, such as as=INT")
    row = rows.get(_PIPES.get(name.upper(), name.upper()))
    if row is None:
        import difflib  # for errors alone

        near = difflib.get_close_matches(name.upper(), names, n=1, cutoff=0)
        raise ConfigError(f"unknown opcodes: as={name} is no pipe or plain opcode; nearest: as={near[0]}")
    return row
