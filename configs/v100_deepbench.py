"""How close does the simulator come to a real V100 on DeepBench's fp32 rows? ``--help`` lists the options."""

from pysim.options import make_parser, positive_int, run_script
from pysim.script import Script, choice

SUITES = ("gemm", "rnn")


def tell(show, title, errors, null):
    """Print one line of the summary."""
    from workloads.deepbench import summary

    mine, other = summary(errors), summary(null)
    figures = "".join(f"{mine[name]:9.1%}" for name in ("mean", "median", "p90", "worst", "bias"))
    beside = "".join(f"{other[name]:9.1%}" for name in ("mean", "p90", "worst"))
    show(f"{title:<24}{len(errors):5d}{figures}  {beside}")


def run_suite(suite, script, show):
    """Simulate the rows of a suite, print them and a summary; return rows of the table ``validation``."""
    import numpy as np

    from workloads import deepbench

    every, quick = script.workload["every"], script.workload["subset"] == "quick"
    measured = deepbench.rows(suite)
    (launch, rate, bandwidth), null = deepbench.roofline(measured)
    chosen = [i for i in range(0, len(measured), every) if not quick or measured[i].quick]
    cases = [measured[i] for i in chosen]
    show(f"\n{suite:<32}{'measured us':>13}{'simulated us':>14}{'error':>9}{'roofline':>10}")
    found, errors = [], np.full(len(measured), np.nan)
    results = deepbench.outcomes(cases, script.config, min(script.options.threads, len(cases)))
    for number, row, got in zip(chosen, cases, results, strict=True):
        time, error, status = got.time_us, got.time_us / row.measured_us - 1, "ok"
        if got.reason:
            time, error, status = 0.0, 1.0, f"unsupported: {got.reason}"
        errors[number] = error
        detail = f"{got.tile}{' (sampled)' if got.how == 'sampled' else ''}"
        found.append(
            (0, suite, row.case, row.group, "stream", "us", row.measured_us, time, error, status, "", detail)
        )
        show(
            f"{row.case:<32}{row.measured_us:13,.1f}{time:14,.1f}{error:9.1%}{null[number]:10.1%}"
            f"  {got.reason or detail}"
        )
    names = "".join(f"{name:>9}" for name in ("mean", "median", "p90", "worst", "bias"))
    beside = "".join(f"{name:>9}" for name in ("mean", "p90", "worst"))
    show(f"\n{'absolute error':<24}{'rows':>5}{names}  {beside} (roofline)")
    done = np.isfinite(errors)
    for title, rows in deepbench.classes(measured).items():
        if (rows & done).any():
            tell(show, title, errors[rows & done], null[rows & done])
    tell(show, "all that were simulated", errors[done], null[done])
    part = np.abs(deepbench.roofline_by_group(measured)[done]).mean()
    show(
        f"roofline: {launch:g} us + max of {rate:g} TFLOP/s and {bandwidth:g} TB/s, fitted to all"
        f" {len(measured)} rows; fitted to each group of rows alone its mean is {part:.1%}"
    )
    return found


def draw(found, path):
    """Draw simulated against measured times beside the result file."""
    import io

    from matplotlib.figure import Figure

    import stats

    figure = Figure(figsize=(6, 6))
    axes = figure.add_subplot()
    for suite in dict.fromkeys(row[1] for row in found):
        good = [row for row in found if row[1] == suite and row[9] == "ok"]
        axes.loglog([row[6] for row in good], [row[7] for row in good], ".", label=suite)
    ends = [min(row[6] for row in found), max(row[6] for row in found)]
    axes.loglog(ends, ends, "k-", linewidth=0.7)
    axes.set(xlabel="measured (us)", ylabel="simulated (us)", title="DeepBench fp32, V100")
    axes.legend()
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=120)
    stats.write_bytes(path, image.getvalue())


def main():
    # imported here, where Ctrl-C already ends in one line
    import stats

    parser = make_parser(__doc__.partition("?")[0] + "?", {"gpu": "v100", "schemes": ("stream",)})
    text = "gemm (160 rows) or rnn (forward passes of at most 200 steps); default: both"
    parser.add_argument("--suite", type=choice(*SUITES), metavar="NAME", help=text)
    text = "simulate only every Nth row (default: 1, all)"
    parser.add_argument("--every", type=positive_int, default=1, metavar="N", help=text)
    text = "all, or quick: rows of less than 10 GFLOP (default: all)"
    parser.add_argument("--subset", type=choice("all", "quick"), default="all", metavar="NAME", help=text)
    script = Script.start("v100_deepbench", parser, parser.parse_args(), ("suite", "every", "subset"))
    options = script.options
    if options.schemes != ("stream",) or options.explain is not None:
        parser.error("the rows were measured in stream order, each alone: no --schemes and no --explain here")
    stats.check_writable(script.path, options.force, script.configuration)
    log = stats.Log(options.quiet)
    show = log.say if options.json else print

    found = []
    for line in script.machine_lines():
        show(line)
    for suite in SUITES if script.workload["suite"] is None else (script.workload["suite"],):
        found += run_suite(suite, script, show)
    names = [column.name for column in stats.schema.VALIDATION]
    columns = dict(zip(names, zip(*found, strict=True), strict=True))
    tables = {"validation": stats.schema.from_columns("validation", columns)}
    stats.write(script.path, tables, {"script": script.name}, script.configuration, options.force)
    wrote = f"wrote {script.path}, {script.path.with_suffix('.json')}"
    try:
        draw(found, script.path.with_suffix(".png"))
        wrote += f", {script.path.with_suffix('.png')}"
    except ImportError as error:  # matplotlib is optional
        log.say(f"no picture: {error}")
    show(wrote)
    if options.json:
        print(stats.to_json(tables))


if __name__ == "__main__":
    run_script(main)
