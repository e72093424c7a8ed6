"""Problem sizes, in BLAS terms: C[m, n] = op(A)[m, k] op(B)[k, n], column-major."""

# width, attention heads, width of a head; width of the MLP is 4 times the first unless given below
MODELS = {
    "bert_base": (768, 12, 64),
    "bert_large": (1024, 16, 64),
    "gpt2_small": (768, 12, 64),
    "gpt2_medium": (1024, 16, 64),
    "gpt2_large": (1280, 20, 64),
    "gpt2_xl": (1600, 25, 64),
    "gpt3_6.7b": (4096, 32, 128),
    "gpt3_13b": (5120, 40, 128),
    "gpt3_175b_tp8": (12288, 12, 128),
    "llama_7b": (4096, 32, 128),
    "llama_65b": (8192, 64, 128),
}
LLAMA_MLP = {"llama_7b": 11008, "llama_65b": 22016}
TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)


def _layers(name):
    """Yield (part, m, k) of a model's linear layers; gpt3_175b_tp8 is one of eight tensor-parallel parts."""
    d = MODELS[name][0]
    if name in LLAMA_MLP:
        mlp = LLAMA_MLP[name]
        yield from (("qkv", 3 * d, d), ("out", d, d), ("gate_up", 2 * mlp, d), ("down", d, mlp))
    elif name == "gpt3_175b_tp8":
        part = d // 8
        yield from (("qkv", 3 * part, d), ("out", d, part), ("ffn1", 4 * part, d), ("ffn2", d, 4 * part))
    else:
        yield from (("qkv", 3 * d, d), ("out", d, d), ("ffn1", 4 * d, d), ("ffn2", d, 4 * d))


def linear_shapes():
    """Return a list of (id, group, m, n, k) of the distinct linear layers: weights T, tokens N."""
    tags = {}
    for name in MODELS:
        for part, m, k in _layers(name):
            for n in TOKENS:
                tags.setdefault((m, n, k), []).append(f"{name}_{part}")
    return [(i, " ".join(group), *shape) for i, (shape, group) in enumerate(tags.items())]


def gemm_flop(row):
    """Return the FLOP of a row's GEMM, of all its batch."""
    return 2.0 * row["m"] * row["n"] * row["k"] * row.get("batch", 1)
