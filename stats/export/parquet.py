"""Parquet: a file a table, for tools that do not read HDF5."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pysim.stats.column import Column
from pysim.stats.missing import how_to_install
from pysim.stats.schema import Table
from pysim.stats.store import Results, StoreError, decode
from pysim.stats.sweep import LEFT_OUT, SweepResults
from pysim.stats.whole_file import write_files

ENDING = ".parquet"


@dataclass(frozen=True, slots=True)
class _Source:
    """Tables with their columns, and what is known of all of them."""

    tables: Mapping[str, Table]
    columns: Mapping[str, tuple[Column, ...]]
    about: Mapping[str, Any]


def to_parquet(
    path: str | os.PathLike[str] | Results | SweepResults,
    target: str | os.PathLike[str],
    *,
    tables: Sequence[str] = (),
    partial: bool = False,
    force: bool = False,
    most_bytes: int | None = None,
) -> tuple[Path, ...]:
    """Write tables of a result file, or of a sweep's folder, to Parquet files; return their paths.

    ``target``: a folder, which gets NAME.parquet of each table, or FILE.parquet for one table. ``tables``:
    names (default: all but ``host``, which differs between equal runs). The tables of a sweep are those of
    :func:`stats.collect`, ``points`` with the grid's keys among them. Texts are strings. Each column has its
    unit and meaning as metadata (``unit``, ``doc``), and pandas finds them in the frame's ``attrs``; a file
    has the configuration as JSON and the attributes of the results. All files are complete on disk before one
    gets its name; equal results give equal bytes under one version of pyarrow.

    ``partial``: take the points of a sweep that are done; ``most_bytes``: of the tables of a sweep. Raises
    StoreError where pyarrow is not installed, for what is no result or is damaged, a table that there is not,
    files that are there already with other contents (without ``force``), and what cannot be written.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise StoreError(f"Parquet needs pyarrow: {how_to_install('parquet')}") from error

    if isinstance(path, str | os.PathLike):
        path = SweepResults(path) if Path(path).is_dir() else Results(path)
        if isinstance(path, Results):
            path.verify()
    chosen = _chosen(path, tables)
    files = _targets(Path(target), chosen)
    if isinstance(path, SweepResults):
        source = _of_sweep(path, chosen, partial, most_bytes)
    else:
        source = _of_file(path, chosen)
    made = {files[name]: _image(pa, source, name) for name in chosen}
    _write(made, force)
    return tuple(made)


def table_names(results: Results | SweepResults) -> list[str]:
    """Return the tables that can be exported; of a sweep with ``points``."""
    return [*results.names(), "points"] if isinstance(results, SweepResults) else list(results)


def _chosen(results: Results | SweepResults, tables: Sequence[str]) -> list[str]:
    known = table_names(results)
    for name in tables:
        if name not in known:
            raise StoreError(f"{results.path} has no table {name}: there are {', '.join(sorted(known))}")
    return sorted(set(tables)) or sorted(name for name in known if name not in LEFT_OUT)


def _targets(target: Path, chosen: Sequence[str]) -> dict[str, Path]:
    if target.suffix != ENDING:
        return {name: target / f"{name}{ENDING}" for name in chosen}
    if len(chosen) != 1:
        raise StoreError(f"{target} is one file, for one table: choose one of {', '.join(chosen)}")
    return {chosen[0]: target}


def _of_file(results: Results, chosen: Sequence[str]) -> _Source:
    about = {**results.attributes, "configuration": results.configuration}
    tables = {name: results.array(name) for name in chosen}
    return _Source(tables, {name: results.columns(name) for name in chosen}, about)


def _of_sweep(results: SweepResults, chosen: Sequence[str], partial: bool, most_bytes: int | None) -> _Source:
    results.check_complete(partial)
    tables, columns = results.merged([name for name in chosen if name != "points"], most_bytes)
    return _Source(tables, columns, {"configuration": results.configuration})


def _image(pa: Any, source: _Source, name: str) -> bytes:
    """Return the bytes of the file of a table."""
    import pyarrow.parquet as parquet

    table, fields, arrays = source.tables[name], [], []
    for column in source.columns[name]:
        values = table[column.name]
        if values.dtype.kind == "S":
            array = pa.array(decode(values).tolist(), pa.string())
        else:
            array = pa.array(values)
        about = {"unit": column.unit, "doc": column.doc}
        fields.append(pa.field(column.name, array.type, nullable=False, metadata=about))
        arrays.append(array)
    said = {
        "units": {column.name: column.unit for column in source.columns[name] if column.unit},
        "docs": {column.name: column.doc for column in source.columns[name] if column.doc},
    }
    whole = {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in source.about.items()
    }
    whole["table"] = name
    whole["PANDAS_ATTRS"] = json.dumps(said)  # pandas.read_parquet makes them the frame's attrs
    schema = pa.schema(fields, metadata=whole)
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_arrays(arrays, schema=schema), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _write(files: Mapping[Path, bytes], force: bool) -> None:
    folder = next(iter(files)).parent
    missing = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, data in files.items():
            if path.is_dir():
                raise StoreError(f"{path} is a folder")
            if path.exists() and not force and path.read_bytes() != data:
                raise StoreError(f"{path} exists with other contents; --force (force=True) replaces it")
        write_files(files)
    except OSError as error:
        raise StoreError(f"cannot write to {folder}: {error.strerror or error}") from error
    finally:
        if missing:
            with suppress(OSError):
                folder.rmdir()  # only where nothing was written
