"""Which L2 slices, DRAM channels and banks does a strided access use, with address hashing and without?

examples:
  # without the hash of DRAM banks
  python configs/figure_bank_camping.py --off banks --out results/camping.h5
  # without any hash, with a picture, on a V100
  python configs/figure_bank_camping.py --gpu v100 --picture yes
"""

from pysim.cli.entry import run_script

# images in NCHW with planes of 256 x 256 fp32 pixels: all TBs read the same pixels of different planes
WORKLOAD = "columns:rows=4096,cols=1024,lead=65536"
OFF = {
    "both": {"gpu.l2.hash": 0, "gpu.dram.bank_hash": 0},
    "slices": {"gpu.l2.hash": 0},
    "banks": {"gpu.dram.bank_hash": 0},
}


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    from pysim.cli.checks import choice
    from pysim.cli.options import make_parser
    from pysim.cli.script import Script

    defaults = {"gpu": "v100", "schemes": ("stream",), "sample-us": 0.5, "picture": "yes"}
    parser = make_parser(__doc__, defaults, ("explain",), "this script compares two runs")
    text = f"workload of `pysim workloads` (default: {WORKLOAD})"
    parser.add_argument("--workload", default=WORKLOAD, metavar="WORKLOAD", help=text)
    text = "hash that the second run switches off: slices, banks or both (default: both)"
    parser.add_argument("--off", type=choice(*OFF), default="both", metavar="WORD", help=text)
    args = parser.parse_args()
    if len(args.schemes) != 1:
        parser.error("--schemes: must be one scheme, as this script compares two runs of it")
    script = Script.start("figure_bank_camping", parser, args, ("workload", "off"))
    options, path = script.options, script.path
    if not script.config["sim.sample"]:
        parser.error("--sample-us: must be above 0, as the picture shows time series")

    from dataclasses import replace

    import numpy as np

    from pysim import stats
    from pysim.cli.many_runs import begin
    from pysim.stats.pictures.heatmap import draw_camping, format_camping
    from pysim.workloads.registry import make

    job = script.job(make(args.workload, script.config))
    log, show = begin(script, stats)
    on = dict.fromkeys(OFF["both"], 1)
    labels = {0: "hash on", 1: "hash off" if args.off == "both" else f"hash of {args.off} off"}
    parts, notes = {}, []
    for run, switches in enumerate((on, on | OFF[args.off])):
        named = replace(job, name=f"{job.name}, {labels[run]}")
        result = script.simulate(named, config=script.config.replaced(switches), progress=log)
        notes += result.notes
        for name, rows in result.listed().items():
            rows["run"] += run
            parts.setdefault(name, []).append(rows)
    tables = {name: np.concatenate(rows) for name, rows in parts.items()}
    for note in dict.fromkeys(notes):
        log.say(note)
    log.clear()

    show("\n".join(script.machine_lines()[:1]))
    show(f"workload  {args.workload}: in use at once (parts that share the traffic evenly count one each)\n")
    show(format_camping(tables, labels))
    picture = None
    try:
        if options.draws:
            picture = draw_camping(tables, labels, f"{args.workload} on {script.config.device.title}")
    except stats.StoreError as error:  # matplotlib is optional
        log.say(f"no picture: {error}")
    written = script.tables_to_write(tables)
    script.store(stats, written, picture)
    show(f"wrote {path}, {path.with_suffix('.json')}" + (f", {path.with_suffix('.png')}" if picture else ""))
    if options.json:
        print(stats.to_json(written))


if __name__ == "__main__":
    run_script(main)
