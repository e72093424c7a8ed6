"""Writes the pages that show what one script prints and draws, and docs/parameters.md."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from .readme import write_found
from .writing import DOCS, code, printed, replace, run, shown


def _figure(program: Sequence[str], page: str, mark: str, pictures: Mapping[str, str]) -> None:
    """Run a program; ``pictures``: what it draws, by the end of its name, and what the page calls that."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "figure.h5"
        text = printed(program, path)
        for end, picture in pictures.items():
            shutil.copyfile(path.with_name(f"figure{end}"), DOCS / picture)
    replace(DOCS / page, {mark: code(text)})


# which page, and the pictures on it
camping: Callable[[], None] = partial(
    _figure, ("configs/figure_bank_camping.py",), "time_series.md", "camping", {".png": "bank_camping.png"}
)
dependences: Callable[[], None] = partial(
    _figure,
    ("configs/figure_dependences.py",),
    "dependences.md",
    "dependences",
    {f"-{which}.svg": f"dependences_{which}.svg" for which in ("reused", "renamed")},
)
utilization: Callable[[], None] = partial(
    _figure, ("-m", "docs.builders.utilization"), "utilization.md", "utilization", {".png": "utilization.png"}
)


def parameters() -> None:
    """Write the reference of the parameters."""
    table = run("-m", "pysim", "parameters", "--gpu", "titan_v", "--markdown")
    replace(DOCS / "parameters.md", {"parameters": table})


def tables() -> None:
    """Write the reference of the result tables."""
    replace(DOCS / "tables.md", {"tables": run("-m", "pysim", "tables", "--markdown")})


def kernels() -> None:
    """Write the tables of docs/schemes.md: of Stream-K and of persistent recurrent layers."""
    shared, layer = "stream_k", "persistent_rnn"
    maxwell = ("--sms", "24", "--set", "gpu.sms=24", "--set", "gpu.clock=1000")
    calls = {
        "stream_k": (shared,),
        "stream_k_measured": (shared, "--table", "measured", "--most", "1024"),
        "persistent": (layer,),
        "persistent_maxwell": (layer, *maxwell),
        "persistent_gru": (layer, "--kind", "gru", "--hidden", "768"),
        "persistent_h200": (layer, "--gpu", "h200", "--hidden", "3072"),
    }
    with tempfile.TemporaryDirectory() as folder:
        blocks = {
            name: shown(script, Path(folder) / f"{name}.h5", *more) for name, (script, *more) in calls.items()
        }
    replace(DOCS / "schemes.md", blocks)
    write_found()


LAYERS = (
    "gru:hidden=512,batch=16,timesteps=6,layers=3", "gru:hidden=512,batch=16,timesteps=6,layers=3,buffers=6",
    "gru:hidden=1536,batch=32,timesteps=4,layers=3",
    "lstm:hidden=512,batch=16,timesteps=6,layers=3,input=per-step",
    "transformer:layers=2,hidden=512,heads=8,sequence=128,batch=2",
    "transformer:layers=2,hidden=1024,heads=16,sequence=256,batch=4",
    "transformer:layers=1,hidden=1024,heads=16,sequence=1024,batch=2",
)  # fmt: skip
TABLES = "graph,pool,tb_static,tb_static:reduced,tb_static:prologue,tb_ideal"


def gaps() -> None:
    """Write the tables of docs/estimates.md."""
    with tempfile.TemporaryDirectory() as name:
        words = ("configs/gap_table.py", "--quiet", "--out")
        shown = run(*words, str(Path(name) / "gaps.h5"))
        layers = run(*words, str(Path(name) / "layers.h5"), "--schemes", TABLES, *LAYERS)
    replace(DOCS / "estimates.md", {"gaps": shown, "layers": layers})
