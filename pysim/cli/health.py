"""What a run needs, checked: Python, the compiled core, libraries, memory, disk, a batch system.

A check returns a :class:`Finding` and raises nothing. What may end or stop the process that asks (a broken
library, a core of another machine, a controller that does not answer) is asked in another process.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from pysim import __version__
from pysim._tables import SOURCES_MARK, sources_digest
from pysim.program.memory_budget import SHARE, free_memory

from .options import machine_threads

OK, MISSING, WRONG = "ok", "missing", "wrong"
LEAST_PYTHON = (3, 11)
LEAST_MEMORY = 512 << 20  # a GRU of configs/ takes 100 to 200 MB
LEAST_DISK = 100 << 20  # a result file with a million rows of `tbs` has 60 MB
PROBE_S, ANSWER_S = 30.0, 2.0  # patience with a start of Python on a slow file system, and with Slurm
ROOT = Path(__file__).resolve().parents[2]
REBUILD = "run python build.py"

SUBMIT = ("sbatch", "squeue")
# what the package depends on, in the order of the probe
NEEDED = ("numpy", "h5py", "cffi", "jinja2")
# what for, and the extra that installs it (empty: none does)
OPTIONAL = {
    "pandas": ("data frames", "plot"),
    "matplotlib": ("pictures", "plot"),
    "tables": ("pandas.read_hdf", "plot"),
    "pyarrow": ("Parquet files", "parquet"),
    "zstandard": ("traces compressed with zstd", "trace"),
    "submitit": ("pysim sweep --engine submitit", "slurm"),
    "distributed": ("pysim sweep --engine dask", "dask"),
    "playwright": ("tests of reports in a browser", ""),
}
# prints a line before and after each import, so that one that ends the process is known
PROBE = """
import importlib, json, sys
for name in sys.argv[1:]:
    print(json.dumps([name, None, None]), flush=True)
    try:
        made = importlib.import_module(name)
        said = getattr(made, "__version__", "")
        if name == "pysim._ffi":
            said = made.ffi.string(made.lib.gs_build_info()).decode()
        print(json.dumps([name, str(said), None]), flush=True)
    except BaseException as error:
        print(json.dumps([name, None, f"{type(error).__name__}: {error}"]), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """Outcome of one check. ``needed``: pysim does not work without it; ``advice``: what to do."""

    name: str
    state: str
    text: str
    advice: str = ""
    needed: bool = False

    @property
    def bad(self) -> bool:
        """Whether this keeps pysim from working."""
        return self.needed and self.state != OK


def _size(nbytes: float) -> str:
    return f"{nbytes / 2**30:.1f} GiB"


def _one_line(text: str, most: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def _install(library: str, extra: str) -> str:
    if not extra:
        return f"pip install {library}"
    checkout = (ROOT / "pyproject.toml").is_file()
    return f'pip install -e ".[{extra}]"' if checkout else f'pip install "pysim-tb[{extra}]"'


class _Asked:
    """A command that runs while other things are checked."""

    def __init__(self, command: list[str], **environment: str) -> None:
        self._failure = ""
        self._process: subprocess.Popen[str] | None = None
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                errors="replace", env={**os.environ, **environment},
            )  # fmt: skip
        except OSError as error:
            self._failure = error.strerror or str(error)

    def answer(self, seconds: float) -> tuple[int | None, str, str]:
        """Return exit status, stdout and stderr; status None: it did not start, or not end in time."""
        if self._process is None:
            return None, "", self._failure
        try:
            out, err = self._process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as late:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdout, self._process.stderr):
                if pipe is not None:  # a child of its own may still hold the other end
                    pipe.close()
            said = late.output or b""  # bytes, also of a pipe of text
            out = said if isinstance(said, str) else said.decode(errors="replace")
            return None, out, f"no answer within {seconds:g} s"
        return self._process.returncode, out, err


def probe() -> _Asked:
    """Start what imports the needed libraries and the core."""
    path = os.pathsep.join(filter(None, [str(ROOT), *sys.path]))
    return _Asked([sys.executable, "-c", PROBE, *NEEDED, "pysim._ffi"], PYTHONPATH=path)


def compiler() -> _Asked:
    """Start what asks the C compiler for its version."""
    return _Asked([*(os.environ.get("CC", "").split() or ["cc"]), "--version"])


def controller() -> _Asked | None:
    """Start what asks Slurm's controller, if Slurm is installed."""
    if not all(map(shutil.which, SUBMIT)):
        return None
    return _Asked(["squeue", "--noheader", "--format=%i", "--user=root"])


