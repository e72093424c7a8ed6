"""How close are simulated times to times measured on real GPUs?

examples:
  # some plain kernels on an H200
  python configs/validate.py --suite h200-kernels --subset quick
  # pairs of GEMMs on an A100, every case anew
  python configs/validate.py --suite cusync-mlp --subset quick --fresh
"""

from functools import partial
from pathlib import Path

from pysim.cli.entry import run_script


def simulated(suite, cases, script, fresh, log):
    """Return the outcome of each task: from results/cache if it is there, otherwise simulated."""
    from pysim.workloads.validation import cache
    from pysim.workloads.validation.parallel import run_all, run_task
    from pysim.workloads.validation.suites import tasks_of

    tasks = tasks_of(cases)
    keys = {task: cache.key_of(suite.name, task, script.config) for task in tasks}
    known = {} if fresh else {task: found for task in tasks if (found := cache.get(keys[task])) is not None}
    left = [task for task in tasks if task not in known]
    if known:
        log.say(f"{suite.name}: {len(known)} of {len(tasks)} simulations read from results/cache")
    if left:
        log(suite.name, 0, len(left))
    work = partial(run_task, suite.name, script.config)
    for done, (number, outcome) in enumerate(run_all(work, left, script.options.threads), 1):
        task = left[number]
        known[task] = outcome
        if outcome.trace:
            log.say(f"{', '.join(task)}: {outcome.reason}\n{outcome.trace}")
        else:
            cache.put(keys[task], outcome)
        log(suite.name, done, len(left))
    log.clear()
    return known


def table_of(suite, cases, baselines, outcomes, clean):
    """Return the table ``validation``: a row a case, in the order of the measured table."""
    from pysim import stats

    rows = []
    for number, case in enumerate(cases):
        got = outcomes[case.task]
        time = got.times_us.get(case.part, 0.0)
        status, error = ("ok", time / case.measured_us - 1) if not got.reason else ("unsupported", 1.0)
        about = (suite.name, case.case, case.group, case.mode, case.kind, case.scheme, "us")
        baseline, cycles = baselines[0].times[number], got.cycles.get(case.part, 0.0)
        figures = (case.measured_us, time, error, status, case.split, baseline, case.measured_cycles, cycles)
        rows.append((0, *about, *figures, clean(got.reason or got.detail)))
    names = [column.name for column in stats.schema.VALIDATION]
    return stats.schema.from_columns("validation", dict(zip(names, zip(*rows, strict=True), strict=True)))


def report(suite, table, baselines, show):
    """Print the cases, their errors by class, and the errors of the baseline models."""
    from pysim.stats import validation

    show(validation.format_rows(table))
    show(validation.format_errors(table, baselines))
    if suite.compare:
        show(validation.COMPARISONS[suite.compare](table, suite.base))


def options_of(suites):
    """Read the command line; return suite, cases, number of rows left out, script and ``--fresh``."""
    from pysim.cli.checks import choice
    from pysim.cli.options import SINGLE_RUN, make_parser
    from pysim.cli.script import Script
    from pysim.workloads.validation.cases import SUBSETS, with_choice
    from pysim.workloads.validation.suites import cases_of

    width = max(map(len, suites))
    lines = [f"  {suite.name:<{width}}  {suite.gpu}: {suite.doc}" for suite in suites.values()]
    parser = make_parser(
        __doc__,
        {"gpu": None},
        ("schemes", *SINGLE_RUN),
        "the suite decides what is run under which scheme",
        "results/cache keeps what has finished: call it again",
    )
    parser.epilog = "\n".join(["suites:", *lines, "", parser.epilog or ""])
    parser.add_argument(
        "--suite",
        type=choice(*suites),
        metavar="NAME",
        required=True,
        help="measurements to compare with, listed below",
    )
    text = "a file with the columns of the suite's table, in place of it"
    parser.add_argument("--measured", type=Path, metavar="FILE.csv", help=text)
    text = "; ".join(f"{name}: {about}" for name, about in SUBSETS.items()) + " (default: all)"
    parser.add_argument("--subset", type=choice(*SUBSETS), default="all", metavar="NAME", help=text)
    text = "kernels as measured (told), or as chosen by size (predicted): of suites that have the choice"
    parser.add_argument("--choice", metavar="NAME", help=text)
    text = "simulate every case again and replace its entry in results/cache"
    parser.add_argument("--fresh", action="store_true", help=text)
    args = parser.parse_args()
    suite = suites[args.suite]
    args.gpu = args.gpu or suite.gpu
    every, left_out, args.table = cases_of(suite, args.measured)
    if suite.choices:
        args.choice = suite.choices[0] if args.choice is None else args.choice
    if args.choice is not None:
        every = with_choice(suite, every, args.choice)
    keys = ("suite", "subset", "table", *(("choice",) if suite.choices else ()))
    script = Script.start("validate", parser, args, keys)
    if not any(case.within(args.subset) for case in every):
        parser.error(f"--subset {args.subset}: none of the {len(every)} cases of this table is in it")
    return suite, every, left_out, script, args.fresh


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    import numpy as np

    from pysim import stats
    from pysim.cli.many_runs import begin
    from pysim.workloads.validation.suites import SUITES

    suite, every, left_out, script, fresh = options_of(SUITES)
    log, show = begin(script, stats, "rows")

    chosen = [at for at, case in enumerate(every) if case.within(script.workload["subset"])]
    cases = [every[at] for at in chosen]
    # baseline models are fitted to all cases of the table, also if --subset simulates fewer
    at = np.array(chosen)
    baselines = [stats.validation.Baseline(each.name, each.times_us[at]) for each in suite.baselines(every)]
    for line in script.machine_lines():
        show(line)
    show(f"suite     {suite.name}: {suite.doc}; {len(cases)} of {len(every)} cases, {left_out} rows left out")
    show(f"note      {suite.note}\n")
    outcomes = simulated(suite, cases, script, fresh, log)
    table = table_of(suite, cases, baselines, outcomes, lambda text: " ".join(text.split()))
    report(suite, table, baselines, show)
    title = f"{suite.name} on {script.config.device.name}"
    draw = partial(stats.draw_scatter, table, title)
    script.save(stats, {"validation": table}, show, draw, {"suite": suite.name})


if __name__ == "__main__":
    run_script(main)
