"""The element-wise operations, reductions and copies whose memory traffic is counted."""

import torch
from torch.nn import functional

ATEN = torch.ops.aten
WIDTH = 1024  # columns of a matrix
VOCABULARY = 50257
ADAMW = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.01, "eps": 1e-8}


def operations(n, dtype, device):
    """Yield (name, bytes, call) of each operation on `n` elements; the bytes are the least traffic."""
    size = dtype.itemsize
    rows = n // WIDTH
    a, b = (torch.randn(n, device=device).to(dtype) for _ in range(2))
    out = torch.empty_like(a)
    a2, b2 = a.view(rows, WIDTH), b.view(rows, WIDTH)
    weight, bias = (torch.randn(WIDTH, device=device).to(dtype) for _ in range(2))
    table = torch.randn(VOCABULARY, WIDTH, device=device).to(dtype)
    index = torch.randint(0, VOCABULARY, (rows,), device=device)
    _, mean, deviation = ATEN.native_layer_norm(a2, [WIDTH], weight, bias, 1e-5)
    softmax = torch.softmax(a2, -1)
    states = [torch.zeros_like(a) for _ in range(2)]
    step, parameter = torch.ones((), device=device), a.clone()

    def adamw():
        moments = [[s] for s in states]
        torch._fused_adamw_([parameter], [b], *moments, [], [step], **ADAMW, amsgrad=False, maximize=False)

    def layernorm_backward():
        some = (mean, deviation, weight, bias, [True, True, True])
        return ATEN.native_layer_norm_backward(b2, a2, [WIDTH], *some)

    one = n * size
    yield "add", 3 * one, lambda: torch.add(a, b, out=out)
    yield "mul_scalar", 2 * one, lambda: torch.mul(a, 1.5, out=out)
    yield "relu", 2 * one, lambda: torch.relu(a)
    yield "gelu_tanh", 2 * one, lambda: functional.gelu(a, approximate="tanh")
    yield "gelu_erf", 2 * one, lambda: functional.gelu(a)
    yield "gelu_erf_backward", 3 * one, lambda: ATEN.gelu_backward(b, a)
    yield "layernorm", 2 * one, lambda: ATEN.native_layer_norm(a2, [WIDTH], weight, bias, 1e-5)
    yield "layernorm_backward", 3 * one, layernorm_backward
    yield "softmax", 2 * one, lambda: torch.softmax(a2, -1)
    yield "softmax_backward", 3 * one, lambda: ATEN._softmax_backward_data(b2, softmax, -1, dtype)
    yield "dropout_p0.1", 2 * one + n, lambda: ATEN.native_dropout(a, 0.1, True)
    yield "adamw_fused_step", 7 * one, adamw
    yield "embedding", 2 * one + 8 * rows, lambda: ATEN.embedding(table, index)
    yield "sum_all", one, lambda: torch.sum(a)
    yield "sum_rows", one, lambda: torch.sum(a2, -1)
    yield "sum_columns", one, lambda: torch.sum(a2, 0)
    yield "cast_to_fp16", n * (size + 2), lambda: a.to(torch.float16)
    yield "cast_to_fp32", n * (size + 4), lambda: a.to(torch.float32)
    yield "transpose_copy", 2 * one, lambda: a2.t().contiguous()
