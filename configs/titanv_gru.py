"""What does the order of thread blocks decide in a GRU on a Titan V? ``--help`` lists the options."""

from pysim.start import run_script

SCHEMES = ("host", "stream", "graph", "tb_static", "tb_ideal")
SIZES = {"hidden": 1536, "batch": 32, "timesteps": 20, "layers": 3}
KEYS = (*SIZES, "input", "dtype", "buffers")


def main():
    # all is imported in here, where Ctrl-C ends in one line
    from pysim.options import make_parser, positive_int
    from pysim.script import Script, choice

    parser = make_parser(__doc__.partition("?")[0] + "?", {"gpu": "titan_v", "schemes": SCHEMES})
    for name, default in SIZES.items():
        text = f"{name} of the network (default: {default})"
        parser.add_argument(f"--{name}", type=positive_int, default=default, metavar="N", help=text)
    text = (
        "input products: given, one GEMM a step, or one a layer: skip, per-step, hoisted (default: per-step)"
    )
    kind = choice("skip", "per-step", "hoisted")
    parser.add_argument("--input", type=kind, default="per-step", metavar="WORD", help=text)
    text = "fp32 or fp16 (tensor cores) (default: fp32)"
    parser.add_argument("--dtype", type=choice("fp32", "fp16"), default="fp32", metavar="WORD", help=text)
    text = "gate buffers that steps take in turn, as a caching allocator hands them out (default: 1)"
    parser.add_argument("--buffers", type=positive_int, default=1, metavar="N", help=text)
    script = Script.start("titanv_gru", parser, parser.parse_args(), KEYS)
    options, path = script.options, script.path

    # after what is quick to refuse
    import stats
    from pysim import WorkloadError, simulate
    from stats.plot import draw_occupancy
    from workloads.gru import gru

    job = gru(**script.workload)
    what = script.explained(job)
    # what would fail at the end fails now
    stats.check_writable(path, options.force, script.configuration)
    log = stats.Log(options.quiet)
    result = simulate(
        script.config, job, options.schemes, threads=options.threads, tables=script.tables, progress=log
    )
    if result.interrupted:
        raise KeyboardInterrupt
    for note in result.notes:
        log.say(note)
    log.clear()

    size = script.workload
    network = (
        f"GRU, {size['layers']} x {size['hidden']}, batch {size['batch']}, {size['timesteps']} steps,"
        f" {size['dtype']}, input {size['input']}"
        + (f", {size['buffers']} buffers" if size["buffers"] > 1 else "")
    )
    listed = result.listed()
    good = listed["runs"][listed["runs"]["status"] == b"ok"]
    if not len(good):
        raise WorkloadError(f"no scheme could run: {listed['runs']['reason'][0].decode()}")
    header = [
        *script.machine_lines(),
        f"workload  {network}: {len(job.kernels)} kernels, {sum(k.tbs for k in job.kernels):,} TBs",
        stats.format_limits(good),
        "",
    ]
    show = log.say if options.json else print
    show(stats.format_runs(listed["runs"], header, job.steps))
    show(stats.format_stalls(listed) or "no stall stack: the table stalls is left out")
    if what is not None:
        for scheme in good["scheme"]:
            show(result.explain(scheme.decode(), *what))

    tables = script.written(listed)
    picture = None
    try:
        picture = draw_occupancy(tables, f"{network} on {script.config.device.title}")
    except stats.StoreError as error:  # matplotlib is optional
        log.say(f"no picture: {error}")
    stats.write(path, tables, {"script": script.name}, script.configuration, options.force, picture)
    show(f"wrote {path}, {path.with_suffix('.json')}" + (f", {path.with_suffix('.png')}" if picture else ""))
    if options.json:
        print(stats.to_json(tables))


if __name__ == "__main__":
    run_script(main)
