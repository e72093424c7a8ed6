"""The command ``pysim export``: results in the formats of other tools."""

from __future__ import annotations

from pathlib import Path

from pysim.cli.options import name_list, size_option
from pysim.cli.parser import Parser
from pysim.cli.subcommand import Subcommand
from pysim.errors import ConfigError, InputError
from pysim.units import suggest


def export(words: list[str]) -> None:
    """Write the tables of a result file, or of a sweep, as Parquet files."""
    parser = Parser(prog="pysim export", description=EXPORT.doc)
    parser.add_argument("results", metavar="FILE.h5|FOLDER", help="result file, or folder of a sweep")
    text = "folder that gets NAME.parquet of each table, or FILE.parquet for one table"
    parser.add_argument("-o", "--out", metavar="FOLDER", required=True, help=text)
    text = "tables (default: all but host)"
    parser.add_argument("--tables", type=name_list, default=(), metavar="LIST", help=text)
    parser.add_argument("--partial", action="store_true", help="take the points of a sweep that are done")
    parser.add_argument("--force", action="store_true", help="replace existing files")
    parser.add_argument("--max-memory", type=size_option, metavar="SIZE", help="memory of the tables")
    args = parser.parse_args(words)

    from pysim import stats
    from pysim.program.memory_budget import limit
    from pysim.stats.export.parquet import table_names

    path, chosen = Path(args.results), () if args.tables == ("all",) else args.tables
    try:
        results = stats.SweepResults(path) if path.is_dir() else stats.Results(path)
        known = table_names(results)
        if isinstance(results, stats.Results):
            results.verify()
    except stats.StoreError as error:
        raise InputError(str(error)) from error
    for name in chosen:
        if name not in known:
            hint = suggest(name, known) or f": there are {', '.join(sorted(known))}"
            raise ConfigError(f"--tables: {path} has no table {name!r}{hint}")
    made = stats.to_parquet(
        results,
        args.out,
        tables=chosen,
        partial=args.partial,
        force=args.force,
        most_bytes=(args.max_memory or limit()) // 3,  # they are joined, and made in memory
    )
    print(f"wrote {', '.join(map(str, made))}")


EXPORT = Subcommand("export", export, "Write the tables of results as Parquet files.", ("FILE.h5|FOLDER",))
