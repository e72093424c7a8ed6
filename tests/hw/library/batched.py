"""Batched GEMMs: attention's two, and gates of recurrent networks."""

import torch
from shapes import MODELS, gemm_flop
from table import DTYPES, TOLERANCE, Case, Pool, relative, sample
from timing import randn

NAME = "batched"
COLUMNS = ["id", "group", "op", "batch", "m", "n", "k", "trans_a", "trans_b", "dtype"]
SEQUENCES = (64, 128, 256, 384, 512, 1024, 2048)
MOST_BATCH = 1536
MOST_BYTES = 2 << 30  # of the largest matrix
MOST_FP32_FLOP = 1e11
POOL = Pool(randn)

flop = gemm_flop


def _shapes():
    """Yield (group, batch, m, n, k, trans_a) of distinct shapes; B is never transposed."""
    seen = {}
    for name, (_, heads, d) in MODELS.items():
        for s in SEQUENCES:
            for sequences in (1, 4, 8, 16, 32, 48, 64):
                batch = sequences * heads
                if batch <= MOST_BATCH and 2 * batch * s * s <= MOST_BYTES:
                    # C = K Q^T as BLAS sees it, then C = V P
                    seen.setdefault((batch, s, s, d, "T"), []).append(f"{name}_qk")
                    seen.setdefault((batch, d, s, s, "N"), []).append(f"{name}_pv")
    for h in (256, 512, 1024, 2048):
        for gates in (3, 4):
            for n in (1, 16, 64, 256):
                seen.setdefault((gates, h, n, h, "T"), []).append(f"rnn_h{h}_gates{gates}")
    for shape, group in seen.items():
        yield (" ".join(group), *shape)


def units():
    """Return lists of rows: the operations of one shape and type."""
    out = []
    for i, (group, batch, m, n, k, trans_a) in enumerate(_shapes()):
        row = {"id": i, "group": group, "batch": batch, "m": m, "n": n, "k": k, "trans_a": trans_a}
        row["trans_b"] = "N"
        scores = "_qk" in group
        ops = ("bmm", "baddbmm_beta0", "baddbmm") if scores and i % 4 == 0 else ("bmm",)
        out.append([{**row, "dtype": "fp16", "op": op} for op in ops])
        largest = 4 * batch * max(m * n, n * k, m * k)
        if gemm_flop(row) <= MOST_FP32_FLOP and largest <= MOST_BYTES:
            if i % 4 in (0, 1):
                out.append([{**row, "dtype": "tf32", "op": "bmm"}])
            if i % 4 in (0, 3):
                out.append([{**row, "dtype": "fp32", "op": "bmm"}])
    return out


def case(row):
    """Return the call of a row; `baddbmm` adds a matrix of the result's size."""
    batch, m, n, k, dtype, op = (row[c] for c in ("batch", "m", "n", "k", "dtype", "op"))
    kind = DTYPES[dtype]
    a = POOL.get("a", kind, batch, *((m, k) if row["trans_a"] == "T" else (k, m)))
    right = a.transpose(1, 2) if row["trans_a"] == "T" else a
    left = POOL.get("b", kind, batch, n, k)
    c = POOL.get("c", kind, batch, n, m)
    scale = k**-0.5
    if op == "baddbmm":
        added = POOL.get("added", kind, batch, n, m)
    elif op == "bmm":
        c.fill_(float("nan"))

    def call():
        if op == "bmm":
            return torch.bmm(left, right, out=c)
        if op == "baddbmm_beta0":
            return torch.baddbmm(c, left, right, beta=0, alpha=scale)
        return torch.baddbmm(added, left, right, beta=1, alpha=scale)

    def error():
        got = call()
        which, rows, columns = sample(batch), sample(n), sample(m)
        want = left[which][:, rows].double() @ right[which][:, :, columns].double()
        if op != "bmm":
            want = want * scale
        if op == "baddbmm":
            want = want + added[which][:, rows][:, :, columns].double()
        return relative(got[which][:, rows][:, :, columns], want)

    count = batch * (m * k + k * n + m * n * (2 if op == "baddbmm" else 1))
    held = 0 if op == "bmm" else batch * m * n * left.element_size()
    return Case(call, error, count * left.element_size(), TOLERANCE[dtype], held=held)
