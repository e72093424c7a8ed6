"""How much time do cuSync, Stream-K and table schemes save in each layer of cuSync's models?

examples:
  # two layers of GPT-3 with 512 tokens
  python configs/cusync_models.py --models gpt3 --sizes 512
  # the quick part of ResNet-38
  python configs/cusync_models.py --models resnet38 --subset quick
"""

from pysim.cli.entry import run_script

# model: device, sizes (tokens, or images a batch), and the end-to-end saving that the paper reports
MODELS = {
    "gpt3": ("a100", (512, 1024, 1792, 2048), "6-15 %"),
    "llama": ("a100", (512, 1024, 1792, 2048), "9-14 %"),
    "resnet38": ("v100_32gb", (1, 4, 16), "5-22 %"),
    "vgg19": ("v100_32gb", (1, 4, 16), "6-16 %"),
}
QUICK = {"gpt3": (), "llama": (), "resnet38": (1,), "vgg19": ()}


def options_of():
    """Read the command line; ``--gpu`` replaces the device of every model."""
    from pysim.cli.checks import choice
    from pysim.cli.options import SINGLE_RUN, counts, make_parser, names_of
    from pysim.cli.script import Script

    parser = make_parser(
        __doc__,
        {"gpu": None},
        ("schemes", *SINGLE_RUN),
        "this script makes many runs and writes the table runs",
    )
    text = f"models: {', '.join(MODELS)} (default: all)"
    parser.add_argument(
        "--models", type=names_of("model", MODELS), default=tuple(MODELS), metavar="LIST", help=text
    )
    text = "sizes of every model: tokens, or images a batch (default: those of the paper)"
    parser.add_argument("--sizes", type=counts, default=(), metavar="LIST", help=text)
    text = "all, or quick: ResNet-38 on one image (default: all)"
    parser.add_argument("--subset", type=choice("all", "quick"), default="all", metavar="NAME", help=text)
    args = parser.parse_args()
    for size in args.sizes:
        if size > 4096:
            parser.error(f"--sizes: {size}: must be a number from 1 to 4096")
    if args.gpu not in (None, "a100", "v100", "v100_32gb"):
        parser.error(f"--gpu: no tile sizes are known for {args.gpu}: must be a100, v100 or v100_32gb")
    args.devices = {name: args.gpu or MODELS[name][0] for name in args.models}
    args.gpu = args.gpu or MODELS[args.models[0]][0]
    return Script.start("cusync_models", parser, args, ("models", "sizes", "subset", "devices"))


def runs_of(script, config, piece, schemes, name, arguments, log):
    """Return the table ``runs`` of one part of a model under its schemes.

    ``arguments``: the model and its size, for the column of that name. Times exclude the first launch and
    include the gap to the next kernel, as parts follow each other in a model. The scheme ``host`` also pays
    for the launches that clear semaphores.
    """
    import numpy as np

    around = (config.number("gpu.cp.stream_gap") - config.number("gpu.cp.launch")) / 1e3
    found = []
    for scheme in schemes:
        job, run = piece.build(scheme)
        job = job.with_arguments(arguments)
        made = script.simulate(job, run, config, tables="none", progress=log, baseline=False)
        rows = made.listed()["runs"]
        rows["scheme"], rows["workload"] = scheme.encode(), name.encode()
        rows["time_us"] += around
        if scheme == "host":
            rows["time_us"] += piece.clears * config.number("host.launch") / 1e3
        found.append(rows)
    rows = np.concatenate(found)
    rows["speedup"] = rows["time_us"][0] / rows["time_us"]
    return rows


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    import dataclasses

    script = options_of()

    import numpy as np

    from pysim import stats
    from pysim.cli.many_runs import begin
    from pysim.stats.studies.models import Layer, draw_layers, format_layers, layer_rows
    from pysim.workloads.validation.cusync_models import pieces_of, published, schemes_of

    options, chosen = script.options, script.workload
    log, show = begin(script, stats)
    parts, layers = [], []
    for model in chosen["models"]:
        sizes = chosen["sizes"] or MODELS[model][1]
        if chosen["subset"] == "quick":
            sizes = QUICK[model]
        device = chosen["devices"][model]
        config = dataclasses.replace(options, gpu=device).config()
        for size in sizes:
            title, listed, known = f"{model} {size}", [], []
            given = {"model": model, "size": size}
            for piece in pieces_of(config, model, size):
                name = f"{title} {piece.name}"
                parts.append(runs_of(script, config, piece, schemes_of(model, piece.name), name, given, log))
                listed.append((name, piece.name, piece.times))
                known.append(published(device, piece.row))
            layers.append(Layer(title, listed, known, MODELS[model][2]))
    log.clear()
    if not parts:
        show("nothing to run: --subset quick has only resnet38")
        return
    runs = np.concatenate(parts)
    runs["run"] = np.arange(len(runs))
    head, body, sums = layer_rows(runs, layers)
    show("share of the time in stream order that is saved; published: the better of cuSync's two modes\n")
    show(format_layers(head, body))
    script.save(
        stats,
        {"runs": runs},
        show,
        lambda: draw_layers(sums, "cuSync's models: share of the time in stream order that is saved"),
    )


if __name__ == "__main__":
    run_script(main)
