"""How much does each scheduling scheme speed up the applications of the BlockMaestro paper?

examples:
  # two applications with small inputs
  python configs/blockmaestro_suite.py --apps 3mm,fft --small --gpu h200
  # one under three schemes
  python configs/blockmaestro_suite.py --apps bicg --small --schemes stream,blockmaestro,tb_static
"""

from pysim.cli.entry import run_script

# the paper assumes launches of 5 us; those of the H200 are measured
MACHINES = {"titan_x_pascal": {"gpu.cp.launch": 5000.0, "gpu.cp.stream_gap": 5000.0}, "h200": {}}
SCHEMES = (
    "stream", "graph", "pool", "tb_static", "tb_static:reduced", "tb_static:fetch",
    "blockmaestro", "blockmaestro:consumer", "blockmaestro:kernels3", "blockmaestro:kernels3+consumer",
    "blockmaestro:kernels4", "blockmaestro:kernels4+consumer", "tb_ideal",
)  # fmt: skip
LARGE = 16384  # default of scheme.table.entries
APART = ("wavefront",)  # a synthetic example, left out of the means
ENTRIES = "scheme.table.entries"
# a table that hardware could build: an entry releases one consumer range; counter lists are in memory
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
# BlockMaestro's published entries hold TB ids of 32 bits; narrow ids are as wide as those of our table
BUFFERS, NARROW = "scheme.blockmaestro.entries", ("blockmaestro:kernels4", "narrow ids")


def sizes_of(jobs, values):
    """Return for each job the sizes that decide field widths; a counter counts one kernel's TBs at most."""
    from pysim.schemes.hardware_cost import Sizes

    return [Sizes.of(job, max(k.tbs for k in job.kernels), values) for job in jobs]


def equal_bits(jobs, values):
    """Return the bits of BlockMaestro's buffers, and how many table entries fit in them for every job."""
    from pysim.schemes import hardware_cost

    rival, children = (values[f"scheme.blockmaestro.{name}"] for name in ("entries", "children"))
    bits = hardware_cost.on_chip_bits(hardware_cost.blockmaestro_structures(rival, children))
    form = [values[f"scheme.table.{name}"] for name in HELD]
    return bits, min(hardware_cost.largest_table(bits, size, *form) for size in sizes_of(jobs, values))


def table_bits(jobs, values):
    """Return the on-chip bits of the dependence table for each job."""
    from pysim.schemes import hardware_cost

    form = [values[f"scheme.table.{name}"] for name in ("entries", *HELD)]
    return [
        hardware_cost.on_chip_bits(hardware_cost.table_structures(size, *form))
        for size in sizes_of(jobs, values)
    ]


def narrow_entries(jobs, values):
    """Return how many entries BlockMaestro's buffers would have with TB ids as narrow as our table's."""
    from pysim.schemes import hardware_cost

    rival, children = (values[f"scheme.blockmaestro.{name}"] for name in ("entries", "children"))
    tb = max(hardware_cost.bits_for(size.max_tbs) for size in sizes_of(jobs, values))
    bits = hardware_cost.on_chip_bits(hardware_cost.blockmaestro_structures(rival, children))
    return bits // hardware_cost.on_chip_bits(hardware_cost.blockmaestro_structures(1, children, tb, tb))


def runs_of(script, name, job, small, relieved, log):
    """Return the table ``runs`` of an application: all schemes, then some with one limit removed.

    ``small``: parameters of the dependence table; ``relieved``: the parameters that remove a limit, by scheme
    and label.
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
    """Read the command line; ``--gpu`` simulates that GPU alone."""
    from pysim.cli.options import SINGLE_RUN, make_parser, names_of
    from pysim.cli.script import Script
    from pysim.workloads.applications.blockmaestro import APPS

    parser = make_parser(
        __doc__,
        {"gpu": None, "schemes": SCHEMES},
        SINGLE_RUN,
        "this script makes many runs and writes the table runs",
    )
    text = f"applications: {', '.join(APPS)} (default: all)"
    parser.add_argument(
        "--apps", type=names_of("application", APPS), default=tuple(APPS), metavar="LIST", help=text
    )
    parser.add_argument("--small", action="store_true", help="small inputs, which take seconds")
    args = parser.parse_args()
    args.gpus = tuple(MACHINES) if args.gpu is None else (args.gpu,)
    args.gpu = args.gpus[0]
    return Script.start("blockmaestro_suite", parser, args, ("apps", "small", "gpus"))


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    import dataclasses

    first = options_of()

    import numpy as np

    from pysim import stats
    from pysim.cli.many_runs import begin
    from pysim.results.gap import gap_notes
    from pysim.stats.studies.suite import draw_suite, format_suite
    from pysim.workloads.applications.blockmaestro import APPS
    from pysim.workloads.registry import make

    options, chosen = first.options, first.workload
    log, show = begin(first, stats)
    texts = {name: f"{name}:{APPS[name].small}" if chosen["small"] else name for name in chosen["apps"]}
    parts = []
    for gpu in chosen["gpus"]:
        own = dataclasses.replace(options, gpu=gpu)
        script = dataclasses.replace(first, options=own, config=own.config(MACHINES.get(gpu)))
        jobs = {name: make(text, script.config) for name, text in texts.items()}
        # --set wins over the settings of this script
        mine = options.settings
        small = {path: value for path, value in FORM.items() if path not in mine}
        bits, entries = equal_bits(jobs.values(), script.config.replaced(small).encoded())
        small |= {} if ENTRIES in mine else {ENTRIES: max(1, entries)}
        values = script.config.replaced(small).encoded()
        relieved = {key: over for key, over in RELIEVED.items() if not over.keys() & set(mine)}
        if BUFFERS not in mine:
            relieved[NARROW] = {BUFFERS: narrow_entries(jobs.values(), values)}
        found = [runs_of(script, name, job, small, relieved, log) for name, job in jobs.items()]
        log.clear()
        runs = np.concatenate(found)
        runs["run"] = np.arange(len(runs)) + sum(map(len, parts))
        parts.append(runs)
        show("\n".join([*script.machine_lines(), stats.format_coherence(runs)]))
        sizes = [size / 8192 for size in table_bits(jobs.values(), values)]
        show(
            f"table     {values[ENTRIES]:,} entries and {values['scheme.table.lists']:,} lists for tb_static:"
            f" with window and TBs {min(sizes):.1f} to {max(sizes):.1f} KB;"
            f" BlockMaestro's buffers {bits / 8192:.1f} KB\n"
        )
        counts = {name: (len(job.kernels), sum(k.tbs for k in job.kernels)) for name, job in jobs.items()}
        show(format_suite(runs, counts, APART))
        for name, rows in zip(jobs, found, strict=True):
            for note in gap_notes(rows):
                show(f"{name}: {note}")
    tables = {"runs": np.concatenate(parts)}
    first.save(stats, tables, show, lambda: draw_suite(tables, "BlockMaestro's applications", APART))


if __name__ == "__main__":
    run_script(main)
