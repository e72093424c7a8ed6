"""How long does a workload take under each scheduling scheme?

examples:
  # a GRU under two schemes
  python configs/compare_schemes.py gru:hidden=512,batch=16,timesteps=4 --schemes stream,tb_static
  # an MLP on an A100 under all schemes that run there
  python configs/compare_schemes.py mlp --gpu a100
"""

from pysim.cli.entry import run_script

WORKLOAD = "gru:hidden=512,batch=16,timesteps=10"


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    from pysim.cli.options import make_parser
    from pysim.cli.script import Script
    from pysim.schemes.registry import SCHEMES

    parser = make_parser(__doc__, {"gpu": "h200", "schemes": tuple(SCHEMES)})
    text = f"workload of `pysim workloads`, as name:key=value,key=value (default: {WORKLOAD})"
    parser.add_argument("workload", metavar="WORKLOAD", nargs="?", default=WORKLOAD, help=text)
    script = Script.start("compare_schemes", parser, parser.parse_args(), ("workload",))

    # slow imports: only after the options are checked
    from pysim import stats
    from pysim.stats.pictures.bars import draw_schemes
    from pysim.workloads import make

    job = make(script.workload["workload"], script.config)
    run = script.run(job, stats, stats.Log(script.options.quiet))
    tbs = sum(k.tbs for k in run.job.kernels)
    run.report([f"workload  {script.workload['workload']}: {len(job.kernels)} kernels, {tbs:,} TBs"])
    run.write(script.workload["workload"], draw=draw_schemes)


if __name__ == "__main__":
    run_script(main)
