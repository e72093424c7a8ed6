"""Attention of one new token: query length 1 and a long cache of keys and values."""

import torch
from table import Case, Pool, relative
from timing import randn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

NAME = "decode"
COLUMNS = [*("id", "group", "batch", "heads", "kv_heads", "kv_length", "head_dim", "dtype"), "backend"]
BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}
# heads of the queries, of keys and values, width of a head
MODELS = {
    "gpt2_small": (12, 12, 64),
    "gpt2_medium": (16, 16, 64),
    "gpt3_1.3b": (16, 16, 128),
    "gpt2_xl": (25, 25, 64),
    "llama_7b": (32, 32, 128),
    "gpt3_13b": (40, 40, 128),
    "llama_65b": (64, 64, 128),
    "gpt3_175b": (96, 96, 128),
    "llama3_1b": (32, 8, 64),
    "llama3_8b": (32, 8, 128),
    "llama3_70b": (64, 8, 128),
}
LENGTHS = (128, 256, 512, 1000, 1024, 2048, 4096, 8192, 16384)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
MOST_BYTES, MOST_MATH_BYTES = 4 << 30, 512 << 20
POOL = Pool(randn)


def flop(row):
    """Return the FLOP of both GEMMs."""
    return 4.0 * row["batch"] * row["heads"] * row["kv_length"] * row["head_dim"]


def _cache_bytes(row):
    return 2 * 2 * row["batch"] * row["kv_heads"] * row["kv_length"] * row["head_dim"]


def units():
    """Return lists of rows: the backends of one size."""
    out = []
    for group, (heads, kv_heads, d) in MODELS.items():
        for length in LENGTHS:
            for batch in BATCHES:
                row = {"id": len(out), "group": group, "batch": batch, "heads": heads, "kv_heads": kv_heads}
                row.update(kv_length=length, head_dim=d, dtype="fp16")
                if _cache_bytes(row) <= MOST_BYTES:
                    some = list(BACKENDS)[: 4 if _cache_bytes(row) <= MOST_MATH_BYTES else 3]
                    out.append([{**row, "backend": name} for name in some])
    return out


def case(row):
    """Return the call of a row."""
    batch, heads, kv_heads, d = (row[c] for c in ("batch", "heads", "kv_heads", "head_dim"))
    backend, grouped = BACKENDS[row["backend"]], heads != kv_heads
    q = randn(batch, heads, 1, d, dtype=torch.float16)
    k, v = (POOL.get(slot, torch.float16, batch, kv_heads, row["kv_length"], d) for slot in "kv")

    def call():
        with torch.no_grad(), sdpa_kernel([backend]):
            return functional.scaled_dot_product_attention(q, k, v, enable_gqa=grouped)

    def error():
        got, errors = call(), []
        for i, head in ((0, 0), (batch - 1, heads - 1)):
            keys, values = (t[i, head * kv_heads // heads].double() for t in (k, v))
            scores = q[i, head].double() @ keys.t() * d**-0.5
            errors.append(relative(got[i, head], scores.softmax(-1) @ values))
        return max(errors, key=float)

    held = 4 * _cache_bytes(row) * heads // kv_heads if row["backend"] == "math" else 0
    return Case(call, error, _cache_bytes(row) + 4 * batch * heads * d, 5e-3, held=held)
