"""How much of the arithmetic pipes do kernels of training use? ``python -m docs.builders.utilization``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.cli.entry import run_script

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from pysim.cli.script import Script
    from pysim.workloads.validation.kept import Figures

    from .training import Task


def options_of() -> tuple[Script, bool]:
    """Read the command line."""
    from pysim.cli.checks import choice
    from pysim.cli.options import SINGLE_RUN, make_parser
    from pysim.cli.script import Script

    parser = make_parser(
        (__doc__ or "").partition("?")[0] + "?",
        {"gpu": "titan_v", "picture": "yes"},
        ("schemes", *SINGLE_RUN),
        "kernels run alone, in stream order",
        "results/cache keeps what has finished: call it again",
    )
    text = "all, or quick: one recurrent row and one layer (default: all)"
    parser.add_argument("--subset", type=choice("all", "quick"), default="all", metavar="NAME", help=text)
    text = "simulate every kernel anew and replace what results/cache holds of it"
    parser.add_argument("--fresh", action="store_true", help=text)
    args = parser.parse_args()
    return Script.start("utilization", parser, args, ("subset",)), args.fresh


def table_of(found: Mapping[Task, Figures]) -> tuple[NDArray[np.void], list[str]]:
    """Return the table ``utilization``, a row a kernel that could be simulated, and why others could not."""
    import numpy as np

    from pysim import stats

    from .utilization_levels import levels

    good = {task: got for task, got in found.items() if not got.reason}
    columns: dict[str, Any] = {
        name: [got.values[name] for got in good.values()] for name in ("tbs", "time_us", "alu", "issue")
    }
    columns |= {
        "run": 0,
        "network": [getattr(task.row, "kind", "cnn") for task in good],
        "label": [task.row.label for task in good],
        "kernel": [task.kernel for task in good],
        "detail": [got.detail for got in good.values()],
        "level": levels(np.array(columns["alu"])),
    }
    columns["tbs"] = [int(value) for value in columns["tbs"]]
    left_out = [f"{t.row.label}, {t.kernel}: {got.reason}" for t, got in found.items() if got.reason]
    return stats.schema.from_columns("utilization", columns), left_out


def main() -> None:
    """Simulate the kernels, print the table, write the result and its picture."""
    # all is imported in here, where Ctrl-C ends in one line
    from functools import partial

    script, fresh = options_of()

    from pysim import stats
    from pysim.workloads.validation import cache, kept

    from .training import LAYERS, QUICK, RECURRENT, SOURCE, simulated, tasks_of
    from .utilization_levels import draw_utilization, format_utilization

    options, config = script.options, script.config
    stats.check_writable(script.path, options.force, script.configuration)
    log = stats.Log(options.quiet, unit="kernels")
    show = log.say if options.json else print
    tasks = tasks_of(QUICK if script.workload["subset"] == "quick" else (*RECURRENT, *LAYERS))
    keys = {task: cache.key_of("utilization", (SOURCE, repr(task)), config) for task in tasks}
    work = partial(simulated, config)
    found = kept.all_of(work, keys, options.threads, fresh, partial(log, "kernels"))
    log.clear()
    table, left_out = table_of({task: found[task] for task in tasks})
    show(script.machine_lines()[0])
    show("level (busy share of the busiest arithmetic pipe, time of a launch)\n")
    show(format_utilization(table))
    for line in left_out:
        show(f"left out: {line}")
    script.save(
        stats,
        {"utilization": table},
        show,
        lambda: draw_utilization(table, f"Arithmetic utilisation by kernel on {config.device.title}"),
    )


if __name__ == "__main__":
    run_script(main)
