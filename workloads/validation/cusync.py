"""Suites of cuSync (CGO 2024): pairs of dependent GEMMs on an A100 and a V100, convolutions on a V100.

Published by the authors: stream order (``baseline``), row and tile semaphores, with tiles (TB, then warp:
M x N x K), stages and split-K. Their script has more of these than their results: other tiles for a mode,
the tiles of M > 2048, and which of their optimisations were on (``cusync_mlp_tiles.csv``); where it has a
problem, it is what ran. How times were taken, by their programs at commit 345b60a: on the V100 by the
host's clock, ``baseline`` with a synchronisation of the host after *each* kernel (so its scheme here is
``host``), the others with one at the end; on the A100 by events, each run enqueued on an idle GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache, partial

from pysim import Config, Job, WorkloadError
from pysim.workloads.kernels.cutlass import Multistage, multistage
from pysim.workloads.kernels.implicit_gemm import Form, conv_chain
from pysim.workloads.kernels.tiling import Tiling
from pysim.workloads.networks.mlp_pair import mlp_pair, tiling

from .baselines import roofline_by
from .cases import Baseline, Case, Outcome, Suite, outcome_of, tables_of, unique
from .table import Row, packaged, rows_of

BASE = "baseline"
BASES = {"a100": "stream", "v100": "host"}
CARDS = {"a100": "a100", "v100": "v100_32gb"}  # the simulated devices of the tables' GPUs
MODES = (BASE, "rowsync", "tilesync")
# Of cuSync's code: two streams, a fence of the system before each post. Its optimisations W, T and R leave
# out the kernel that waits for the producer's first TB, the look-up of the tile, and the wait before the
# weights.
CUSYNC = "cusync:{policy}+streams+fence_system+poll_each"
FLAGS = {
    "AvoidWaitKernel": ("gate_first", "no_gate"),
    "AvoidCustomOrder": ("tile_order", ""),
    "ReorderTileLoads": ("wait_early", ""),
}
MLP_COLUMNS = (
    *("device", "model", "m", "n1", "k1", "n2", "k2", "mode", "total_us", "above_peak"),
    *("tile1", "tile2", "stages", "split_k"),
)
CONV_COLUMNS = ("device", "net", "batch", "channels", "spatial", "convs", "mode", "total_us", "above_peak")
ITEM = 2  # fp16
ELEMENTS = {"resnet38": 1, "vgg19": 8}  # of an access of the convolutions' output, in their two programs
TAPS = 9  # 3 x 3


def _usable(rows: Sequence[Row], device: str) -> list[Row]:
    """Return the rows of a device in the three modes that do not claim more than its peak."""
    return [
        row
        for row in rows
        if row.text("device") == device and row.text("mode") in MODES and row.text("above_peak") == "0"
    ]


def _groups(rows: Sequence[Row], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return (problem, group) of each row: one measured more than once has groups ``#1``, ``#2``, ..."""
    problems = ["|".join(row.text(name) for name in names) for row in rows]
    modes = [row.text("mode") for row in rows]
    total, seen, made = Counter(zip(problems, modes, strict=True)), Counter[tuple[str, str]](), []
    often = {problem for (problem, _), count in total.items() if count > 1}
    for pair in zip(problems, modes, strict=True):
        seen[pair] += 1
        made.append((pair[0], f"{pair[0]}#{seen[pair]}" if pair[0] in often else pair[0]))
    return made


def _mlp_cases(rows: Sequence[Row], device: str) -> list[Case]:
    made = []
    mine = _usable(rows, device)
    for row, (problem, group) in zip(mine, _groups(mine, ("model", *MLP_COLUMNS[2:7])), strict=True):
        sizes = {name: row.count(name) for name in ("m", "n1", "k1", "n2", "k2")}
        weights = sizes["n1"] * sizes["k1"] + sizes["n2"] * sizes["k2"]
        mode, listed = row.text("mode"), bool(row.text("tile1"))
        tiles, flags = _mlp_tiles(row, device)
        policy = "row" if mode == "rowsync" else "tile" if sizes["n1"] == sizes["k2"] else "strided"
        scheme = _scheme(device, mode, policy, flags)
        made.append(
            Case(
                case=f"{group}|{mode}",
                group=group,
                mode=mode,
                key=problem,
                kind="tiles listed" if listed else "tiles not listed",
                scheme=scheme,
                task=(*(str(size) for size in sizes.values()), *tiles, row.text("model"), scheme),
                part="pair",
                measured_us=row.number("total_us"),
                flops=2.0 * sizes["m"] * weights,
                nbytes=float(ITEM) * weights,
                quick=sizes["m"] <= 512,
            )
        )
    return unique(made)


