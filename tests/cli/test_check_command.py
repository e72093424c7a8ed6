"""``pysim check``: a right job, a missing halo, a race, and files that are none."""

import pytest

from tests.support.calls import pysim, refused

RIGHT = """
import numpy as np
from pysim import Access, Code, Job, Kernel, Memory, Pattern, Program
x = Memory().tensor("x", 8, 32, 4)
code = Code()
code.load(0, Pattern(0, 4, base={base}, bx=128, s0=4))
code.wait(0)
code.exit()
def rows(tbs):
    return np.stack([tbs, tbs + 1, 0 * tbs, 0 * tbs + 32], axis=1)
program = Program("p", (code.ops,), 1, 16, 0, 1)
def kernel(mode, stream):
    return Kernel("k", program, (8, 1, 1), (x,), (Access(x, mode, rows),), stream)
job = Job("mine", [kernel("read", 0){more}])
"""


WRITER = """, Kernel("w", Program("e", (code.ops[2:],), 1, 16, 0, 1), (8, 1, 1), (x,),
                        (Access(x, "write", rows),), 1)"""


@pytest.fixture
def write(tmp_path):
    def write(base=0, more=""):
        path = tmp_path / "job.py"
        path.write_text(RIGHT.format(base=base, more=more), encoding="utf-8")
        return path

    return write


def test_a_right_job(write):
    done = pysim("check", write())
    assert (done.returncode, done.stdout) == (0, "mine: 1 kernels of 1 launches, 8 TBs: no fault found\n")


def test_a_missing_halo(write):
    refused(pysim("check", write(base=-128)), "error: job mine: kernel 0 (k): TB (0, 0, 0): op 0 (LOAD)", 1)


def test_a_race(write):
    text = "error: job mine: 1 races between streams without an event: kernels 0 -> 1"
    refused(pysim("check", write(more=WRITER)), text, 1)


def test_a_workload():
    done = pysim("check", "gru:hidden=64,batch=4,timesteps=2,layers=1", "--gpu", "h200")
    assert done.stdout.endswith("no fault found\n"), done.stderr


def test_files_that_are_none(tmp_path):
    path = tmp_path / "a.py"
    refused(pysim("check", path), f"error: {path}: no such file", 2)
    path.write_text("job = 5\n", encoding="utf-8")
    refused(pysim("check", path), f"error: {path}: must define job, a Job, or a function", 2)


def test_a_module_beside_the_file_is_found(write, tmp_path):
    write()
    path = tmp_path / "other.py"
    path.write_text("from job import job\n", encoding="utf-8")
    done = pysim("check", path)
    assert (done.returncode, done.stdout) == (0, "mine: 1 kernels of 1 launches, 8 TBs: no fault found\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import pysim\n\npysim.Code().load()\n", ":3: TypeError: "),
        ("def make_job():\n    return 1 / 0\n", ":2: ZeroDivisionError: division by zero"),
        ("def x(:\n", ":1: SyntaxError: invalid syntax"),
        ("import missing_of_mine\n", ":1: ModuleNotFoundError: No module named 'missing_of_mine'"),
    ],
)
def test_an_error_in_the_file_is_its_line(tmp_path, text, said):
    path = tmp_path / "a.py"
    path.write_text(text, encoding="utf-8")
    refused(pysim("check", path), f"error: {path}{said}", 2)


def test_an_error_in_a_module_beside_it_is_the_line_there(tmp_path):
    (tmp_path / "beside.py").write_text("x = 1\nx.y\n", encoding="utf-8")
    path = tmp_path / "a.py"
    path.write_text("import beside\n", encoding="utf-8")
    refused(pysim("check", path), f"error: {tmp_path / 'beside.py'}:2: AttributeError: ", 2)


def test_run_takes_no_file(write):
    path = write()
    refused(pysim("run", path), f"error: no workload '{path}': a job of your own is simulated in Python", 2)
