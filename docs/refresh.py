"""Makes every number, table and picture of README.md and docs/ anew: ``make readme`` (a few minutes).

Speed is a thing of the machine, so docs/performance.md is apart: ``make performance`` (ten minutes). So is
what is said of accuracy, as all rows of DeepBench take long: ``make accuracy`` (ten minutes of one core). The
comparison with Accel-Sim is apart for both reasons: ``make peer`` (three minutes).

Text between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` is output and belongs to this script.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import stats

ROOT = Path(__file__).resolve().parents[1]
GRU = "configs/titanv_gru.py"
WINDOWS = (4, 16, 64, 180)


def run(*args: str) -> str:
    """Run Python in the root of the checkout and return what it prints."""
    done = subprocess.run(
        [sys.executable, *args], cwd=ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True
    )
    return done.stdout


def replace(path: Path, blocks: dict[str, str]) -> None:
    """Put each block between its marks."""
    text = path.read_text(encoding="utf-8")
    for name, block in blocks.items():
        marks = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        if len(marks.findall(text)) != 1:
            raise SystemExit(f"{path}: no marks for {name}, or more than one pair")
        text = marks.sub(lambda found, block=block: f"{found[1]}{block.rstrip()}\n{found[2]}", text)
    path.write_text(text, encoding="utf-8")


def code(text: str) -> str:
    """Return a code block."""
    return f"```\n{text.rstrip()}\n```"


def windows(folder: Path, default: Any, *more: str) -> str:
    """Simulate the table scheme under each window; the other rows do not depend on it."""
    rows = [row for row in default if row["scheme"] != b"tb_static"]
    for window in WINDOWS:
        path = folder / f"{window}.h5"
        options = (
            "--schemes",
            "stream,tb_static",
            "--tables",
            "none",
            "--quiet",
            "--out",
            str(path),
            "--force",
        )
        run(GRU, *options, *more, "--set", f"scheme.window={window}")
        row = stats.load(path).array("runs")[1]
        row["scheme"] = f"tb_static, window {window}".encode()
        rows.append(row)
    order = {b"host": 0, b"stream": 1, b"graph": 2, b"tb_ideal": 9}
    rows.sort(key=lambda row: order.get(row["scheme"], 5))
    return code(stats.format_runs(np.array(rows, default.dtype), (), 20))


def reason(rows: dict[str, Any], bandwidth: float) -> str:
    """Say in numbers what the default run is limited by."""
    base, best = rows["stream"], min(rows.values(), key=lambda row: row["time_us"])
    least = base["dram_bytes"] / bandwidth / 1e3
    return (
        f"In stream order the run moves {base['dram_bytes'] / 1e9:.2f} GB from and to DRAM, which take"
        f" {least / 1e3:.2f} ms at the peak of {bandwidth:g} GB/s: {least / base['time_us']:.0%} of its"
        " time. Whatever the order, as long as these bytes move no scheme can reach more than"
        f" {base['time_us'] / least:.2f}x. The best row, `{best['scheme'].decode()}`, reaches"
        f" {best['speedup']:.3f}x: the share of SM time without a TB falls from {base['sm_idle']:.1%} to"
        f" {best['sm_idle']:.1%}, and DRAM traffic changes by"
        f" {best['dram_bytes'] / base['dram_bytes'] - 1:+.1%}."
    )


def performance(yardstick: str) -> None:
    """Measure speed, then write docs/performance.md and the stored instruction counts."""
    bench = "tests/bench/bench.py"
    blocks = {
        "instructions": run("tests/bench/guard.py", "--update", "--profile"),
        "threads": run(bench, "--threads-ratio"),
        "scaling": run(bench, "--scaling"),
        "bench": code(run(bench, "--yardstick", yardstick)),
    }
    replace(ROOT / "docs" / "performance.md", blocks)


def readme() -> None:
    """Simulate, then write README.md and docs/parameters.md."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "titanv_gru.h5"
        shown = run(GRU, "--out", str(path), "--quiet").partition("\nwrote ")[0]
        shutil.copyfile(path.with_suffix(".png"), ROOT / "docs" / "titanv_gru.png")
        results = stats.load(path)
        runs = results.array("runs")
        bandwidth = float(results.configuration["parameters"]["gpu.dram.bandwidth"])
        every = windows(folder, runs)
        renamed = ("--buffers", "20")
        path = folder / "renamed.h5"
        run(GRU, *renamed, "--tables", "none", "--quiet", "--out", str(path))
        own = windows(folder, stats.load(path).array("runs"), *renamed)
    replace(
        ROOT / "README.md",
        {
            "output": code(shown),
            "windows": every,
            "renamed": own,
            "reason": reason({row["scheme"].decode(): row for row in runs}, bandwidth),
        },
    )
    camping()
    replace(ROOT / "docs" / "long_runs.md", {"replay": replayed()})
    dependences()
    table = run("-m", "pysim", "parameters", "--gpu", "titan_v", "--markdown")
    replace(ROOT / "docs" / "parameters.md", {"parameters": table})


