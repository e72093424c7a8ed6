"""How much faster is a GEMM whose k-iterations are divided evenly among all TBs (Stream-K)?

examples:
  # one output tile more and fewer than SMs, and one and a half waves
  python configs/stream_k.py --tiles 108,109,162
  # GEMMs that were timed on an A100, the small ones
  python configs/stream_k.py --table measured --most 512
"""

from pysim.cli.entry import run_script

TILES = (1, 27, 54, 108, 109, 135, 162, 216, 217, 325)
TABLES = ("tiles", "measured")
TILE_HELP = "M, N, K of a TB, then of a warp (default: 128x256x32x64x64x32)"
MEASURED = "cusync_streamk.csv"
COLUMNS = ("model", "m", "n1", "k1", "n2", "k2", "gemm1_us", "gemm2_us", "tile1", "tile2", "stages")


def micros(script, kernel, sizes):
    """Return the time (us) of one launch of a kernel on an idle GPU."""
    from pysim import Job
    from pysim.cli.many_runs import simulate_in_order

    job = Job(f"{kernel.name}, {'x'.join(map(str, sizes))}", [kernel])
    row, _ = simulate_in_order(script, job, "none")
    return float(row["time_us"])


def times(script, tiling, sizes, kinds, least=1):
    """Return the time (us) of a GEMM of (M, N, K): ``plain``, and each kind of Stream-K."""
    from pysim.program.job import Memory
    from pysim.workloads.kernels.cutlass import cutlass_gemm
    from pysim.workloads.kernels.stream_k import resident, stream_k, workspace

    m, n, k = sizes
    memory = Memory()
    a, b, c = (
        memory.tensor(name, *shape, 2) for name, shape in zip("abc", ((m, k), (k, n), (m, n)), strict=True)
    )
    sums = workspace(memory, "sums", tiling, resident(tiling, script.config))
    found = {"plain": micros(script, cutlass_gemm("plain", a, b, c, tiling), sizes)}
    for kind in kinds:
        made = stream_k(kind, a, b, c, tiling, sums, kind=kind, least=least)
        found[kind] = micros(script, made, sizes)
    return found


def by_tiles(script, tiling, depth, tiles, least):
    """Yield the rows of a table: a GEMM a number of output tiles."""
    from pysim.workloads.kernels.stream_k import KINDS, resident

    yield ("tiles", "waves", "plain us", *(f"`{kind}` us" for kind in KINDS), "best")
    for number in tiles:
        took = times(script, tiling, (tiling.tm, tiling.tn * number, depth), KINDS, least)
        best = took["plain"] / min(took.values())
        waves = number / resident(tiling, script.config)
        yield (f"{number}", f"{waves:.2f}", *(f"{us:,.1f}" for us in took.values()), f"{best:.2f}x")


def measured(script, most):
    """Yield the rows of a table of GEMMs whose Stream-K version was measured on an A100."""
    from pysim.workloads.kernels.cutlass import multistage
    from pysim.workloads.validation.table import packaged, rows_of

    yield ("GEMM", "tile", "waves", "plain us", "Stream-K us", "measured us", "error")
    errors, seen = [], set()
    for row in rows_of(MEASURED, packaged(MEASURED), COLUMNS):
        stages = row.text("stages").split("/")
        for which in (1, 2):
            sizes = tuple(row.count(name) for name in ("m", f"n{which}", f"k{which}"))
            if sizes in seen or sizes[0] > most:
                continue
            seen.add(sizes)
            tiling = multistage(row.text(f"tile{which}"), int(stages[min(which, len(stages)) - 1]), 1)
            took = times(script, tiling, sizes, ("two_tile",))
            us, real = took["two_tile"], row.number(f"gemm{which}_us")
            errors.append(us / real - 1)
            gx, gy, _ = tiling.grid(*sizes)
            waves = gx * gy / script.config["gpu.sms"]
            cells = (f"{took['plain']:,.0f}", f"{us:,.0f}", f"{real:,.0f}", f"{errors[-1]:+.0%}")
            yield ("x".join(map(str, sizes)), f"{tiling.tm}x{tiling.tn}x{tiling.tk}", f"{waves:.2f}", *cells)
    if errors:
        mean = sum(map(abs, errors)) / len(errors)
        yield ("mean", "", "", "", "", "", f"{mean:.1%}")


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    from pysim.cli.checks import choice
    from pysim.cli.options import SINGLE_RUN, counts, make_parser, positive_int
    from pysim.cli.script import Script
    from pysim.errors import WorkloadError

    parser = make_parser(
        __doc__,
        {"gpu": "a100"},
        ("schemes", *SINGLE_RUN),
        "this script makes many runs of single kernels and writes the table runs",
    )
    parser.add_argument(
        "--table",
        type=choice(*TABLES),
        default=TABLES[0],
        metavar="NAME",
        help="tiles: GEMMs of --tiles output tiles; measured: those timed on an A100 (default: tiles)",
    )
    parser.add_argument("--tile", default="128x256x32x64x64x32", metavar="SHAPE", help=TILE_HELP)
    parser.add_argument(
        "--stages", type=positive_int, metavar="N", default=3, help="pipeline stages (default: 3)"
    )
    parser.add_argument(
        "--depth", type=positive_int, metavar="N", default=4096, help="K of the GEMMs (default: 4096)"
    )
    parser.add_argument(
        "--least",
        type=positive_int,
        metavar="N",
        default=16,
        help="fewest k-iterations of a TB (default: 16)",
    )
    text = f"numbers of output tiles (default: {','.join(map(str, TILES))})"
    parser.add_argument("--tiles", type=counts, default=TILES, metavar="LIST", help=text)
    parser.add_argument(
        "--most",
        type=positive_int,
        metavar="N",
        default=1536,
        help="largest M of measured GEMMs (default: 1536)",
    )
    script = Script.start(
        "stream_k",
        parser,
        parser.parse_args(),
        ("table", "tile", "stages", "depth", "tiles", "least", "most"),
    )

    from pysim import stats
    from pysim.cli.many_runs import print_table
    from pysim.workloads.kernels.cutlass import multistage

    chosen = script.workload
    try:
        if chosen["table"] == "measured":
            table = measured(script, chosen["most"])
        else:
            tiling = multistage(chosen["tile"], chosen["stages"], 1)
            table = by_tiles(script, tiling, chosen["depth"], chosen["tiles"], chosen["least"])
        print_table(script, stats, table)
    except WorkloadError as error:
        parser.error(str(error))


if __name__ == "__main__":
    run_script(main)
