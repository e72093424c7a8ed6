"""Writes the tables of docs/validation/library.md from result files of configs/validate.py.

The suites take more than an hour of a core even in part, so the page is made of results that are there::

    python configs/validate.py --suite h200-library-gemm --choice told --subset sample --out runs/gemm-told.h5
    python -m docs.builders --library runs/*.h5
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pysim import stats
from pysim.workloads.validation.suites import SUITES, cases_of

from .writing import DOCS, block, replace, table

PAGE = DOCS / "validation" / "library.md"
GEMM = "h200-library-gemm"
# rows of the first table: suite and choice
ROWS = (
    (GEMM, "told"),
    (GEMM, "predicted"),
    ("h200-library-linear", ""),
    ("h200-library-attention", ""),
    ("h200-library-pointwise", ""),
    ("h200-library-rnn", "told"),
    ("h200-library-rnn", "predicted"),
    ("h200-library-conv", "told"),
    ("h200-library-conv", "predicted"),
    ("h200-torch", ""),
    ("h100-networks", ""),
)
SEQUENCES = ("h200-torch", "h100-networks")  # of them the first table shows spans
HEADS = ("mean error", "median", "p90", "worst", "bias", "baseline model: mean")


class Result(NamedTuple):
    """A result file: rows of the table ``validation``, and which subset of the suite they are."""

    rows: NDArray[np.void]
    subset: str


class Family(NamedTuple):
    """GEMM kernels that belong together: what their names begin with, and which types they are shown of."""

    title: str
    begins: tuple[str, ...]
    types: tuple[str, ...] = ()


FAMILIES = (
    Family("`nvjet` (wgmma)", ("nvjet",)),
    Family("`sm90_xmma` (wgmma)", ("sm90_xmma",)),
    Family("`cutlass_80` (mma)", ("cutlass_80_tensorop_s1688gemm_",), ("tf32",)),
    Family("`sm80_xmma` (FFMA)", ("sm80_xmma",), ("fp32",)),
    Family("`cutlass_80_simt` (FFMA)", ("cutlass_80_simt",)),
    Family("vectors, few columns", ("gemv", "gemmSN", "dot_kernel", "sgemm_largek", "gemm")),
    Family("odd sizes", ("",)),
)


CONV = "h200-library-conv"
KERNEL, OTHERS = 12, 13  # words of a convolution's task: its main launch, and those beside it
# convolutions: what a family is called, what is in its main launch, and in those beside it, or in any
CONVOLUTIONS = (
    ("Winograd", "", "winograd"),
    ("FFT", "", "fft2d"),
    ("GEMMs of an image each", "", "reduce_wgrad_nchw_helper"),
    ("`dgrad_engine`", "dgrad_engine", ""),
    ("`wgrad_alg0_engine`, `wgrad_alg1_engine`", "wgrad_alg", ""),
    ("`implicit_convolve_sgemm`", "implicit_convolve_sgemm", ""),
    ("`nvjet`", "nvjet", ""),
    ("wgmma, parts of k added by a kernel", "sm90_xmma", "sm90_xmma"),
    ("wgmma", "sm90_xmma", ""),
    ("FFMA, implicit GEMM", "_ffma", ""),
    ("mma without shared memory", "wo_smem", ""),
    ("CUTLASS's split gradients of filters", "wgrad_optimized", ""),
    ("mma, implicit GEMM", "implicit", ""),
    ("mma, implicit GEMM", "_optimized", ""),
    ("mma, GEMM", "", ""),
)


def _text(rows: NDArray[np.void], column: str) -> list[str]:
    return [value.decode() for value in rows[column]]


def errors(rows: NDArray[np.void]) -> NDArray[np.float64]:
    """Return the error of each row: of cycles where they were measured, else of the time."""
    cycles = rows["measured_cycles"] > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(
            cycles, rows["simulated_cycles"] / rows["measured_cycles"], rows["simulated"] / rows["measured"]
        )
    return np.where(rows["status"] == b"ok", ratio - 1, 1.0)


def figures(rows: NDArray[np.void]) -> list[str]:
    """Return mean, median, p90, worst and bias of the errors, and the mean of the baseline model."""
    found, null = errors(rows), rows["null"] / rows["measured"] - 1
    size = np.abs(found)
    made = [size.mean(), np.median(size), np.quantile(size, 0.9), size.max()]
    shown = [*(f"{each:.1%}" for each in made), f"{found.mean():+.1%}"]
    return [*shown, f"{np.abs(null).mean():.1%}" if np.isfinite(null).all() else ""]


def family_of(kernel: str, dtype: str) -> str:
    """Return the title of the family of a GEMM kernel."""
    name = kernel.removeprefix("void ").split("(")[0].strip()
    return next(
        each.title
        for each in FAMILIES
        if name.startswith(each.begins) and (not each.types or dtype in each.types)
    )


def _parts(labels: list[str]) -> dict[str, NDArray[np.bool_]]:
    """Return which rows have each label, in the order of the table."""
    return {name: np.array(labels) == name for name in dict.fromkeys(labels)}


def _shown(name: str, keys: int) -> dict[tuple[str, ...], list[str]]:
    """Return the rows of a table of the page, by their first ``keys`` cells."""
    lines = block(PAGE, name).splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {tuple(row[:keys]): row for row in rows}


def summary(found: dict[tuple[str, str], Result]) -> str:
    """Return the table of suites; those without a result stay as the page has them."""
    made, shown = [], _shown("suites", 1)
    for suite, choice in ROWS:
        title = f"`{suite}`{', kernels ' * bool(choice)}{choice}{', spans' * (suite in SEQUENCES)}"
        if (suite, choice) not in found:
            made += [shown[title,]] if (title,) in shown else []
            continue
        rows, subset = found[suite, choice]
        if suite in SEQUENCES:
            rows = rows[rows["group"] == b"span"]
        every, _, _ = cases_of(SUITES[suite])
        here = "all" if subset == "all" else f"{subset}, {len(rows)}"
        title = (
            f"`{suite}`{', kernels ' * bool(choice)}{choice}{', spans' * (suite[-5:] in ('torch', 'works'))}"
        )
        made.append([title, f"{len(every):,}", here, *figures(rows)])
    return table(("suite", "rows", "here", *HEADS), (False, True, False, *[True] * 6), made)


def gemms(told: NDArray[np.void], predicted: NDArray[np.void]) -> dict[str, str]:
    """Return the tables of GEMMs by family of the kernel that was measured, and by type: of rows in both."""
    same = dict(zip(_text(predicted, "case"), range(len(predicted)), strict=True))
    told = told[[case in same for case in _text(told, "case")]]
    order = [same[case] for case in _text(told, "case")]
    other, made = predicted[order], {}
    types = _text(told, "group")
    families = [family_of(*pair) for pair in zip(_text(told, "detail"), types, strict=True)]
    for name, labels in (("gemm", families), ("types", types)):
        rows = []
        for title, chosen in _parts(labels).items():
            mine, theirs = errors(told[chosen]), errors(other[chosen])
            null = np.abs(told["null"][chosen] / told["measured"][chosen] - 1).mean()
            rows.append(
                [
                    title,
                    str(chosen.sum()),
                    f"{np.abs(mine).mean():.1%}",
                    f"{mine.mean():+.1%}",
                    f"{np.abs(theirs).mean():.1%}",
                    f"{null:.1%}",
                ]
            )
        heads = ("kernels" if name == "gemm" else "type", "rows", "told: mean", "bias", "predicted: mean")
        made[name] = table((*heads, "baseline model: mean"), (False, *[True] * 5), rows)
    return made


def convolutions(rows: NDArray[np.void]) -> str:
    """Return the table of convolutions by family of their kernels, told."""
    cases, _, _ = cases_of(SUITES[CONV])
    tasks = {case.case: case.task for case in cases}
    names = []
    for case in _text(rows, "case"):
        main, others = tasks[case][KERNEL], tasks[case][OTHERS]
        names.append(
            next(
                title
                for title, own, more in CONVOLUTIONS
                if own in main and (more in others or (more in main and not own))
            )
        )
    made = []
    for name, chosen in sorted(_parts(names).items(), key=lambda part: -part[1].sum()):
        mean, *_, bias, null = figures(rows[chosen])
        made.append([name, str(chosen.sum()), mean, bias, null])
    return table(("kernels", "rows", "mean error", "bias", HEADS[-1]), (False, *[True] * 4), made)


def groups(found: dict[tuple[str, str], Result]) -> str:
    """Return the table of the groups of the other suites, and of their halves; others stay as they are."""
    made = _shown("groups", 2)
    for (suite, choice), (rows, _) in found.items():
        if suite == GEMM:
            continue
        name_of = f"`{suite}`{', predicted' * (choice == 'predicted')}"
        for column, title in (("group", ""), ("split", "half ")):
            for name, chosen in _parts(_text(rows, column)).items():
                cells = [name_of, f"{title}{name}"]
                made[cells[0], cells[1]] = [*cells, str(chosen.sum()), *figures(rows[chosen])]
    order = sorted(made.values(), key=lambda row: [suite for suite, _ in ROWS].index(row[0].split("`")[1]))
    return table(("suite", "rows of", "rows", *HEADS), (False, False, *[True] * 7), order)


def write(*paths: str) -> None:
    """Write the page from result files."""
    found: dict[tuple[str, str], Result] = {}
    for path in paths:
        results = stats.load(path)
        workload = results.configuration["workload"]
        found[workload["suite"], workload.get("choice", "")] = Result(
            results.array("validation"), workload["subset"]
        )
    blocks = {"suites": summary(found), "groups": groups(found)}
    if (CONV, "told") in found:
        blocks["conv"] = convolutions(found[CONV, "told"].rows)
    if (GEMM, "told") in found and (GEMM, "predicted") in found:
        blocks |= gemms(found[GEMM, "told"].rows, found[GEMM, "predicted"].rows)
    replace(PAGE, blocks)
