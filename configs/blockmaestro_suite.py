"""What do schemes make of BlockMaestro's applications, under its conditions and on an H200? ``--help``."""

from pysim.cli.entry import run_script

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
HELD = ("consumers", "lists", "references")
RELIEVED = {
    ("tb_static", f"{LARGE} entries"): {ENTRIES: LARGE},
    ("tb_static", "free updates"): {"scheme.table.update": 0.0},
    ("tb_static", "free lists"): {"scheme.table.fetch_lists": 0},
    ("tb_static", "no sharing"): {"scheme.table.group": 0},
}
# its published entries name TBs in 32 bits, ours in no more than are needed
BUFFERS, NARROW = "scheme.blockmaestro.entries", ("blockmaestro:kernels4", "narrow ids")


def sizes_of(jobs, values):
    """Return what the widths of fields follow from, a job (a counter waits for a kernel at most)."""
    from pysim.schemes.hardware_cost import Sizes

    return [Sizes.of(job, max(k.tbs for k in job.kernels), values) for job in jobs]


def equal_bits(jobs, values):
    """Return the bits of BlockMaestro's buffers and the entries of a table that fit in them for all jobs."""
    from pysim.schemes import hardware_cost

    rival, children = (values[f"scheme.blockmaestro.{name}"] for name in ("entries", "children"))
    bits = hardware_cost.on_chip_bits(hardware_cost.blockmaestro_structures(rival, children))
    form = [values[f"scheme.table.{name}"] for name in HELD]
    return bits, min(hardware_cost.largest_table(bits, size, *form) for size in sizes_of(jobs, values))


def taken(jobs, values):
    """Return the bits that a table takes, a job."""
    from pysim.schemes import hardware_cost

    form = [values[f"scheme.table.{name}"] for name in ("entries", *HELD)]
    return [
        hardware_cost.on_chip_bits(hardware_cost.table_structures(size, *form))
        for size in sizes_of(jobs, values)
    ]


def narrow(jobs, values):
    """Return the entries of BlockMaestro's buffers if they named TBs in as few bits as we count for ours."""
    from pysim.schemes import hardware_cost

    rival, children = (values[f"scheme.blockmaestro.{name}"] for name in ("entries", "children"))
    tb = max(hardware_cost.bits_for(size.max_tbs) for size in sizes_of(jobs, values))
    bits = hardware_cost.on_chip_bits(hardware_cost.blockmaestro_structures(rival, children))
    return bits // hardware_cost.on_chip_bits(hardware_cost.blockmaestro_structures(1, children, tb, tb))


def runs_of(script, name, job, small, relieved, log):
    """Return the rows `runs` of an application: all schemes, and some without what binds them.

    ``small``: what the table is like; ``relieved``: by scheme and label, what is set in its place.
    """
    import numpy as np

    def simulated(schemes, over, baseline):
        made = script.simulate(job, schemes, overrides=over, tables="none", progress=log, baseline=baseline)
        return made.listed()["runs"]

    found = [simulated(script.options.schemes, small, True)]
    base = np.nanmax(found[0]["time_us"] * found[0]["speedup"])
    for (scheme, label), over in relieved.items():
        if scheme not in script.options.schemes:
            continue
        rows = simulated((scheme,), small | over, False)
        rows["scheme"] = f"{scheme}, {label}".encode()
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
    from pysim.cli.options import SINGLE, make_parser, names_of
    from pysim.cli.script import Script
    from workloads.applications.blockmaestro import APPS

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
    from workloads.applications.blockmaestro import APPS
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
        # what the user set goes before
        mine = options.settings
        small = {path: value for path, value in FORM.items() if path not in mine}
        bits, entries = equal_bits(jobs.values(), script.config.replaced(small).encoded())
        small |= {} if ENTRIES in mine else {ENTRIES: max(1, entries)}
        values = script.config.replaced(small).encoded()
        relieved = {key: over for key, over in RELIEVED.items() if not over.keys() & set(mine)}
        if BUFFERS not in mine:
            relieved[NARROW] = {BUFFERS: narrow(jobs.values(), values)}
        found = [runs_of(script, name, job, small, relieved, log) for name, job in jobs.items()]
        log.clear()
        runs = np.concatenate(found)
        runs["run"] = np.arange(len(runs)) + sum(map(len, parts))
        parts.append(runs)
        show("\n".join(script.machine_lines()))
        sizes = [size / 8192 for size in taken(jobs.values(), values)]
        show(
            f"table     {values[ENTRIES]:,} entries and {values['scheme.table.lists']:,} lists for tb_static:"
            f" with window and TBs {min(sizes):.1f} to {max(sizes):.1f} KB;"
            f" BlockMaestro's buffers {bits / 8192:.1f} KB\n"
        )
        counts = {name: (len(job.kernels), sum(k.tbs for k in job.kernels)) for name, job in jobs.items()}
        show(format_suite(runs, counts, APART))
    tables = {"runs": np.concatenate(parts)}
    first.save(stats, tables, show, lambda: draw_suite(tables, "BlockMaestro's applications", APART))


if __name__ == "__main__":
    run_script(main)
