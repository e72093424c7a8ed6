"""Which TBs of a GRU step may start early, and what does it cost that buffers are used again? ``--help``."""

from pysim.cli.entry import run_script

SIZES = {"hidden": 256, "batch": 8, "timesteps": 4, "layers": 2}
FIRST, LAST = 2, 5  # the cell of the first step, then the three kernels of the second
NAMES = {False: "reused", True: "renamed"}
TITLES = {False: "gates lie where those before lay", True: "every value has memory of its own"}


def options_of():
    """Read the command line."""
    from pysim.cli.options import make_parser, positive_int
    from pysim.cli.script import Script

    defaults = {"gpu": "titan_v", "schemes": ("stream", "graph", "tb_static")}
    parser = make_parser(
        __doc__.partition("?")[0] + "?",
        defaults,
        ("rename", "explain", "sample-us"),
        "it shows the job as it is and renamed",
    )
    for name, default in SIZES.items():
        text = f"{name} of the network (default: {default})"
        parser.add_argument(f"--{name}", type=positive_int, default=default, metavar="N", help=text)
    args = parser.parse_args()
    if args.timesteps * args.layers < 2:
        parser.error("--timesteps: the picture shows the second step: two at least, or two --layers")
    script = Script.start("figure_dependences", parser, args, tuple(SIZES))
    path = script.path
    svgs = {again: path.with_name(f"{path.stem}-{name}.svg") for again, name in NAMES.items()}
    for svg in svgs.values():
        if svg.exists() and not script.options.force:
            parser.error(f"{svg} is there already: --force replaces it")
    return script, svgs


def graph_and_runs(script, job, again, log, show):
    """Return the tables of a job's graph and of its runs under the schemes; print both."""
    import stats
    from pysim.results.graph_tables import GraphTables
    from stats.graph_report import format_dependences

    result = script.simulate(job, tables=script.tables, progress=log)
    study = GraphTables(job, renamed=again)
    graph = {**study.tables(), **study.window(FIRST, LAST), **study.csr()}
    log.clear()
    for note in result.notes:
        log.say(note)
    show(format_dependences(graph))
    listed = result.listed()
    show(stats.format_runs(listed["runs"], [], job.steps) + stats.format_found(listed))
    return graph, listed


def main():
    # all is imported in here, where Ctrl-C ends in one line
    script, svgs = options_of()

    import numpy as np

    import stats
    from pysim.program.rename import renamed
    from pysim.results.graph_schema import TABLES as GRAPH
    from stats.graph_layout import layout
    from stats.graph_picture import to_png, to_svg
    from workloads.networks.rnn import gru

    options, path, size = script.options, script.path, script.workload
    stats.check_writable(path, options.force, script.configuration)
    log = stats.Log(options.quiet)
    show = log.say if options.json else print
    show("\n".join([*script.machine_lines(), ""]))
    job = gru(**size)
    parts, pictures = {}, {}
    for again, one in ((False, job), (True, renamed(job))):
        graph, runs = graph_and_runs(script, one, again, log, show)
        title = f"GRU, {size['hidden']} wide, batch {size['batch']}: {TITLES[again]}"
        pictures[again] = layout(graph, title)
        del graph["names"]  # those of the runs are the same
        for name, rows in {**runs, **graph}.items():
            rows["run"] += len(options.schemes) * again
            parts.setdefault(name, []).append(rows)
    tables = {name: np.concatenate(rows) for name, rows in parts.items()}
    written = script.written(tables) | {n: t for n, t in tables.items() if n in GRAPH}
    picture = None
    try:
        picture = to_png(list(pictures.values()))
    except stats.StoreError as error:  # matplotlib is optional
        log.say(f"no picture: {error}")
    script.store(stats, written, picture)
    for again, svg in svgs.items():
        stats.write_bytes(svg, to_svg(pictures[again]).encode())
    made = [path, path.with_suffix(".json"), *svgs.values()]
    show(f"wrote {', '.join(map(str, made))}" + (f", {path.with_suffix('.png')}" if picture else ""))
    if options.json:
        print(stats.to_json(written))


if __name__ == "__main__":
    run_script(main)
