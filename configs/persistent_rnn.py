"""How much faster is a recurrent layer whose weights stay in registers (a persistent kernel)?

examples:
  # a GRU of 512 hidden units
  python configs/persistent_rnn.py --kind gru --hidden 512 --timesteps 16
  # its persistent kernel on eight SMs
  python configs/persistent_rnn.py --kind gru --hidden 128 --timesteps 16 --sms 8
"""

from pysim.cli.entry import run_script

LAUNCHED = ("stream", "graph", "tb_static", "fused:grid", "fused:tile")
SYNCS = ("grid", "tile")
NAMES = ("kind", "hidden", "batch", "timesteps", "sms")


def table(script):
    """Yield the rows of the table: kernels launched step by step, then the persistent kernel."""
    from pysim.workloads import make
    from pysim.workloads.networks.rnn import CELLS

    chosen, config = script.workload, script.config
    steps, gates = chosen["timesteps"], CELLS[chosen["kind"]][0]
    flops = 2 * gates * chosen["hidden"] ** 2 * chosen["batch"] * steps
    peak = config["gpu.sms"] * 128 * 2 * config.number("gpu.clock") * 1e6 / config["gpu.sm.fp32_interval"]
    size = ",".join(f"{name}={chosen[name]}" for name in ("hidden", "batch", "timesteps"))
    sms = chosen["sms"] or config["gpu.sms"]
    more = f"kind={chosen['kind']},gpu={config.device.name},sms={sms}"
    # built before any run, because the weights may not fit in the registers
    mine = {sync: make(f"persistent_rnn:{size},{more},sync={sync}", config) for sync in SYNCS}
    job = make(f"{chosen['kind']}:{size},layers=1,input=skip", config)
    rows = script.simulate(job, LAUNCHED, tables="none").listed()["runs"]
    found = [(f"kernels a step, `{row['scheme'].decode()}`", row) for row in rows]
    for sync, job in mine.items():
        row = script.simulate(job, "stream", tables="none").listed()["runs"][0]
        found.append((f"persistent, {'a barrier' if sync == 'grid' else 'flags of TBs'} a step", row))
    yield ("order", "us a step", "TFLOP/s", "of peak", "over stream", "L2 KB a step", "DRAM KB a step")
    base = found[0][1]["time_us"]
    for name, row in found:
        if row["status"] != b"ok":
            yield (name, row["reason"].decode(), *[""] * 5)
            continue
        rate = flops / row["time_us"] * 1e6
        traffic = (f"{nbytes / steps / 1e3:,.0f}" for nbytes in (row["l2_bytes"], row["dram_bytes"]))
        cells = (f"{row['time_us'] / steps:.2f}", f"{rate / 1e12:.2f}", f"{rate / peak:.0%}")
        yield (name, *cells, f"{base / row['time_us']:.2f}x", *traffic)


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    from pysim.cli.checks import choice
    from pysim.cli.options import SINGLE_RUN, make_parser, positive_int
    from pysim.cli.script import Script
    from pysim.errors import WorkloadError

    parser = make_parser(
        __doc__,
        {"gpu": "titan_x_pascal"},
        ("schemes", *SINGLE_RUN),
        "this script makes many runs and writes the table runs",
    )
    parser.add_argument(
        "--kind",
        type=choice("vanilla", "gru"),
        default="vanilla",
        metavar="NAME",
        help="cell: vanilla or gru (default: vanilla)",
    )
    parser.add_argument(
        "--hidden", type=positive_int, metavar="N", default=1152, help="hidden units (default: 1152)"
    )
    parser.add_argument(
        "--batch", type=positive_int, metavar="N", default=4, help="sequences a batch (default: 4)"
    )
    parser.add_argument(
        "--timesteps", type=positive_int, metavar="N", default=64, help="time steps (default: 64)"
    )
    parser.add_argument(
        "--sms", type=positive_int, metavar="N", help="most SMs of the persistent kernel (default: all)"
    )
    script = Script.start("persistent_rnn", parser, parser.parse_args(), NAMES)

    from pysim import stats
    from pysim.cli.many_runs import print_table

    try:
        print_table(script, stats, table(script), "---")
    except WorkloadError as error:
        parser.error(str(error))


if __name__ == "__main__":
    run_script(main)
