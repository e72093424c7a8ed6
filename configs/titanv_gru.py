"""How much time does each scheduling scheme save in a GRU on a Titan V?

examples:
  # a smaller GRU
  python configs/titanv_gru.py --hidden 512 --batch 16 --timesteps 10
  # what TB 3 of kernel 5 waited for, and how long
  python configs/titanv_gru.py --timesteps 2 --schemes stream,tb_static --explain 5:3
"""

from pysim.cli.entry import run_script

SCHEMES = ("host", "stream", "graph", "tb_static", "tb_ideal")
SIZES = {"hidden": 1536, "batch": 32, "timesteps": 20, "layers": 3}
MEANING = {
    "hidden": "hidden units",
    "batch": "sequences a batch",
    "timesteps": "time steps",
    "layers": "layers",
}
KEYS = (*SIZES, "input", "dtype", "buffers")


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    from pysim.cli.checks import choice
    from pysim.cli.options import make_parser, positive_int
    from pysim.cli.script import Script

    parser = make_parser(__doc__, {"gpu": "titan_v", "schemes": SCHEMES})
    for name, default in SIZES.items():
        text = f"{MEANING[name]} (default: {default})"
        parser.add_argument(f"--{name}", type=positive_int, default=default, metavar="N", help=text)
    text = "GEMM of the input weights: none (skip), per-step, or one a layer (hoisted) (default: per-step)"
    kind = choice("skip", "per-step", "hoisted")
    parser.add_argument("--input", type=kind, default="per-step", metavar="WORD", help=text)
    text = "fp32 or fp16 (tensor cores) (default: fp32)"
    parser.add_argument("--dtype", type=choice("fp32", "fp16"), default="fp32", metavar="WORD", help=text)
    text = "gate buffers that the time steps use in turn, as a caching allocator does (default: 1)"
    parser.add_argument("--buffers", type=positive_int, default=1, metavar="N", help=text)
    script = Script.start("titanv_gru", parser, parser.parse_args(), KEYS)

    # slow imports: only after the options are checked
    from pysim import stats
    from pysim.cli.entry import reading_input
    from pysim.workloads.kernels.machine_hints import MachineHints
    from pysim.workloads.networks.rnn import gru

    with reading_input():
        job = gru(**script.workload, hints=MachineHints.of(script.config)).with_arguments(script.workload)
    run = script.run(job, stats, stats.Log(script.options.quiet))
    size = script.workload
    network = (
        f"GRU, {size['layers']} x {size['hidden']}, batch {size['batch']}, {size['timesteps']} steps,"
        f" {size['dtype']}, input {size['input']}"
        + (f", {size['buffers']} buffers" if size["buffers"] > 1 else "")
    )
    tbs = sum(k.tbs for k in job.kernels)
    run.report([f"workload  {network}: {len(job.kernels)} kernels, {tbs:,} TBs"])
    run.write(network)


if __name__ == "__main__":
    run_script(main)
