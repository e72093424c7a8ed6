"""``pysim compare``: equal, different and wrong are three exit statuses, as diff has them."""

import json
from pathlib import Path

import pytest

from pysim import stats
from tests.stats.test_stats import make_tables, write
from tests.support.calls import pysim, refused


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    write(folder / "a.h5")
    tables = make_tables()
    tables["runs"]["time_us"] *= 2
    write(folder / "b.h5", tables, gpu="huge")
    return folder


def test_statuses(files):
    same = pysim("compare", "a.h5", "a.h5", folder=files)
    assert (same.returncode, same.stderr) == (0, "")
    assert same.stdout == "equal: configuration and tables of a.h5 and a.h5\n"
    differs = pysim("compare", "a.h5", "b.h5", folder=files)
    assert (differs.returncode, differs.stderr) == (1, "")
    assert "2.000x" in differs.stdout
    assert differs.stdout == f"{stats.compare(files / 'a.h5', files / 'b.h5')}\n".replace(f"{files}/", "")
    # of one table alone
    done = pysim("compare", "a.h5", "b.h5", "--table", "kernels", folder=files)
    assert (done.returncode, done.stdout) == (0, "equal: kernels of a.h5 and b.h5\n")
    done = pysim("compare", "a.h5", "b.h5", "--table", "runs", "--limit", 1, folder=files)
    assert done.returncode == 1
    assert "... and 1 more" in done.stdout


def test_json(files):
    done = pysim("compare", "a.h5", "b.h5", "--json", folder=files)
    made = json.loads(done.stdout)
    assert (done.returncode, made["equal"], made["a"]) == (1, False, "a.h5")
    assert made["configuration"] == [{"path": "gpu", "a": "tiny", "b": "huge"}]
    assert [row["ratio"] for row in made["runs"]] == [2.0, 2.0]
    done = pysim("compare", "a.h5", "b.h5", "--json", "--table", "kernels", folder=files)
    assert (done.returncode, json.loads(done.stdout)["equal"]) == (0, True)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("a.h5", "no.h5"), "no.h5 does not exist"),
        (("a.h5", "a.json"), "a.json cannot be read as an HDF5 file"),
        (("a.h5", "."), ". holds no sweep"),
        (("half.h5", "a.h5"), "half.h5 cannot be read"),
        (("a.h5",), "required: B"),
        (("a.h5", "a.h5", "a.h5"), "unexpected argument 'a.h5'"),
        (("a.h5", "a.h5", "--table", "kernel"), "did you mean kernels?"),
        (("a.h5", "a.h5", "--limit", "0"), "--limit"),
        (("a.h5", "a.h5", "--tables", "runs"), "unknown option --tables: did you mean --table?"),
    ],
)
def test_errors_have_a_status_of_their_own(files, words, why):
    (files / "half.h5").write_bytes((files / "a.h5").read_bytes()[:9000])
    refused(pysim("compare", *words, folder=files), why, 2)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_no_difference(files):
    import subprocess
    import sys

    from tests.support.calls import ROOT

    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pysim", "compare", str(files / "a.h5"), str(files / "a.h5")],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=240, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "error: cannot write the output: No space left on device\n")
