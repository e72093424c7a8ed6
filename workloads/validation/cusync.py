"""Suites of cuSync (CGO 2024): pairs of dependent products on an A100 and a V100, convolutions on a V100.

Published by the authors: stream order (``baseline``), row and tile semaphores, with tiles (TB, then warp:
M x N x K), stages and split-K where they list them. How they took the times, by their programs at commit
345b60a: on the V100 by the host's clock, ``baseline`` with a synchronisation of the host after *each* kernel
(so its scheme here is ``host``), the others with one at the end; on the A100 by events, each run enqueued on
an idle GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache, partial

from pysim import Config, Job, WorkloadError
from workloads.conv_chain import conv_chain
from workloads.mlp_pair import mlp_pair, tiling

from .cases import Case, Null, Outcome, Suite, outcome_of, tables_of, unique
from .nulls import roofline_by
from .table import Row, packaged, rows_of

BASE = "baseline"
_SEMAPHORES = {"rowsync": "cusync:row+streams", "tilesync": "cusync:tile+streams"}
MODES = {"a100": {BASE: "stream"} | _SEMAPHORES, "v100": {BASE: "host"} | _SEMAPHORES}
MLP_COLUMNS = (
    *("device", "model", "m", "n1", "k1", "n2", "k2", "mode", "total_us", "above_peak"),
    *("tile1", "tile2", "stages", "split_k"),
)
CONV_COLUMNS = ("device", "net", "batch", "channels", "spatial", "convs", "mode", "total_us", "above_peak")
ITEM = 2  # fp16
TAPS = 9  # 3 x 3


def _usable(rows: Sequence[Row], device: str) -> list[Row]:
    """Return the rows of a device in the three modes that do not claim more than its peak."""
    return [
        row
        for row in rows
        if row.text("device") == device
        and row.text("mode") in MODES[device]
        and row.text("above_peak") == "0"
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
        made.append(
            Case(
                case=f"{group}|{mode}",
                group=group,
                mode=mode,
                key=problem,
                kind="tiles listed" if listed else "tiles not listed",
                scheme=MODES[device][mode],
                task=(
                    *(str(size) for size in sizes.values()),
                    *(row.text(name) for name in MLP_COLUMNS[-4:]),
                    MODES[device][mode],
                ),
                part="pair",
                measured_us=row.number("total_us"),
                flops=2.0 * sizes["m"] * weights,
                nbytes=float(ITEM) * weights,
                quick=sizes["m"] <= 512,
            )
        )
    return unique(made)


def _numbers(text: str, what: str) -> tuple[int, int]:
    """Return the numbers of both products: ``"3"`` or ``"4/3"``."""
    parts = text.split("/") if text else []
    if len(parts) not in (1, 2) or not all(
        part.isascii() and part.isdigit() and len(part) < 4 for part in parts
    ):
        raise WorkloadError(f"{what} {text[:20]!r}: must be a number, or one a product as in 4/3")
    return int(parts[0]), int(parts[-1])


def _mlp(
    config: Config, m: str, n1: str, k1: str, n2: str, k2: str,
    tile1: str, tile2: str, stages: str, split_k: str, scheme: str,
) -> Outcome:  # fmt: skip
    """Simulate a pair of products; the time is what the authors' clock saw of it."""
    if not tile1:
        raise WorkloadError("no tiles are listed for this problem")
    if config.device.compute_capability[0] != 7:
        raise WorkloadError("CUTLASS's products with asynchronous copies (Ampere) are not built")
    both = zip((tile1, tile2), _numbers(stages, "stages"), _numbers(split_k, "split-K"), strict=True)
    first, second = (tiling(*each) for each in both)
    job = mlp_pair((int(m), int(n1), int(k1), int(n2), int(k2)), first, second)
    return _timed(config, job, scheme, first.name, "pair")


def _conv_cases(rows: Sequence[Row]) -> list[Case]:
    made = []
    mine = _usable(rows, "v100")
    for row, (problem, group) in zip(mine, _groups(mine, CONV_COLUMNS[1:6]), strict=True):
        sizes = [row.count(name) for name in CONV_COLUMNS[2:6]]
        batch, channels, spatial, convs = sizes
        mode, pixels = row.text("mode"), batch * spatial * spatial
        made.append(
            Case(
                case=f"{group}|{mode}",
                group=group,
                mode=mode,
                key=problem,
                kind=f"{channels} channels",
                scheme=MODES["v100"][mode],
                task=(*(str(size) for size in sizes), mode, MODES["v100"][mode]),
                part="layers",
                measured_us=row.number("total_us"),
                flops=2.0 * pixels * channels * channels * TAPS * convs,
                nbytes=float(ITEM) * convs * (2 * pixels * channels + channels * channels * TAPS),
                quick=batch <= 4,
            )
        )
    return unique(made)


def _conv(
    config: Config, batch: str, channels: str, spatial: str, convs: str, mode: str, scheme: str
) -> Outcome:
    """Simulate dependent convolutions; tiles and split-K are what the authors list for batch and channels."""
    tile, split = _listed().get((batch, channels, mode), ("", ""))
    if not tile:
        raise WorkloadError(f"no tile is listed for {channels} channels of batch {batch}")
    job = conv_chain(int(batch), int(channels), int(spatial), int(convs), tiling(tile, 2, int(split)))
    return _timed(config, job, scheme, f"{tile}, split-K {split}", "layers")


@cache
def _listed() -> dict[tuple[str, str, str], tuple[str, str]]:
    """Return (tile, split-K) by batch, channels and mode."""
    name = "cusync_conv_tiles.csv"
    rows = rows_of(name, packaged(name), ("batch", "channels", "tile", *MODES["v100"]))
    return {
        (row.text("batch"), row.text("channels"), mode): (row.text("tile"), row.text(mode))
        for row in rows
        for mode in MODES["v100"]
    }


def _timed(config: Config, job: Job, scheme: str, detail: str, part: str) -> Outcome:
    """Simulate a job as the host's clock saw it: a launch before and a synchronisation after it."""
    tables = tables_of(config, job, scheme)
    kernels = tables["kernels"]
    ran = float(kernels["last_end_us"].max() - kernels["first_dispatch_us"].min())
    return outcome_of(tables, {part: ran + config.number("host.roundtrip") / 1e3}, detail)


def _nulls(cases: Sequence[Case]) -> list[Null]:
    return [roofline_by(cases, "roofline", lambda case: "")]


def _suite_mlp(name: str, device: str) -> Suite:
    return Suite(
        name=name,
        doc=f"pairs of products on {'an A100' if device == 'a100' else 'a V100'} from cuSync's authors",
        gpu=device,
        file="cusync_mlp.csv",
        columns=MLP_COLUMNS,
        cases=partial(_mlp_cases, device=device),
        run=_mlp,
        nulls=_nulls,
        note=f"{device}: rows in modes {', '.join(MODES[device])}; above_peak = 1 rows are left out, as they"
        " claim more than the card's peak and cannot be right",
        base=BASE,
        compare="gain",
    )


MLP = _suite_mlp("cusync-mlp", "a100")
MLP_V100 = _suite_mlp("cusync-mlp-v100", "v100")
CONV = Suite(
    name="cusync-conv",
    doc="dependent 3 x 3 convolutions on a V100 from cuSync's authors",
    gpu="v100",
    file="cusync_conv.csv",
    columns=CONV_COLUMNS,
    cases=_conv_cases,
    run=_conv,
    nulls=_nulls,
    note="rows with above_peak = 1 are left out: they claim more than the card's peak and cannot be right",
    base=BASE,
    compare="gain",
)
