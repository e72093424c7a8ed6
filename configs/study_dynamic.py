"""When does a scheduler that decides for itself win, and what is each part of it worth?

examples:
  # one small application on one GPU
  python configs/study_dynamic.py --quick --groups blockmaestro --variants none --gpu titan_v
  # what would be simulated
  python configs/study_dynamic.py --dry-run
"""

from pysim.cli.entry import run_script

GPUS = ("titan_v", "h200")
RIVALS = ("graph", "pool", "tb_static", "tb_static:reduced")
SCHEMES = ("stream", *RIVALS, "tb_auto", "tb_bloom", "tb_ideal")
LEDGER = "study_dynamic"
KEYS = ("group", "case", "gpu", "variant")


def options_of():
    """Read the command line; ``args`` besides, for what decides no result."""
    from pysim.cli.many_runs import add_folder, several_gpus
    from pysim.cli.options import SINGLE_RUN, make_parser, names_of
    from pysim.cli.script import Script
    from pysim.workloads.studies.dynamic import ABLATION, GROUPS, SENSITIVITY

    parser = make_parser(
        __doc__,
        {"gpu": GPUS, "schemes": SCHEMES},
        SINGLE_RUN,
        "this script makes many runs and writes the table dynamic",
        "the folder keeps what has finished: call it again",
    )
    text = f"groups of workloads: {', '.join(GROUPS)} (default: all)"
    groups = names_of("group", GROUPS)
    parser.add_argument("--groups", type=groups, default=tuple(GROUPS), metavar="LIST", help=text)
    kinds = {"none": (), "ablation": (*ABLATION,), "all": (*ABLATION, *SENSITIVITY)}
    text = "of tb_auto, on the first group: none, ablation (one part off) or all (default: all)"
    parser.add_argument("--variants", choices=kinds, default="all", metavar="KIND", help=text)
    parser.add_argument("--quick", action="store_true", help="few small workloads: a minute")
    add_folder(parser, LEDGER)
    args = parser.parse_args()
    several_gpus(parser, args)
    args.labels = kinds[args.variants]
    args.schemes = ("stream", *(name for name in args.schemes if name != "stream"))
    return Script.start("study_dynamic", parser, args, ("groups", "variants", "quick", "gpus")), args


def folders_of(path, planned):
    """Return a folder for the points of each set of schemes, planned."""
    from pysim.sweep import SweepFolder

    sets = {}
    for point in planned:
        sets.setdefault(point.schemes, []).append(point)
    made = []
    for number, mine in enumerate(sets.values()):
        made.append(SweepFolder(path / f"{number}"))
        made[-1].prepare(LEDGER, KEYS, mine)
    return made


def rows_of(folders):
    """Return a row for each scheme of each point that has been simulated, as dicts."""
    import numpy as np

    made = [row for folder in folders for row in found_in(folder)]
    known = {}
    for row in made:
        if row["variant"] == "-":
            mine = known.setdefault((row["group"], row["case"], row["gpu"]), {})
            mine[row["scheme"].decode()] = row["time_us"], row["estimate_us"]
    for number, row in enumerate(made):
        others = known.get((row["group"], row["case"], row["gpu"]), {})
        row["run"] = number
        row["stream_us"], row["estimate_us"] = others.get("stream", (np.nan, np.nan))
        best = [others[name][0] for name in RIVALS if name in others]
        row["best_us"] = float(np.nanmin(best)) if np.isfinite(best).any() else np.nan
        room = row["stream_us"] - row["estimate_us"]
        row["share"] = (row["stream_us"] - row["time_us"]) / room if room > 0 else np.nan
        row["over_best"] = row["best_us"] / row["time_us"]
    return made


def found_in(folder):
    """Return what a folder has of each scheme of each point, as dicts."""
    import numpy as np

    from pysim import stats
    from pysim.workloads.studies.dynamic import half_of

    tables, _ = stats.SweepResults(folder.path).merged(("runs", "chosen"))
    runs, places = tables["runs"], tables["points"]
    chosen = {int(row["run"]): row for row in tables.get("chosen", ())}
    texts = {place.values: folder.plan.points[place.files[0]].workload for place in folder.plan.places}
    made = []
    for run, place in zip(runs, places, strict=True):
        values = tuple(place[key].decode() for key in KEYS)
        about = dict(zip(KEYS, values, strict=True)) | {"workload": texts[values]}
        about["half"] = half_of(about["workload"], about["gpu"])
        about |= {name: run[name] for name in ("scheme", "status", "reason")}
        ok, own = run["status"] == b"ok", chosen.get(int(run["run"]))
        about |= {name: float(run[name]) if ok else np.nan for name in ("time_us", "estimate_us")}
        about["hint_bytes"] = about["tb_pairs"] = np.nan
        if own is not None:
            pairs = sum(int(own[f"{form}_pairs"]) for form in ("none", "kernel", "tb"))
            about["hint_bytes"] = own["hint_bytes"] / max(1, own["hinted"])
            about["tb_pairs"] = own["tb_pairs"] / pairs if pairs else np.nan
        made.append(about)
    return made


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    script, args = options_of()

    from pysim import stats
    from pysim.cli.many_runs import begin
    from pysim.stats.studies.dynamic import plain, sections
    from pysim.stats.studies.dynamic_picture import draw_dynamic
    from pysim.sweep.engines.local import Local
    from pysim.workloads.studies.dynamic import points

    options, chosen = script.options, script.workload
    _, show = begin(script, stats)
    planned = points(
        chosen["groups"], args.labels, chosen["gpus"], options.schemes, options.overrides(), chosen["quick"]
    )
    folders = folders_of(args.folder, planned)
    for folder in folders:
        if args.dry_run:
            for place in folder.plan.places:
                show(f"{folder.plan.name(place)}: {folder.plan.points[place.files[0]].workload}")
        else:
            Local(args.jobs, args.threads, args.max_memory, options.quiet).launch(folder)
        show(f"{folder.path}: {folder.status()}")
    if args.dry_run:
        return
    table = stats.schema.from_rows("dynamic", rows_of(folders))
    for section in sections(table):
        show("\n" + plain(section))
    show("")
    script.save(stats, {"dynamic": table}, show, lambda: draw_dynamic(table))


if __name__ == "__main__":
    run_script(main)
