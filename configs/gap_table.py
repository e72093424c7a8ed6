"""How much of the gap between stream order and the estimate does each scheduling scheme close?

examples:
  # two networks under two schemes
  python configs/gap_table.py alexnet gru:hidden=512,batch=16,timesteps=6 --schemes graph,pool
  # an MLP on an H200, as JSON
  python configs/gap_table.py mlp --gpu h200 --schemes graph,tb_static --json
"""

from pysim.cli.entry import run_script

SCHEMES = ("graph", "pool", "tb_static", "tb_learned", "blockmaestro", "queues", "wireframe", "tb_ideal")
NETWORKS = (
    "gru:hidden=512,batch=16,timesteps=6,layers=2", "lstm:hidden=512,batch=16,timesteps=4,layers=1",
    "vanilla:hidden=1024,batch=16,timesteps=6",
    "transformer:layers=1,hidden=512,sequence=128,batch=1,ffn=2048",
    "alexnet", "3mm", "fdtd2d", "fft", "lud", "nw", "pathfinder",
)  # fmt: skip


def simulate_network(script, text, job, log):
    """Simulate a network; return its table ``runs`` and its line of the printed table."""
    import numpy as np

    from pysim.engine.limits import estimates

    schemes = ("stream", *(s for s in script.options.schemes if s != "stream"))
    runs = script.simulate(job, schemes, tables="none", progress=log).listed()["runs"]
    runs["workload"] = text.encode()
    guess = estimates(script.config, job)
    base, reached = runs["time_us"][0], dict(zip(schemes, runs["time_us"], strict=True))
    shared = max(guess["shared"], float(runs["bound_us"][0]))
    # tb_ideal has a table without any cost, so it is what the estimate should predict
    off = shared / reached["tb_ideal"] - 1 if "tb_ideal" in reached else np.nan
    numbers = [base, *guess.values(), float(runs["bound_us"][0])]
    won = [100 * (base - reached[s]) / (base - shared) if base > shared else np.nan for s in schemes[1:]]
    line = [text, *(f"{n:,.1f}" for n in numbers), f"{100 * off:+.0f}%"]
    return runs, [*line, *("" if np.isnan(w) else f"{w:.0f}%" for w in won)]


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    from pysim.cli.options import SINGLE_RUN, make_parser
    from pysim.cli.script import Script

    parser = make_parser(
        __doc__,
        {"gpu": "h200", "schemes": SCHEMES},
        SINGLE_RUN,
        "this script makes many runs and writes the table runs",
    )
    text = "workloads of `pysim workloads` (default: networks and applications at small sizes)"
    parser.add_argument("networks", metavar="WORKLOAD", nargs="*", default=NETWORKS, help=text)
    script = Script.start("gap_table", parser, parser.parse_args(), ("networks",))

    import numpy as np

    from pysim import stats
    from pysim.cli.many_runs import begin
    from pysim.results.gap import gap_notes
    from pysim.workloads.registry import make

    shown = [s for s in script.options.schemes if s != "stream"]
    heads = ["network", "stream", "free", "launch", "shared", "launch, shared", "bound", "off", *shown]
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|--:" * (len(heads) - 1) + "|"]
    parts, notes = [], []
    # all jobs are built before the first run, so that a mistake in the last name is reported at once
    jobs = {name: make(name, script.config) for name in script.workload["networks"]}
    log, show = begin(script, stats)
    for name, job in jobs.items():
        runs, line = simulate_network(script, name, job, log)
        runs["run"] = np.arange(len(runs)) + sum(map(len, parts))
        parts.append(runs)
        lines.append("| " + " | ".join(line) + " |")
        notes += [f"{name}: {note}" for note in gap_notes(runs)]
    log.clear()
    show("\n".join([*lines, *([""] if notes else []), *notes]))
    script.save(stats, {"runs": np.concatenate(parts)}, log.say)


if __name__ == "__main__":
    run_script(main)
