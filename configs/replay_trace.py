"""How long does a recorded run take, in stream order and in others? ``--help`` lists the options."""

from pysim.start import run_script

KEPT = "results/traces"


def unknown_opcode(text):
    import argparse

    from pysim.errors import ConfigError
    from pysim.trace.unknown import resolve_unknown

    try:
        return resolve_unknown(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def chosen_kernels(ranges, last):
    """Return the kernels of the ranges in ascending order; None: all."""
    from pysim.errors import ConfigError

    if ranges is None:
        return None
    if max(end for _, end in ranges) > last:
        raise ConfigError(f"no kernel {max(end for _, end in ranges)}: the trace has 1 to {last}")
    return sorted({number for first, end in ranges for number in range(first, end + 1)})


def options_of():
    """Read the command line."""
    from pysim.options import make_parser, number_ranges
    from pysim.script import Script, choice

    parser = make_parser(__doc__.partition("?")[0] + "?", {"gpu": "titan_v"})
    text = "folder with kernelslist.g, such a list, or a converted trace (.pysim)"
    parser.add_argument("trace", metavar="DIR", help=text)
    text = "kernels to run, counted from 1, such as 3-7,9 (default: all)"
    parser.add_argument("--kernels", type=number_ranges, metavar="LIST", help=text)
    text = "what stands in for opcodes that are not known: as=INT, as=FP32, ... or as=OPCODE (default: error)"
    parser.add_argument("--unknown-opcode", type=unknown_opcode, metavar="as=KIND", help=text)
    text = "copies from the host: ignore, fill (the L2, at no cost) or time (the link's, too) (default: fill)"
    kind = choice("ignore", "fill", "time")
    parser.add_argument("--memcpy", type=kind, default="fill", metavar="WORD", help=text)
    args = parser.parse_args()
    return args, Script.start("replay_trace", parser, args, ())


def main():
    # all is imported in here, where Ctrl-C ends in one line
    from pysim.clock import Clock, since_start

    clock = Clock(since_start())
    args, script = options_of()
    options = script.options

    # after what is quick to refuse
    from dataclasses import replace
    from pathlib import Path

    import stats
    from pysim import WorkloadError, simulate
    from pysim.trace.job import trace_job
    from pysim.trace.prepare import count_kernels, prepare

    log = stats.Log(options.quiet)
    given = Path(args.trace)
    last = count_kernels(given)
    chosen = chosen_kernels(args.kernels, last)
    store = prepare(
        given,
        Path(KEPT),
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
    with clock.phase("load"):
        # what was converted for the choice holds nothing else
        job = trace_job(store, None if store.path != given and store.chosen else chosen, memcpy=args.memcpy)
    what = script.explained(job)
    # what would fail at the end fails now
    stats.check_writable(script.path, options.force, script.configuration)
    result = simulate(
        script.config,
        job,
        options.schemes,
        threads=options.threads,
        tables=script.tables,
        progress=log,
        clock=clock,
    )
    if result.interrupted:
        raise KeyboardInterrupt
    for note in result.notes:
        log.say(note)
    log.clear()

    listed = result.listed()
    good = listed["runs"][listed["runs"]["status"] == b"ok"]
    if not len(good):
        raise WorkloadError(f"no scheme could run: {listed['runs']['reason'][0].decode()}")
    kernels, instructions = [k for k in job.kernels if not k.copy], int(good["warp_instructions"][0])
    copies = [k.copy.nbytes for k in job.kernels if k.copy]
    copied = f", {len(copies)} copies of {sum(copies):,} B ({args.memcpy})" if copies else ""
    header = [
        *script.machine_lines(),
        f"trace     {args.trace}: {len(kernels)} of {last} kernels, {sum(k.tbs for k in kernels):,} TBs,"
        f" {instructions:,} warp instructions{copied}",
        stats.format_limits(good),
        "",
    ]
    show = log.say if options.json else print
    show(stats.format_runs(listed["runs"], header, job.steps))
    show(stats.format_stalls(listed) or "no stall stack: the table stalls is left out")
    if what is not None:
        for scheme in good["scheme"]:
            show(result.explain(scheme.decode(), *what))
    finish(script, script.written(listed), job, clock, instructions * len(good), show)


def finish(script, tables, job, clock, instructions, show):
    """Write the result, and say where the time of this process went."""
    import stats
    from pysim.clock import PHASES
    from stats.plot import draw_occupancy

    options, path = script.options, script.path
    picture = None
    try:
        picture = draw_occupancy(tables, f"{job.name} on {script.config.device.title}")
    except stats.StoreError as error:  # matplotlib is optional
        show(f"no picture: {error}")
    host = tables["host"]
    for name, seconds in clock.lap("write").items():
        host[name][-1] += seconds
    spent = {phase: float(host[f"{phase}_seconds"].sum()) for phase in PHASES}
    stats.write(path, tables, {"script": script.name}, script.configuration, options.force, picture)
    show("seconds   " + ", ".join(f"{name} {seconds:.3f}" for name, seconds in spent.items()))
    rate = instructions / (spent["load"] + spent["simulate"]) / 1e6
    show(f"speed     {rate:.1f} M warp instructions a second of load and simulate")
    show(f"wrote {path}, {path.with_suffix('.json')}" + (f", {path.with_suffix('.png')}" if picture else ""))
    if options.json:
        print(stats.to_json(tables))


if __name__ == "__main__":
    run_script(main)
