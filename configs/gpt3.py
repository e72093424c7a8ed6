"""How much time do dependences between thread blocks save in GPT-3 175B, one of eight tensor-parallel shards?

examples:
  # sixteen layers, one by one
  python configs/gpt3.py --layers 16 --replay off
  # a shorter sequence on an A100
  python configs/gpt3.py --tokens 512 --gpu a100
"""

from pysim.cli.entry import run_script

SIZES = {"layers": 96, "tokens": 2048, "shards": 8, "simulated": 3}
MEANING = {
    "layers": "layers of the network",
    "tokens": "tokens of the sequence",
    "shards": "GPUs that share each layer",
    "simulated": "layers that are simulated where the others are replayed, at least 3",
}


def network(size, config):
    """Return the job of a forward pass; with replay it holds only the layers that are simulated."""
    from pysim.workloads import make

    simulated = 0 if size["replay"] == "off" else size["simulated"]
    text = f"layers={size['layers']},seq={size['tokens']},shards={size['shards']},simulated={simulated}"
    return make(f"gpt3-175b:{text}", config)


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    from dataclasses import replace

    from pysim.cli.options import make_parser, positive_int
    from pysim.cli.script import Script

    defaults = {"gpu": "v100", "schemes": ("stream", "tb_static"), "replay": "period"}
    parser = make_parser(__doc__, defaults)
    for name, default in SIZES.items():
        text = f"{MEANING[name]} (default: {default})"
        parser.add_argument(f"--{name}", type=positive_int, default=default, metavar="N", help=text)
    args = parser.parse_args()
    if args.simulated < 3:
        parser.error(f"--simulated {args.simulated}: must be at least 3")
    script = Script.start("gpt3", parser, args, (*SIZES, "replay"))

    # slow imports: only after the options are checked
    from pysim import stats
    from pysim.cli.entry import reading_input

    size = script.workload
    with reading_input():
        job = network(size, script.config).with_arguments(size)
    # replay has been prepared: what is left is simulated as it is
    script = replace(script, config=script.config.replaced({"sim.replay": "off"}))
    run = script.run(job, stats, stats.Log(script.options.quiet))
    title = f"GPT-3 175B, {size['layers']} layers, {size['tokens']} tokens, a shard of {size['shards']}"
    flops, kernels = job.totals.flops, len(job.kernels)
    lines = [f"workload  {title}: {job.totals.parameters / 1e9:.1f} G parameters, {flops / 1e12:.1f} TFLOP"]
    if job.shortened is not None:
        lines.append(f"replay    {kernels} kernels of {size['simulated']} layers stand for the whole network")
    rates = (f"{row['scheme'].decode()} {flops / row['time_us'] / 1e6:.1f}" for row in run.completed)
    lines.append(f"TFLOP/s   {', '.join(rates)}")
    run.report(lines)
    run.write(title)


if __name__ == "__main__":
    run_script(main)
