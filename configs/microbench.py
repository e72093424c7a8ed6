"""Do microbenchmarks measure the same constants on the simulated GPU as on the real one?

examples:
  # what takes less than two seconds each
  python configs/microbench.py --gpu h200 --subset quick
  # latencies alone
  python configs/microbench.py --gpu h200 --only latency --subset quick
"""

from pysim.cli.entry import run_script

# a constant within this relative error counts as met
NEAR = 0.05
# constants that take many seconds to simulate
LONG = r"l2_read_GBps|dram_copy|grid(67584|270336|1081344)|large_grid"


def expression(text):
    """Option type: a regular expression."""
    import argparse
    import re

    try:
        return re.compile(text).pattern
    except re.error as error:
        raise argparse.ArgumentTypeError(f"not a regular expression: {error}") from None


def simulate_rows(rows, bench, show, found):
    """Simulate the constants and print a line each; add rows of the table ``validation`` as dicts."""
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            show(f"\n{group:<62}{'measured':>12}{'simulated':>12}{'error':>9}  unit")
        value, real = row.value(bench), bench.constants.get(row.key, 0.0)
        error = value / real - 1 if real else 0.0
        beside = f"{real:12,.4g}{value:12,.4g}{error:9.1%}" if real else f"{'':12}{value:12,.4g}{'':9}"
        show(f"{row.key:<62}{beside}  {row.unit}")
        names = ("case", "kind", "unit", "measured", "simulated", "error")
        found.append(dict(zip(names, (row.key, group, row.unit[:8], real, value, error), strict=True)))


def tables_of(found):
    """Return the table ``validation`` of the constants that were simulated; nothing if there are none."""
    from pysim import stats

    if not found:
        return {}
    same = {
        "run": 0,
        "suite": "microbench",
        "group": "",
        "mode": "",
        "scheme": "",
        "status": "ok",
        "split": "",
    }
    same |= {"detail": ""} | dict.fromkeys(("null", "measured_cycles", "simulated_cycles"), float("nan"))
    return {"validation": stats.schema.from_rows("validation", found, **same)}


def summarize(found, left, show):
    """Print a summary of the errors, and the measured constants that are not simulated."""
    import numpy as np

    from pysim.workloads import microbench

    shares = np.abs([row["error"] for row in found if row["measured"]])
    show("")
    if len(shares):
        near = int((shares <= NEAR).sum())
        show(
            f"{near} of {len(shares)} constants within {NEAR:.0%}; mean {shares.mean():.1%},"
            f" median {np.median(shares):.1%}, worst {shares.max():.1%}"
        )
    reasons = {}
    for key in left:
        reasons.setdefault(microbench.skipped(key), []).append(key)
    for why, keys in sorted(reasons.items()):
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        show(f"not simulated: {keys[0]}{more}: {why}")


def main():
    import re

    # imported inside main, so that Ctrl-C during an import also ends in one line
    from pathlib import Path

    from pysim.cli.checks import choice
    from pysim.cli.interrupts import keeping
    from pysim.cli.options import SINGLE_RUN, make_parser
    from pysim.cli.script import Script

    parser = make_parser(
        __doc__,
        {"gpu": "h200"},
        ("schemes", *SINGLE_RUN),
        "each microbenchmark decides how its kernels are ordered",
        "each microbenchmark is a run of seconds",
    )
    text = "micro.json that tests/hw/suite/micro.cu wrote on a GPU (default: the stored one of --gpu, if any)"
    parser.add_argument("--measured", type=Path, metavar="FILE", help=text)
    text = "only constants whose name matches this regular expression (default: all)"
    parser.add_argument("--only", type=expression, default="", metavar="REGEX", help=text)
    text = "all, or quick: constants that take less than two seconds each (default: all)"
    parser.add_argument("--subset", type=choice("all", "quick"), default="all", metavar="NAME", help=text)
    args = parser.parse_args()

    # slow imports: only after the options are read
    from pysim import ConfigError, stats
    from pysim.cli.many_runs import begin
    from pysim.workloads import microbench
    from pysim.workloads.microbench.bench import Bench

    path = args.measured or microbench.MEASURED.get(args.gpu)
    args.measured = None if args.measured is None else str(args.measured)
    script = Script.start("microbench", parser, args, ("measured", "only", "subset"))
    try:
        measured = {} if path is None else microbench.read_measured(path)
    except ConfigError as error:
        parser.error(str(error))
    every = microbench.rows()
    rows = [row for row in every if re.search(script.workload["only"], row.key)]
    if script.workload["subset"] == "quick":
        rows = [row for row in rows if not re.search(LONG, row.key)]
    if not rows:
        parser.error(f"--only: no name of a constant matches {script.workload['only']!r}")
    _, show = begin(script, stats)
    for line in script.machine_lines():
        show(line)

    found = []
    with keeping(script, stats, lambda: tables_of(found)):
        simulate_rows(rows, Bench(script.config, measured), show, found)
    summarize(found, sorted(set(measured) - {row.key for row in every}), show)
    script.save(stats, tables_of(found), show)


if __name__ == "__main__":
    run_script(main)
