"""Which library kernels a run used: what each kernel says, and the lines that users read."""

import copy
from dataclasses import replace

import pytest

from pysim import Job, WorkloadError
from pysim.dependence.dependences import dependences
from pysim.machine.devices import DEVICES
from pysim.machine.system import resolve
from pysim.program.library_kernels import library_kernels
from pysim.program.rename import renamed
from pysim.schemes.registry import parse_scheme
from pysim.workloads import make
from tests.support.calls import caller, pysim

GRU = "gru:hidden=64,batch=4,timesteps=2,layers=1"
run = caller("compare_schemes", "--threads", "1", "--quiet")


@pytest.mark.parametrize(
    ("workload", "gpu", "family"),
    [
        ("gemm", "h200", "sgemm_"),
        ("gemm:dtype=fp16", "titan_v", "fp16_s884gemm_"),
        ("gemm:dtype=fp16", "a100", "mma.m16n8k16_"),
        ("gemm:dtype=fp16", "titan_x_pascal", "hgemm_ffma_"),
        ("gru:timesteps=1", "titan_v", "sgemm_"),
        ("transformer:layers=1", "h200", "mma.m16n8k16_"),
    ],
)
def test_gemms_name_their_family(workload, gpu, family):
    kernels = make(workload, gpu).kernels
    named = [kernel for kernel in kernels if kernel.library]
    assert named
    assert all(kernel.library.startswith(family) for kernel in named)
    # as many as have operands of a GEMM: batched ones too
    assert len(named) == sum(kernel.program.name.startswith(("gemm_", "cutlass_")) for kernel in kernels)


def test_parts_of_k_are_in_the_name():
    text = "gemm:m=64,n=64,k=16384,dtype=fp16"
    for gpu in ("titan_v", "h200"):
        kernel = make(text, gpu).kernels[-1]
        assert kernel.library.endswith(f"_splitK{kernel.grid[2]}")


def test_copies_and_plans_keep_it():
    job = make(GRU, "titan_v")
    known = library_kernels(job)
    assert known
    assert library_kernels(renamed(job)) == known
    assert library_kernels(replace(job, kernels=copy.deepcopy(list(job.kernels)))) == known
    config = resolve("titan_v")
    for scheme in ("cusync:tile+streams", "tb_static", "pool"):
        plan = parse_scheme(scheme).launch_plan(job, dependences(job), config)
        assert library_kernels(job if plan is None else plan.job) == known, scheme


def test_the_line_counts_launches_and_is_short():
    kernel = make("empty").kernels[0]
    assert library_kernels(Job("none", [kernel])) == ""
    named = [replace(kernel, library=f"k{i}") for i in (0, 1, 1, 2, 3, 3, 3)]
    assert library_kernels(Job("four", [kernel, *named])) == "k3 x 3, k1 x 2, k0 x 1, k2 x 1"
    more = [*named, replace(kernel, library="k4")]
    assert library_kernels(Job("five", more)) == "k3 x 3, k1 x 2, k0 x 1, k2 x 1, ..."
    assert library_kernels(Job("many", [named[0]] * 1234)) == "k0 x 1,234"


def test_a_name_that_is_no_text():
    with pytest.raises(WorkloadError, match=r"^kernel empty: library = 3: must be text$"):
        replace(make("empty").kernels[0], library=3)


def test_scripts_print_it(tmp_path):
    done = run(tmp_path, GRU, "--gpu", "v100", "--schemes", "stream")
    assert done.returncode == 0, done.stderr
    assert f"\nkernels   {library_kernels(make(GRU, 'v100'))}\n" in done.stdout
    none = run(tmp_path, "empty", "--schemes", "stream")
    assert none.returncode == 0, none.stderr
    assert "kernels   " not in none.stdout


def test_the_list_of_kernels_says_which_gpus_take_which_tiles():
    lines = pysim("kernels").stdout.partition("GEMM tiles that workloads take, by type and GPU:\n")[2]
    found = dict(line.strip().split(": ") for line in lines.splitlines())
    assert found["fp32  sgemm"] == "all"
    halves = [name for key, names in found.items() if key.startswith("fp16") for name in names.split(", ")]
    assert sorted(halves) == sorted(DEVICES)
    for gpu in DEVICES:
        family = next(key.split()[1] for key, names in found.items() if gpu in names.split(", "))
        assert make("gemm:dtype=fp16", gpu).kernels[-1].library.startswith(f"{family}_")
