"""What do schemes make of BlockMaestro's applications, under its conditions and on an H200? ``--help``."""

from pysim.start import run_script

# its launches take 5 us; those of an H200 were measured
MACHINES = {"titan_x_pascal": {"gpu.cp.launch": 5000.0, "gpu.cp.stream_gap": 5000.0}, "h200": {}}
SCHEMES = (
    "stream", "graph", "pool", "tb_static", "tb_static:reduced", "tb_static:fetch",
    "blockmaestro", "blockmaestro:consumer", "blockmaestro:kernels3", "blockmaestro:kernels3+consumer",
    "blockmaestro:kernels4", "blockmaestro:kernels4+consumer", "tb_ideal",
)  # fmt: skip
BYTES = 22 * 1024  # its two buffers; the table of tb_static gets as many
LARGE = 256 * 1024  # what the table has by default
APART = ("wavefront",)  # an example beside the applications, which means leave out
ENTRIES = "scheme.table.entries"


def runs_of(script, name, job, entries, log):
    """Return the rows `runs` of an application under all schemes, and of tb_static without what binds it."""
    import numpy as np

    def simulated(schemes, over, baseline):
        # what the user set goes before
        over = {path: value for path, value in over.items() if path not in script.options.settings}
        made = script.simulate(job, schemes, overrides=over, tables="none", progress=log, baseline=baseline)
        return made.listed()["runs"]

    found = [simulated(script.options.schemes, {ENTRIES: entries[0]}, True)]
    if "tb_static" in script.options.schemes:
        base = np.nanmax(found[0]["time_us"] * found[0]["speedup"])
        for label, over in (
            (f"{LARGE // 1024} KB", {ENTRIES: entries[1]}),
            ("free updates", {ENTRIES: entries[0], "scheme.table.update": 0.0}),
            ("no sharing", {ENTRIES: entries[0], "scheme.table.group": 0}),
        ):
            rows = simulated(("tb_static",), over, False)
            rows["scheme"] = f"tb_static, {label}".encode()
            rows["speedup"] = base / rows["time_us"]
            room = base - rows["estimate_us"]
            won = (base - rows["time_us"]) / np.where(room > 0, room, np.nan)
            rows["gap_won"] = won
            found.append(rows)
    runs = np.concatenate(found)
    runs["workload"] = name.encode()
    return runs


def options_of():
    """Read the command line; ``--gpu`` leaves one machine."""
    from pysim.options import SINGLE, make_parser, names_of
    from pysim.script import Script
    from workloads.apps.suite import APPS

    parser = make_parser(
        __doc__.partition("?")[0] + "?",
        {"gpu": None, "schemes": SCHEMES},
        SINGLE,
        "the suite says what is run and written",
    )
    text = "applications: names of `pysim workloads` (default: all thirteen)"
    parser.add_argument(
        "--apps", type=names_of("application", APPS), default=tuple(APPS), metavar="LIST", help=text
    )
    parser.add_argument("--small", action="store_true", help="small inputs: a quick look, not the study")
    args = parser.parse_args()
    args.gpus = tuple(MACHINES) if args.gpu is None else (args.gpu,)
    args.gpu = args.gpus[0]
    return Script.start("blockmaestro_suite", parser, args, ("apps", "small", "gpus"))


def main():
    # all is imported in here, where Ctrl-C ends in one line
    import dataclasses

    first = options_of()

    import numpy as np

    import stats
    from stats.suite import draw_suite, format_suite
    from workloads.apps.suite import APPS
    from workloads.registry import make

    options, chosen = first.options, first.workload
    stats.check_writable(first.path, options.force, first.configuration)
    log = stats.Log(options.quiet)
    show = log.say if options.json else print
    jobs = {name: make(f"{name}:{APPS[name].small}" if chosen["small"] else name) for name in chosen["apps"]}
    parts = []
    for gpu in chosen["gpus"]:
        own = dataclasses.replace(options, gpu=gpu)
        script = dataclasses.replace(first, options=own, config=own.config(MACHINES.get(gpu)))
        each = script.config.number("scheme.table.entry_bytes")
        entries = [max(1, int(size // each)) for size in (BYTES, LARGE)]
        found = [runs_of(script, name, job, entries, log) for name, job in jobs.items()]
        log.clear()
        runs = np.concatenate(found)
        runs["run"] = np.arange(len(runs)) + sum(map(len, parts))
        parts.append(runs)
        show("\n".join(script.machine_lines()))
        show(f"table     {entries[0]:,} entries for tb_static, as many bytes as BlockMaestro's buffers\n")
        counts = {name: (len(job.kernels), sum(k.tbs for k in job.kernels)) for name, job in jobs.items()}
        show(format_suite(runs, counts, APART))
    tables = {"runs": np.concatenate(parts)}
    first.save(stats, tables, show, lambda: draw_suite(tables, "BlockMaestro's applications", APART))


if __name__ == "__main__":
    run_script(main)