def requirements() -> dict[str, str]:
    """Return the version ranges of pyproject.toml, or of the installed package, by library."""
    try:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        rows = [*project["dependencies"], *(r for e in project["optional-dependencies"].values() for r in e)]
    except (OSError, ValueError, KeyError):
        try:
            rows = metadata.requires("pysim-tb") or []
        except metadata.PackageNotFoundError:
            rows = []
    found: dict[str, str] = {}
    for row in rows:
        if made := re.match(r"([A-Za-z0-9_.-]+)\s*([<>=!~][^;\[]*)", row):
            found.setdefault(made[1].lower(), made[2].strip())
    return found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])


def fits(version: str, wanted: str) -> bool:
    """Return whether a version is in a range such as ``>=1.26,<3``; what is not understood fits."""
    have = _numbers(version)
    for part in filter(None, (text.strip() for text in wanted.split(","))):
        rule = re.fullmatch(r"(>=|<)\s*([0-9.]+)", part)
        if rule is None:
            continue
        limit = _numbers(rule[2])
        width = max(len(have), len(limit))
        order = [(*each, *(0,) * (width - len(each))) for each in (have, limit)]
        if (order[0] < order[1]) == (rule[1] == ">="):
            return False
    return True


def python() -> Finding:
    """Check the version of Python."""
    have, least = sys.version_info, ".".join(map(str, LEAST_PYTHON))
    text = f"{have[0]}.{have[1]}.{have[2]}, {sys.executable}"
    if have[:2] < LEAST_PYTHON:
        return Finding("python", WRONG, text, f"pysim needs Python {least} or later", True)
    return Finding("python", OK, text, needed=True)


def package() -> Finding:
    """Say which pysim this is and where it is imported from."""
    return Finding("pysim", OK, f"{__version__}, {ROOT / 'pysim'}", needed=True)


def imports(asked: _Asked) -> Iterator[Finding]:
    """Check what the probe could import: the needed libraries, then the core."""
    status, out, err = asked.answer(PROBE_S)
    said: dict[str, tuple[str | None, str | None]] = {}
    for line in out.splitlines():
        try:
            name, version, error = json.loads(line)
        except ValueError:  # a library printed something
            continue
        said[name] = version, error
    ended = f"the import ended Python (status {status})" if status is not None else err
    wanted = requirements()
    for name in NEEDED:
        version, error = said.get(name, (None, f"not tried: {_one_line(err) or ended}"))
        range_ = wanted.get(name, "")
        advice = f'pip install "{name}{range_}"'
        if version is None:
            state = MISSING if error and error.startswith("ModuleNotFoundError") else WRONG
            yield Finding(name, state, _one_line(error or ended), advice, True)
        elif not fits(version, range_):
            yield Finding(name, WRONG, f"{version}: must be {range_}", advice, True)
        else:
            yield Finding(name, OK, version, needed=True)
    version, error = said.get("pysim._ffi", (None, f"not tried: {_one_line(err) or ended}"))
    yield core(version, error or ended)


def core(build: str | None, error: str, folder: Path = ROOT) -> Finding:
    """Check the compiled core. ``build``: what it says of itself, None where it failed with ``error``."""
    names = [f"_core{suffix}" for suffix in EXTENSION_SUFFIXES]
    files = [path for name in names if (path := folder / "pysim" / name).exists()]
    if not files:
        return Finding("core", MISSING, f"no {folder / 'pysim' / names[0]}", REBUILD, True)
    if len(files) > 1:
        others = ", ".join(path.name for path in files[1:])
        text = f"{files[0].name} hides {others}"
        return Finding("core", WRONG, text, f"remove all of pysim/_core.*.so, then {REBUILD}", True)
    if build is None:
        return Finding("core", WRONG, _one_line(error), REBUILD, True)
    sources = folder / "core_c"
    found = re.search(SOURCES_MARK.encode() + rb"([0-9a-f]{16})", files[0].read_bytes())
    if sources.is_dir() and (found is None or found[1].decode() != sources_digest(sources)):
        return Finding("core", WRONG, f"{files[0].name} is of other C sources", REBUILD, True)
    kept = ", ".join(part for part in build.split(", ") if not part.startswith("flags"))
    return Finding("core", OK, f"{files[0].name}, {kept}", needed=True)


