"""Where the time of a training step of BERT goes, as text: classes of kernels, and what was published."""

from __future__ import annotations

from typing import NamedTuple

from pysim.stats.schema import Table

from .hardware import Section

NAMES = {
    "qkv_o": "linear GEMMs of QKV, O",
    "fc": "linear GEMMs of FC1, FC2",
    "head": "linear GEMMs of heads",
    "attention": "attention products",
    "softmax": "softmax, scale, mask",
    "norm": "LayerNorm",
    "gelu": "GELU",
    "dropout": "dropout",
    "pointwise": "sums, copies, casts, biases' gradients",
    "embedding": "embeddings",
    "loss": "loss",
    "optimizer": "LAMB",
}


class Figure(NamedTuple):
    """A published share of the time of classes, least and most; ``grade``: where it was read.

    ``dtype``: fp32, or empty for mixed precision.
    """

    what: str
    classes: tuple[str, ...]
    dtype: str
    share: tuple[float, float]
    grade: str


# Of an AMD Instinct MI100 (Pati et al., "Demystifying BERT"); no figure was read in the paper itself:
# second-hand ones are a digest's, recalled ones have no text at all
SECOND_HAND, RECALLED = "second-hand", "recalled"
_LINEAR, _NO_PRODUCTS = ("qkv_o", "fc"), tuple(NAMES)[4:]
PUBLISHED = (
    Figure("linear and FC GEMMs", _LINEAR, "fp32", (0.57, 0.57), SECOND_HAND),
    Figure("linear and FC GEMMs", _LINEAR, "", (0.40, 0.40), SECOND_HAND),
    Figure("all but GEMMs", _NO_PRODUCTS, "fp32", (0.34, 0.34), SECOND_HAND),
    Figure("LAMB", ("optimizer",), "fp32", (0.07, 0.10), RECALLED),
    Figure("LAMB", ("optimizer",), "", (0.16, 0.19), RECALLED),
)


def name_of(kind: bytes) -> str:
    """Return a class in words."""
    text = kind.decode()
    return NAMES.get(text, text)


def cases(table: Table) -> list[Table]:
    """Return the rows of each case."""
    return [table[table["run"] == run] for run in dict.fromkeys(table["run"].tolist())]


def title_of(rows: Table) -> str:
    """Name a case."""
    first = rows[0]
    return f"{first['batch']} x {first['seq']} tokens, {first['dtype'].decode()}"


def breakdown(rows: Table, error: float) -> Section:
    """Return a row a class of one case; ``error``: estimated, of its extrapolated time."""
    heads = ["class", "kernels", "us", "share %", "GFLOP", "MB", "FLOP/B"]
    body = [
        [
            name_of(row["kind"]),
            f"{row['kernels']:,}",
            f"{row['time_us']:,.0f}",
            f"{100 * row['share']:.1f}",
            f"{row['flops'] / 1e9:,.1f}" if row["flops"] else "",
            f"{row['l2_bytes'] / 1e6:,.0f}",
            f"{row['flops_per_byte']:,.0f}" if row["flops"] else "",
        ]
        for row in rows
        if row["kernels"]
    ]
    flops, moved = (int(rows[name].sum()) for name in ("flops", "l2_bytes"))
    whole = ["all", f"{rows['kernels'].sum():,}", f"{rows['time_us'].sum():,.0f}", "100.0"]
    body.append([*whole, f"{flops / 1e9:,.1f}", f"{moved / 1e6:,.0f}", f"{flops / moved:,.0f}"])
    off = f", extrapolated, off by about {100 * error:.1f} %" if error else ""
    return Section("breakdown", f"{title_of(rows)}: {rows['time_us'].sum() / 1e3:,.2f} ms{off}", heads, body)


def published(table: Table, title: str) -> Section:
    """Return a row for each published figure: it, its grade, and the shares of the cases of its precision."""
    found = cases(table)
    heads = ["share of time, %", "precision", "published", "read", *map(title_of, found)]
    body = []
    for figure in PUBLISHED:
        low, high = (f"{100 * value:.0f}" for value in figure.share)
        cells = [figure.what, figure.dtype or "mixed", low if low == high else f"{low} to {high}"]
        cells.append(figure.grade)
        for rows in found:
            mine = sum(float(row["share"]) for row in rows if row["kind"].decode() in figure.classes)
            same = (rows["dtype"][0] == b"fp32") == (figure.dtype == "fp32")
            cells.append(f"{100 * mine:.1f}" if same else "")
        body.append(cells)
    return Section("published", title, heads, body)
