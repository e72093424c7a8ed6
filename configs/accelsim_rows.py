"""How close does pysim, set to Accel-Sim's parameters, come to the cycles that Accel-Sim reports?

examples:
  # two inputs, each once
  python configs/accelsim_rows.py --inputs vecadd,sgemm --repeats 1
  # two kernels in one stream and in two, with 64 SMs
  python configs/accelsim_rows.py --inputs pair_1stream,pair_2streams --repeats 1 --set gpu.sms=64
"""

from pysim.cli.entry import run_script


def convert_all(cases, folder):
    """Write the SASS traces of the inputs into a folder; return the converted file of each."""
    from pathlib import Path

    from pysim.trace.convert import convert
    from pysim.workloads.validation import peer_traces

    made = {}
    for case in cases:
        made[case] = Path(folder) / f"{case}.pysim"
        convert(peer_traces.write(peer_traces.INPUTS[case], Path(folder) / case), made[case])
    return made


def replay(path, config, threads, repeats):
    """Load and simulate a converted trace ``repeats`` times; return tables and seconds of the fastest."""
    from pysim import simulate
    from pysim.clock import Clock
    from pysim.trace.converted_file import ConvertedTrace
    from pysim.trace.job import trace_job

    best, least = None, float("inf")
    for _ in range(repeats):
        clock = Clock()
        with clock.phase("load"):
            job = trace_job(ConvertedTrace(path))
        tables = simulate(config, job, "stream", threads=threads, tables="sm,l2", clock=clock).tables()
        host = tables["host"]
        seconds = float(host["load_seconds"][0] + host["simulate_seconds"][0])
        if seconds < least:
            best, least = tables, seconds
    return best, least


def options_of():
    """Read the command line."""
    from pysim.cli.options import SINGLE_RUN, make_parser, names_of, positive_int
    from pysim.cli.script import Script
    from pysim.workloads.validation import peer_traces

    names = list(peer_traces.INPUTS)
    parser = make_parser(
        __doc__,
        {"gpu": None},
        ("schemes", *SINGLE_RUN),
        "Accel-Sim runs in stream order only, and each row is a trace of its own",
        "each row is timed as a whole; --inputs selects some",
    )
    text = f"inputs to run: {', '.join(names)} (default: all)"
    parser.add_argument(
        "--inputs", type=names_of("input", names), default=tuple(names), metavar="LIST", help=text
    )
    text = "repeats of load and simulate, of which the fastest counts (default: 5)"
    parser.add_argument("--repeats", type=positive_int, default=5, metavar="N", help=text)
    args = parser.parse_args()
    # without --gpu each row has its own device; without --threads the speed is that of one thread
    args.device, args.gpu = args.gpu, args.gpu or peer_traces.DEVICES["TITANV"]
    args.threads = args.threads or 1
    return args, Script.start("accelsim_rows", parser, args, ("inputs", "device"))


def run_rows(args, script, show, found, parts):
    """Replay the traces of the rows and print a line each.

    Adds rows of the table ``validation`` to ``found``, and tables of each replay to the lists of ``parts``.
    """
    import tempfile

    from pysim.machine.config import Config
    from pysim.machine.devices import device
    from pysim.workloads.validation import peer_traces

    measured = peer_traces.rows()
    baseline = peer_traces.baseline_model(measured, 3)[1]
    show(
        f"{'input':<22}{'device':<18}{'peer':>9}{'cycles':>9}{'error':>8}{'baseline':>10}"
        f"{'peer kinstr/s':>15}{'Minstr/s':>10}{'speed-up':>10}"
    )
    with tempfile.TemporaryDirectory() as folder:
        converted = convert_all(args.inputs, folder)
        for row, beside in zip(measured, baseline, strict=True):
            if row.case not in args.inputs:
                continue
            name = args.device or row.device
            config = Config.resolve(device(name), script.options.overrides())
            tables, seconds = replay(converted[row.case], config, script.options.threads, args.repeats)
            for key, rows in parts.items():
                tables[key]["run"] = len(found)
                rows.append(tables[key])
            cycles, rate = float(tables["runs"]["cycles"][0]), row.instructions / seconds
            sm, l2 = tables["sm"], tables["l2"]
            sectors = int(sm["load_sectors"].sum() + sm["store_sectors"].sum())
            moved = f"l2 {sectors} dram {l2['dram_read_sectors'].sum()}"
            error = cycles / row.cycles - 1
            what = (len(found), "accelsim", row.name, name, "stream", row.case, "stream", "cycles")
            values = (row.cycles, cycles, error, "ok", "", (1 + beside) * row.cycles, row.cycles, cycles)
            found.append((*what, *values, moved))
            speed = f"{'-':>15}{rate / 1e6:10.1f}{'-':>10}"
            if row.rate == row.rate:
                speed = f"{row.rate / 1e3:15.1f}{rate / 1e6:10.1f}{rate / row.rate:9.0f}x"
            show(f"{row.name:<22}{name:<18}{row.cycles:9,}{cycles:9,.0f}{error:8.1%}{beside:10.1%}{speed}")


def tables_of(found, parts):
    """Return the tables of the rows that have been replayed; nothing if there are none."""
    import numpy as np

    from pysim import stats

    if not found:
        return {}
    names = [column.name for column in stats.schema.VALIDATION]
    columns = dict(zip(names, zip(*found, strict=True), strict=True))
    tables = {name: np.concatenate(rows[: len(found)]) for name, rows in parts.items()}
    return tables | {"validation": stats.schema.from_columns("validation", columns)}


def main():
    args, script = options_of()

    # slow imports: only after the options are checked
    import numpy as np

    from pysim import stats
    from pysim.cli.interrupts import keeping
    from pysim.cli.many_runs import begin

    options = script.options
    _, show = begin(script, stats)
    found, parts = [], {"runs": [], "host": []}
    with keeping(script, stats, lambda: tables_of(found, parts)):
        run_rows(args, script, show, found, parts)
    errors = np.abs([row[10] for row in found])
    text = f"absolute error: mean {errors.mean():.1%}, worst {errors.max():.1%}"
    show(f"{text} (baseline model: fitted to all rows)")
    tables = tables_of(found, parts)
    script.store(stats, tables)
    show(f"wrote {script.path}, {script.path.with_suffix('.json')}")
    if options.json:
        print(stats.to_json(tables))


if __name__ == "__main__":
    run_script(main)
