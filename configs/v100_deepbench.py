"""How close does the simulator come to a real V100 on DeepBench's fp32 rows? ``--help`` lists the options."""

from pysim.options import make_parser, positive_int, run_script
from pysim.script import Script, choice

SUITES = ("gemm", "rnn")
# the launch of a product that is longer than this does not show
LONG_FLOPS = 4e9


def simulated_us(row, script):
    """Time of one product in a row of equal ones, or of a whole forward pass, as DeepBench measures them."""
    from pysim import simulate
    from workloads.registry import make

    repeat = 2 if row.suite == "gemm" and row.flops < LONG_FLOPS else 1
    job = make(row.workload + (f",repeat={repeat}" if row.suite == "gemm" else ""))
    result = simulate(script.config, job, "stream", threads=script.options.threads, tables="kernels")
    if result.interrupted:
        raise KeyboardInterrupt
    run = result.tables()["runs"][0]
    if run["status"] != b"ok":
        return 0.0, run["reason"].decode()
    if row.suite == "rnn":
        return float(run["time_us"]), ""
    ends = result.tables()["kernels"]["last_end_us"]
    if repeat == 2:
        return float(ends[1] - ends[0]), ""
    return float(ends[0] - script.config.number("gpu.cp.launch") / 1e3), ""


def main():
    # imported here, where Ctrl-C already ends in one line
    import numpy as np

    import stats
    from workloads import deepbench

    parser = make_parser(__doc__.partition("?")[0] + "?", {"gpu": "v100", "schemes": ("stream",)})
    text = "gemm (160 rows) or rnn (forward passes of at most 200 steps); default: both"
    parser.add_argument("--suite", type=choice(*SUITES), metavar="NAME", help=text)
    text = "simulate only every Nth row (default: 1, all)"
    parser.add_argument("--every", type=positive_int, default=1, metavar="N", help=text)
    script = Script.start("v100_deepbench", parser, parser.parse_args(), ("suite", "every"))
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
        cases = deepbench.rows(suite)
        constants, null = deepbench.roofline(cases)
        show(f"\n{suite:<32}{'measured us':>13}{'simulated us':>14}{'error':>9}{'roofline':>10}")
        errors = []
        every = script.workload["every"]
        chosen = range(0, len(cases), every)
        for number in chosen:
            row = cases[number]
            time, reason = simulated_us(row, script)
            error = time / row.measured_us - 1 if not reason else 1.0
            errors.append(error)
            status = f"unsupported: {reason}" if reason else "ok"
            found.append(
                (0, suite, row.case, row.group, "stream", "us", row.measured_us, time, error, status, "")
            )
            show(
                f"{row.case:<32}{row.measured_us:13,.1f}{time:14,.1f}{error:9.1%}{null[number]:10.1%}"
                + (f"  {status}" if reason else "")
            )
        log.clear()
        launch, rate, bandwidth = constants
        part = "" if every == 1 else f" (one row in {every})"
        show(
            f"mean absolute error{part}: simulated {np.abs(errors).mean():.1%}, roofline"
            f" {np.abs(null[list(chosen)]).mean():.1%} ({launch:g} us + max of {rate:g} TFLOP/s and"
            f" {bandwidth:g} TB/s, fitted to all {len(cases)} rows)"
        )
    names = [column.name for column in stats.schema.VALIDATION]
    columns = dict(zip(names, zip(*found, strict=True), strict=True))
    tables = {"validation": stats.schema.from_columns("validation", columns)}
    stats.write(script.path, tables, {"script": script.name}, script.configuration, options.force)
    show(f"wrote {script.path}, {script.path.with_suffix('.json')}")
    if options.json:
        print(stats.to_json(tables))


if __name__ == "__main__":
    run_script(main)
