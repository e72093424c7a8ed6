"""Matrix times vector and GEMMs of few columns in fp32 and tf32: kernels of cuBLAS that use no tiles of C.

The rules were read off the sweep (96 rows of fp32, 34 of tf32), so the figures of ``accuracy`` for these
families are no forecast. Template parameters that do not follow from the problem are left out of the names.
"""

from __future__ import annotations

from .choice import GemmChoice, Problem

DOT_ROWS = 64  # rows of A up to which a product with a vector is one dot product a row
DOT_PARTS = 31  # TBs of each, as the only shape of the sweep has, K 1216
SHALLOW = 128  # K up to which A's columns are read by `gemvNSP`
T_ROWS, T_DEPTH = 2048, 4096  # `gemv2T`: rows from which on and K up to which A (transposed) is taken by it
ROWS_A_TB = ((128, 8), (512, 16), (3072, 32))  # `gemvx`, A not transposed: up to so many rows; else 64
FEW_COLUMNS = 8  # columns of B up to which `gemmSN_TN` and `largek` are taken
FEW_ROWS_T = 1024  # rows of op(A) from which on they are
LARGE_A, LARGE_M = 24_000_000, 10_000  # elements or rows of op(A) from which on 5 to 8 columns take `largek`
LARGE_K = 100_000  # K from which on `largek` is taken
# `largek`: rows of a TB; TBs that parts of K make, where they are 8 or more, else parts are 8 or 4; least K
LARGEK_ROWS, LARGEK_TBS, LARGEK_STEP = 64, 528, 16
# A not transposed, `gemmSN_NN`: rows from which on for up to so many columns
SN_COLUMNS = ((4, 4096), (16, 3072))


def _vector(problem: Problem) -> GemmChoice:
    m, n, k = problem.m, problem.n, problem.k
    if m == 1:
        return GemmChoice(
            "gemvx",
            "gemvx",
            (0, 0, 0),
            grid=(-(-n // 4), 1, 1),
            reasons=("C has one row: a TB computes 4 columns",),
        )
    if problem.trans_a == "T":
        if m >= T_ROWS and k <= T_DEPTH:
            why = (
                f"C has one column, at least {T_ROWS} rows, and K is at most {T_DEPTH}: a TB computes 8 rows"
            )
            return GemmChoice(
                "gemv2T_kernel_val", "gemv2t_kernel_val", (0, 0, 0), grid=(-(-m // 8), 1, 1), reasons=(why,)
            )
        why = "C has one column: a TB computes 4 rows"
        return GemmChoice("gemvx", "gemvx", (0, 0, 0), grid=(-(-m // 4), 1, 1), reasons=(why,))
    if m <= DOT_ROWS and problem.item == 4:
        why = f"C has one column and at most {DOT_ROWS} rows: dot products, added by a second kernel"
        return GemmChoice(
            "dot_kernel", "dot_kernel", (0, 0, 0), reduction="kernel", grid=(DOT_PARTS, 1, m), reasons=(why,)
        )
    if k <= SHALLOW and problem.item == 4:
        why = f"C has one column and K is at most {SHALLOW}: a TB computes 32 rows"
        return GemmChoice(
            "gemvNSP_kernel", "gemvnsp_kernel", (0, 0, 0), grid=(-(-m // 32), 1, 1), reasons=(why,)
        )
    rows = next((rows for most, rows in ROWS_A_TB if m <= most), 64)
    why = f"C has one column: a TB computes {rows} rows"
    return GemmChoice("gemvx", "gemvx", (0, 0, 0), grid=(-(-m // rows), 1, 1), reasons=(why,))


def _largek(problem: Problem) -> GemmChoice:
    why = "C has few columns and A is large: parts of K are added by atomic operations"
    letters = "true, false" if problem.trans_a == "T" else "false, false"
    tbs = -(-problem.m // LARGEK_ROWS)
    parts = LARGEK_TBS // tbs
    parts = parts if parts >= 8 else 8 if parts >= 5 else 4
    parts = min(parts, -(-problem.k // LARGEK_STEP))
    name = f"sgemm_largek_lds64<{letters}>"
    return GemmChoice(name, "sgemm_largek_lds64", (0, 0, 0), grid=(tbs, 1, parts), reasons=(why,))


def _few_columns(problem: Problem) -> GemmChoice | None:
    m, n, k = problem.m, problem.n, problem.k
    if n <= FEW_COLUMNS and k >= LARGE_K:
        return _largek(problem)
    if problem.trans_a == "T":
        if n > FEW_COLUMNS or m < FEW_ROWS_T - 32:
            return None
        if n > 4 and (m * k >= LARGE_A or m >= LARGE_M):
            return _largek(problem)
        sizes = "2, 2" if n <= 2 else "4, 4" if n <= 4 else "8, 9"
        why = f"C has {n} columns and at least {FEW_ROWS_T - 32} rows, A is transposed: a TB computes 8 rows"
        name = f"gemmSN_TN_kernel<float, 128, 16, 2, 4, {sizes}>"
        return GemmChoice(name, "gemmsn_tn_kernel", (0, 0, 0), grid=(-(-m // 8), 1, 1), reasons=(why,))
    for most, rows in SN_COLUMNS:
        if n <= most and m >= rows:
            columns = 2 if n <= 2 else 4
            why = f"C has {n} columns and at least {rows} rows: a TB computes 64 rows and {columns} columns"
            name = f"gemmSN_NN_kernel<float, 256, 4, 2, 8, {columns}, 4>"
            grid = (-(-m // 64), -(-n // columns), 1)
            return GemmChoice(name, "gemmsn_nn_kernel", (0, 0, 0), grid=grid, reasons=(why,))
    return None


def choose(problem: Problem) -> GemmChoice | None:
    """Return the kernel for one row or column, and in fp32 for few columns; None where C is tiled.

    Aligned fp16 and bf16 take tiles of 8 in all cases.
    """
    aligned = problem.item == 2 and problem.alignment() == 8
    if (problem.m == 1 or problem.n == 1) and not aligned:
        return _vector(problem)
    if problem.dtype == "fp32" and problem.trans_b == "N":
        return _few_columns(problem)
    return None
