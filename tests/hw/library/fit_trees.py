"""Grow the trees of ``workloads/library`` and fit the power law of its ``tiled``: ``fit_trees.py [FOLD]``.

Uses the rows of ``h200_library_gemm.csv`` that are not in FOLD (default: all; a row's fold is that of
``workloads/library/choices/accuracy.py``). Needs numpy and scikit-learn, no GPU. Prints JSON: weights, trees
by name.
"""

import csv
import hashlib
import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

TABLE = Path(__file__).resolve().parents[3] / "workloads" / "measured" / "h200_library_gemm.csv"
ASKED = {  # of each tree: questions and leaves
    "TF32_WGMMA": (("m", "n", "k", "m n", "A transposed"), 12),
    "TF32_MMA": (("m", "n", "k", "m n", "A transposed"), 12),
    "TF32_MMA_ODD": (("m", "n", "k", "m n", "A transposed"), 12),
    "FP32": (("m", "n", "k", "m n", "m n k", "A transposed", "B transposed", "min(m, n)"), 16),
}
LISTED = 4  # kernels of a leaf


def _read(fold):
    rows = []
    for row in csv.DictReader(TABLE.open(encoding="utf-8")):
        own = int(hashlib.sha256(row["group"].encode()).hexdigest(), 16) % 3
        if own != fold and row["tile_m"] != "0":
            row |= {name: int(row[name]) for name in "mnk"}
            row["tile"] = f"{row['tile_m']}x{row['tile_n']}"
            row["said"] = f"{row['tile']}x{row['tile_k']}_{row['stages']}"
            rows.append(row)
    return rows


def _aligned(row, *, result):
    m, n, k, (a, b) = row["m"], row["n"], row["k"], row["trans"]
    sizes = [m if a == "N" else k, k if b == "N" else n, *([m] if result else [])]
    return all(size % 4 == 0 for size in sizes)


def _features(row):
    m, n, k, (a, b) = row["m"], row["n"], row["k"], row["trans"]
    sizes = {"m": m, "n": n, "k": k, "m n": m * n, "m n k": m * n * k, "min(m, n)": min(m, n)}
    answers = {name: np.log2(float(size)) for name, size in sizes.items()}
    return {**answers, "A transposed": float(a == "T"), "B transposed": float(b == "T")}


def _law(rows):
    """Return the weights of the power law: whether an aligned tf32 GEMM uses wgmma."""
    rows = [row for row in rows if _aligned(row, result=True) and not row["family"].startswith("sm80")]
    inputs = []
    for row in rows:
        tiles = np.log2(-(-row["m"] // 64) * -(-row["n"] // 64))
        turned = float(row["trans"] == "TN")
        inputs.append([tiles, np.log2(row["k"]), np.log2(max(row["n"], 64)), turned, turned * tiles])
    model = LogisticRegression(C=100, max_iter=2000)
    model.fit(np.array(inputs), [row["family"].startswith("sm90") for row in rows])
    return [float(f"{weight:.4g}") for weight in (*model.coef_[0], model.intercept_[0])]


def _leaf(rows):
    """Return kernels by how often their tile was taken; of equal ones the larger tile comes first."""

    def key(tile):
        m, n = map(int, tile.split("x"))
        return -tiles[tile], -m * n, tile

    tiles = Counter(row["tile"] for row in rows)
    said = []
    for tile in sorted(tiles, key=key)[:LISTED]:
        kernels = Counter(row["said"] for row in rows if row["tile"] == tile)
        said.append(min(kernels, key=lambda name: (-kernels[name], name)))
    return " ".join(said)


def _grow(rows, questions, leaves):
    """Return the lines of a tree."""
    inputs = np.array([[_features(row)[name] for name in questions] for row in rows])
    model = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0)
    model.fit(inputs, [row["tile"] for row in rows])
    tree, at = model.tree_, model.apply(inputs)

    def lines(node, depth):
        mark = "  " * depth
        if tree.children_left[node] < 0:
            return [mark + _leaf([row for row, leaf in zip(rows, at, strict=True) if leaf == node])]
        yes = lines(tree.children_left[node], depth + 1)
        no = lines(tree.children_right[node], depth + 1)
        if len(yes) == 1 and yes == no:
            return [mark + yes[0].strip()]
        name, least = questions[tree.feature[node]], 2 ** tree.threshold[node]
        short = float(f"{least:.3g}")
        bound = f"<= {short:.0f}" if short >= 1000 else f"<= {short:g}"
        question = f"{name} no" if "transposed" in name else f"{name} {bound}"
        return [f"{mark}{question}:", *yes, f"{mark}else:", *no]

    return lines(0, 0)


def main():
    """Fit and print."""
    rows = _read(int(sys.argv[1]) if len(sys.argv) > 1 else -1)
    tf32 = [row for row in rows if row["dtype"] == "tf32"]
    mma = [row for row in tf32 if row["family"].startswith("cutlass")]
    parts = {
        "TF32_WGMMA": [row for row in tf32 if row["family"].startswith("sm90")],
        "TF32_MMA": [row for row in mma if _aligned(row, result=False)],
        "TF32_MMA_ODD": [row for row in mma if not _aligned(row, result=False)],
        "FP32": [row for row in rows if row["dtype"] == "fp32"],
    }
    trees = {name: _grow(part, *ASKED[name]) for name, part in parts.items()}
    print(json.dumps({"tf32_engine": _law(tf32), "trees": trees}, indent=1))


if __name__ == "__main__":
    main()
