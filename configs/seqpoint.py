"""Which few iterations stand for an epoch of training, and do their projections hold on other machines?

examples:
  # the shortest sentences on a small GNMT, on one machine
  python configs/seqpoint.py gnmt:layers=2,hidden=512,batch=8 --longest 4 --schemes stream --changes none
  # one length in place of all of them, and a faster clock
  python configs/seqpoint.py gnmt:layers=2,hidden=512,batch=8 --longest 5 --lengths 1 --changes clock
"""

from pysim.cli.entry import run_script

SCHEMES = ("stream", "graph", "pool", "tb_static")


def options_of():
    """Read the command line."""
    from pathlib import Path

    from pysim.cli.checks import choice
    from pysim.cli.options import SINGLE_RUN, make_parser, names_of, natural_int, positive_int
    from pysim.cli.script import Script
    from pysim.workloads.studies.epochs import CHANGES, NETWORKS
    from pysim.workloads.studies.seqpoint import TOLERANCE
    from pysim.workloads.studies.sequence_lengths import POLICIES

    parser = make_parser(
        __doc__,
        {"gpu": "titan_v", "schemes": SCHEMES},
        SINGLE_RUN,
        "the script simulates many iterations",
        "the folder of the sweep keeps what has finished: call it again",
    )
    text = f"networks that are trained, name:key=value,... (default: {' '.join(NETWORKS)})"
    parser.add_argument("workload", metavar="WORKLOAD", nargs="*", default=[*NETWORKS], help=text)
    text = (
        "simulate N lengths spread over the range, and pad iterations to the next (default: 0, all lengths)"
    )
    parser.add_argument("--lengths", type=natural_int, default=0, metavar="N", help=text)
    text = "leave sequences of more than N steps out (default: as the network's framework does)"
    parser.add_argument("--longest", type=positive_int, default=0, metavar="N", help=text)
    text = "lengths of the sequences, columns length,count (default: IWSLT'15, LibriSpeech)"
    parser.add_argument("--histogram", default="", metavar="FILE.csv", help=text)
    text = f"how sequences become batches: {', '.join(POLICIES)} (default: as the network's framework does)"
    parser.add_argument("--batching", type=choice(*POLICIES), default=None, metavar="NAME", help=text)
    parser.add_argument(
        "--changes", type=names_of("change", (*CHANGES, "none")), default=tuple(CHANGES), metavar="LIST",
        help=f"changes of the hardware, under the first scheme: none, or {', '.join(CHANGES)} (default: all)",
    )  # fmt: skip
    text = f"largest error of the projected log, in percent (default: {100 * TOLERANCE:g})"
    parser.add_argument("--tolerance", type=float, default=100 * TOLERANCE, metavar="PERCENT", help=text)
    text = "bins that the search begins with (default: 5)"
    parser.add_argument("--bins", type=positive_int, default=5, metavar="K", help=text)
    text = "so many lengths are all taken (default: 10)"
    parser.add_argument("--few", type=natural_int, default=10, metavar="N", help=text)
    text = "folder of the sweeps (default: results/seqpoint)"
    parser.add_argument("--folder", type=Path, default=Path("results/seqpoint"), metavar="FOLDER", help=text)
    args = parser.parse_args()
    if len(set(args.workload)) < len(args.workload):
        parser.error("WORKLOAD: a network is listed twice")
    if not 0 <= args.tolerance < 100:
        parser.error(f"--tolerance: {args.tolerance:g}: must be from 0 to less than 100")
    keys = ("workload", "histogram", "lengths", "longest", "batching", "changes", "tolerance", "bins", "few")
    script = Script.start("seqpoint", parser, args, keys)
    return script, args


def simulated(script, args, epoch, machines, schemes, what):
    """Return times in us, and why there are none, by machine and scheme; times then by length."""
    from pysim import stats
    from pysim.schemes.registry import parse_schemes
    from pysim.sweep.engines.local import Local
    from pysim.sweep.folder import SweepFolder
    from pysim.sweep.point import digest

    folder = SweepFolder(args.folder / f"{epoch.network}-{digest(epoch.text)[:8]}-{what}")
    options = script.options
    points = epoch.points(machines, options.gpu, options.overrides(), schemes)
    plan = folder.prepare(epoch.text, ("machine", "length"), points)
    Local(options.threads, 1 if options.threads else None, options.max_memory, options.quiet).launch(folder)
    times = {(machine, scheme): {} for machine in machines for scheme in plan.schemes}
    failed = {}
    for place in plan.places:
        machine, length = place.values
        for key in place.files:
            if not folder.is_done(key):
                reason = f"{epoch.workload(length)}: {folder.failure(key)}"
                for choice in parse_schemes(plan.points[key].schemes):
                    failed.setdefault((machine, choice.name), reason)
                continue
            for row in stats.load(folder.result(key)).array("runs"):
                which = machine, row["scheme"].decode()
                if row["status"] != b"ok":
                    failed.setdefault(which, f"{epoch.workload(length)}: {row['reason'].decode()}")
                elif which in times:  # stream is run where it is not asked for, too
                    times[which][length] = float(row["time_us"])
    return {which: each for which, each in times.items() if which not in failed}, failed


