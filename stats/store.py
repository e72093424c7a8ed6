"""Result files: written whole or not at all, the same bytes for the same results."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from . import schema
from .column import RUN, Column, Declared
from .errors import StoreError as StoreError
from .errors import as_path
from .missing import how_to_install
from .schema import Table
from .whole_file import temporary_name, write_files

if TYPE_CHECKING:
    import pandas as pd

CHUNK_ROWS = 65536
_PROBE = 1 << 17  # bytes that a disk must take before a simulation starts
Tables = Mapping[str, Sequence[Declared]]  # columns by table
INTERRUPTED = "interrupted"  # attribute of a file whose simulation was interrupted
_OWN = ("schema", "configuration", "hash", "complete")  # attributes that only this module sets


def write(
    path: str | os.PathLike[str],
    tables: Mapping[str, Table],
    attributes: Mapping[str, str | int | float],
    configuration: dict[str, Any],
    force: bool = False,
    picture: bytes | None = None,
    declared: Tables | None = None,
    beside: bool = True,
) -> None:
    """Write tables to one HDF5 file, and beside it the configuration as JSON and a picture as PNG.

    ``tables`` are structured arrays of one dimension; ``declared`` are columns (name, numpy type, unit,
    meaning) by table, beside those of ``pysim.stats.schema``. A table that is declared must have these
    columns, and is stored with their types, units and meanings; others begin with the column ``run``.
    ``beside``: whether the configuration is also written as JSON. Raises StoreError where a table is not as
    declared, or the file cannot be written.
    """
    target = _target(path)
    known = {**schema.TABLES, **(declared or {})}
    plain = {name: _plain(name, tables[name], known.get(name)) for name in sorted(tables)}
    text = _json(configuration)
    digest = hash_tables(plain)
    _check_existing(target, force, text, digest, beside)
    image = _image(plain, known, attributes, text, digest)
    others = {sidecar(target): text.encode()} if beside else {}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # all are complete on disk before one gets its name; the result file, which also holds the
        # configuration, goes last
        pictures = {} if picture is None else {target.with_suffix(".png"): picture}
        write_files({**others, **pictures, target: image})
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror or error}") from error


def check_writable(
    path: str | os.PathLike[str], force: bool = False, configuration: dict[str, Any] | None = None
) -> None:
    """Raise StoreError now for what would make :func:`write` fail later, as far as it is known."""
    target = _target(path)
    probe = temporary_name(target)
    try:
        if target.parent.exists() and not target.parent.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            # random bytes, so that a file system that compresses needs the room too
            with probe.open("xb", buffering=0) as file:
                if file.write(os.urandom(_PROBE)) < _PROBE:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror or error}") from error
    _check_existing(target, force, None if configuration is None else _json(configuration), None)


def sidecar(path: str | os.PathLike[str]) -> Path:
    """Return the file beside a result file that holds its configuration: FILE.json.

    Where stdout has been sent to that very file (``--json > FILE.json``), it is FILE.config.json.
    """
    beside = Path(path).with_suffix(".json")
    try:
        own = os.path.samestat(os.fstat(sys.stdout.fileno()), beside.stat())
    except (OSError, ValueError, AttributeError):  # no such file, or stdout has no descriptor, or is closed
        own = False
    return beside.with_suffix(".config.json") if own else beside


class Results(Mapping[str, "pd.DataFrame"]):
    """The tables of a result file as data frames, with its `attributes` and `configuration`.

    ``attrs`` holds the units and meanings of the columns of each table:
    ``attrs["sm"]["units"]["busy_us"]``, ``attrs["sm"]["docs"]["busy_us"]``. A data frame's own ``attrs`` are
    those of its table.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = as_path(path)
        self._frames: dict[str, pd.DataFrame] = {}
        self._kept: dict[str, Table] = {}
        with _reading(self.path) as file:
            attributes = {str(name): _scalar(str(name), value) for name, value in file.attrs.items()}
            self._names = tuple(sorted(str(name) for name in file))
            self.attrs: dict[str, dict[str, dict[str, str]]] = {
                name: {kind: _texts(file[name].attrs.get(kind, "{}")) for kind in ("units", "docs")}
                for name in self._names
            }
        if attributes.get("complete") != 1 or not set(_OWN) <= set(attributes):
            raise StoreError(f"{self.path} is not a complete result file")
        if not isinstance(attributes["schema"], int):
            raise StoreError(f"{self.path} is damaged: its attribute schema is no integer")
        if attributes["schema"] > schema.VERSION:
            raise StoreError(f"{self.path} was written by a newer version (schema {attributes['schema']})")
        try:
            text = str(attributes.pop("configuration"))
            # Python also reads NaN, and numbers beyond a double, which no file may hold
            made = json.loads(text, parse_constant=_finite, parse_float=_finite, parse_int=_whole)
            if not isinstance(made, dict):
                raise ValueError("no object")
        except (ValueError, RecursionError) as error:
            raise StoreError(f"{self.path} is damaged: its configuration is no JSON") from error
        self.configuration: dict[str, Any] = made
        self.attributes: dict[str, str | int | float] = attributes

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name not in self._frames:
            try:
                import pandas as pd  # late: reading attributes should not cost its import
            except ImportError as error:
                how = how_to_install("plot")
                raise StoreError(f"data frames need pandas: {how}; array({name!r}) needs none") from error

            rows = self.array(name)
            columns = {field: decode(rows[field]) for field in rows.dtype.names or ()}
            self._frames[name] = pd.DataFrame(columns)
            self._frames[name].attrs.update(self.attrs[name])
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names  # Mapping's own would read the table

    def __repr__(self) -> str:
        return f"<Results {self.path}: {', '.join(self._names)}>"

    def array(self, name: str) -> Table:
        """Return a table as it is stored, strings as bytes."""
        if name not in self._names:
            raise KeyError(f"{self.path} has no table {name}; it has {', '.join(self._names)}")
        with _reading(self.path) as file:
            return _rows(file, name)

    def keep(self, tables: Mapping[str, Table]) -> None:
        """Take tables that are read already, so that :meth:`of_run` does not read them again."""
        self._kept.update(tables)

    def of_run(self, name: str, run: int) -> Table:
        """Return the rows of a table that belong to a run. The table is read once and kept."""
        if name not in self._kept:
            self._kept[name] = self.array(name)
        rows: Table = self._kept[name][self._kept[name]["run"] == run]
        return rows

    def columns(self, name: str) -> tuple[Column, ...]:
        """Return the columns of a table: name, numpy type, unit and meaning, "" where the file has none."""
        kinds = self.array(name).dtype
        units, docs = self.attrs[name]["units"], self.attrs[name]["docs"]
        return tuple(
            Column(field, kinds[field].str, units.get(field, ""), docs.get(field, ""))
            for field in kinds.names or ()
        )

    def verify(self) -> dict[str, Table]:
        """Return all tables as they are stored; raise if they do not have the hash stored with them."""
        with _reading(self.path) as file:
            tables = {name: _rows(file, name) for name in self._names}
        if hash_tables(tables) != self.attributes["hash"]:
            raise StoreError(f"{self.path} is damaged: its tables do not match its hash")
        return tables


