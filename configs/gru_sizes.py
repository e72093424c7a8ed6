"""When do gaps between kernels decide the time of a GRU on a Titan V, and when do bytes?

examples:
  # three schemes
  python configs/gru_sizes.py --schemes stream,graph,tb_static
  # on an A100, with a picture
  python configs/gru_sizes.py --gpu a100 --picture yes
"""

from pysim.cli.entry import run_script

SCHEMES = ("host", "stream", "graph", "tb_static", "tb_ideal")
# hidden units, sequences a batch, time steps: launches and gaps rule the first, DRAM traffic the second
SIZES = ((256, 8, 20), (1536, 32, 8))
DRAWN = (b"stream", b"tb_static")


def format_sizes(runs, jobs, bandwidth):
    """Lay out a row a scheme, and for each job its time, speedup, idle SMs and share of DRAM bandwidth."""
    from pysim.stats import format_time

    heads = ("time", "speedup", "SM idle", "DRAM")
    lines = [["", *(word for text in jobs for word in (text, "", "", ""))], ["scheme", *heads * len(jobs)]]
    per_job = [runs[runs["workload"] == text.encode()] for text in jobs]
    for rows in zip(*per_job, strict=True):
        line = [rows[0]["scheme"].decode()]
        for row in rows:
            if row["status"] != b"ok":
                line += [row["status"].decode(), "", "", ""]
                continue
            rate = row["dram_bytes"] / row["time_us"] / 1e3 / bandwidth
            speedup = f"{row['speedup']:.2f}x"
            line += [format_time(row["time_us"]), speedup, f"{row['sm_idle']:.0%}", f"{rate:.0%}"]
        lines.append(line)
    wide = [max(len(line[i]) for line in lines[1:]) for i in range(len(lines[0]))]
    out = []
    for number, line in enumerate(lines):
        if not number:  # the names of the jobs stand above four columns each
            spans = [sum(wide[i : i + 4]) + 6 for i in range(1, len(wide), 4)]
            cells = [text.rjust(span) for text, span in zip(jobs, spans, strict=True)]
            out.append("  ".join([" " * wide[0], *cells]))
            continue
        cells = [word.rjust(width) for word, width in zip(line[1:], wide[1:], strict=True)]
        out.append("  ".join([line[0].ljust(wide[0]), *cells]).rstrip())
    out.insert(2, "-" * max(map(len, out)))
    return "\n".join(out)


def drawn(tables):
    """Return the tables of the runs that the picture shows."""
    import numpy as np

    runs = tables["runs"]
    mine = np.isin(runs["scheme"], DRAWN)
    shown = runs["run"][mine if mine.any() else slice(None)]
    return {name: rows[np.isin(rows["run"], shown)] for name, rows in tables.items()}


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    from pysim.cli.options import make_parser
    from pysim.cli.script import Script

    parser = make_parser(
        __doc__,
        {"gpu": "titan_v", "schemes": SCHEMES},
        ("explain", "sample-us", "rename"),
        "this script simulates two jobs",
    )
    script = Script.start("gru_sizes", parser, parser.parse_args(), ())

    # slow imports: only after the options are checked
    from dataclasses import replace

    import numpy as np

    from pysim import stats
    from pysim.cli.many_runs import begin
    from pysim.program.library_kernels import library_kernels
    from pysim.stats.pictures.plot import draw_occupancy
    from pysim.workloads.registry import make

    log, show = begin(script, stats)
    show("\n".join(script.machine_lines()[:1]))
    parts, names = {}, []
    for hidden, batch, steps in SIZES:
        job = make(f"gru:hidden={hidden},batch={batch},timesteps={steps}", script.config)
        name = f"hidden {hidden}, batch {batch}"
        show(f"workload  {name}: 3 layers, {steps} steps, {len(job.kernels)} kernels")
        show(f"kernels   {library_kernels(job)}")
        names.append(name)
        result = script.simulate(replace(job, name=name), tables=script.tables_to_simulate, progress=log)
        first = len(np.concatenate(parts["runs"])) if parts else 0
        for table, rows in result.listed().items():
            rows["run"] += first
            parts.setdefault(table, []).append(rows)
    log.clear()
    tables = {name: np.concatenate(rows) for name, rows in parts.items()}
    bandwidth = script.config.number("gpu.dram.bandwidth")
    show("speedup   over stream; DRAM: share of its peak bandwidth\n")
    show(format_sizes(tables["runs"], names, bandwidth) + "\n")
    title = f"A GRU of two sizes on {script.config.device.title}"
    written = script.tables_to_write(tables)
    script.save(stats, written, show, lambda: draw_occupancy(drawn(written), title))


if __name__ == "__main__":
    run_script(main)
