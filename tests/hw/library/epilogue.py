"""Linear layers: the GEMM alone, with bias, with bias and activation; and their backward pass."""

import torch
from cublaslt import CublasLtError, Gemm, library
from shapes import TOKENS, gemm_flop, linear_shapes
from table import DTYPES, TOLERANCE, Case, NoRowError, Pool, relative, sample
from timing import DEV, GPU, randn
from torch.nn import functional

NAME = "epilogue"
COLUMNS = ["id", "group", "kind", "m", "n", "k", "trans_a", "trans_b", "dtype"]
FORWARD = ("mm", "bias", "bias_relu", "bias_gelu")
BACKWARD = ("weight_grad", "weight_grad_bias", "backward")
MOST_FP32_FLOP = 2e11
POOL = Pool(randn)


def flop(row):
    """Return the FLOP of a row's GEMMs; a backward pass has two of the forward one's size."""
    return gemm_flop(row) * (2 if row["kind"] == "backward" else 1)


def _rows(shape, kinds, dtype):
    i, group, m, n, k = shape
    row = {"id": i, "group": group, "m": m, "n": n, "k": k, "trans_a": "T", "trans_b": "N", "dtype": dtype}
    return [{**row, "kind": kind} for kind in kinds]


def units():
    """Return lists of rows: the kinds of one shape and type, of which some shapes have more than others.

    Sizes of a backward row are those of its forward GEMM, except for `weight_grad` and `weight_grad_bias`,
    whose GEMM is another: C[inputs, outputs] = X[inputs, tokens] Y[outputs, tokens]^T.
    """
    out = []
    for shape in linear_shapes():
        i, _, m, n, k = shape
        turn = i + 5 * (i // len(TOKENS))  # other numbers of tokens for each layer
        out.append(_rows(shape, (*FORWARD, "linear") if turn % 8 == 3 else FORWARD, "fp16"))
        if turn % 3 == 0:
            out.append(_rows(shape, FORWARD, "bf16"))
        if turn % 12 == 5 and 2.0 * m * n * k <= MOST_FP32_FLOP:
            out += [_rows(shape, FORWARD, dtype) for dtype in ("tf32", "fp32")]
        if turn % 8 == 5 and n >= 16:
            unit = _rows(shape, BACKWARD, "fp16")
            for row in unit[:2]:
                row.update(m=k, n=m, k=n, trans_a="N", trans_b="T")
            out.append(unit)
    return out


def _forward(row):
    m, n, k, dtype = (row[c] for c in ("m", "n", "k", "dtype"))
    kind = row["kind"]
    x, w = POOL.get("x", DTYPES[dtype], n, k), POOL.get("w", DTYPES[dtype], m, k)
    bias = randn(m, dtype=DTYPES[dtype])
    wt = w.t()
    if kind in ("mm", "bias"):
        c = POOL.get("c", DTYPES[dtype], n, m)
        c.fill_(float("nan"))

    def call():
        if kind == "mm":
            return torch.mm(x, wt, out=c)
        if kind == "bias":
            return torch.addmm(bias, x, wt, out=c)
        if kind == "linear":
            return functional.linear(x, w, bias)
        return torch._addmm_activation(bias, x, wt, use_gelu=kind == "bias_gelu")

    def error():
        got = call()
        rows, columns = sample(n), sample(m)
        want = x[rows].double() @ w[columns].double().t()
        if kind != "mm":
            want = want + bias[columns].double()
        if kind == "bias_relu":
            want = want.relu()
        if kind == "bias_gelu":
            want = functional.gelu(want, approximate="tanh")
        return relative(got[rows][:, columns], want)

    count = m * k + k * n + m * n + (0 if kind == "mm" else m)
    held = 0 if kind in ("mm", "bias") else m * n * x.element_size()
    return Case(call, error, count * x.element_size(), TOLERANCE[dtype], held=held)


def _weight_grad(row):
    inputs, outputs, tokens = row["m"], row["n"], row["k"]
    fused = row["kind"] == "weight_grad_bias"
    x, g = POOL.get("x", torch.float16, tokens, inputs), POOL.get("g", torch.float16, tokens, outputs)
    dw = torch.full((outputs, inputs), float("nan"), dtype=torch.float16, device=DEV)
    if fused and not GPU:
        raise NoRowError
    if fused:
        db = torch.full((outputs,), float("nan"), dtype=torch.float16, device=DEV)
        gemm = Gemm(library(), "fp16", (inputs, outputs, tokens), "N", "T", db)
        if not gemm.candidates:
            raise CublasLtError("the heuristic has no candidate")

    def call():
        if fused:
            gemm.launch(0, x, g, dw)
        else:
            torch.mm(g.t(), x, out=dw)

    def error():
        call()
        rows, columns = sample(outputs), sample(inputs)
        want = g[:, rows].double().t() @ x[:, columns].double()
        found = relative(dw[rows][:, columns], want)
        if fused:
            found = torch.maximum(found, relative(db, g.double().sum(0)))
        return found

    count = tokens * (inputs + outputs) + inputs * outputs + (outputs if fused else 0)
    return Case(call, error, 2 * count, TOLERANCE["fp16"], held=2 * inputs * outputs)


def _backward(row):
    m, n, k = row["m"], row["n"], row["k"]
    x, w = (randn(*shape, dtype=torch.float16, requires_grad=True) for shape in ((n, k), (m, k)))
    bias = randn(m, dtype=torch.float16, requires_grad=True)
    g = randn(n, m, dtype=torch.float16)
    y = functional.linear(x, w, bias)

    def call():
        return torch.autograd.grad(y, (x, w, bias), g, retain_graph=True)

    def error():
        dx, dw, db = call()
        rows, inputs = sample(n), sample(k)
        with torch.no_grad():
            want_dx = g[rows].double() @ w[:, inputs].double()
            outputs = sample(m)
            want_dw = g[:, outputs].double().t() @ x[:, inputs].double()
            errors = (
                relative(dx[rows][:, inputs], want_dx),
                relative(dw[outputs][:, inputs], want_dw),
                relative(db, g.double().sum(0)),
            )
        return max(errors, key=float)

    count = 2 * (m * k + k * n) + 2 * m * n + m
    return Case(call, error, 2 * count, TOLERANCE["fp16"], held=2 * count)


def case(row):
    """Return the call of a row."""
    if row["kind"] in FORWARD or row["kind"] == "linear":
        return _forward(row)
    return _backward(row) if row["kind"] == "backward" else _weight_grad(row)
