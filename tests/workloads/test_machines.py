"""Kernels that a library takes follow from the machine: its instructions, SMs and shared memory."""

from dataclasses import replace

import pytest

from pysim import ConfigError, Job, Memory, WorkloadError, simulate
from pysim.dependence.dependences import dependences
from pysim.machine.system import resolve
from pysim.workloads import make
from pysim.workloads.kernels.cutlass import Multistage
from pysim.workloads.kernels.gemm import gemm
from pysim.workloads.kernels.gemm_choice import choose_tiling, occupancy, templates
from pysim.workloads.kernels.machine_hints import MachineHints
from pysim.workloads.mirrored import job_of
from tests.support.thin import thin
from tests.support.walker import check_footprints

ORACLE = {"sim.oracle": 1}


def hints(gpu, **changes):
    return MachineHints.of(resolve(gpu, {f"gpu.{path}": value for path, value in changes.items()}))


@pytest.mark.parametrize(
    ("gpu", "name"),
    [
        ("titan_x_pascal", "hgemm_ffma"),
        ("titan_v", "fp16_s884gemm"),
        ("v100", "fp16_s884gemm"),
        ("rtx3070", "cutlass"),
        ("a100", "cutlass"),
        ("h200", "cutlass"),
    ],
)
def test_fp16_runs_on_what_there_is(gpu, name):
    job = make("gemm:m=512,n=512,k=512,dtype=fp16", gpu)
    assert job.kernels[0].program.name.startswith((name, f"gemm_{name}"))
    assert simulate(gpu, job, "stream", overrides=ORACLE).tables()["runs"]["status"].tolist() == [b"ok"]


def test_no_fp16_product_is_far_slower_than_the_same_in_fp32():
    for gpu in ("titan_x_pascal", "titan_v", "rtx3070", "a100", "h200"):
        times = [
            simulate(gpu, make(f"gemm:m=512,n=512,k=512,dtype={dtype}", gpu), "stream").time_us("stream")
            for dtype in ("fp16", "fp32")
        ]
        assert times[0] < 1.1 * times[1], gpu


def test_a_fast_fp16_pipe_is_taken():
    """As of a P100, whose HFMA2 makes twice the products of its FFMA."""
    slow, fast = hints("titan_x_pascal"), hints("titan_x_pascal", **{"sm.fp16_interval": 1})
    assert {t.math for t in templates("fp16", slow)} == {"ffma"}
    assert {t.math for t in templates("fp16", fast)} == {"hfma2"}
    gpu = resolve("titan_x_pascal", {"gpu.sm.fp16_interval": 1})
    text = "gemm:m=512,n=512,k=512,dtype="
    half, single = (
        simulate(gpu, make(text + dtype, gpu), "stream", overrides=ORACLE).time_us("stream")
        for dtype in ("fp16", "fp32")
    )
    assert 0.5 < half / single < 0.8


def test_facts_are_the_machine_s():
    assert hints("titan_v") == MachineHints(name="titan_v", sm_mhz=1455.0)  # choices on Volta are a V100's
    small = hints("titan_v", sms=40)
    assert small.sms == 40
    a100 = hints("a100")
    assert (a100.sms, a100.compute_capability, a100.smem) == (108, (8, 0), 164 * 1024)
    # as many SMs as there are to fill
    few, many = (choose_tiling(1024, 1024, 1024, "fp16", hints=hints("h200", sms=n)) for n in (8, 132))
    assert few.tm * few.tn > many.tm * many.tn


def test_what_does_not_fit_is_not_taken():
    narrow = hints("h200", **{"sm.smem": "64KiB"})
    tiling = choose_tiling(4096, 4096, 4096, "fp16", hints=narrow)
    assert occupancy(tiling, 2, narrow) >= 1
    assert tiling.smem <= 63 * 1024
    with pytest.raises(WorkloadError, match="no fp16 tile can run: there are 128x256x32"):
        choose_tiling(512, 512, 512, "fp16", hints=hints("h200", **{"sm.smem": "8KiB"}))


def test_a_type_without_a_template_is_refused():
    with pytest.raises(WorkloadError, match=r"gemm on h200: dtype bf16: there are fp32, fp16"):
        make("gemm:dtype=bf16", "h200")


def test_the_machine_is_no_key_of_a_workload():
    with pytest.raises(WorkloadError, match="no key 'hints'"):
        make("gru:hints=h200")
    with pytest.raises(ConfigError, match="h20"):
        make("gru:hidden=64,batch=4,timesteps=1", "h20")


NETWORKS = ["gemm:dtype=fp16", "transformer:layers=1", "mlp:layers=1", "gru:timesteps=1,dtype=fp16"]


@pytest.mark.parametrize("workload", NETWORKS)
def test_every_network_asks_the_machine(workload):
    mine = {kernel.program.name for kernel in make(workload, "h200").kernels}
    assert mine != {kernel.program.name for kernel in make(workload).kernels}


@pytest.mark.parametrize("workload", ["3mm", "gemm"])
def test_fp32_products_fill_the_machine(workload):
    small = resolve("titan_v", {"gpu.sms": 4})
    assert make(workload, small).kernels[0].tbs < make(workload).kernels[0].tbs


