"""What PyTorch and cuBLAS launch for epilogues, batched GEMMs, decoding, experts and fp8, and alternatives.

usage: sweep.py OUTDIR [family ...] [--seconds N]
families: epilogue alternatives batched decode grouped fp8 (default: all, in this order)

Writes OUTDIR/FAMILY.csv: a call a row, with the columns of a GEMM's row; where a call failed, `check` is the
exception's name or `crash`. Each family runs in a process of its own and gets its share of N seconds, start
included; what one leaves goes to the next. Its rows come in a fixed random order: any first part is a fair
sample. OUTDIR/FAMILY.log holds what a process printed, OUTDIR/versions.txt the software. If this program
itself is killed, OUTDIR/FAMILY.pending holds the rows that were not profiled yet, as JSON.
"""

import argparse
import contextlib
import csv
import importlib
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path

SECONDS = {
    "epilogue": 150,
    "alternatives": 90,
    "batched": 60,
    "decode": 60,
    "grouped": 20,
    "fp8": 30,
}
GRACE_S = 25  # for the unit under way and the last run of the profiler
LEAST_S = 12  # a process that starts with less measures nothing
FATAL = 3  # as in table.py, which imports PyTorch


def _arguments():
    parser = argparse.ArgumentParser(description="times what PyTorch and cuBLAS launch")
    parser.add_argument("outdir", type=Path)
    parser.add_argument("family", nargs="*", help=f"of {', '.join(SECONDS)}")
    parser.add_argument("--seconds", type=float, default=float(sum(SECONDS.values())))
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    made = parser.parse_args()
    unknown = set(made.family) - set(SECONDS)
    if unknown:
        parser.error(f"no family {', '.join(sorted(unknown))}; there are {', '.join(SECONDS)}")
    made.family = [name for name in SECONDS if not made.family or name in made.family]
    return made


def _versions(out):
    import torch

    lines = [f"torch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"]
    try:
        from importlib.metadata import version

        lines.append(f"nvidia-cublas {version('nvidia-cublas')}")
    except Exception:
        lines.append("nvidia-cublas: version unknown")
    lines.append(torch.cuda.get_device_name(0) if torch.cuda.is_available() else "no GPU")
    (out / "versions.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _child(name, out, deadline, start, crashed):
    """Measure one family in this process; return its exit status."""
    import warnings

    import torch

    warnings.filterwarnings("ignore")  # each backend of attention that cannot run says why, several times
    torch.manual_seed(1)
    if os.environ.get("SWEEP_DEVICE", "cuda") == "cuda":
        torch.cuda.init()
        torch.cuda.set_stream(torch.cuda.Stream())  # a graph cannot be captured on the default stream
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
    import table

    try:
        _versions(out)
        return table.run(importlib.import_module(name), out, deadline, start, crashed)
    except Exception:
        traceback.print_exc()
        return 1


def _position(out, name):
    try:
        return int((out / f"{name}.at").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _recover(out, name):
    """Append the rows that a process had timed and not profiled; their kernel columns stay empty."""
    pending, path = out / f"{name}.pending", out / f"{name}.csv"
    if not (pending.exists() and path.exists()):
        return
    with path.open(newline="", encoding="utf-8") as table:
        columns = next(csv.reader(table), None)
    if columns is None:
        return
    with path.open("a", newline="", encoding="utf-8") as table:
        writer = csv.DictWriter(table, columns, lineterminator="\n", extrasaction="ignore")
        for line in pending.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):  # a line cut off
                writer.writerow(json.loads(line))
    pending.unlink()


def _run_one(name, out, deadline):
    """Run a family's process until `deadline`, again from the next unit after a crash."""
    (out / f"{name}.at").unlink(missing_ok=True)
    start, crashed = 0, False
    while deadline - time.time() > LEAST_S or (start == 0 and not crashed):
        child = [str(deadline), str(start), str(int(crashed))]
        command = [sys.executable, str(Path(__file__).resolve()), str(out), name, "--child", *child]
        with (out / f"{name}.log").open("a", encoding="utf-8") as log:
            limit = max(LEAST_S, deadline - time.time()) + GRACE_S
            try:
                done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=limit)
            except subprocess.TimeoutExpired:
                print(f"{name}: stopped after its time", flush=True)
                return
            finally:
                _recover(out, name)
        if done.returncode == 0:
            return
        at = _position(out, name)
        print(f"{name}: process ended with {done.returncode} at unit {at}", flush=True)
        if at is None or at < start:
            return  # it did not get as far as a unit
        start, crashed = at + 1, done.returncode != FATAL


def main():
    arguments = _arguments()
    out = arguments.outdir
    out.mkdir(parents=True, exist_ok=True)
    if arguments.child:
        deadline, start, crashed = arguments.child
        return _child(arguments.family[0], out, float(deadline), int(start), bool(int(crashed)))
    end = time.time() + arguments.seconds
    left = sum(SECONDS[name] for name in arguments.family)
    for name in arguments.family:
        t0 = time.time()
        share = max(end - t0, 0) * SECONDS[name] / left
        left -= SECONDS[name]
        _run_one(name, out, t0 + share)
        log = out / f"{name}.log"
        last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:] if log.exists() else []
        print(f"== {name}: {time.time() - t0:.1f} of {share:.1f} s\n   " + "\n   ".join(last), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
