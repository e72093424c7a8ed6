"""What do cuSync, Stream-K and table schemes make of cuSync's models, layer by layer? ``--help``."""

from pysim.cli.entry import run_script

# model: device, sizes (tokens, or pictures at a time), and what the paper says is cut end to end
MODELS = {
    "gpt3": ("a100", (512, 1024, 1792, 2048), "6-15 %"),
    "llama": ("a100", (512, 1024, 1792, 2048), "9-14 %"),
    "resnet38": ("v100_32gb", (1, 4, 16), "5-22 %"),
    "vgg19": ("v100_32gb", (1, 4, 16), "6-16 %"),
}
QUICK = {"gpt3": (), "llama": (), "resnet38": (1,), "vgg19": ()}


def options_of():
    """Read the command line; ``--gpu`` takes the place of the models' own devices."""
    from pysim.cli.options import SINGLE, counts, make_parser, names_of
    from pysim.cli.script import Script

    parser = make_parser(
        __doc__.partition("?")[0] + "?",
        {"gpu": None},
        ("schemes", *SINGLE),
        "the suite says what is run and written",
    )
    text = f"models: {', '.join(MODELS)} (default: all)"
    parser.add_argument(
        "--models", type=names_of("model", MODELS), default=tuple(MODELS), metavar="LIST", help=text
    )
    text = "sizes of every model: tokens, or pictures at a time (default: the models' own)"
    parser.add_argument("--sizes", type=counts, default=(), metavar="LIST", help=text)
    parser.add_argument(
        "--subset", choices=("all", "quick"), default="all", help="quick: a picture of ResNet-38"
    )
    args = parser.parse_args()
    for size in args.sizes:
        if size > 4096:
            parser.error(f"--sizes: {size}: must be a number from 1 to 4096")
    if args.gpu not in (None, "a100", "v100", "v100_32gb"):
        parser.error(f"--gpu {args.gpu}: tiles are listed for v100_32gb, a100 and v100 alone")
    args.devices = {name: args.gpu or MODELS[name][0] for name in args.models}
    args.gpu = args.gpu or MODELS[args.models[0]][0]
    return Script.start("cusync_models", parser, args, ("models", "sizes", "subset", "devices"))


def runs_of(script, config, piece, schemes, name, log):
    """Return the rows `runs` of a part under its schemes, without the launch in front, with a gap behind.

    The baseline that waits for the host has the launches besides that clear semaphores.
    """
    import numpy as np

    around = (config.number("gpu.cp.stream_gap") - config.number("gpu.cp.launch")) / 1e3
    found = []
    for scheme in schemes:
        job, run = piece.build(scheme)
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
    # all is imported in here, where Ctrl-C ends in one line
    import dataclasses

    script = options_of()

    import numpy as np

    import stats
    from stats.models import Layer, draw_layers, format_layers, layer_rows
    from workloads.validation.cusync_models import pieces_of, published, schemes_of

    options, chosen = script.options, script.workload
    stats.check_writable(script.path, options.force, script.configuration)
    log = stats.Log(options.quiet)
    show = log.say if options.json else print
    parts, layers = [], []
    for model in chosen["models"]:
        sizes = chosen["sizes"] or MODELS[model][1]
        if chosen["subset"] == "quick":
            sizes = QUICK[model]
        device = chosen["devices"][model]
        config = dataclasses.replace(options, gpu=device).config()
        for size in sizes:
            title, listed, known = f"{model} {size}", [], []
            for piece in pieces_of(config, model, size):
                name = f"{title} {piece.name}"
                parts.append(runs_of(script, config, piece, schemes_of(model, piece.name), name, log))
                listed.append((name, piece.name, piece.times))
                known.append(published(device, piece.row))
            layers.append(Layer(title, listed, known, MODELS[model][2]))
    log.clear()
    if not parts:
        show("nothing to run: the quick subset has one picture of resnet38")
        return
    runs = np.concatenate(parts)
    runs["run"] = np.arange(len(runs))
    head, body, sums = layer_rows(runs, layers)
    show("cut of the time in stream order; published: the better of cuSync's two modes, and of the model\n")
    show(format_layers(head, body))
    script.save(
        stats, {"runs": runs}, show, lambda: draw_layers(sums, "cuSync's models: time cut from stream order")
    )


if __name__ == "__main__":
    run_script(main)