ORDERS = [(a_t, b_t, beta) for a_t in (False, True) for b_t in (False, True) for beta in (0.0, 1.0)]


@pytest.mark.parametrize(("a_t", "b_t", "beta"), ORDERS)
@pytest.mark.parametrize(("m", "n", "k", "split"), [(200, 264, 136, 1), (100, 61, 37, 1), (64, 64, 1000, 3)])
def test_ampere_s_kernel_takes_every_shape(m, n, k, split, a_t, b_t, beta):
    """Every TB touches exactly its footprint, and the oracle finds nothing."""
    memory = Memory()
    a = memory.tensor("a", *((k, m) if a_t else (m, k)), 2)
    b = memory.tensor("b", *((n, k) if b_t else (k, n)), 2)
    c = memory.tensor("c", m, n, 2)
    tiling = Multistage(64, 64, 32, 32, 32, 3, split_k=split)
    kernel = gemm("g", a, b, c, tiling, a_t=a_t, b_t=b_t, beta=beta)
    if split == 1:  # parts of a split add to C: what they load and store is one update
        check_footprints(kernel)
    result = simulate("h200", Job("two", [kernel, kernel]), "stream,tb_static", overrides=ORACLE)
    assert set(result.tables()["runs"]["status"].tolist()) == {b"ok"}


def test_names_of_tiles_are_of_every_machine():
    name = templates("fp16", hints("h200"))[0].name
    assert make(f"gemm:tile={name},dtype=fp16", "h200").kernels[0].program.name == f"cutlass_{name}"
    with pytest.raises(WorkloadError, match="no tile 'nvjet'"):
        make("gemm:tile=nvjet", "h200")


def test_a_transformer_on_hopper_runs_under_cusync():
    """Its kernels say what they need of both operands: Q and K are both made by earlier kernels."""
    job = make("transformer:layers=1,hidden=256,heads=4", "h200")
    result = simulate("h200", job, "cusync:tile+pdl", overrides=ORACLE)
    assert result.tables()["runs"]["status"][0] == b"ok", result.tables()["runs"]["reason"][0]


def test_tensor_instructions_without_tensor_cores_are_refused():
    """A job that was made for another machine: its kernels do not fit, and the reason says what to do."""
    runs = simulate("titan_x_pascal", make("gemm:m=512,n=512,k=512,dtype=fp16"), "stream").tables()["runs"]
    assert runs["status"].tolist() == [b"refused"]
    assert b"no tensor cores: workloads.make takes the GPU" in runs["reason"][0]


@pytest.mark.parametrize("text", ["n=67121209", "n=257", "n=4866125"])
@pytest.mark.parametrize("name", ["vecadd", "block_reduce"])
def test_mirrored_kernels_end_with_their_tensors(name, text):
    job = job_of(name, text)
    assert dependences(job).edges.size == 0


@pytest.mark.parametrize(
    ("gpu", "made_for", "written", "own"),
    thin(
        [
            ("h200", None, "HMMA.884", "mma.m16n8k16"),
            ("a100", "titan_v", "HMMA.884", "mma.m16n8k16"),
            ("titan_v", "a100", "mma.m16n8k16", "HMMA.884"),
        ],
        2,
    ),
)
def test_another_tensor_instruction_is_reported(gpu, made_for, written, own):
    job = make("transformer:layers=1,hidden=128,heads=2", made_for)
    result = simulate(gpu, job, "stream,graph")
    note = next(note for note in result.notes if "written for" in note)
    named = [kernel.name for kernel in job.kernels if kernel.tensor]
    assert note.startswith(f"kernel {named[0]} and {len(named) - 1} more: written for {written}, sm_")
    assert own in note
    assert note.endswith("make the job for this GPU, as workloads.make(text, gpu) does")
    assert result.notes.count(note) == 1
    runs = result.tables()["runs"]
    assert [word.decode() for word in runs["status"]] == ["ok", "ok"]


@pytest.mark.parametrize("gpu", thin(["titan_v", "rtx3070", "h200"], ["h200"]))
def test_a_job_of_the_gpu_has_no_note(gpu):
    for text in ("transformer:layers=1,hidden=128,heads=2", "gemm", "tensor"):
        result = simulate(gpu, make(text, gpu), "stream")
        assert not [note for note in result.notes if "written for" in note]
        assert result.tables()["runs"]["reason"].tolist() == [b""]


def test_every_template_says_its_tensor_instruction():
    """Split K, batches, Stream-K, convolutions, and what was measured on an H200."""
    for text in ("gemm:m=64,n=64,k=16384,dtype=fp16", "gemm:m=256,n=256,k=256,dtype=fp16,stream_k=two_tile"):
        for gpu, word in (("titan_v", "HMMA.884"), ("h200", "mma.m16n8k16")):
            assert make(text, gpu).kernels[-1].tensor == word
    assert job_of("hgemm_128x128x32_8warps", "n=256").kernels[0].tensor == "mma.m16n8k16"
    assert job_of("vecadd", "n=1024").kernels[0].tensor == ""
    with pytest.raises(WorkloadError, match=r"tensor = 'wgmma': must be HMMA.884, mma.m16n8k16"):
        replace(make("tensor").kernels[0], tensor="wgmma")
