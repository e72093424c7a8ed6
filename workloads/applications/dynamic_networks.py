"""Networks whose path depends on the image, and cells with many branches: ACS's two kinds, batch 1.

Of the dynamic ones the path is drawn by ``seed`` and known to the host before the first launch, as a
controller's answer would be; the controller is left out, except CondConv's, which runs on the GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from pysim.errors import WorkloadError
from pysim.program.job import Job

from .cnn_layers import Net, Value

Cell = Sequence[tuple[str, int]]
# genotypes as the authors of DARTS write them down: pairs of (operation, input), inputs 0 and 1 the two cells
# before; a 7 x 1 and 1 x 7 pair is taken as a separable 7 x 7
CELLS: dict[str, tuple[Cell, tuple[int, ...], Cell, tuple[int, ...]]] = {
    "nasnet": (
        (("sep5", 1), ("sep3", 0), ("sep5", 0), ("sep3", 0), ("pool", 1), ("skip", 0),
         ("pool", 0), ("pool", 0), ("sep3", 1), ("skip", 1)), (2, 3, 4, 5, 6),
        (("sep5", 1), ("sep7", 0), ("pool", 1), ("sep7", 0), ("pool", 1), ("sep5", 0),
         ("skip", 3), ("pool", 2), ("sep3", 2), ("pool", 1)), (4, 5, 6),
    ),
    "amoebanet": (
        (("pool", 0), ("pool", 1), ("sep3", 0), ("sep5", 2), ("sep3", 0), ("pool", 3),
         ("sep3", 1), ("skip", 1), ("skip", 0), ("pool", 1)), (4, 5, 6),
        (("pool", 0), ("sep3", 1), ("pool", 0), ("sep7", 2), ("sep7", 0), ("pool", 1),
         ("pool", 0), ("pool", 1), ("sep7", 0), ("sep3", 5)), (3, 4, 6),
    ),
}  # fmt: skip
# width, layers, stride of MobileNetV2's stages on small pictures
MOBILE = ((16, 1, 1), (24, 2, 1), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1))
# the same of EfficientNet-B4, with the expansion and the filter's side
EFFICIENT = (
    (24, 2, 1, 1, 3), (32, 4, 2, 6, 3), (56, 4, 2, 6, 5), (112, 6, 2, 6, 3), (160, 6, 1, 6, 5),
    (272, 8, 2, 6, 5), (448, 2, 1, 6, 3),
)  # fmt: skip
SMALLEST = 4  # pixels a side, below which nothing is halved


def _separable(net: Net, x: Value, channels: int, side: int, stride: int, times: int = 2) -> Value:
    for turn in range(times):
        x = net.depthwise(x, side, stride if turn == 0 else 1)
        x = net.conv(x, channels, name="pointwise")
    return x


def _cell(net: Net, genes: Cell, kept: Sequence[int], inputs: list[Value], stride: int) -> Value:
    """Make a cell of five sums of two operations each, of which ``kept`` are concatenated."""
    states = list(inputs)
    for at in range(0, len(genes), 2):
        ends = []
        for kind, source in genes[at : at + 2]:
            x, own = states[source], stride if source < 2 else 1
            if kind == "pool":
                ends.append(net.pool(x, 3, own))
            elif kind == "skip":
                ends.append(x if own == 1 else net.conv(x, x.channels, 1, own, name="reduce"))
            else:
                ends.append(_separable(net, x, x.channels, int(kind[3:]), own))
        states.append(net.total(ends))
    return net.cat([states[i] for i in kept])


def _classify(net: Net, x: Value) -> None:
    net.dense(net.mean(x), 16, "classify")


def _cells(name: str, layers: int, width: int) -> Net:
    normal, kept, reduction, left = CELLS[name]
    net = Net()
    x = net.conv(Value(8, 32, 32), 3 * width, 3, name="stem")
    before = x
    for layer in range(layers):
        halve = layer in (layers // 3, 2 * layers // 3) and layers > 2
        width *= 1 + halve
        # inputs from before a reduction are halved, too
        both = [
            net.conv(before, width, 1, before.high // x.high, name="squeeze"),
            net.conv(x, width, 1, name="squeeze"),
        ]
        genes = (reduction, left) if halve else (normal, kept)
        before, x = x, _cell(net, *genes, both, 2 if halve else 1)
    _classify(net, x)
    return net


def _randwire(nodes: int, width: int, random: Random) -> Net:
    """Three stages of a Watts-Strogatz graph each: four neighbours, rewired with probability 0.75."""
    net = Net()
    x = net.conv(Value(8, 32, 32), width, 3, name="stem")
    for _ in range(3):
        width, edges = 2 * width, _wired(nodes, random)
        made: list[Value] = []
        for node in range(nodes):
            inputs = [made[i] for i in sorted(edges[node])]
            source = net.total(inputs) if len(inputs) > 1 else inputs[0] if inputs else x
            made.append(_separable(net, source, width, 3, 1 if inputs else 2, 1))
        used = set().union(*edges)
        ends = [value for i, value in enumerate(made) if i not in used]
        x = net.total(ends) if len(ends) > 1 else ends[0]
    _classify(net, x)
    return net


def _wired(nodes: int, random: Random) -> list[set[int]]:
    """Return for each node the earlier ones that it reads."""
    edges: set[tuple[int, int]] = set()
    for node in range(nodes):
        for step in (1, 2):
            other = (node + step) % nodes
            if random.random() < 0.75:
                other = random.choice([n for n in range(nodes) if n != node])
            edges.add((min(node, other), max(node, other)))
    return [{a for a, b in edges if b == node} for node in range(nodes)]


def _squeezenet() -> Net:
    net = Net()
    x = net.pool(net.conv(Value(8, 32, 32), 64, 3, name="stem"), 3, 2)
    for number, (squeezed, each) in enumerate(
        ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))
    ):
        narrow = net.conv(x, squeezed, name="squeeze")
        x = net.cat([net.conv(narrow, each, name="expand1"), net.conv(narrow, each, 3, name="expand3")])
        if number in (1, 3):
            x = net.pool(x, 3, 2)
    net.mean(net.conv(x, 16, name="classify"))
    return net


def _bottleneck(net: Net, x: Value, width: int, grow: int, side: int, stride: int) -> Value:
    wide = net.conv(x, grow * x.channels, name="expand") if grow > 1 else x
    return net.conv(net.depthwise(wide, side, stride), width, name="project")


def _instanas(random: Random) -> Net:
    """MobileNetV2's stages; a picture takes one to three of five options in each layer, which are added."""
    net = Net()
    x = net.conv(Value(8, 32, 32), 32, 3, name="stem")
    options = ((3, 3), (6, 3), (3, 5), (6, 5), (0, 3))  # expansion, filter; 0: a plain convolution
    for width, layers, first in MOBILE:
        for layer in range(layers):
            stride = first if layer == 0 else 1
            ends = [
                _bottleneck(net, x, width, grow, side, stride) if grow else net.conv(x, width, side, stride)
                for grow, side in sorted(random.sample(options, random.choice((1, 1, 2, 2, 3))))
            ]
            if stride == 1 and x.channels == width:
                ends.append(x)
            x = net.total(ends) if len(ends) > 1 else ends[0]
    _classify(net, net.conv(x, 1280, name="head"))
    return net


