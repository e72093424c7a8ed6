"""How large a share of a tensor-parallel Transformer's time is communication, today and in the future?

examples:
  # a small baseline, in seconds
  python configs/characterise_communication.py --hidden 1024 --seq 512 --shards 4
  # slower links
  python configs/characterise_communication.py --gbs 200 --latency-us 3
"""

from pysim.cli.entry import run_script

SIZES = {"hidden": 4096, "seq": 2048, "batch": 1, "shards": 8}
MEANING = {
    "hidden": "features of the baseline layer",
    "seq": "tokens of its sequences",
    "batch": "its sequences",
    "shards": "GPUs that share it",
}
GBS, LATENCY_US = 370.0, 1.9  # a test compares them with those of the study
SHOWN_SEQ, SHOWN_BATCH = 2048, 1  # of the table and the picture


def options_of():
    """Read the command line."""
    import math

    from pysim.cli.options import SINGLE_RUN, make_parser, positive_int
    from pysim.cli.script import Script

    parser = make_parser(
        __doc__,
        {"gpu": "h200"},
        (*SINGLE_RUN, "schemes", "replay", "hypothetical"),
        "the script simulates layers in stream order and writes the tables communication and checks",
    )
    for name, default in SIZES.items():
        text = f"{MEANING[name]} (default: {default})"
        parser.add_argument(f"--{name}", type=positive_int, default=default, metavar="N", help=text)
    text = f"GB/s that a GPU sends in a ring all-reduce (default: {GBS:g}, NCCL's on H100 within a node)"
    parser.add_argument("--gbs", type=float, default=GBS, metavar="GB/S", help=text)
    text = f"latency of a step of the ring, assumed for any number of GPUs (default: {LATENCY_US:g}, NCCL's)"
    parser.add_argument("--latency-us", type=float, default=LATENCY_US, metavar="US", help=text)
    args = parser.parse_args()
    if not (args.gbs > 0 and math.isfinite(args.gbs)):
        parser.error(f"--gbs: {args.gbs:g}: must be positive")
    if not (args.latency_us >= 0 and math.isfinite(args.latency_us)):
        parser.error(f"--latency-us: {args.latency_us:g}: must be 0 or more")
    keys = (*SIZES, "gbs", "latency_us")
    return Script.start("characterise_communication", parser, args, keys)


def simulated(script, shape, ring, hints, log):
    """Simulate a layer in stream order; return the times of its parts."""
    from pysim.errors import WorkloadError
    from pysim.workloads.studies.communication import layer_step, part_times

    job, origins = layer_step(shape, ring, hints)
    listed = script.simulate(job, tables=("kernels",), progress=log).listed()
    (run,) = listed["runs"]
    if run["status"] != b"ok":
        raise WorkloadError(f"{job.name}: {run['reason'].decode()}")
    return part_times(listed["kernels"], origins)


def table_of(name, rows):
    """Return a declared table from dicts."""
    from pysim import stats

    columns = [column for column in stats.schema.dtype(name).names if column != "run"]
    return stats.schema.from_columns(name, {"run": 0} | {key: [row[key] for row in rows] for key in columns})


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    script = options_of()

    # slow imports: only after the options are checked
    from functools import partial

    from pysim import stats
    from pysim.cli.entry import reading_input
    from pysim.stats.studies import communication as text
    from pysim.stats.studies.communication_picture import draw_communication
    from pysim.stats.studies.hardware import plain
    from pysim.workloads.kernels.machine_hints import MachineHints
    from pysim.workloads.studies import communication as study

    chosen = script.workload
    stats.check_writable(script.path, script.options.force, script.configuration)
    log = stats.Log(script.options.quiet)
    show = log.say if script.options.json else partial(print, flush=True)
    hints, ring = MachineHints.of(script.config), study.Ring(chosen["gbs"], chosen["latency_us"])
    with reading_input():
        baseline = study.Shape(*(chosen[name] for name in SIZES))
        study.device_of(hints, "layer")
    show(script.machine_lines()[0])
    show(
        "workload  training step of a pre-LN GPT layer as one of its shards, fp16, heads of 128, stream order"
    )
    show(
        f"links     assumed: rings, a GPU sends at {ring.gbs:g} GB/s, a step takes {ring.latency_us:g} us more"
    )
    times = simulated(script, baseline, ring, hints, log)
    checks = study.check_rows(times, baseline, baseline, times)
    for shape in study.checked_shapes(baseline):
        checks += study.check_rows(times, baseline, shape, simulated(script, shape, ring, hints, log))
    log.clear()
    tables = {
        "communication": table_of("communication", study.sweep_rows(times, baseline, ring)),
        "checks": table_of("checks", checks),
    }
    for section in text.errors(tables["checks"], study.PUBLISHED_ERRORS):
        show("\n" + plain(section))
    show("\nall-reduces are delays: their error measures the latency term alone\n")
    shown = text.under_rule(tables["communication"], SHOWN_SEQ, SHOWN_BATCH, study.FEATURES_A_SHARD)
    rule = f"sequences of {SHOWN_SEQ:,}, batch {SHOWN_BATCH}, shards = features / {study.FEATURES_A_SHARD}"
    show(plain(text.shares(shown, f"projected layers: {rule}")) + "\n")
    show(
        "x2, x4: compute grows that much more than bandwidth; hidden DP: part of the data-parallel all-reduce"
    )
    show("of the layer's gradients, at the bandwidth of the same links, that its backward compute can hide\n")
    show(plain(text.ranges(tables["communication"], study.PUBLISHED_SHARE)) + "\n")
    title = f"Projected from a layer on {script.config.device.title}\n{rule}"
    script.save(stats, tables, show, lambda: draw_communication(shown, title, study.PUBLISHED_SHARE))


if __name__ == "__main__":
    run_script(main)
