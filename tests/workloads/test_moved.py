"""Old names of modules say the new one and work."""

import subprocess
import sys


def run(code):
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=False
    )


def test_an_old_name_is_the_new_module():
    done = run(
        "from pysim.workloads.pointwise import Field as a\n"
        "from pysim.workloads.kernels.pointwise import Field as b\nassert a is b"
    )
    assert done.returncode == 0, done.stderr
    assert "pysim.workloads.pointwise is pysim.workloads.kernels.pointwise" in done.stderr


def test_other_names_are_unknown():
    for name in ("workloads.nothing", "pysim.workloads.nothing"):
        assert "No module named 'pysim.workloads.nothing'" in run(f"import {name}").stderr
