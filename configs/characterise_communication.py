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
    text = f"GB/s that a GPU sends in a ring all-reduce (default: {GBS:g}, NCCL's rings on H100 in a node)"
    parser.add_argument("--gbs", type=float, default=GBS, metavar="GB/S", help=text)
    text = f"latency of a step of the ring, assumed for any number of GPUs (default: {LATENCY_US:g}, NCCL's)"
    parser.add_argument("--latency-us", type=float, default=LATENCY_US, metavar="US", help=text)
    args = parser.parse_args()
    for option, value, (least, most) in (
        ("--gbs", args.gbs, (1, 1e6)),
        ("--latency-us", args.latency_us, (0, 1e4)),
    ):
        if not least <= value <= most:
            parser.error(f"{option}: {value:g}: must be from {least:g} to {most:g}")
    keys = (*SIZES, "gbs", "latency_us")
    return Script.start("characterise_communication", parser, args, keys)


def simulated(script, built, log):
    """Simulate a layer that was built in stream order; return the times of its parts."""
    from pysim.cli.many_runs import simulate_in_order
    from pysim.workloads.studies.communication import part_times

    job, origins = built
    _, listed = simulate_in_order(script, job, ("kernels",), log)
    return part_times(listed["kernels"], origins)


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    script = options_of()

    # slow imports: only after the options are checked
    from pysim import stats
    from pysim.cli.entry import reading_input
    from pysim.cli.many_runs import begin
    from pysim.stats.studies import communication as text
    from pysim.stats.studies.communication_picture import draw_communication
    from pysim.stats.studies.hardware import plain
    from pysim.workloads.kernels.machine_hints import MachineHints
    from pysim.workloads.studies import communication as study

    chosen = script.workload
    log, show = begin(script, stats)
    hints, ring = MachineHints.of(script.config), study.Ring(chosen["gbs"], chosen["latency_us"])
    with reading_input():
        baseline = study.Shape(*(chosen[name] for name in SIZES))
        built = study.layer_step(baseline, ring, hints)
    show(script.machine_lines()[0])
    show("workload  training step of a pre-LN GPT layer, one of its shards, fp16, heads of 128, stream order")
    sent = f"a GPU sends at {ring.gbs:g} GB/s, a step adds {ring.latency_us:g} us"
    show(f"links     rings; assumed of any number of GPUs: {sent}")
    times = simulated(script, built, log)
    checks = study.check_rows(times, baseline, baseline, times)
    for shape in study.checked_shapes(baseline):
        built = study.layer_step(shape, ring, hints)
        checks += study.check_rows(times, baseline, shape, simulated(script, built, log))
    log.clear()
    projected = study.sweep_rows(times, baseline, ring)
    tables = {
        "communication": stats.schema.from_rows("communication", projected, run=0),
        "checks": stats.schema.from_rows("checks", checks, run=0),
    }
    for section in text.errors(tables["checks"], study.PUBLISHED_ERRORS):
        show("\n" + plain(section))
    show("\nall-reduces are delays: their error measures latency alone, of steps and of launches\n")
    shown = text.under_rule(tables["communication"], SHOWN_SEQ, SHOWN_BATCH, study.FEATURES_A_SHARD)
    rule = f"sequences of {SHOWN_SEQ:,}, batch {SHOWN_BATCH}, shards = features / {study.FEATURES_A_SHARD}"
    show(plain(text.shares(shown, f"projected layers: {rule}")) + "\n")
    show("x2, x4: compute grows so much more than bandwidth; DP hidden: how much of an all-reduce of the")
    show("layer's gradients among replicas, over links as fast, its backward compute can hide\n")
    show(plain(text.ranges(tables["communication"], study.PUBLISHED_SHARE)) + "\n")
    title = f"Projected from a layer on {script.config.device.title}\n{rule}"
    script.save(stats, tables, show, lambda: draw_communication(shown, title, study.PUBLISHED_SHARE))


if __name__ == "__main__":
    run_script(main)
