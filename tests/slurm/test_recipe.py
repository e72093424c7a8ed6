"""The recipe of docs/batches.md for Snakemake."""

import os
import re
import subprocess
import sys

import pytest

from pysim.sweep import Sweep, SweepFolder
from pysim.sweep.engines.launching import ROOT


def test_the_recipe_for_snakemake(tmp_path):
    pytest.importorskip("snakemake")
    page = (ROOT / "docs" / "batches.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"```python\n# Snakefile\n(.*?)```", page, re.DOTALL)
    (tmp_path / "Snakefile").write_text(recipe)
    commands = tmp_path / "commands"
    commands.mkdir()
    (commands / "pysim").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pysim "$@"\n')
    (commands / "pysim").chmod(0o755)
    folder = SweepFolder(tmp_path / "runs" / "gru")
    Sweep("gru:timesteps=1,layers=1,batch=4", {"hidden": [64, 96, 128]}, schemes="stream").prepare(folder)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PATH": f"{commands}:{os.environ['PATH']}"}
    words = [sys.executable, "-m", "snakemake", "--jobs", "2", "--quiet", "all"]
    subprocess.run(words, cwd=tmp_path, env=environment, check=True, timeout=300)
    assert not folder.missing()
    assert (tmp_path / "gru.h5").stat().st_size > 0
