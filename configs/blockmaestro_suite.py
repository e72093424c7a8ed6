"""What do schemes make of BlockMaestro's applications, under its conditions and on an H200? ``--help``."""

from pysim.start import run_script

# its launches take 5 us; those of an H200 were measured
MACHINES = {"titan_x_pascal": {"gpu.cp.launch": 5000.0, "gpu.cp.stream_gap": 5000.0}, "h200": {}}
SCHEMES = (
    "stream", "graph", "pool", "tb_static", "tb_static:reduced", "tb_static:fetch",
    "blockmaestro", "blockmaestro:consumer", "blockmaestro:kernels3", "blockmaestro:kernels3+consumer",
    "blockmaestro:kernels4", "blockmaestro:kernels4+consumer", "tb_ideal",
)  # fmt: skip
LARGE = 16384  # entries of the table by default
APART = ("wavefront",)  # an example beside the applications, which means leave out
ENTRIES = "scheme.table.entries"
# the form of the table to build: an entry frees one range, and lists of counters lie in memory
FORM = {
    "scheme.table.consumers": 1, "scheme.table.entry_bytes": 8, "scheme.table.fetch_lists": 1,
    "scheme.table.lists": 512, "scheme.table.references": 4,
}  # fmt: skip


def entries_of(jobs, values):
    """Return the bits of the rival's buffers, the entries that fit in them for all jobs, and bits a job."""
    from pysim import hardware

    rival, children = (values[f"scheme.blockmaestro.{name}"] for name in ("entries", "children"))
    form = [values[f"scheme.table.{name}"] for name in ("consumers", "lists", "references")]
    bits = hardware.on_chip(hardware.blockmaestro(rival, children))
    # a counter waits for the TBs of one kernel at the most
    sizes = [hardware.Sizes.of(job, max(k.tbs for k in job.kernels), values) for job in jobs]
    entries = min(hardware.largest_table(bits, size, *form) for size in sizes)
    taken = [hardware.on_chip(hardware.table(size, entries, *form)) for size in sizes]
    return bits, entries, taken


def runs_of(script, name, job, entries, log):
    """Return the rows `runs` of an application under all schemes, and of tb_static without what binds it.

    ``entries``: of the table.
    """
    import numpy as np

    def simulated(schemes, over, baseline):
        # what the user set goes before
        over = {path: value for path, value in over.items() if path not in script.options.settings}
        made = script.simulate(job, schemes, overrides=over, tables="none", progress=log, baseline=baseline)
        return made.listed()["runs"]

    small = {ENTRIES: entries, **FORM}
    found = [simulated(script.options.schemes, small, True)]
    if "tb_static" in script.options.schemes:
        base = np.nanmax(found[0]["time_us"] * found[0]["speedup"])
        for label, over in (
            (f"{LARGE} entries", {ENTRIES: LARGE}),
            ("free updates", {"scheme.table.update": 0.0}),
            ("free lists", {"scheme.table.fetch_lists": 0}),
            ("no sharing", {"scheme.table.group": 0}),
        ):
            rows = simulated(("tb_static",), small | over, False)
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
        bits, entries, taken = entries_of(jobs.values(), script.config.replaced(FORM).encoded())
        entries = max(1, entries)
        found = [runs_of(script, name, job, entries, log) for name, job in jobs.items()]
        log.clear()
        runs = np.concatenate(found)
        runs["run"] = np.arange(len(runs)) + sum(map(len, parts))
        parts.append(runs)
        show("\n".join(script.machine_lines()))
        least, most = (size / 8192 for size in (min(taken), max(taken)))
        show(
            f"table     {entries:,} entries and {FORM['scheme.table.lists']} lists for tb_static: with window"
            f" and TBs {least:.1f} to {most:.1f} KB; BlockMaestro's buffers {bits / 8192:.1f} KB\n"
        )
        counts = {name: (len(job.kernels), sum(k.tbs for k in job.kernels)) for name, job in jobs.items()}
        show(format_suite(runs, counts, APART))
    tables = {"runs": np.concatenate(parts)}
    first.save(stats, tables, show, lambda: draw_suite(tables, "BlockMaestro's applications", APART))


if __name__ == "__main__":
    run_script(main)
