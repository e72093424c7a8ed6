"""How much does each scheduling scheme speed up kernel graphs that depend on the input?

examples:
  # two graphs on an H200
  python configs/acs_suite.py --graphs ant,condconv --subset quick --gpu h200
  # its runs as JSON
  python configs/acs_suite.py --graphs ant --subset quick --json
"""

from pysim.cli.entry import run_script

LAUNCH = 3571.0  # ns: the 5,000 cycles at 1.4 GHz that Accel-Sim's SM86_RTX3070 charges for a launch
# title: device and the parameters that differ from it
MACHINES = {
    "rtx3070, 3.6 us a launch": ("rtx3070", {"gpu.cp.launch": LAUNCH, "gpu.cp.stream_gap": LAUNCH}),
    "rtx3070": ("rtx3070", {}),
    "h200": ("h200", {}),
}
SCHEMES = (
    "stream", "graph", "graph:built", "acs_sw", "acs_hw", "acs_hw:window16", "pool", "tb_static",
    "tb_learned", "blockmaestro", "queues", "tb_ideal",
)  # fmt: skip
# further settings of the first machine, under which acs_hw is compared with stream
CONDITIONS = {
    "launched when ready": {"scheme.table.latency": LAUNCH},
    "eager host": {"host.submit": "eager"},
}
MORE = 4  # factor on the number of simulated environments, for longer kernels


def options_of():
    """Read the command line; ``--gpu`` simulates that GPU alone."""
    from pysim.cli.checks import choice
    from pysim.cli.options import SINGLE_RUN, make_parser, names_of
    from pysim.cli.script import Script
    from pysim.workloads.applications.acs import GRAPHS

    parser = make_parser(
        __doc__,
        {"gpu": None, "schemes": SCHEMES},
        SINGLE_RUN,
        "this script makes many runs and writes the table runs",
    )
    text = f"graphs: {', '.join(GRAPHS)} (default: all)"
    parser.add_argument(
        "--graphs", type=names_of("graph", GRAPHS), default=tuple(GRAPHS), metavar="LIST", help=text
    )
    text = "all, or quick: small inputs (default: all)"
    parser.add_argument("--subset", type=choice("all", "quick"), default="all", metavar="NAME", help=text)
    args = parser.parse_args()
    own = {args.gpu: (args.gpu, {})} if args.gpu else MACHINES
    args.machines = tuple(own)
    args.gpu = next(iter(own.values()))[0]
    return Script.start("acs_suite", parser, args, ("graphs", "subset", "machines")), own


def simulated(script, job, schemes, log):
    """Simulate a job under some schemes; return its table ``runs``."""
    return script.simulate(job, schemes, tables="none", progress=log).listed()["runs"]


def conditions(script, settings, text, log):
    """Return the rows of acs_hw under each of CONDITIONS and with MORE environments."""
    import dataclasses

    from pysim.workloads.applications.rigid_bodies import rigid
    from pysim.workloads.registry import make, parse

    rows = []
    cases = [(label, over, make(text, script.config)) for label, over in CONDITIONS.items()]
    name, arguments = parse(text)
    if name == "rigid":
        envs = MORE * arguments.get("envs", 2048)
        cases.append((f"{MORE} x environments", {}, rigid(**{**arguments, "envs": envs})))
    for label, over, job in cases:
        own = dataclasses.replace(script, config=script.options.config({**settings, **over}))
        found = simulated(own, job, ("stream", "acs_hw"), log)[1:]
        found["scheme"] = f"acs_hw, {label}".encode()
        rows.append(found)
    return rows


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    import dataclasses

    first, machines = options_of()

    import numpy as np

    from pysim import stats
    from pysim.cli.many_runs import begin
    from pysim.stats.studies.groups import format_groups, group_rows
    from pysim.stats.studies.suite import draw_suite
    from pysim.workloads.applications.acs import GRAPHS
    from pysim.workloads.registry import make

    options, chosen = first.options, first.workload
    log, show = begin(first, stats)
    quick = chosen["subset"] == "quick"
    texts = {name: GRAPHS[name].small if quick else GRAPHS[name].make for name in chosen["graphs"]}
    groups = {name: GRAPHS[name].group for name in texts}
    parts = []
    for number, (title, (gpu, settings)) in enumerate(machines.items()):
        own = dataclasses.replace(options, gpu=gpu)
        script = dataclasses.replace(first, options=own, config=own.config(settings))
        counts = {}
        found = []
        for name, text in texts.items():
            job = make(text, script.config)
            counts[name] = len(job.kernels), sum(kernel.tbs for kernel in job.kernels)
            rows = [simulated(script, job, options.schemes, log)]
            if not number and options.gpu == "rtx3070" and "acs_hw" in options.schemes:
                rows += conditions(script, settings, text, log)
            for each in rows:
                each["workload"] = name.encode()
            found += rows
        log.clear()
        runs = np.concatenate(found)
        runs["gpu"] = title.encode()
        runs["run"] = np.arange(len(runs)) + sum(map(len, parts))
        parts.append(runs)
        show("\n".join([*script.machine_lines(), stats.format_coherence(runs), ""]))
        show(format_groups(*group_rows(runs, counts, groups)))
    tables = {"runs": np.concatenate(parts)}
    plain = np.array([b"," not in scheme for scheme in tables["runs"]["scheme"].tolist()])
    first.save(
        stats,
        tables,
        show,
        lambda: draw_suite({"runs": tables["runs"][plain]}, "Kernel graphs that depend on the input"),
    )


if __name__ == "__main__":
    run_script(main)
