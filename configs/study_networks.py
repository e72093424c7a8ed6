"""What does synchronisation between thread blocks give, network by network, in time and energy?

examples:
  # what would be simulated
  python configs/study_networks.py --quick --dry-run
  # one network in moments
  python configs/study_networks.py --quick --networks lenet --gpu titan_v --schemes stream,graph,tb_static
"""

from pysim.cli.entry import run_script

GPUS = ("titan_v", "v100", "h200")
SCHEMES = ("stream", "graph", "pdl", "pool", "tb_static", "tb_static:reduced", "tb_auto", "tb_ideal")
PASSES = ("forward", "training", "decode")
BASE = "stream"
LEDGER = "study_networks"  # the name of the sweep in its folder
KEYS = ("network", "run_pass", "gpu")  # of its points
# figures of a run; without one they are NaN
FIGURES = (
    "time_us", "speedup", "estimate_us", "bound_us", "gap_won", "bound_won", "sm_idle", "energy_j",
    "energy_saved",
)  # fmt: skip


def options_of():
    """Read the command line; ``args`` besides, for what decides no result."""
    from pysim.cli.many_runs import add_folder, several_gpus
    from pysim.cli.options import SINGLE_RUN, make_parser, names_of
    from pysim.cli.script import Script
    from pysim.workloads.studies.networks import NETWORKS

    parser = make_parser(
        __doc__,
        {"gpu": GPUS, "schemes": SCHEMES},
        SINGLE_RUN,
        "this script makes many runs and writes the tables networks and runs",
        "the folder keeps what has finished: call it again",
    )
    text = f"networks of the study: {', '.join(NETWORKS)} (default: all)"
    parser.add_argument(
        "--networks", type=names_of("network", NETWORKS), default=tuple(NETWORKS), metavar="LIST", help=text
    )
    text = f"passes: {', '.join(PASSES)} (default: all that a network has)"
    parser.add_argument("--passes", type=names_of("pass", PASSES), default=PASSES, metavar="LIST", help=text)
    parser.add_argument("--quick", action="store_true", help="few networks with few layers: minutes")
    add_folder(parser, LEDGER)
    args = parser.parse_args()
    several_gpus(parser, args)
    args.schemes = (BASE, *(name for name in args.schemes if name != BASE))
    return Script.start("study_networks", parser, args, ("networks", "passes", "quick", "gpus")), args


def standing_in(place, parts, plan):
    """Return launches, TBs and the share of the time in stream order that kernels take which stand in.

    ``parts``: result files of the place.
    """
    from pysim import stats
    from pysim.workloads.registry import make
    from pysim.workloads.studies.networks import launches_of, share_standing_in

    for part in parts:
        held = stats.Results(part.path)
        runs = held.array("runs")
        mine = runs["run"][(runs["scheme"] == BASE.encode()) & (runs["status"] == b"ok")]
        if len(mine):
            point = plan.points[part.path.stem]
            job, kernels = make(point.workload, point.config()), held.array("kernels")
            share = share_standing_in(job, kernels[kernels["run"] == mine[0]])
            launches = launches_of(job)
            return len(launches), sum(kernel.tbs for kernel in launches), share
    return 0, 0, float("nan")


def gains(runs):
    """Return, for the runs of a point, what each saves of time and energy against stream order, as dicts."""
    from pysim.schemes.registry import parse_scheme
    from pysim.workloads.studies.networks import is_finer

    nan = float("nan")
    base = next((row for row in runs if row["scheme"] == BASE.encode() and row["status"] == b"ok"), None)
    time, spent = (nan, nan) if base is None else (float(base["time_us"]), float(base["energy_j"]))
    made = []
    for row in runs:
        good = row["status"] == b"ok"
        kept = ("time_us", "estimate_us", "bound_us", "sm_idle", "energy_j")
        found = {name: float(row[name]) if good else nan for name in kept}
        found |= {name: row[name] for name in ("scheme", "status", "reason")}
        found["speedup"] = time / found["time_us"]
        for name, limit in (("gap_won", "estimate_us"), ("bound_won", "bound_us")):
            room = time - found[limit]
            found[name] = (time - found["time_us"]) / room if room > 0 else nan
        found["energy_saved"] = 1 - found["energy_j"] / spent
        found["finer"] = is_finer(parse_scheme(row["scheme"].decode()))
        made.append(found)
    return made


def not_run(folder, place):
    """Return the row of a point that has no result: why it failed, or that nobody has simulated it."""
    reasons = [reason for key in place.files if (reason := folder.failure(key))]
    made = dict.fromkeys(FIGURES, float("nan")) | {"run": -1, "scheme": b"", "finer": False}
    made |= {"kernels": 0, "tbs": 0, "stands_in": float("nan")}
    return made | {"status": b"failed" if reasons else b"missing", "reason": "".join(reasons[:1]).encode()}


def tables_of(folder):
    """Return the tables ``networks`` and ``runs`` of a folder; points without a result have a row."""
    from pysim import stats

    results = stats.SweepResults(folder.path)
    tables, _ = results.merged(("runs",))
    runs, places = tables["runs"], tables["points"]
    parts, rows = {}, []
    for part in results.parts:
        parts.setdefault(part.values, []).append(part)
    for place in folder.plan.places:
        about = dict(zip(KEYS, place.values, strict=True))
        about["workload"] = folder.plan.points[place.files[0]].workload
        mine = runs[[tuple(row[key].decode() for key in KEYS) == place.values for row in places]]
        if not len(mine):
            rows.append(about | not_run(folder, place))
            continue
        kernels, tbs, share = standing_in(place, parts[place.values], folder.plan)
        about |= {"kernels": kernels, "tbs": tbs, "stands_in": share}
        rows += [about | row | {"run": run} for run, row in zip(mine["run"], gains(mine), strict=True)]
    made = {"networks": stats.schema.from_rows("networks", rows)}
    return made | ({"runs": runs} if len(runs) else {})


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    script, args = options_of()

    from pysim import stats
    from pysim.cli.many_runs import begin
    from pysim.errors import ConfigError
    from pysim.stats.studies.networks import plain, sections
    from pysim.stats.studies.networks_picture import draw_networks
    from pysim.sweep import SweepFolder
    from pysim.sweep.engines.local import Local
    from pysim.workloads.studies.networks import cases, points

    options, chosen = script.options, script.workload
    found = cases(chosen["networks"], chosen["passes"], chosen["quick"])
    if not found:
        raise ConfigError("nothing to simulate: no network of --networks has a pass of --passes")
    _, show = begin(script, stats)
    folder = SweepFolder(args.folder)
    folder.prepare(LEDGER, KEYS, points(found, chosen["gpus"], options.schemes, options.overrides()))
    if args.dry_run:
        for place in folder.plan.places:
            show(f"{folder.plan.name(place)}: {folder.plan.points[place.files[0]].workload}")
        show(f"{args.folder}: {folder.status()}")
        return
    Local(args.jobs, args.threads, args.max_memory, options.quiet).launch(folder)
    show(f"{args.folder}: {folder.status()}")
    tables = tables_of(folder)
    for section in sections(tables["networks"]):
        show("\n" + plain(section))
    show("")
    title = "What synchronisation between TBs gives"
    script.save(stats, tables, show, lambda: draw_networks(tables["networks"], title))


if __name__ == "__main__":
    run_script(main)
