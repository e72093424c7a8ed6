"""Convolutional networks by name, as factories of the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pysim.workloads.networks.passes import layers_of
from pysim.workloads.networks.shapes import CELLS, PLAIN, RANDWIRE, RESNET, Cells

from .build import Asked, Pictures, network_job
from .cells import cells
from .plain import lenet, plain
from .residual import residual
from .wired import wired

if TYPE_CHECKING:
    from pysim.program.job import Job
    from pysim.workloads.framework.tape import Value
    from pysim.workloads.kernels.machine_hints import MachineHints

LENET_LAYERS = 5


def _factory(name: str, build: Callable[[Pictures], Value], steps: int, doc: str) -> Callable[..., Job]:
    def made(
        batch: int = 1,
        side: int = 224,
        pass_: str = "forward",
        dtype: str = "fp32",
        hints: MachineHints | None = None,
    ) -> Job:
        return network_job(name, build, Asked(batch, side, pass_, dtype, hints), steps)

    made.__doc__ = f"""Make a pass of {doc}.

    ``pass``: forward as in evaluation, or a training step with SGD with momentum. Images are ``batch`` of
    ``side`` x ``side`` pixels, channels first. ``dtype``: fp32, fp16 or bf16, the one type of parameters,
    images and gradients but for fp32 normalisations; amp or amp-bf16: autocast as PyTorch's, with fp32
    parameters and gradients, and in fp16 a loss scale.
    """
    return made


def _lenet(
    batch: int = 1,
    side: int = 28,
    pass_: str = "forward",
    dtype: str = "fp32",
    hints: MachineHints | None = None,
) -> Job:
    """Make a pass of LeNet-5 on images of one channel; keys as those of the other networks."""
    return network_job("lenet", lenet, Asked(batch, side, pass_, dtype, hints, 1), LENET_LAYERS)


def _cells(name: str, shape: Cells) -> Callable[..., Job]:
    def made(
        batch: int = 1,
        side: int = 224,
        pass_: str = "forward",
        dtype: str = "fp32",
        layers: int = 0,
        hints: MachineHints | None = None,
    ) -> Job:
        each = layers_of(name, layers, shape.layers)
        asked = Asked(batch, side, pass_, dtype, hints)
        return network_job(name, lambda p: cells(shape, p, each), asked, 3 * each)

    made.__doc__ = f"""Make a pass of {name} ({shape.source}), of ``layers`` normal cells a stage.

    Other keys as those of the other networks. {shape.note}
    """
    return made


def _randwire(
    batch: int = 1,
    side: int = 224,
    pass_: str = "forward",
    dtype: str = "fp32",
    layers: int = 0,
    seed: int = 1,
    hints: MachineHints | None = None,
) -> Job:
    """Make a pass of RandWire-WS of the small regime, of ``layers`` nodes a stage, wired by ``seed``.

    Other keys as those of the other networks.
    """
    nodes = layers_of("randwire", layers, RANDWIRE.nodes)
    asked = Asked(batch, side, pass_, dtype, hints)
    return network_job("randwire", lambda p: wired(RANDWIRE, p, nodes, seed), asked, 3 * nodes)


def _made() -> dict[str, Callable[..., Job]]:
    factories = {}
    for name, shape in RESNET.items():
        note = f" ({shape.note})" if shape.note else ""
        doc = f"{name} as torchvision builds it{note}"
        factories[name] = _factory(name, lambda p, s=shape: residual(s, p), sum(shape.blocks), doc)  # type: ignore[misc]
    for name, flat in PLAIN.items():
        layers = sum(1 for filters, *_ in flat.features if filters) + len(flat.linear)
        doc = f"{name} as torchvision builds it"
        factories[name] = _factory(name, lambda p, s=flat: plain(s, p), layers, doc)  # type: ignore[misc]
    return factories | {name: _cells(name, shape) for name, shape in CELLS.items()}


VISION: dict[str, Callable[..., Job]] = {**_made(), "lenet": _lenet, "randwire": _randwire}
