"""How small can the dependence table be before it loses speedup?

examples:
  # a small GRU and a short search
  python configs/table_size.py --networks gru --subset quick
  # every point of an MLP anew
  python configs/table_size.py --networks mlp --subset quick --fresh
"""

from pysim.cli.entry import run_script


def options_of():
    """Read the command line."""
    from pysim.cli.checks import choice
    from pysim.cli.options import SINGLE_RUN, make_parser, names_of
    from pysim.cli.script import Script
    from pysim.workloads.studies.table_size import NETWORKS

    parser = make_parser(
        __doc__,
        {"gpu": "h200", "schemes": ("tb_static",)},
        ("schemes", *SINGLE_RUN),
        "the study decides what is run",
        "results/cache keeps what has finished: call it again",
    )
    text = f"networks of the study: {', '.join(NETWORKS)} (default: all)"
    parser.add_argument(
        "--networks", type=names_of("network", NETWORKS), default=tuple(NETWORKS), metavar="LIST", help=text
    )
    text = "all, or quick: small networks, three values a sweep, a short search (default: all)"
    parser.add_argument("--subset", type=choice("all", "quick"), default="all", metavar="NAME", help=text)
    text = "simulate every point again and replace its entry in results/cache"
    parser.add_argument("--fresh", action="store_true", help=text)
    args = parser.parse_args()
    return Script.start("table_size", parser, args, ("networks", "subset")), args.fresh


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    from functools import partial

    script, fresh = options_of()

    from pysim import stats
    from pysim.cli.many_runs import begin
    from pysim.stats.studies.hardware import draw_table_size, plain, sections
    from pysim.workloads.studies.table_search import Study, tables_of

    options, config = script.options, script.config
    log, show = begin(script, stats, "points")
    study = Study.of(script.workload["networks"], script.workload["subset"] == "quick", config)
    made = study.run(options.threads, fresh, partial(log, "points"))
    log.clear()
    tables = {name: stats.schema.from_columns(name, rows) for name, rows in tables_of(made).items()}
    show("\n".join(script.machine_lines()))
    for name, text in study.texts.items():
        show(f"network   {name}: {text}")
    for section in sections(tables):
        show("\n" + plain(section))
    show("")
    title = f"Size and speed of the dependence table on {config.device.title}"
    script.save(stats, tables, show, lambda: draw_table_size(tables, title))


if __name__ == "__main__":
    run_script(main)
