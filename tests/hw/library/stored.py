"""Makes the tables that are stored here from those of sweep.py and pointwise_counters.py.

usage: stored.py DIR CARD

Reads DIR/FAMILY.csv and writes CARD_library_FAMILY.csv beside this program (CARD: h200, say): without empty
columns, those that follow from others, errors of results and `timing`, which must be the same in all rows,
and with shorter names of kernels. Names of GEMMs stay as they are, those of attention kernels but for
parameters and repeated traits. `other_kernels` is a list of name|grid|block|us, separated by semicolons; a
name there is the function of an element-wise kernel, or a kernel's without template arguments.
"""

import csv
import re
import sys
from pathlib import Path

from names import NAME_COLUMNS, parse_name

FAMILIES = ("epilogue", "alternatives", "batched", "decode", "grouped", "fp8", "pointwise_sectors")
MOST = 120
LEFT_OUT = ("timing", "tflops", "min_bytes", "rel_err")
WHOLE = re.compile(r"nvjet|xmma|cudnn_generated|cutlass::Kernel2")


def short(name):
    """Return what names a kernel: without qualifiers, types of parameters and of lambdas."""
    if name.startswith("_ZN7cutlass"):
        row = parse_name(name)
        how = re.search(r"Pingpong|Cooperative", name)[0]
        tile, cluster = ("x".join(row[k] for k in keys) for keys in (NAME_COLUMNS[1:4], NAME_COLUMNS[5:7]))
        return f"cutlass::device_kernel<GemmUniversal<{tile}, {row['stages']} stages, {cluster}, {how}>>"
    if WHOLE.search(name):
        return name
    name = re.sub(r"^void |^std::enable_if<.*?>::type |\(anonymous namespace\)::|<unnamed>::", "", name)
    name = re.sub(r"at::native::|at::|pytorch_flash::|\binternal::", "", name)
    traits = r"Flash_fwd_kernel_traits<(\d+, \d+, \d+, \d+), .*?, Flash_kernel_traits<[^<>]*> >"
    name = re.sub(traits, r"traits<\1>", name)
    # at the first parameter list, or where types of its structures begin
    return re.split(r"\(|, cublasGemv|, std::array", name)[0].rstrip()[:MOST]


def _shortest(name):
    """Return what names a kernel in a list of many."""
    name = short(name)
    if WHOLE.search(name) or "traits<" in name:
        return name
    function = re.search(r"\w+(?:_kernel_cuda|_kernel_impl)\b|\w*(?:Mul|Fill)Functor\b", name)
    return function[0] if function else name.split("<")[0]


def _other(text):
    name, grid, block, _, _, us = text.rsplit("|", 5)
    return "|".join([_shortest(name), *(re.sub("(x1)+$", "", size) for size in (grid, block)), us])


def _shorter(row):
    for column in ("kernel", "reduce_kernel"):
        if row.get(column):
            row[column] = short(row[column])
    if row.get("other_kernels"):
        row["other_kernels"] = ";".join(_other(text) for text in row["other_kernels"].split(";"))
    return row


def store(source, target):
    """Write a table's stored form."""
    with source.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if len({row["timing"] for row in rows if row.get("timing")}) > 1:
        raise SystemExit(f"{source}: timing differs")
    if "family" in rows[0]:
        rows = [row | parse_name(row["kernel"]) for row in rows]
    rows = [_shorter(row) for row in rows]
    columns = [name for name in rows[0] if name not in LEFT_OUT and any(row[name] for row in rows)]
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main():
    """Store all tables that there are."""
    source, card = Path(sys.argv[1]), sys.argv[2]
    for family in FAMILIES:
        if (source / f"{family}.csv").exists():
            store(source / f"{family}.csv", Path(__file__).with_name(f"{card}_library_{family}.csv"))


if __name__ == "__main__":
    main()
