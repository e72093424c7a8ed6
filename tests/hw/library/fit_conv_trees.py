"""Grow the trees by which ``choose_convolution`` chooses, and say how often they are right.

python tests/hw/library/fit_conv_trees.py > workloads/measured/h200_conv_trees.json

Rows are those of h200_library_conv.csv with ``benchmark`` 0 (cuDNN's heuristics). A tree splits where the
Gini impurity falls most, down to leaves of at least LEAST rows. Held out are thirds of the shapes, by the
hash of images, channels, size and filters: the trees are grown without them. Figures (rows, per cent whose
family is right, whose kernel is right, too, and of the most frequent family) go to stderr.
"""

import csv
import hashlib
import json
import re
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

TABLE = Path(__file__).parents[3] / "workloads/measured/h200_library_conv.csv"
LEAVES, LEAST, FOLDS = 6, 3, 3


def family(kernel, others):
    """Return the family of a row's kernels."""
    if "winogradWgradData4x4" in others:
        return "winograd"
    if "fft2d" in others:
        return "fft"
    name = kernel.split("|")[0]
    if name.startswith("nvjet") or ("gemm_" in name and "implicit" not in name):
        return "gemm"
    if name.startswith("ImplicitGemm"):
        return "cutlass_wgrad"
    name = re.sub(r"cutlass_tensorop_.*?(fprop|dgrad|wgrad).*", r"cutlass_\1", name)
    return re.sub(r"_f16f16.*|_f32f32.*|_tf32f32.*", "", name)


def kernel_of(kernel):
    """Return name, registers and shared memory."""
    name, _, registers, smem = kernel.removesuffix("|sum").split("|")
    return f"{name}|{registers}|{smem}"


def features(row):
    """Return what a tree may ask for."""
    n, c, k, p, q, taps, stride = (int(row[name]) for name in ("N", "C", "K", "P", "Q", "taps", "stride"))
    made = {"C": c, "K": k, "taps": taps, "stride": stride, "pixels": n * p * q, "N": n, "odd": c % 8}
    return made | {"depth": c * taps, "outputs": n * p * q * k}


def impurity(labels):
    return len(labels) - sum(count * count for count in Counter(labels).values()) / max(1, len(labels))


def best_split(rows):
    """Return gain, feature and threshold of the best split of (features, label) rows."""
    found, whole = (1e-9, None, None), impurity([label for _, label in rows])
    for name in rows[0][0]:
        values = sorted({values[name] for values, _ in rows})
        for low, high in pairwise(values):
            left = [label for values, label in rows if values[name] <= low]
            right = [label for values, label in rows if values[name] > low]
            gain = whole - impurity(left) - impurity(right)
            if min(len(left), len(right)) >= LEAST and gain > found[0]:
                found = gain, name, (low if low == 0 or high - low < 2 else int((low * high) ** 0.5))
    return found


def grown(rows, leaves=LEAVES):
    """Return a label, or (feature, threshold, tree of those not above it, tree of the others)."""
    parts, splits = [(rows, "")], {}
    while len(parts) < leaves:
        options = [(best_split(some), number) for number, (some, _) in enumerate(parts)]
        (_, name, limit), number = max(options, key=lambda each: each[0][0])
        if name is None:
            break
        some, path = parts.pop(number)
        splits[path] = name, limit
        parts.append(([row for row in some if row[0][name] <= limit], path + "y"))
        parts.append(([row for row in some if row[0][name] > limit], path + "n"))
    made = {path: Counter(label for _, label in some).most_common(1)[0][0] for some, path in parts}

    def tree(path):
        if path in made:
            return made[path]
        yes, no = tree(path + "y"), tree(path + "n")
        return yes if yes == no else (*splits[path], yes, no)

    return tree("")


def chosen(tree, values):
    while isinstance(tree, tuple):
        name, limit, yes, no = tree
        tree = yes if values[name] <= limit else no
    return tree


def trees_of(rows):
    """Return trees of families by type, pass and layout, and of kernels by family and type, too."""
    families, kernels = defaultdict(list), defaultdict(list)
    for row in rows:
        made, values = family(row["kernel"], row["others"]), features(row)
        families[f"{row['dtype']} {row['layout']} {row['pass']}"].append((values, made))
        if made not in ("gemm", "fft"):
            kernels[f"{row['dtype']} {row['pass']} {made}"].append((values, kernel_of(row["kernel"])))
    return {key: grown(some) for key, some in families.items()}, {
        key: grown(some) for key, some in kernels.items()
    }


def main():
    with TABLE.open() as file:
        rows = [row for row in csv.DictReader(file) if row["benchmark"] == "0"]
    right, base, tiles, count = Counter(), Counter(), Counter(), Counter()
    for fold in range(FOLDS):
        out = {
            id(row)
            for row in rows
            if hashlib.sha256("x".join(row[n] for n in "NCHWK").encode()).digest()[0] % FOLDS == fold
        }
        known = [row for row in rows if id(row) not in out]
        families, kernels = trees_of(known)
        most = defaultdict(Counter)
        for row in known:
            most[row["dtype"], row["layout"], row["pass"]][family(row["kernel"], row["others"])] += 1
        for row in rows:
            if id(row) not in out:
                continue
            key, truth = f"{row['dtype']} {row['layout']} {row['pass']}", family(row["kernel"], row["others"])
            got = chosen(families[key], features(row))
            count[key] += 1
            right[key] += got == truth
            base[key] += most[row["dtype"], row["layout"], row["pass"]].most_common(1)[0][0] == truth
            tree = kernels.get(f"{row['dtype']} {row['pass']} {got}")
            named = tree is not None and chosen(tree, features(row)) == kernel_of(row["kernel"])
            tiles[key] += got == truth and (named or got == "gemm")
    for key in count:
        shares = (f"{100 * some[key] / count[key]:.0f}" for some in (right, tiles, base))
        print(key, count[key], *shares, file=sys.stderr)
    total = sum(count.values())
    shares = (f"{100 * sum(some.values()) / total:.1f}" for some in (right, tiles, base))
    print("all", total, *shares, file=sys.stderr)
    families, kernels = trees_of(rows)
    json.dump({"families": families, "kernels": kernels}, sys.stdout, indent=0, sort_keys=True)
    print()


if __name__ == "__main__":
    main()