def camping() -> None:
    """Write the table and the picture of docs/time_series.md."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "camping.h5"
        shown = run("configs/figure_bank_camping.py", "--out", str(path), "--quiet").partition("\nwrote ")[0]
        shutil.copyfile(path.with_suffix(".png"), ROOT / "docs" / "bank_camping.png")
    replace(ROOT / "docs" / "time_series.md", {"camping": code(shown)})


def replayed() -> str:
    """Simulate networks as a whole and with replay; return what that adds to the time, and what it says."""
    from pysim import simulate
    from workloads import make

    lines = [
        "| workload | scheme | whole us | replay us | off by | said | kernels left out | DRAM bytes off by |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for text in ("gru", "gru:hidden=512,batch=16", "transformer", "transformer:layers=12,hidden=256,heads=4"):
        for scheme in ("stream", "graph", "tb_static", "tb_ideal"):
            whole, part, forced = (
                simulate("titan_v", make(text), scheme, tables="none", baseline=False, overrides=over).frame(
                    "runs"
                )
                for over in (
                    {},
                    {"sim.replay": "period"},
                    {"sim.replay": "period", "sim.replay_error": 1},
                )
            )
            was, now, said = whole.iloc[0], part.iloc[0], float(forced["replay_error"][0])
            cells = [f"`{text}`", f"`{scheme}`", f"{was.time_us:,.1f}"]
            if now.replayed:
                apart = (now.time_us / was.time_us - 1, now.dram_bytes / was.dram_bytes - 1)
                share = now.replayed / len(make(text).kernels)
                cells += [
                    f"{now.time_us:,.1f}",
                    f"{apart[0]:.2%}",
                    f"{said:.2%}",
                    f"{share:.0%}",
                    f"{apart[1]:.1%}",
                ]
            else:
                cells += ["simulated as a whole", "0", f"{said:.2%}", "0", "0"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def dependences() -> None:
    """Write the tables and the pictures of docs/dependences.md."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "gru.h5"
        shown = run("configs/figure_dependences.py", "--out", str(path), "--quiet").partition("\nwrote ")[0]
        for which in ("reused", "renamed"):
            made = path.with_name(f"gru-{which}.svg")
            shutil.copyfile(made, ROOT / "docs" / f"dependences_{which}.svg")
    replace(ROOT / "docs" / "dependences.md", {"dependences": code(shown)})


def kernels() -> None:
    """Write the tables of docs/schemes.md: of Stream-K and of persistent recurrent layers."""
    shared, layer = "configs/stream_k.py", "configs/persistent_rnn.py"
    maxwell = ("--sms", "24", "--set", "gpu.sms=24", "--set", "gpu.clock=1000")
    blocks = {
        "stream_k": run(shared),
        "stream_k_measured": run(shared, "--table", "measured", "--most", "1024"),
        "persistent": run(layer),
        "persistent_maxwell": run(layer, *maxwell),
        "persistent_gru": run(layer, "--kind", "gru", "--hidden", "768"),
        "persistent_h200": run(layer, "--gpu", "h200", "--hidden", "3072"),
    }
    replace(ROOT / "docs" / "schemes.md", blocks)


