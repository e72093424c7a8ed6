"""Times GEMMs of one and few columns, and of odd sizes, of other sizes than the sweep's: columns.py OUTDIR.

Writes OUTDIR/columns.csv: type, transposes and sizes in BLAS terms, period in a CUDA graph, SM clock.
"""

import csv
import itertools
import sys
from pathlib import Path

import torch
from timing import Clock, Timer, randn

KS = (128, 256, 512, 1024, 2048, 4096)
SIZES = (  # of each: type, transposes, all of m, n and k
    ("fp32", "TN", (132, 264, 396, 528, 792, 1056, 1320, 1536, 1584, 1848), (1,), (512,)),
    (
        "fp32",
        "TN",
        (1024,),
        (1,),
        (64, 192, 320, 384, 448, 513, 576, 640, 704, 768, 896, 1280, 1536, 3072, *KS),
    ),
    ("fp32", "TN", (256, 528, 1056), (1,), (256, 1024, 4096)),
    ("fp32", "TN", (3072, 4096, 8192), (1,), KS),
    ("fp32", "NN", (512, 1024, 1536, 2048, 3072, 4096, 6144), (1,), KS[1:5]),
    ("fp32", "NN", (4224, 8448), (2, 4, 8, 16), KS[1:]),
    ("fp32", "NN", (3072, 4096, 6144), (4, 16), KS[2:5]),
    ("fp32", "TN", (1056, 2112, 4224), (2, 4, 8), KS),
    ("fp32", "TN", (12288,), (8,), (*KS[1:], 1536)),
    ("fp32", "NN", (1024, 512), (2, 8), (131072, 262144)),
    ("fp32", "TN", (1024, 512), (8,), (131072, 262144)),
    ("fp32", "TN", (1001,), (1, 3), (101, 501, 1001, 2001, 4001)),
    *(("fp16", trans, (z,), (z,), (z,)) for z in (255, 513, 1025, 2049) for trans in ("TN", "NN", "NT")),
    ("fp16", "TN", (1025,), (1025,), (127, 255, 511, 2047, 4095)),
    ("fp16", "TN", (1026,), (1026,), (126, 254, 510, 1022, 2046, 4094)),
)


def main():
    """Measure and write."""
    out = Path(sys.argv[1])
    torch.cuda.set_stream(torch.cuda.Stream())
    timer = Timer(Clock())
    with (out / "columns.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["dtype", "trans", "m", "n", "k", "time_us_median", "sm_clock_mhz_median"])
        for dtype, trans, *sizes in SIZES:
            kind = torch.float16 if dtype == "fp16" else torch.float32
            for m, n, k in itertools.product(*sizes):
                a = randn(m, k, dtype=kind) if trans[0] == "T" else randn(k, m, dtype=kind).t()
                b = randn(n, k, dtype=kind) if trans[1] == "N" else randn(k, n, dtype=kind).t()
                found = timer.columns(lambda a=a, b=b: b @ a.t())
                writer.writerow(
                    [dtype, trans, m, n, k, found["time_us_median"], found["sm_clock_mhz_median"]]
                )


if __name__ == "__main__":
    main()
