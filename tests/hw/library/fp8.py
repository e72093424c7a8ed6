"""GEMMs of 8-bit floating-point numbers (e4m3), one scale a matrix, bfloat16 results."""

import torch
from shapes import gemm_flop, linear_shapes
from table import TOLERANCE, Case, Pool, relative, sample
from timing import DEV, randn

NAME = "fp8"
COLUMNS = ["id", "group", "fast_accum", "m", "n", "k", "trans_a", "trans_b", "dtype"]
POOL = Pool(randn)

flop = gemm_flop


def units():
    """Return lists of two rows, without and with fast accumulation, of each linear layer."""
    out = []
    for i, group, m, n, k in linear_shapes():
        row = {"id": i, "group": group, "m": m, "n": n, "k": k, "trans_a": "T", "trans_b": "N"}
        row["dtype"] = "e4m3"
        out.append([{**row, "fast_accum": fast} for fast in (1, 0)])
    return out


def _rows(x, index):
    """Return rows as float64; indexing does not know the type."""
    return x.view(torch.uint8)[index].view(x.dtype).to(torch.float32).double()


def case(row):
    """Return the call of a row."""
    m, n, k, fast = (row[c] for c in ("m", "n", "k", "fast_accum"))
    x, w = POOL.get("x", torch.float8_e4m3fn, n, k), POOL.get("w", torch.float8_e4m3fn, m, k)
    scales = [torch.tensor(s, device=DEV) for s in (0.5, 0.25)]
    wt = w.t()

    def call():
        return torch._scaled_mm(
            *(x, wt),
            **dict(zip(("scale_a", "scale_b"), scales, strict=True)),
            out_dtype=torch.bfloat16,
            use_fast_accum=bool(fast),
        )

    def error():
        rows, columns = sample(n), sample(m)
        want = _rows(x, rows) @ _rows(w, columns).t() * 0.125
        return relative(call()[rows][:, columns], want)

    return Case(call, error, m * k + k * n + 2 * m * n, TOLERANCE["bf16"], held=2 * m * n)