def accuracy(paths: list[str]) -> None:
    """Write docs/accuracy.md and what README.md says of it; ``paths``: JSON of validate.py, a suite each."""
    import accuracy as rendering

    if paths:
        texts = [Path(path).read_text(encoding="utf-8") for path in paths]
    else:
        with tempfile.TemporaryDirectory() as name:
            out = str(Path(name) / "rows.h5")
            texts = [
                run("configs/validate.py", "--suite", suite, "--json", "--force", "--out", out)
                for suite in ("deepbench-gemm", "deepbench-rnn")
            ]
    rows = [row for text in texts for row in json.loads(text)["validation"]]
    replace(ROOT / "docs" / "accuracy.md", rendering.blocks(rows))
    replace(ROOT / "README.md", {"accuracy": rendering.readme(rows)})


def budget() -> None:
    """Write the error budget of docs/accuracy.md."""
    from stats.budget import markdown_budget

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "budget.h5"
        run("configs/error_budget.py", "--quiet", "--out", str(path))
        table = stats.load(path).array("budget")
    replace(ROOT / "docs" / "accuracy.md", {"budget": markdown_budget(table)})


def utilization() -> None:
    """Write the table and the picture of docs/utilization.md."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "utilization.h5"
        shown = run("configs/figure_utilization.py", "--out", str(path), "--quiet").partition("\nwrote ")[0]
        shutil.copyfile(path.with_suffix(".png"), ROOT / "docs" / "utilization.png")
    replace(ROOT / "docs" / "utilization.md", {"utilization": code(shown)})


def hardware() -> None:
    """Write the tables and the picture of docs/hardware-cost.md."""
    from stats.hardware import markdown, sections

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "table.h5"
        run("configs/table_size.py", "--out", str(path), "--quiet")
        shutil.copyfile(path.with_suffix(".png"), ROOT / "docs" / "hardware_cost.png")
        results = stats.load(path)
        tables = {table: results.array(table) for table in results}
    made, rows = sections(tables), tables["table_size"]
    known = dict.fromkeys((row["network"].decode(), row["workload"].decode()) for row in rows)
    texts = [f"- {network}: `{workload}`" for network, workload in known]
    blocks = {section.name: markdown(section) for section in made}
    replace(ROOT / "docs" / "hardware-cost.md", blocks | {"texts": "\n".join(texts)})


def peer() -> None:
    """Write docs/peer.md and what README.md says of Accel-Sim."""
    import peer as rendering

    with tempfile.TemporaryDirectory() as name:

        def replay(*more: str) -> Any:
            out = str(Path(name) / "rows.h5")
            return json.loads(
                run("configs/accelsim_rows.py", "--json", "--quiet", "--force", "--out", out, *more)
            )

        base = replay("--repeats", "9")
        changed = {}
        for title, settings in rendering.VARIANTS:
            options = [word for setting in settings for word in ("--set", setting)]
            changed[title] = replay("--repeats", "1", *options)
    blocks = {
        "rows": rendering.rows(base),
        "summary": rendering.summary(base),
        "counts": rendering.counts(base),
        "variants": rendering.variants(base, changed),
    }
    replace(ROOT / "docs" / "peer.md", blocks)
    replace(ROOT / "README.md", {"peer": rendering.readme(base)})


def microbench() -> None:
    """Write the constants of docs/microbench.md."""
    from workloads.microbench import rows

    units = {row.key: row.unit for row in rows()}
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "constants.h5"
        run("configs/microbench.py", "--gpu", "h200", "--quiet", "--force", "--out", str(path))
        found = stats.load(path).array("validation")
    lines = ["| constant | measured | simulated | error | unit |", "|---|--:|--:|--:|---|"]
    for row in found:
        key = row["case"].decode()
        numbers = f"{row['measured']:,.4g} | {row['simulated']:,.4g} | {row['error']:.1%}"
        lines.append(f"| `{key}` | {numbers} | {units[key]} |")
    errors = np.abs(found["error"])
    summary = (
        f"On an H200 {(errors <= 0.05).sum()} of {len(found)} constants come out within 5 %; median error"
        f" {np.median(errors):.1%}."
    )
    replace(ROOT / "docs" / "microbench.md", {"constants": "\n".join(lines), "summary": summary})


def energy() -> None:
    """Write docs/energy.md."""
    import energy as rendering

    check, summary = rendering.check("h200")
    blocks = {"events": rendering.events("h200"), "check": check, "summary": summary}
    replace(ROOT / "docs" / "energy.md", blocks)


def blockmaestro(saved: str) -> None:
    """Run BlockMaestro's applications, or read what such a run has saved, and write the page's tables."""
    import blockmaestro as rendering

    with tempfile.TemporaryDirectory() as name:
        path = Path(saved) if saved else Path(name) / "suite.h5"
        if not saved:
            run("configs/blockmaestro_suite.py", "--quiet", "--out", str(path))
        shutil.copyfile(path.with_suffix(".png"), ROOT / "docs" / "blockmaestro.png")
        made = rendering.blocks(stats.load(path).array("runs"))
    replace(ROOT / "docs" / "blockmaestro.md", made)


def gaps() -> None:
    """Write the table of docs/estimates.md."""
    with tempfile.TemporaryDirectory() as name:
        shown = run("configs/gap_table.py", "--quiet", "--out", str(Path(name) / "gaps.h5"))
    replace(ROOT / "docs" / "estimates.md", {"gaps": shown})


def suites(saved: list[str]) -> None:
    """Write docs/acs.md and docs/cusync.md; ``saved``: what their scripts printed, pictures beside it."""
    from suites import tables

    with tempfile.TemporaryDirectory() as name:
        for script, page in (("acs_suite", "acs"), ("cusync_models", "cusync")):
            path = next((Path(text) for text in saved if Path(text).stem == page), None)
            if path is None and saved:
                continue
            if path is None:
                path = Path(name) / f"{page}.txt"
                out = str(path.with_suffix(".h5"))
                path.write_text(run(f"configs/{script}.py", "--quiet", "--out", out), encoding="utf-8")
            shutil.copyfile(path.with_suffix(".png"), ROOT / "docs" / f"{page}.png")
            marks = ("long", "short", "h200") if page == "acs" else ("models",)
            made = tables(path.read_text(encoding="utf-8"))
            replace(ROOT / "docs" / f"{page}.md", dict(zip(marks, made, strict=True)))


def main() -> None:
    """Choose what to make."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--performance", action="store_true", help="docs/performance.md and stored counts only"
    )
    parser.add_argument("--yardstick", default="", help="with --performance: see tests/bench/bench.py")
    parser.add_argument("--accuracy", action="store_true", help="what is said of DeepBench only")
    text = "with --accuracy: saved output of validate.py --json, a file a suite"
    parser.add_argument("--rows", nargs="*", default=[], help=text)
    parser.add_argument("--budget", action="store_true", help="the error budget of docs/accuracy.md only")
    parser.add_argument("--peer", action="store_true", help="what is said of Accel-Sim only")
    text = "docs/hardware-cost.md only (five minutes)"
    parser.add_argument("--hardware", action="store_true", help=text)
    text = "docs/utilization.md only (two minutes)"
    parser.add_argument("--utilization", action="store_true", help=text)
    parser.add_argument("--energy", action="store_true", help="docs/energy.md only (a minute or two)")
    parser.add_argument("--kernels", action="store_true", help="tables of docs/schemes.md only (minutes)")
    parser.add_argument("--microbench", action="store_true", help="docs/microbench.md only (a minute)")
    text = "docs/blockmaestro.md only (minutes), or from a saved result of the suite"
    parser.add_argument("--blockmaestro", nargs="?", const="", metavar="RESULT.h5", help=text)
    parser.add_argument("--gaps", action="store_true", help="docs/estimates.md only (two minutes)")
    text = "docs/acs.md and docs/cusync.md only (ten minutes), or from saved acs.txt, cusync.txt"
    parser.add_argument("--suites", nargs="*", metavar="FILE", help=text)
    options = parser.parse_args()
    if options.suites is not None:
        suites(options.suites)
    elif options.blockmaestro is not None:
        blockmaestro(options.blockmaestro)
    elif options.performance:
        performance(options.yardstick)
    elif options.peer:
        peer()
    elif options.energy:
        energy()
    elif options.kernels:
        kernels()
    elif options.microbench:
        microbench()
    elif options.hardware:
        hardware()
    elif options.utilization:
        utilization()
    elif options.budget:
        budget()
    elif options.gaps:
        gaps()
    elif options.accuracy:
        accuracy(options.rows)
    else:
        readme()


if __name__ == "__main__":
    main()
