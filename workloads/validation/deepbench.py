"""DeepBench rows of a V100 (Volta): what was measured, and how a row is simulated.

DeepBench launches a GEMM 400 times back to back in one stream, with beta 1 (C is read), and divides: the
time of a row is the steady period of such launches. It cuts times to whole microseconds, so half of one is
added. A recurrent row is the whole forward pass of one layer without input GEMM (SKIP_INPUT): for each step
one GEMM and one pointwise kernel in one stream, after a wait for the host (:func:`host_us`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pysim import Config, WorkloadError
from pysim.workloads.kernels.gemm_case import column_major
from pysim.workloads.kernels.gemm_choice import Dtype, choose_tiling
from pysim.workloads.kernels.gemm_sampling import plan
from pysim.workloads.kernels.machine_hints import MachineHints
from pysim.workloads.registry import make

from .baselines import roofline_by
from .cases import Baseline, Case, Outcome, Suite, outcome_of, tables_of, unique
from .table import Row

TRUNCATED_US = 0.5  # the mean of what DeepBench cuts off
MOST_STEPS = 200
GATES = {"vanilla": 1, "gru": 3, "lstm": 4}
# How long the GPU waits for the host in a call of cuDNN's forward pass, fitted (half `fit`): us a call, us a
# step, and steps after which the host is ahead. Rows of 375 to 1500 steps, which the suite leaves out, agree:
# their times over the steps are a line that begins at 2 to 3 ms.
CALL_US, STEP_US, AHEAD_STEPS = 40.0, 30.0, 100
# the launch gap of a longer GEMM is less than 1 % of its time, so one launch is enough
LONG_FLOPS = {"fp32": 4e9, "fp16": 3e10}
EIGHT = 8  # tensor cores want sizes in multiples of this
QUICK_US = {"gemm": 700.0, "rnn": 3000.0}
LONG_K = 100_000
NARROW_N = 128


def _chosen(rows: Sequence[Row]) -> list[tuple[Row, Dtype]]:
    """Return the rows of a V100 with their type; the sheet of mixed precision has fp16 inputs."""
    mine = [row for row in rows if "V100" in row.text("device")]
    return [(row, "fp16" if "16" in row.text("precision") else "fp32") for row in mine]


def _kind(dtype: str, transposes: str, n: int, k: int) -> str:
    if k > LONG_K:
        return f"{dtype} K = 500000"
    return f"{dtype} {transposes}, N {'<=' if n <= NARROW_N else '>'} {NARROW_N}"


def _gemm_cases(rows: Sequence[Row]) -> list[Case]:
    made = []
    for row, dtype in _chosen(rows):
        m, n, k = (row.count(name) for name in "MNK")
        transposes = row.text("A_transpose") + row.text("B_transpose")
        if transposes not in ("NN", "TN", "NT", "TT"):
            raise WorkloadError(f"{row.where}: transposes {transposes[:20]!r} must be N or T each")
        item, key = (4 if dtype == "fp32" else 2), f"{m}x{n}x{k} {transposes}"
        measured = row.number("time_ms") * 1e3 + TRUNCATED_US
        made.append(
            Case(
                case=f"{dtype}|{key}",
                group=dtype,
                mode="stream",
                key=key,
                kind=_kind(dtype, transposes, n, k),
                scheme="stream",
                task=(dtype, str(m), str(n), str(k), transposes),
                part="period",
                measured_us=measured,
                flops=2.0 * m * n * k,
                nbytes=float(item) * (m * k + k * n + m * n),
                quick=measured < QUICK_US["gemm"],
            )
        )
    return unique(made)


def padded(dtype: str, m: int, n: int, k: int, transposes: str) -> tuple[int, int, int]:
    """Return M, N, K as DeepBench runs them: in fp16 it rounds up what tensor cores want in eights.

    M is rounded up, and K or, where B alone is transposed, N (``gemm_bench.cu``).
    """
    if dtype == "fp32":
        return m, n, k
    m = -(-m // EIGHT) * EIGHT
    return (m, -(-n // EIGHT) * EIGHT, k) if transposes == "NT" else (m, n, -(-k // EIGHT) * EIGHT)


def _gemm(config: Config, dtype: Dtype, m_text: str, n_text: str, k_text: str, transposes: str) -> Outcome:
    """Simulate launches back to back; a shorter GEMM for one of many waves (``gemm_sampling``)."""
    a_t, b_t = (int(letter == "T") for letter in transposes)
    m, n, k = padded(dtype, int(m_text), int(n_text), int(k_text), transposes)
    rows, cols, depth, left_t, right_t = column_major(m, n, k, bool(a_t), bool(b_t))
    tiling = choose_tiling(rows, cols, depth, dtype, a_t=left_t, b_t=right_t, beta=1.0)
    text = f"gemm:m={m},k={k},a_t={a_t},b_t={b_t},dtype={dtype}"
    launch = config.number("gpu.cp.launch") / 1e3
    sample = plan(
        rows, cols, depth, 4 if dtype == "fp32" else 2, tiling, MachineHints(sms=config.integer("gpu.sms"))
    )
    if sample is not None and not tiling.column_raster:
        # the shorter GEMM must run the same kernel, not the one that suits its own size
        job = make(f"{text},n={sample.rows},tile={tiling.name}")
        tables = tables_of(config, job, "stream", "kernels,tbs")
        time = sample.extrapolate(
            float(tables["kernels"]["last_end_us"][0]) - launch, tables["tbs"]["dispatch_ns"] / 1e3
        )
        return outcome_of(tables, {"period": time}, f"{tiling.name} (sampled)")
    repeat = 3 if 2.0 * rows * cols * depth < LONG_FLOPS[dtype] else 1
    tables = tables_of(config, make(f"{text},n={n},repeat={repeat}"), "stream")
    ends = tables["kernels"]["last_end_us"]
    time = float(ends[-1] - ends[-2]) if repeat > 1 else float(ends[0]) - launch
    return outcome_of(tables, {"period": time}, tiling.name)


def _rnn_cases(rows: Sequence[Row]) -> list[Case]:
    made = []
    for row, dtype in _chosen(rows):
        cell, hidden, batch, steps = (
            row.text("cell"),
            row.count("hidden"),
            row.count("N"),
            row.count("timesteps"),
        )
        if steps > MOST_STEPS:
            continue
        if cell not in GATES:
            raise WorkloadError(f"{row.where}: cell {cell[:20]!r} must be one of {', '.join(GATES)}")
        item, wide = (4 if dtype == "fp32" else 2), GATES[cell] * hidden
        key = f"{cell} {hidden} batch {batch} x {steps}"
        measured = row.number("fwd_ms") * 1e3
        made.append(
            Case(
                case=f"{dtype}|{key}",
                group=dtype,
                mode="stream",
                key=key,
                kind=f"{dtype} {cell}",
                scheme="stream",
                task=(dtype, cell, str(hidden), str(batch), str(steps)),
                part="forward",
                measured_us=measured,
                # of one step, the recurrent GEMM alone
                flops=2.0 * wide * hidden * batch,
                nbytes=float(item) * (wide * hidden + hidden * batch + wide * batch),
                steps=steps,
                quick=measured < QUICK_US["rnn"],
            )
        )
    return unique(made)


def host_us(steps: int) -> float:
    """Time (us) in which the GPU of a recurrent row waits for the host, assumed.

    A step's launches and events take the host ``STEP_US``; the GPU begins when it has the first
    ``AHEAD_STEPS`` steps, and from there on the host stays ahead. Calls do not overlap.
    """
    return CALL_US + STEP_US * min(steps, AHEAD_STEPS)


def _rnn(config: Config, dtype: str, cell: str, hidden: str, batch: str, steps: str) -> Outcome:
    text = f"{cell}:hidden={hidden},batch={batch},timesteps={steps},layers=1,input=skip,dtype={dtype}"
    tables = tables_of(config, make(text), "stream", "none")
    time = float(tables["runs"]["time_us"][0]) + host_us(int(steps))
    return outcome_of(tables, {"forward": time}, "a GEMM and a pointwise kernel a step, after the host")


def _gemm_baselines(cases: Sequence[Case]) -> list[Baseline]:
    return [
        roofline_by(cases, "roofline per transposes", lambda case: f"{case.group} {case.key.split()[-1]}"),
        roofline_by(cases, "one roofline", lambda case: case.group),
    ]


def _rnn_baselines(cases: Sequence[Case]) -> list[Baseline]:
    return [roofline_by(cases, "roofline of a step", lambda case: case.group)]


GEMM = Suite(
    name="deepbench-gemm",
    doc="DeepBench's 160 GEMMs on a V100, fp32 and fp16",
    gpu="v100",
    file="deepbench_gemm.csv",
    columns=("device", "precision", "M", "N", "K", "A_transpose", "B_transpose", "time_ms"),
    cases=_gemm_cases,
    run=_gemm,
    baselines=_gemm_baselines,
    note="rows of a V100 only; measured times were cut to whole us, so 0.5 us is added",
)
RNN = Suite(
    name="deepbench-rnn",
    doc="DeepBench's recurrent layers of at most 200 steps on a V100, forward, fp32 and fp16",
    gpu="v100",
    file="deepbench_rnn.csv",
    columns=("device", "precision", "cell", "hidden", "N", "timesteps", "fwd_ms"),
    cases=_rnn_cases,
    run=_rnn,
    baselines=_rnn_baselines,
    note="rows of a V100 of at most 200 steps only; the library's own list of kernels is not known: assumed"
    " are a GEMM and a pointwise kernel a step in one stream, and 30 us of the host for each of the first"
    " 100 steps",
)
