"""Which TBs of a GRU step can start early, and which dependences exist only because buffers are reused?

examples:
  # a small GRU
  python configs/figure_dependences.py --hidden 256 --batch 8
  # with the picture of its TBs
  python configs/figure_dependences.py --hidden 512 --batch 8 --picture yes
"""

from pysim.cli.entry import run_script

SIZES = {"hidden": 256, "batch": 8, "timesteps": 4, "layers": 2}
MEANING = {
    "hidden": "hidden units",
    "batch": "sequences a batch",
    "timesteps": "time steps",
    "layers": "layers",
}
FIRST, LAST = 2, 5  # kernels of the picture: gru_cell of step 1, then the three kernels of step 2
NAMES = {False: "reused", True: "renamed"}
TITLES = {False: "gate buffers are reused", True: "every value has its own memory"}


def options_of():
    """Read the command line."""
    from pysim.cli.options import make_parser, positive_int
    from pysim.cli.script import Script
    from pysim.errors import OutputError

    defaults = {"gpu": "titan_v", "schemes": ("stream", "graph", "tb_static"), "picture": "yes"}
    parser = make_parser(
        __doc__,
        defaults,
        ("rename", "explain", "sample-us"),
        "this script compares the job with and without --rename",
    )
    for name, default in SIZES.items():
        text = f"{MEANING[name]} (default: {default})"
        parser.add_argument(f"--{name}", type=positive_int, default=default, metavar="N", help=text)
    args = parser.parse_args()
    if args.timesteps * args.layers < 2:
        parser.error("--timesteps: must be at least 2 with one layer, as the picture shows the second step")
    script = Script.start("figure_dependences", parser, args, tuple(SIZES))
    path = script.path
    svgs = {again: path.with_name(f"{path.stem}-{name}.svg") for again, name in NAMES.items()}
    for svg in svgs.values():
        if svg.exists() and not script.options.force:
            raise OutputError(f"{svg} is there already: --force replaces it")
    return script, svgs


def graph_and_runs(script, job, again, log, show):
    """Print and return the tables of a job's dependence graph and of its runs under the schemes."""
    from pysim import stats
    from pysim.results.graph_tables import GraphTables
    from pysim.stats.text.dependences import format_dependences

    result = script.simulate(job, tables=script.tables_to_simulate, progress=log)
    study = GraphTables(job, renamed=again)
    graph = {**study.tables(), **study.window(FIRST, LAST), **study.csr()}
    log.clear()
    for note in result.notes:
        log.say(note)
    show(format_dependences(graph))
    listed = result.listed()
    show(stats.format_runs(listed["runs"], [], job.steps) + stats.format_edge_discovery(listed))
    return graph, listed


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    script, svgs = options_of()

    import numpy as np

    from pysim import stats
    from pysim.cli.many_runs import begin
    from pysim.program.rename import renamed
    from pysim.results.graph_schema import TABLES as GRAPH
    from pysim.stats.pictures.graph_layout import layout
    from pysim.stats.pictures.graph_picture import to_png, to_svg
    from pysim.workloads.networks.rnn import gru

    options, path, size = script.options, script.path, script.workload
    log, show = begin(script, stats)
    show("\n".join([*script.machine_lines(), ""]))
    job = gru(**size)
    parts, pictures = {}, {}
    for again, one in ((False, job), (True, renamed(job))):
        graph, runs = graph_and_runs(script, one, again, log, show)
        title = f"GRU, {size['hidden']} wide, batch {size['batch']}: {TITLES[again]}"
        pictures[again] = layout(graph, title)
        del graph["names"]  # the runs have the same names
        for name, rows in {**runs, **graph}.items():
            rows["run"] += len(options.schemes) * again
            parts.setdefault(name, []).append(rows)
    tables = {name: np.concatenate(rows) for name, rows in parts.items()}
    written = script.tables_to_write(tables) | {n: t for n, t in tables.items() if n in GRAPH}
    picture = None
    try:
        picture = to_png(list(pictures.values())) if script.options.draws else None
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