def hash_tables(tables: Mapping[str, Table]) -> str:
    """SHA-256 of names, types and bytes of all tables but `host`."""
    digest = hashlib.sha256()
    for name in sorted(tables):
        if name != "host":
            rows = np.ascontiguousarray(tables[name])
            # not `descr`: that of a file's string columns differs from that of the array written
            columns = [(field, rows.dtype[field].str) for field in rows.dtype.names or ()]
            digest.update(f"{name} {columns} {len(rows)}\n".encode())
            digest.update(rows.tobytes())
    return digest.hexdigest()


def decode(values: NDArray[Any]) -> NDArray[Any]:
    """Fixed-length bytes as Python strings; anything else as it is."""
    return np.char.decode(values, "utf-8", "replace").astype(object) if values.dtype.kind == "S" else values


def _target(path: str | os.PathLike[str]) -> Path:
    target = as_path(path)
    if target.suffix != ".h5":
        raise StoreError(f"a result file must be named *.h5, not {target}")
    return target


def _json(configuration: dict[str, Any]) -> str:
    try:
        return json.dumps(configuration, indent=1, sort_keys=True, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise StoreError(f"the configuration cannot be written as JSON: {error}") from error


def _plain(name: str, rows: Table, declared: Sequence[Declared] | None) -> Table:
    """Bring a table into the stored form: packed little-endian scalars, declared types where there are any.

    Padding would carry stray bytes into the file; vlen, nested and array fields do not open in pandas.
    """
    fields = rows.dtype.names
    if fields is None or rows.ndim != 1:
        raise StoreError(f"table {name} is not a one-dimensional structured array")
    kinds: dict[str, np.dtype[Any]] = {}
    if declared is not None:
        wanted = schema.layout(declared)
        if fields != wanted.names:
            wrong = ", ".join(sorted(set(fields) ^ set(wanted.names or ()))) or "their order"
            raise StoreError(f"table {name}: columns differ from the declared ones: {wrong}")
        kinds = {field: wanted[field] for field in fields}
    elif fields[:1] != (RUN.name,):
        raise StoreError(f"table {name} must begin with the column {RUN.name}")
    columns = {field: schema.encode(rows[field]) for field in fields}
    for field, values in columns.items():
        kind = values.dtype
        if values.ndim != 1 or kind.kind not in "biufS":
            raise StoreError(f"table {name}: column {field} is not a plain number or string")
        if kind.kind == "b":
            kind = np.dtype("u1")
        elif kind.kind == "S" and kind.itemsize == 0:
            kind = np.dtype("S1")
        wanted_kind = kinds.setdefault(field, kind.newbyteorder("<"))
        if (kind.kind == "S") != (wanted_kind.kind == "S") or (kind.kind == "f" and wanted_kind.kind in "iu"):
            raise StoreError(f"table {name}: column {field} has type {kind}, not {wanted_kind}")
    out = np.zeros(len(rows), [(field, kinds[field]) for field in fields])
    for field, values in columns.items():
        out[field] = schema.clip(values, kinds[field])
        if values.dtype.kind in "iu" and kinds[field].kind in "iu" and np.any(out[field] != values):
            raise StoreError(f"table {name}: column {field} has a number out of range")
    if name == "stalls" and len(out):
        sums = sum(out[share] for share in schema.SHARES)
        if not np.allclose(sums, 1.0, rtol=0.0, atol=1e-9):
            raise StoreError("table stalls: the shares of a row do not add to 1")
    return out


def _image(
    tables: Mapping[str, Table], declared: Tables, attributes: Mapping[str, Any], text: str, digest: str
) -> bytes:
    """Make the bytes of the file, in memory: HDF5 does not recover well from a full disk."""
    taken = sorted(set(attributes) & set(_OWN))
    if taken:
        raise StoreError(f"attributes set by the store itself: {', '.join(taken)}")
    import h5py  # late: a run should begin before its result needs a library

    # HDF5 refuses a name that is open already, as another thread's would be
    with h5py.File(f"image-{secrets.token_hex(8)}", "w", driver="core", backing_store=False) as file:
        for name, rows in tables.items():
            options: dict[str, Any] = {}
            if len(rows):
                # a maximum shape without limit makes the layout chunked, which compression needs
                options = {"chunks": (min(len(rows), CHUNK_ROWS),), "compression": 1, "shuffle": True}
            data = file.create_dataset(
                name, data=rows, maxshape=(None,), track_times=False, **options or {"chunks": (1,)}
            )
            columns = declared.get(name, ())
            for kind, texts in (
                ("units", {column.name: column.unit for column in columns}),
                ("docs", {column.name: column.doc for column in columns}),
            ):
                if texts:
                    data.attrs[kind] = json.dumps(texts)
        for name in sorted(attributes):
            file.attrs[name] = attributes[name]
        file.attrs["schema"] = schema.VERSION
        file.attrs["configuration"] = text
        file.attrs["hash"] = digest
        file.flush()
        file.attrs["complete"] = 1
        file.flush()
        return bytes(file.id.get_file_image())


def _check_existing(
    target: Path, force: bool, text: str | None, digest: str | None, sidecar_too: bool = True
) -> None:
    """Refuse to replace what differs; `None` is not compared."""
    beside = sidecar(target)
    for path in (target, beside, target.with_suffix(".png")):
        if path.is_dir():
            raise StoreError(f"{path} is a folder")
    if force:
        return
    if target.exists():
        try:
            old = Results(target)
        except StoreError as error:
            raise StoreError(
                f"{target} exists and is not a complete result file; --force (force=True) replaces it"
            ) from error
        # one that was interrupted gives way to one of the same configuration
        if old.attributes.get(INTERRUPTED) and text is not None and _json(old.configuration) == text:
            return
        same = text is None or _json(old.configuration) == text
        if not same or digest not in (None, old.attributes["hash"]):
            raise StoreError(f"{target} exists with different results; --force (force=True) replaces it")
    # the user may have put a file of that name there
    if sidecar_too and beside.exists() and text is not None and beside.read_bytes() != text.encode():
        raise StoreError(f"{beside} exists with another configuration; --force (force=True) replaces it")


def _open(path: Path) -> Any:
    if not path.exists():
        raise StoreError(f"{path} does not exist")
    import h5py

    try:
        return h5py.File(path, "r")
    except OSError as error:
        raise StoreError(f"{path} cannot be read as an HDF5 file") from error


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    """Open a result file; whatever h5py raises on a damaged one becomes a StoreError."""
    with _open(path) as file:
        try:
            yield file
        except (OSError, RuntimeError, KeyError, ValueError, TypeError, AttributeError) as error:
            raise StoreError(f"{path} is damaged: {' '.join(str(error).split())}") from error


def _rows(file: Any, name: str) -> Table:
    rows = file[name][()]
    if getattr(rows, "ndim", None) != 1 or rows.dtype.names is None:
        raise ValueError(f"table {name} is not a list of rows")
    return cast(Table, rows)


def _scalar(name: str, value: Any) -> str | int | float:
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, str | int | float) or (isinstance(plain, float) and not np.isfinite(plain)):
        raise ValueError(f"attribute {name} is neither a text nor a number")
    return plain


def _finite(text: str) -> float:
    value = float(text)
    if not np.isfinite(value):
        raise ValueError(f"{text} is no number of JSON")
    return value


def _whole(text: str) -> int:
    _finite(text)
    return int(text)


def _texts(text: Any) -> dict[str, str]:
    """Return the units or meanings of the columns of a table."""
    made = json.loads(text)
    if not isinstance(made, dict) or not all(isinstance(value, str) for value in made.values()):
        raise ValueError("units and meanings of columns are no texts by column")
    return made
