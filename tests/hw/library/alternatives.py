"""All candidates of cuBLASLt's heuristic for a GEMM, and what PyTorch launches for it."""

import torch
from alternatives_shapes import PROBLEMS
from cublaslt import CONFIG_COLUMNS, MOST_CANDIDATES, Gemm, library
from shapes import gemm_flop
from table import DTYPES, TOLERANCE, Case, NoRowError, Pool, relative, sample
from timing import GPU, randn

NAME = "alternatives"
COLUMNS = [
    *("id", "group", "rank", "candidates", "m", "n", "k", "trans_a", "trans_b", "dtype"),
    *CONFIG_COLUMNS,
]
TORCH = -1  # rank of the row that PyTorch chose a kernel for
POOL = Pool(randn)
LAST = {}  # the problem under way, whose heuristic is asked once

flop = gemm_flop


def units():
    """Return lists of rows: PyTorch's choice and the candidates of one problem."""
    out = []
    for dtype, problems in PROBLEMS.items():
        for group, m, n, k, transposes in problems:
            row = {"id": len(out), "group": group, "m": m, "n": n, "k": k, "dtype": dtype}
            row.update(trans_a=transposes[0], trans_b=transposes[1])
            out.append([{**row, "rank": rank} for rank in range(TORCH, MOST_CANDIDATES)])
    return out


def _gemm(row):
    if LAST.get("id") != row["id"]:
        LAST.clear()
        sizes = tuple(row[c] for c in "mnk")
        LAST["gemm"] = Gemm(library(), row["dtype"], sizes, row["trans_a"], row["trans_b"])
        LAST["id"] = row["id"]
    return LAST["gemm"]


def case(row):
    """Return the call of a row; raises NoRowError for ranks that the heuristic does not fill."""
    m, n, k, rank, dtype = (row[c] for c in ("m", "n", "k", "rank", "dtype"))
    columns, gemm = {}, None
    if rank != TORCH:
        if not GPU:
            raise NoRowError
        gemm = _gemm(row)
        if rank >= len(gemm.candidates):
            raise NoRowError
        columns = {"candidates": len(gemm.candidates), **gemm.config(rank)}
    kind = DTYPES[dtype]
    # a column-major matrix is the transpose of a row-major one
    a = POOL.get("a", kind, *((k, m) if row["trans_a"] == "N" else (m, k)))
    b = POOL.get("b", kind, *((n, k) if row["trans_b"] == "N" else (k, n)))
    c = POOL.get("c", kind, n, m)
    c.fill_(float("nan"))
    right = a if row["trans_a"] == "N" else a.t()
    left = b if row["trans_b"] == "N" else b.t()

    def call():
        if gemm is None:
            torch.mm(left, right, out=c)
        else:
            gemm.launch(rank, a, b, c)

    def error():
        rows, outputs = sample(n), sample(m)
        return relative(c[rows][:, outputs], left[rows].double() @ right[:, outputs].double())

    count = m * k + k * n + m * n
    return Case(call, error, count * a.element_size(), TOLERANCE[dtype], columns)