def _routing(layers: int, width: int, random: Random) -> Net:
    """Cells on four scales; each hands on to the finer, the same and the coarser one as a gate says."""
    net = Net()
    x = net.conv(Value(8, 64, 128), width, 3, name="stem")
    arrived: dict[int, list[Value]] = {0: [x]}
    for layer in range(layers):
        coming: dict[int, list[Value]] = {}
        for scale, values in sorted(arrived.items()):
            x = net.total(values) if len(values) > 1 else values[0]
            made = _separable(net, x, x.channels, 3, 1, 1)
            ways = [way for way in (-1, 0, 1) if 0 <= scale + way <= min(3, layer + 1)]
            open_ways = [way for way in ways if random.random() < 0.5] or [0]
            for way in open_ways:
                channels = width << (scale + way)
                if way:
                    end = net.conv(made, channels, 1, 2 if way > 0 else 1, name="route")
                    end = net.enlarge(end) if way < 0 else end
                else:
                    end = made
                coming.setdefault(scale + way, []).append(end)
        arrived = coming
    for values in arrived.values():
        x = net.total(values) if len(values) > 1 else values[0]
        net.conv(x, 24, name="classify")
    return net


def _condconv(pixels: int, experts: int) -> Net:
    """EfficientNet-B4's blocks; 1 x 1 convolutions of the last three stages mix weights by the picture."""
    net = Net()
    x = net.conv(Value(8, pixels, pixels), 48, 3, 2, name="stem")
    for stage, (width, layers, first, grow, side) in enumerate(EFFICIENT):
        for layer in range(layers):
            stride = first if layer == 0 and x.high > SMALLEST else 1
            gates = net.dense(net.mean(x), 8, "route") if stage >= 4 else None

            def point(y: Value, channels: int, gates: Value | None = gates) -> Value:
                if gates is None:
                    return net.conv(y, channels, name="pointwise")
                return net.mixed(y, net.mix(gates, y.channels, channels, experts), channels)

            wide = net.depthwise(point(x, grow * x.channels) if grow > 1 else x, side, stride)
            # squeeze and excite: each channel times what the means of all say
            squeezed = net.dense(net.mean(wide), max(8, x.channels // 32 * 8), "squeeze")
            scaled = net.scale(wide, net.dense(squeezed, wide.channels, "excite"))
            made = point(scaled, width)
            x = net.total([made, x]) if stride == 1 and x.channels == width else made
    _classify(net, net.conv(x, 1792, name="head"))
    return net


KINDS = ("instanas", "routing", "condconv", "nasnet", "amoebanet", "squeezenet", "randwire")


def network(kind: str = "instanas", layers: int = 0, seed: int = 1) -> Job:
    """Pass a picture through a network with a path of its own, or one with many branches, in fp32.

    ``instanas`` (MobileNetV2, five options a layer), ``routing`` (Dynamic Routing's cells on four scales),
    ``condconv`` (EfficientNet-B4, four experts); ``nasnet``, ``amoebanet``, ``squeezenet``, ``randwire``.
    ``layers`` (0: 6 cells, 16 layers of routing, 16 nodes a stage) applies to nasnet, amoebanet, routing
    and randwire. Assumed: pictures of 32 x 32 (routing 256 x 512, seen from a quarter on; condconv 64 x 64,
    nothing halved below four pixels), 32 channels (routing 64) at the start, how many options and gates are
    open, tiles of 16 channels x 128 pixels, all weights in fp32.
    """
    if kind not in KINDS:
        raise WorkloadError(f"network: kind = {kind[:20]}: must be one of {', '.join(KINDS)}")
    if not 0 <= layers <= 64:
        raise WorkloadError(f"network: layers = {layers}: must be from 0 to 64")
    random = Random(seed)
    built: dict[str, Callable[[], Net]] = {
        "instanas": lambda: _instanas(random),
        "routing": lambda: _routing(layers or 16, 64, random),
        "condconv": lambda: _condconv(64, 4),
        "nasnet": lambda: _cells("nasnet", layers or 6, 32),
        "amoebanet": lambda: _cells("amoebanet", layers or 6, 32),
        "squeezenet": _squeezenet,
        "randwire": lambda: _randwire(layers or 16, 32, random),
    }
    return built[kind]().job(f"network:kind={kind},seed={seed}")