def rows_of(epoch, times, chosen, made):
    """Return the rows of the three tables of an epoch."""
    name = epoch.network
    projections = [
        (name, p.machine, p.scheme, p.actual_us, p.projected_us, p.error, p.speedup, p.projected_speedup,
         p.speedup_error)
        for p in made
    ]  # fmt: skip
    points = [(name, p.length, p.weight, p.first, p.last) for p in chosen.points]
    each = [
        (name, machine, scheme, length, epoch.counts[length], time)
        for (machine, scheme), by_length in times.items()
        for length, time in sorted(by_length.items())
    ]
    return {"projections": projections, "seqpoints": points, "iterations": each}


def study(script, args, epoch, show):
    """Simulate an epoch, choose its SeqPoints and report; return rows of its tables."""
    from pysim.errors import WorkloadError
    from pysim.schemes.registry import parse_schemes
    from pysim.stats.studies import epochs as text
    from pysim.workloads.studies.epochs import BASE, CHANGES, NETWORKS, changed, projections
    from pysim.workloads.studies.seqpoint import select

    number = sum(epoch.counts.values())
    show(f"epoch     {epoch.text}: {number:,} iterations of {epoch.distinct:,} lengths")
    show(f"lengths   {epoch.about}")
    if len(epoch.counts) < epoch.distinct:
        show(f"simulated {len(epoch.counts)} lengths, to the next of which iterations are padded (--lengths)")
    schemes = script.options.schemes
    times, failed = simulated(script, args, epoch, {BASE: {}}, schemes, "schemes")
    log = BASE, parse_schemes(schemes)[0].name
    if log in failed:
        raise WorkloadError(failed[log])
    machines, reasons = changed([name for name in args.changes if name != "none"], script.config)
    refused = {(name, log[1]): reason for name, reason in reasons.items()} | failed
    if machines:
        more, failed = simulated(script, args, epoch, machines, schemes[:1], "changes")
        times |= more
        refused |= failed
    chosen = select(epoch.counts, times[log], tolerance=args.tolerance / 100, few=args.few, bins=args.bins)
    made = projections(epoch.counts, times, chosen, log)
    rows = rows_of(epoch, times, chosen, made)
    tables = tables_of({name: [(0, *row) for row in each] for name, each in rows.items()})
    bins = f"{chosen.bins} bins" if chosen.bins else "all of them"
    found = f"{len(chosen.points)} of {chosen.lengths} lengths, {bins}"
    show(f"seqpoints {found}; error of the log {100 * chosen.error:+.3f} %\n")
    show(text.format_seqpoints(tables["seqpoints"]) + "\n")
    names = {name: row.doc for name, row in CHANGES.items()}
    show(text.format_projections(tables["projections"], names) + "\n")
    published = NETWORKS[epoch.network].published
    show(text.format_errors(tables["projections"], published, chosen.reduction))
    for (machine, scheme), reason in refused.items():
        show(f"left out  {names.get(machine, machine)}, {scheme}: {reason}")
    show("")
    return rows


def tables_of(rows):
    """Return result tables from lists of rows."""
    import numpy as np

    from pysim.stats import schema

    # texts are encoded where the array is made
    return {
        name: np.array(
            [tuple(cell.encode() if isinstance(cell, str) else cell for cell in row) for row in each],
            schema.dtype(name),
        )
        for name, each in rows.items()
    }


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    from pathlib import Path

    script, args = options_of()

    from pysim import stats
    from pysim.cli.many_runs import begin
    from pysim.workloads.studies.epochs import epoch

    options = script.options
    _, show = begin(script, stats)
    given = {
        "histogram": Path(args.histogram) if args.histogram else None,
        "policy": args.batching or "",
        "longest": args.longest,
        "lengths": args.lengths,
        "seed": options.seed or 0,
    }
    epochs = [epoch(text, **given) for text in args.workload]
    show(script.machine_lines()[0])
    rows = {}
    for run, each in enumerate(epochs):
        for name, found in study(script, args, each, show).items():
            rows.setdefault(name, []).extend((run, *row) for row in found)
    script.save(stats, tables_of(rows), show)


if __name__ == "__main__":
    run_script(main)
