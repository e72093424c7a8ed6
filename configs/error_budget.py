"""How much of the simulator's error does each modelled mechanism remove?

examples:
  # one mechanism, over kernels measured on an H200
  python configs/error_budget.py --suite h200-kernels --mechanisms l2_partitions
  # two mechanisms of DRAM, as JSON
  python configs/error_budget.py --suite h200-kernels --mechanisms dram_rows,dram_turnaround --json
"""

from functools import partial

from pysim.cli.entry import run_script

SUITES = ("h200-kernels", "deepbench-gemm")


def simulated(suite, config, steps, cases, threads, log):
    """Simulate all cases with each mechanism off; return the outcomes by mechanism and task."""
    from pysim.workloads.validation.budget import jobs_of, timed
    from pysim.workloads.validation.parallel import run_all

    jobs = jobs_of(steps, cases)
    found = {step.off: {} for step in steps}
    work = partial(timed, suite, config)
    log(suite, 0, len(jobs))
    for done, (number, outcome) in enumerate(run_all(work, jobs, threads), 1):
        step, task = jobs[number]
        found[step.off][task] = outcome
        if outcome.trace:
            log.say(f"{step.off}, {', '.join(task)}: {outcome.reason}\n{outcome.trace}")
        log(suite, done, len(jobs))
    log.clear()
    return found


def table_of(suite, steps, cases, found):
    """Return the table ``budget``: for each mechanism a row a class of kernels, and one for all of them."""
    import numpy as np

    from pysim import stats
    from pysim.workloads.validation.budget import errors

    kinds = np.array([case.kind for case in cases])
    base = errors(cases, found[steps[0].off])
    rows = []
    for step in steps:
        mine, seconds = errors(cases, found[step.off]), found[step.off]
        for kind in ("all", *dict.fromkeys(kinds.tolist())):
            here = np.ones(len(cases), bool) if kind == "all" else kinds == kind
            tasks = {case.task for case, chosen in zip(cases, here, strict=True) if chosen}
            spent = sum(seconds[task].seconds for task in tasks)
            whole = sum(found[steps[0].off][task].seconds for task in tasks)
            change = (1 + mine[here]) / (1 + base[here]) - 1
            figures = (np.abs(mine[here]).mean(), mine[here].mean(), change.mean(), spent / max(whole, 1e-9))
            rows.append((0, suite, step.off, step.part, kind, int(here.sum()), *map(float, figures)))
    names = [column.name for column in stats.schema.BUDGET]
    return stats.schema.from_columns("budget", dict(zip(names, zip(*rows, strict=True), strict=True)))


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    from pysim.cli.checks import choice
    from pysim.cli.options import SINGLE_RUN, make_parser, names_of
    from pysim.cli.script import Script
    from pysim.machine.mechanisms import MECHANISMS

    parser = make_parser(
        __doc__,
        {"gpu": None},
        ("schemes", *SINGLE_RUN),
        "the suite decides what is run",
        "results/cache keeps what has finished: call it again",
    )
    parser.add_argument(
        "--suite",
        type=choice(*SUITES),
        default=SUITES[0],
        metavar="NAME",
        help=f"cases to run: {' or '.join(SUITES)} (default: {SUITES[0]})",
    )
    text = "mechanisms of `pysim mechanisms` to switch off, one at a time (default: all)"
    parser.add_argument(
        "--mechanisms",
        type=names_of("mechanism", MECHANISMS),
        default=tuple(MECHANISMS),
        metavar="LIST",
        help=text,
    )
    args = parser.parse_args()

    from pysim import stats
    from pysim.cli.many_runs import begin
    from pysim.stats.studies.budget import format_budget
    from pysim.workloads.validation.budget import short, steps_of
    from pysim.workloads.validation.suites import SUITES as KNOWN
    from pysim.workloads.validation.suites import cases_of

    suite = KNOWN[args.suite]
    args.gpu = args.gpu or suite.gpu
    script = Script.start("error_budget", parser, args, ("suite", "mechanisms"))
    options = script.options
    log, show = begin(script, stats, "runs")
    cases, steps = short(cases_of(suite)[0]), steps_of(args.mechanisms, script.config)
    for line in script.machine_lines():
        show(line)
    show(f"suite     {suite.name}: {len(cases)} short cases, {len(steps)} runs of each\n")
    table = table_of(
        suite.name, steps, cases, simulated(suite.name, script.config, steps, cases, options.threads, log)
    )
    show(format_budget(table))
    script.save(stats, {"budget": table}, show, about={"suite": suite.name})


if __name__ == "__main__":
    run_script(main)