@cache
def _scripts() -> dict[tuple[str, ...], tuple[tuple[str, ...], frozenset[str]]]:
    """Return tiles, stages, split-K and the optimisations that are on, by device, model, M and mode."""
    name = "cusync_mlp_tiles.csv"
    rows = rows_of(name, packaged(name), ("device", "model", "m", "mode", *MLP_COLUMNS[-4:], *FLAGS))
    return {
        tuple(row.text(key) for key in ("device", "model", "m", "mode")): (
            tuple(row.text(key) for key in MLP_COLUMNS[-4:]),
            frozenset(flag for flag in FLAGS if row.text(flag) == "1"),
        )
        for row in rows
    }


def _mlp_tiles(row: Row, device: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return what the authors' script has for a row, or else what the row says."""
    key = (device, row.text("model"), row.text("m"), row.text("mode"))
    mine = tuple(row.text(name) for name in MLP_COLUMNS[-4:])
    return _scripts().get(key, (mine, frozenset()))


def _scheme(device: str, mode: str, policy: str, flags: frozenset[str]) -> str:
    """Return the scheme of a mode with the optimisations that were on."""
    if mode == BASE:
        return BASES[device]
    options = (on if flag in flags else off for flag, (off, on) in FLAGS.items())
    return "+".join((CUSYNC.format(policy=policy), *(word for word in options if word)))


def _numbers(text: str, what: str) -> tuple[int, int]:
    """Return the numbers of both GEMMs: ``"3"`` or ``"4/3"``."""
    parts = text.split("/") if text else []
    if len(parts) not in (1, 2) or not all(
        part.isascii() and part.isdigit() and len(part) < 4 for part in parts
    ):
        raise WorkloadError(f"{what} {text[:20]!r}: must be a number, or one a GEMM as in 4/3")
    return int(parts[0]), int(parts[-1])


def _mlp(
    config: Config, m: str, n1: str, k1: str, n2: str, k2: str,
    tile1: str, tile2: str, stages: str, split_k: str, model: str, scheme: str,
) -> Outcome:  # fmt: skip
    """Simulate a pair of GEMMs; the time is what the authors' clock measured."""
    if not tile1:
        raise WorkloadError("no tiles are listed for this problem")
    ampere = config.device.compute_capability[0] >= 8
    made = tilings(model, ampere, (tile1, tile2, stages, split_k))
    sizes = (int(m), int(n1), int(k1), int(n2), int(k2))
    job = mlp_pair(sizes, *made, gated=scheme not in BASES.values())
    detail = f"{made[0].name} {stages} stages, split-K {split_k}"
    if ampere:
        return _events(config, job, scheme, detail)
    return _timed(config, job, scheme, detail, "pair")


def tilings(model: str, ampere: bool, tiles: Sequence[str]) -> list[Tiling | Multistage]:
    """Return the tilings of a pair of GEMMs; ``tiles``: of each, then stages and split-K of both."""
    made: list[Tiling | Multistage] = []
    both = zip(tiles[:2], _numbers(tiles[2], "stages"), _numbers(tiles[3], "split-K"), strict=True)
    for tile, depth, parts in both:
        # the first GEMM of a GPT-3 has the GELU in its epilogue
        gelu = model == "gpt3" and not made
        made.append(multistage(tile, depth, parts, gelu=gelu) if ampere else tiling(tile, depth, parts))
    return made


def listed_pair(
    device: str, model: str, m: int, mode: str, policy: str
) -> tuple[list[Tiling | Multistage], str]:
    """Return the tilings of a mode in the authors' script, and the scheme of its optimisations."""
    key = (device, model, str(m), mode)
    if key not in _scripts():
        raise WorkloadError(f"{model} on {device}: no tiles are listed for {m} tokens")
    tiles, flags = _scripts()[key]
    return tilings(model, device != "v100", tiles), _scheme(device, mode, policy, flags)


def listed_convolution(batch: int, channels: int, layers: int, mode: str) -> tuple[Tiling, str, Form]:
    """Return the tile that the authors list, the scheme of the optimisations that were on, and the code."""
    tile, split, flags = _listed().get((str(batch), str(channels), mode), ("", "1", frozenset()))
    if not tile:
        raise WorkloadError(f"no tile is listed for {channels} channels of batch {batch}")
    scheme = _scheme("v100", mode, "row" if mode == "rowsync" else "conv", flags)
    elements = ELEMENTS["resnet38" if layers == 2 else "vgg19"]
    return tiling(tile, 2, int(split)), scheme, form_of(mode, flags, elements)


def form_of(mode: str, flags: frozenset[str], elements: int = 1) -> Form:
    """Return what the machine code of a mode's convolutions has; ``elements``: of an access of the output."""
    return Form(mode == "tilesync", "ReorderTileLoads" in flags, elements)


def _conv_cases(rows: Sequence[Row]) -> list[Case]:
    made = []
    mine = _usable(rows, "v100")
    for row, (problem, group) in zip(mine, _groups(mine, CONV_COLUMNS[1:6]), strict=True):
        sizes = [row.count(name) for name in CONV_COLUMNS[2:6]]
        batch, channels, spatial, convs = sizes
        mode, pixels = row.text("mode"), batch * spatial * spatial
        flags = _listed().get((str(batch), str(channels), mode), ("", "", frozenset()))[2]
        scheme = _scheme("v100", mode, "row" if mode == "rowsync" else "conv", flags)
        made.append(
            Case(
                case=f"{group}|{mode}",
                group=group,
                mode=mode,
                key=problem,
                kind=f"{channels} channels",
                scheme=scheme,
                task=(row.text("net"), *(str(size) for size in sizes), mode, scheme),
                part="layers",
                measured_us=row.number("total_us"),
                flops=2.0 * pixels * channels * channels * TAPS * convs,
                nbytes=float(ITEM) * convs * (2 * pixels * channels + channels * channels * TAPS),
                quick=batch <= 4,
            )
        )
    return unique(made)


def _conv(
    config: Config, net: str, batch: str, channels: str, spatial: str, convs: str, mode: str, scheme: str
) -> Outcome:
    """Simulate dependent convolutions; tiles and split-K are what the authors list for batch and channels."""
    tile, split, flags = _listed().get((batch, channels, mode), ("", "", frozenset()))
    if not tile:
        raise WorkloadError(f"no tile is listed for {channels} channels of batch {batch}")
    sizes = (int(batch), int(channels), int(spatial), int(convs))
    job = conv_chain(*sizes, tiling(tile, 2, int(split)), form_of(mode, flags, ELEMENTS.get(net, 1)))
    # their baseline initialises each kernel anew, which with a split K clears its semaphores: one launch more
    clears = int(convs) if scheme == BASES["v100"] and split != "1" else 0
    return _timed(config, job, scheme, f"{tile}, split-K {split}", "layers", clears)


@cache
def _listed() -> dict[tuple[str, str, str], tuple[str, str, frozenset[str]]]:
    """Return tile, split-K and the optimisations that are on, by batch, channels and mode."""
    name = "cusync_conv_tiles.csv"
    kinds = {"rowsync": "row", "tilesync": "tile"}
    flags = tuple(f"{kind}_{flag}" for kind in kinds.values() for flag in FLAGS)
    rows = rows_of(name, packaged(name), ("batch", "channels", "tile", *MODES, *flags))
    return {
        (row.text("batch"), row.text("channels"), mode): (
            row.text("tile"),
            row.text(mode),
            frozenset(flag for flag in FLAGS if mode in kinds and row.text(f"{kinds[mode]}_{flag}") == "1"),
        )
        for row in rows
        for mode in MODES
    }


def _timed(config: Config, job: Job, scheme: str, detail: str, part: str, clears: int = 0) -> Outcome:
    """Simulate a job as the host's clock saw it: a launch, ``clears`` more, and a synchronisation."""
    tables = tables_of(config, job, scheme)
    kernels = tables["kernels"]
    ran = float(kernels["last_end_us"].max() - kernels["first_dispatch_us"].min())
    around = config.number("host.roundtrip") + clears * config.number("host.launch")
    return outcome_of(tables, {part: ran + around / 1e3}, detail)


def _events(config: Config, job: Job, scheme: str, detail: str) -> Outcome:
    """Simulate a job as events around it on an idle GPU saw it: the host launches after the first event."""
    tables = tables_of(config, job, scheme)
    launched = (config.number("host.launch") + config.number("gpu.cp.launch")) / 1e3
    kernels = tables["kernels"]
    ran = float(kernels["last_end_us"].max() - kernels["first_dispatch_us"].min())
    return outcome_of(tables, {"pair": ran + launched}, detail)


def _baselines(cases: Sequence[Case]) -> list[Baseline]:
    return [roofline_by(cases, "roofline", lambda case: "")]


def _suite_mlp(name: str, device: str) -> Suite:
    return Suite(
        name=name,
        doc=f"pairs of GEMMs on {'an A100' if device == 'a100' else 'a V100'} from cuSync's authors",
        gpu=CARDS[device],
        file="cusync_mlp.csv",
        columns=MLP_COLUMNS,
        cases=partial(_mlp_cases, device=device),
        run=_mlp,
        baselines=_baselines,
        note=f"{device}: rows in modes {', '.join(MODES)}; above_peak = 1 rows are left out, as they"
        " claim more than the GPU's peak and cannot be right",
        base=BASE,
        compare="saving",
    )


MLP = _suite_mlp("cusync-mlp", "a100")
MLP_V100 = _suite_mlp("cusync-mlp-v100", "v100")
CONV = Suite(
    name="cusync-conv",
    doc="dependent 3 x 3 convolutions on a V100 from cuSync's authors",
    gpu=CARDS["v100"],
    file="cusync_conv.csv",
    columns=CONV_COLUMNS,
    cases=_conv_cases,
    run=_conv,
    baselines=_baselines,
    note="rows with above_peak = 1 are left out: they claim more than the GPU's peak and cannot be right",
    base=BASE,
    compare="saving",
)