def compiled_by(asked: _Asked) -> Finding:
    """Say which C compiler there is; only a build needs it."""
    status, out, err = asked.answer(ANSWER_S)
    if status == 0 and out.strip():
        return Finding("compiler", OK, _one_line(out.splitlines()[0]))
    text = "none that answers as cc or $CC" + (f": {_one_line(err)}" if err else "")
    return Finding("compiler", MISSING, text, "builds of the core need one: apt-get install gcc, or set CC")


def optional() -> Iterator[Finding]:
    """Say which optional libraries are installed."""
    wanted = requirements()
    for name, (use, extra) in OPTIONAL.items():
        advice = _install(name, extra)
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Finding(name, MISSING, f"optional: {use}", advice)
            continue
        if fits(version, range_ := wanted.get(name, "")):
            yield Finding(name, OK, version)
        else:
            yield Finding(name, WRONG, f"{version}: must be {range_}; optional: {use}", advice)


def processors() -> Finding:
    """Say how many processors there are: the default of ``--threads``."""
    return Finding("processors", OK, f"{machine_threads()} of {os.cpu_count()}, the default of --threads")


def memory() -> Finding:
    """Check the free memory, of which ``--max-memory`` takes a share."""
    free = free_memory()
    text = f"{_size(free)} free, a job may take {_size(SHARE * free)} (--max-memory)"
    if free < LEAST_MEMORY:
        return Finding("memory", WRONG, text, f"free some: small jobs take {_size(LEAST_MEMORY)}", True)
    return Finding("memory", OK, text, needed=True)


def disk(name: str, folder: Path) -> Finding:
    """Check that result files can be written to a folder, or to where it would be made."""
    there = folder.exists()
    if there and not folder.is_dir():
        return Finding(name, WRONG, f"{folder} is no folder", "rename it, or give --out", True)
    where = folder if there else folder.parent
    free = shutil.disk_usage(where).free
    text = f"{_size(free)} free in {where.resolve()}" + ("" if there else f", where {folder.name} will be")
    if not os.access(where, os.W_OK | os.X_OK):
        return Finding(
            name, WRONG, f"{where.resolve()} cannot be written", "go elsewhere, or give --out", True
        )
    if free < LEAST_DISK:
        return Finding(name, WRONG, text, "free some, or give --out", True)
    return Finding(name, OK, text, needed=True)


def slurm(asked: _Asked | None) -> Finding:
    """Say whether jobs can be submitted to Slurm."""
    use = "optional: pysim sweep --engine slurm"
    if asked is None:
        absent = [name for name in SUBMIT if shutil.which(name) is None]
        return Finding("slurm", MISSING, f"no {' and no '.join(absent)}; {use}", "submit from a login node")
    status, _, err = asked.answer(ANSWER_S)
    if status == 0:
        return Finding("slurm", OK, "sbatch, squeue; a controller answers")
    why = _one_line(err.strip().splitlines()[-1] if err.strip() else f"squeue ends with status {status}")
    return Finding("slurm", WRONG, f"no controller answers: {why}; {use}", "submit from a login node")


def tools() -> Iterator[Finding]:
    """Say where CUDA's tools are; only tests/hw needs them."""
    for name in ("nvcc", "nvidia-smi"):
        path = shutil.which(name)
        state = MISSING if path is None else OK
        yield Finding(name, state, path or "optional: measures a GPU (tests/hw); a simulation needs none")


def examine() -> list[Finding]:
    """Make all checks. A check that fails in a way that it did not expect is a finding, too."""
    probed, compiling, asked = probe(), compiler(), controller()
    here = Path()
    checks: tuple[tuple[str, Callable[[], Finding | Iterable[Finding]], bool], ...] = (
        ("python", python, True),
        ("pysim", package, True),
        ("core", lambda: list(imports(probed)), True),
        ("compiler", lambda: compiled_by(compiling), False),
        ("optional libraries", lambda: list(optional()), False),
        ("processors", processors, False),
        ("memory", memory, True),
        ("folder", lambda: disk("folder", here), True),
        ("results", lambda: disk("results", here / "results"), True),
        ("slurm", lambda: slurm(asked), False),
        ("tools", lambda: list(tools()), False),
    )
    made: list[Finding] = []
    for name, check, needed in checks:
        try:
            found = check()
            made += [found] if isinstance(found, Finding) else found
        except Exception as error:
            text = _one_line(f"cannot be checked: {type(error).__name__}: {error}")
            made.append(Finding(name, WRONG, text, needed=needed))
    return made
