"""The ``.tracez`` container: instruction lines in zstd frames, one chain of frames a warp.

Layout, little endian: header text and a NUL; u32 dictionary bytes, u32 instructions a frame (nominal);
the dictionary; per warp u32 instructions, u32 frames, and per frame u32 bytes and the frame; the index;
u64 position of the index.  Index: u32 TBs; per TB ten u32 of place (TB, cluster, CTA in the cluster, three
each, and rank) and u32 warps; per warp u32 instructions, u32 frames, u64 position, and u32 instructions
of each frame.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pysim.errors import WorkloadError

_HEADER_MOST = 64 << 10
_DICTIONARY_MOST = 16 << 20
_FRAME_MOST = 64 << 20
_TEXT_MOST = 256 << 20
_WINDOW_MOST = 128 << 20
_WARPS_MOST = 32


class _Reader:
    """A file in which every read is checked against its size."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self.file = file
        self.size = path.stat().st_size

    def fail(self, what: str) -> WorkloadError:
        return WorkloadError(f"{self.path}: {what}")

    def read(self, at: int, count: int, what: str) -> bytes:
        if at < 0 or count > self.size - at:
            raise self.fail(f"{what} at byte {at} lies outside the file")
        self.file.seek(at)
        data = self.file.read(count)
        if len(data) != count:
            raise self.fail(f"{what} at byte {at} is cut short")
        return data

    def numbers(self, at: int, form: str, what: str) -> tuple[int, ...]:
        form = "<" + form
        return struct.unpack(form, self.read(at, struct.calcsize(form), what))


def tracez_text(path: Path) -> Iterator[bytes]:
    """Yield the text in the container, one frame at a time; WorkloadError if it is damaged."""
    try:
        import zstandard
    except ImportError as error:
        raise WorkloadError(f"{path}: reading .tracez needs zstandard: pip install zstandard") from error
    with path.open("rb") as file:
        reader = _Reader(path, file)
        head = reader.read(0, min(reader.size, _HEADER_MOST), "header")
        text, nul, _ = head.partition(b"\0")
        if not nul:
            raise reader.fail("the header has no end")
        at = len(text) + 1
        size, _ = reader.numbers(at, "II", "dictionary size")
        if size > _DICTIONARY_MOST:
            raise reader.fail(f"a dictionary of {size} bytes")
        dictionary = reader.read(at + 8, size, "dictionary")
        try:
            decoder = zstandard.ZstdDecompressor(
                dict_data=zstandard.ZstdCompressionDict(dictionary) if size else None,
                max_window_size=_WINDOW_MOST,
            )
        except zstandard.ZstdError as error:
            raise reader.fail(f"zstd dictionary: {error}") from error
        yield text + b"\n#\n"
        yield from _tbs(reader, decoder, zstandard)


def _tbs(reader: _Reader, decoder: Any, zstandard: Any) -> Iterator[bytes]:
    (at,) = reader.numbers(reader.size - 8, "Q", "position of the index")
    (count,) = reader.numbers(at, "I", "index")
    at += 4
    for _ in range(count):
        *place, warps = reader.numbers(at, "11I", "index")
        at += 44
        if warps > _WARPS_MOST:
            raise reader.fail(f"a TB of {warps} warps")
        tb, cluster, cta = (f"{a},{b},{c}" for a, b, c in (place[0:3], place[3:6], place[6:9]))
        lines = f"#BEGIN_TB\nthread block = {tb}\ncluster id = {cluster}\ncluster cta = {cta}\n"
        yield f"{lines}cluster rank = {place[9]}\n".encode()
        for warp in range(warps):
            insts, frames, position = reader.numbers(at, "IIQ", "index")
            at += 16 + 4 * frames
            yield f"warp = {warp}\ninsts = {insts}\n".encode()
            if reader.numbers(position, "II", "warp") != (insts, frames):
                raise reader.fail(f"the warp at byte {position} is not the one of the index")
            yield from _frames(reader, decoder, zstandard, position + 8, frames)
        yield b"#END_TB\n"


def _frames(reader: _Reader, decoder: Any, zstandard: Any, at: int, count: int) -> Iterator[bytes]:
    for _ in range(count):
        (size,) = reader.numbers(at, "I", "frame")
        if size > _FRAME_MOST:
            raise reader.fail(f"a frame of {size} bytes at byte {at}")
        frame = reader.read(at + 4, size, "frame")
        try:
            # frames without a declared size are refused, as are those that would exhaust the memory
            length = zstandard.frame_content_size(frame)
            if not 0 <= length <= _TEXT_MOST:
                raise reader.fail(f"the frame at byte {at} unpacks to {length} bytes")
            text = decoder.decompress(frame, max_output_size=length) if length else b""
        except zstandard.ZstdError as error:
            raise reader.fail(f"the frame at byte {at}: {error}") from error
        if len(text) != length:
            raise reader.fail(f"the frame at byte {at} is not of the size that it says")
        yield text
        yield b"\n"
        at += 4 + size
