"""How long does a recorded SASS trace take under each scheduling scheme?

examples:
  # the first three kernels of a trace, under two schemes
  python configs/replay_trace.py traces/gru --schemes stream,tb_static --kernels 1-3
  # the whole trace, with copies from the host at the speed of the link
  python configs/replay_trace.py traces/gru --memcpy time --out gru-trace.h5
"""

from pysim.cli.entry import run_script

CONVERTED = "results/traces"


def unknown_opcode(text):
    """Option type: ``as=KIND`` or ``as=OPCODE``."""
    import argparse

    from pysim.errors import ConfigError
    from pysim.trace.unknown_opcodes import resolve_unknown

    try:
        return resolve_unknown(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def options_of():
    """Read the command line."""
    from pysim.cli.checks import choice
    from pysim.cli.options import make_parser, number_ranges
    from pysim.cli.script import Script

    parser = make_parser(__doc__, {"gpu": "titan_v"})
    text = "trace: a folder with a kernelslist.g, that file, or a converted trace (.pysim)"
    parser.add_argument("trace", metavar="TRACE", help=text)
    text = "kernels to run, counted from 1, such as 3-7,9 (default: all)"
    parser.add_argument("--kernels", type=number_ranges, metavar="LIST", help=text)
    text = "time unknown opcodes as this kind or opcode: as=INT, as=FP32, as=FFMA, ... (default: an error)"
    parser.add_argument("--unknown-opcode", type=unknown_opcode, metavar="as=KIND", help=text)
    text = "copies from the host: ignore, fill (L2, in no time) or time (fill at link speed) (default: fill)"
    kind = choice("ignore", "fill", "time")
    parser.add_argument("--memcpy", type=kind, default="fill", metavar="WORD", help=text)
    text = "refuse a trace that was recorded for another architecture than the GPU's"
    parser.add_argument("--strict-arch", action="store_true", help=text)
    args = parser.parse_args()
    return args, Script.start("replay_trace", parser, args, ())


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    from pysim.clock import Clock, since_start

    clock = Clock(since_start())
    args, script = options_of()
    options = script.options

    # slow imports: only after the options are checked
    from dataclasses import replace
    from pathlib import Path

    from pysim import stats
    from pysim.cli.entry import reading_input
    from pysim.cli.job_source import chosen_kernels
    from pysim.errors import WorkloadError
    from pysim.program.architecture import other_architecture
    from pysim.trace.conversion_cache import count_kernels, open_trace
    from pysim.trace.job import trace_job

    log = stats.Log(options.quiet)
    given = Path(args.trace)
    with reading_input():
        last = count_kernels(given)
        chosen = chosen_kernels(args.kernels, last)
        store = open_trace(
            given,
            Path(CONVERTED),
            clock,
            unknown=args.unknown_opcode,
            kernels=chosen,
            progress=lambda done, of: log.say(f"converted {done} of {of} kernels"),
        )
    workload = {
        "name": store.name,
        "source": store.source,
        "kernels": chosen,
        "unknown": store.unknown,
        "memcpy": args.memcpy,
    }
    script = replace(script, workload=workload)
    with clock.phase("load"), reading_input():
        # a trace that was converted for these kernels holds no others
        job = trace_job(store, None if store.path != given and store.chosen else chosen, memcpy=args.memcpy)
    other = other_architecture(job, script.config.device.sm)
    if other and args.strict_arch:
        raise WorkloadError(f"{args.trace}: {other} (--strict-arch)")
    run = script.run(job, stats, log, clock)
    kernels, instructions = [k for k in job.kernels if not k.copy], int(run.completed["warp_instructions"][0])
    copies = [k.copy.nbytes for k in job.kernels if k.copy]
    copied = f", {len(copies)} copies of {sum(copies):,} B ({args.memcpy})" if copies else ""
    run.report(
        [
            f"trace     {args.trace}: {len(kernels)} of {last} kernels, {sum(k.tbs for k in kernels):,} TBs,"
            f" {instructions:,} warp instructions{copied}"
        ]
    )
    run.write(job.name, lambda tables: times(tables["host"], clock, instructions * len(run.completed)))


def times(host, clock, instructions):
    """Add the write time to the table ``host``; return lines that report where the process spent its time."""
    from pysim.clock import PHASES

    for name, seconds in clock.lap("write").items():
        host[name][-1] += seconds
    spent = {phase: float(host[f"{phase}_seconds"].sum()) for phase in PHASES}
    rate = instructions / (spent["load"] + spent["simulate"]) / 1e6
    return [
        "seconds   " + ", ".join(f"{name} {seconds:.3f}" for name, seconds in spent.items()),
        f"speed     {rate:.1f} M warp instructions a second of load and simulate",
    ]


if __name__ == "__main__":
    run_script(main)
