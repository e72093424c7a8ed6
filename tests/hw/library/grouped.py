"""Grouped GEMM of a mixture of experts: tokens sorted by expert, one weight matrix an expert."""

import torch
from table import TOLERANCE, Case, Pool, relative, sample
from timing import DEV, randn

NAME = "grouped"
COLUMNS = [*("id", "group", "experts", "sizes", "tokens", "largest", "m", "k", "dtype")]
# experts, outputs, inputs
LAYERS = {
    "mixtral_up": (8, 14336, 4096),
    "mixtral_down": (8, 4096, 14336),
    "deepseek_moe_up": (64, 1408, 2048),
    "deepseek_moe_down": (64, 2048, 1408),
    "switch_base_up": (16, 3072, 768),
    "switch_base_down": (16, 768, 3072),
    "small_up": (4, 4096, 1024),
    "small_down": (4, 1024, 4096),
    "many_up": (32, 2048, 1024),
}
TOKENS = (64, 512, 2048, 8192)
POOL = Pool(randn)


def flop(row):
    """Return the FLOP of all experts: each token goes to one."""
    return 2.0 * row["tokens"] * row["m"] * row["k"]


def expert_sizes(tokens, experts, how):
    """Return the tokens of each expert: `even`, or `skewed` as 1 over its rank; they sum up to `tokens`."""
    weights = [1.0] * experts if how == "even" else [1.0 / (i + 1) for i in range(experts)]
    whole = sum(weights)
    ends, before = [], 0.0
    for weight in weights:
        before += weight
        ends.append(round(tokens * before / whole))
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def units():
    """Return lists of one row."""
    out = []
    for group, (experts, m, k) in LAYERS.items():
        for tokens in TOKENS:
            for how in ("even", "skewed"):
                row = {"id": len(out), "group": group, "experts": experts, "sizes": how, "tokens": tokens}
                row.update(largest=max(expert_sizes(tokens, experts, how)), m=m, k=k, dtype="bf16")
                out.append([row])
    return out


def case(row):
    """Return the call of a row."""
    tokens, experts, m, k = (row[c] for c in ("tokens", "experts", "m", "k"))
    sizes = torch.tensor(expert_sizes(tokens, experts, row["sizes"]))
    ends = sizes.cumsum(0).to(torch.int32).to(DEV)
    x = POOL.get("x", torch.bfloat16, tokens, k)
    w = POOL.get("w", torch.bfloat16, experts, m, k)
    wt = w.transpose(-2, -1)

    def call():
        return torch._grouped_mm(x, wt, offs=ends)

    def error():
        rows, columns = sample(tokens), sample(m)
        expert = torch.repeat_interleave(torch.arange(experts), sizes).to(DEV)[rows]
        want = torch.stack(
            [
                x[r].double() @ w[e][columns].double().t()
                for r, e in zip(rows.tolist(), expert.tolist(), strict=True)
            ]
        )
        return relative(call()[rows][:, columns], want)

    used = int((sizes > 0).sum())
    count = tokens * k + used * m * k + tokens * m
    return Case(call, error, 2 * count, TOLERANCE["bf16"], held=2 * tokens * m)
