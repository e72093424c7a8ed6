"""How much time does each scheduling scheme save in a PyTorch model?

examples:
  # two layers of a small encoder, forward
  python configs/torch_model.py --layers 2 --hidden 256 --heads 4 --batch 2
  # forward, backward and optimiser of one layer
  python configs/torch_model.py --layers 1 --hidden 256 --heads 4 --train adamw --schemes stream,graph
"""

from pysim.cli.entry import run_script

SCHEMES = ("stream", "graph", "pool", "tb_static")
SIZES = {"layers": 2, "hidden": 768, "heads": 12, "batch": 4, "seq": 128}
MEANING = {
    "layers": "layers of the encoder",
    "hidden": "features of a token",
    "heads": "attention heads, each 64 or 128 wide",
    "batch": "sequences a batch",
    "seq": "tokens of a sequence",
}
TRAIN = ("sgd", "momentum", "sgd_fused", "adam", "adamw", "adam_fused", "adamw_fused")
KEYS = (*SIZES, "train", "approximate")


def build(layers, hidden, heads, batch, seq):
    """Return a model and the inputs of a call: put yours here. On the meta device neither has data."""
    import torch

    with torch.device("meta"):
        layer = torch.nn.TransformerEncoderLayer(
            hidden, heads, 4 * hidden, batch_first=True, activation="gelu"
        )
        model = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).half()
        return model, torch.empty(batch, seq, hidden, dtype=torch.float16)


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    from pysim.cli.checks import choice
    from pysim.cli.options import make_parser, positive_int
    from pysim.cli.script import Script

    parser = make_parser(__doc__, {"gpu": "h200", "schemes": SCHEMES})
    for name, default in SIZES.items():
        text = f"{MEANING[name]} (default: {default})"
        parser.add_argument(f"--{name}", type=positive_int, default=default, metavar="N", help=text)
    text = f"a training step with this optimiser: {', '.join(TRAIN)} (default: forward alone)"
    parser.add_argument("--train", type=choice(*TRAIN), default=None, metavar="WORD", help=text)
    text = "let kernels of as many bytes stand in for operators without a template"
    parser.add_argument("--approximate", action="store_true", help=text)
    script = Script.start("torch_model", parser, parser.parse_args(), KEYS)

    # slow imports: only after the options are checked
    from pysim import from_torch, stats
    from pysim.cli.entry import reading_input
    from pysim.errors import MissingLibraryError

    size = {name: script.workload[name] for name in SIZES}
    with reading_input():
        try:
            model, inputs = build(**size)
        except ImportError as error:
            raise MissingLibraryError("torch_model.py", "PyTorch", "torch") from error
        how = {name: script.workload[name] for name in ("train", "approximate")}
        job = from_torch(model, inputs, **how).with_arguments(script.workload)
    run = script.run(job, stats, stats.Log(script.options.quiet))
    network = (
        f"encoder, {size['layers']} x {size['hidden']}, batch {size['batch']}, {size['seq']} tokens, fp16"
    )
    stands_in = sum("stands in" in kernel.library for kernel in job.kernels)
    run.report([f"workload  {network}: {len(job.kernels)} kernels, of which {stands_in} stand in for others"])
    run.write(network)


if __name__ == "__main__":
    run_script(main)
