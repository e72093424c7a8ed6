"""Writes docs/dynamic.md: what tb_auto keeps on the chip, and, from a result, when it wins."""

from __future__ import annotations

import numpy as np

from pysim import stats
from pysim.machine.config import Config
from pysim.machine.devices import device
from pysim.schemes.auto.hints import WORDS
from pysim.schemes.auto.pair_forms import REASONS
from pysim.schemes.hardware_cost import Sizes
from pysim.schemes.registry import parse_scheme
from pysim.stats.schema import Table
from pysim.stats.studies.dynamic import AUTO, LOSS, PLAIN, by_workload, losses, ran, summary, variants, words
from pysim.stats.studies.dynamic_picture import draw_dynamic
from pysim.stats.studies.hardware import Section
from pysim.workloads import make
from pysim.workloads.studies.dynamic import ABLATION, GROUPS, SENSITIVITY

from .writing import DOCS, replace, table, wrapped

PAGE, PICTURE = DOCS / "dynamic.md", "dynamic.png"
GPUS = ("titan_v", "h200")
WINDOW_FILLED = "gru:timesteps=40,layers=2"  # more kernels than a window holds
TEXTS = {"summary": (0, 1, 6), "variants": (0, 6), "losses": (0, 1, 2, 3)}  # columns that are no numbers


def cost() -> str:
    """Return the table of what tb_auto keeps on the chip, by structure, on each GPU."""
    job, choice = make(WINDOW_FILLED), parse_scheme("tb_auto")
    found: dict[str, dict[str, tuple[int, int, str]]] = {}
    for gpu in GPUS:
        values = Config.resolve(device(gpu), dict(choice.pins)).encoded()
        for each in choice.scheme.structures(Sizes.of(job, 1, values), values, {}):
            fields = ", ".join(f"{field.name} {field.bits}" for field in each.fields)
            found.setdefault(each.name, {})[gpu] = each.count, each.total_bits, fields
    rows = [[name, next(iter(by_gpu.values()))[2], *_sizes(by_gpu)] for name, by_gpu in found.items()]
    totals = [f"{sum(by_gpu[gpu][1] for by_gpu in found.values()) / 8192:.1f}" for gpu in GPUS]
    rows.append(["all", "", "", totals[0], "", totals[1]])
    heads = ["structure", "bits of an entry", *(word for gpu in GPUS for word in (f"{gpu}: entries", "KB"))]
    return table(heads, (False, False, True, True, True, True), rows)


def _sizes(by_gpu: dict[str, tuple[int, int, str]]) -> list[str]:
    return [text for gpu in GPUS for text in (f"{by_gpu[gpu][0]:,}", f"{by_gpu[gpu][1] / 8192:.1f}")]


def hints() -> str:
    """Return the table of the words of a hint."""
    named = ("consecutive bytes that move by a loop", "rows, a second loop", "a third loop")
    rows = []
    for name, word in zip(named, WORDS, strict=True):
        rows.append([name, ", ".join(f"{key} {bits}" for key, bits in word.items()), str(sum(word.values()))])
    return table(["word", "fields and their bits", "bits"], (False, False, True), rows)


def reasons() -> str:
    """Return the table of why a pair of kernels gets its form, in the order in which they are asked."""
    edges = {"none": "none of its own", "kernel": "between kernels", "tb": "between TBs"}
    rows = [[f"`{name}`", reason.text, edges[reason.form]] for name, reason in REASONS.items()]
    return table(["reason", "it holds where", "edge"], (False, False, False), rows)


def _markdown(section: Section) -> str:
    texts = TEXTS.get(section.name, (0, 1, 2))
    return table(section.heads, [i not in texts for i in range(len(section.heads))], section.rows)


def headline(rows: Table) -> str:
    """Return in how many cases tb_auto is faster, or slower, than the best of its rivals."""
    own = ran(rows, PLAIN)
    own = own[(own["scheme"] == AUTO.encode()) & np.isfinite(own["over_best"])]
    own = own[np.unique(own[["workload", "gpu"]], return_index=True)[1]]  # some are in two groups
    won, lost = (own["over_best"] > 1 + LOSS).sum(), (own["over_best"] < 1 - LOSS).sum()
    return wrapped(
        f"Of {len(own)} cases, each a workload on a GPU, `{AUTO}` beats the best of four by over {LOSS:.0%} "
        f"in {won}, loses to it by over {LOSS:.0%} in {lost}, and is as fast in {len(own) - won - lost}."
    )


def measured(path: str) -> dict[str, str]:
    """Return the tables of a result of ``configs/study_dynamic.py``, and write its picture."""
    rows = stats.Results(path).array("dynamic")
    made = {f"group_{group}": _markdown(by_workload(rows, group)) for group in GROUPS}
    made["headline"] = headline(rows)
    made["summary"] = _markdown(summary(rows))
    made["losses"] = _markdown(losses(rows))
    made["ablation"] = _markdown(variants(rows, (*ABLATION,)))
    made["sensitivity"] = _markdown(variants(rows, (*SENSITIVITY,)))
    known = dict(zip(words(ran(rows), "case"), words(ran(rows), "workload"), strict=True))
    made["workloads"] = "\n".join(f"- {case}: `{text}`" for case, text in known.items() if case != text)
    (DOCS / PICTURE).write_bytes(draw_dynamic(rows))
    return made


def write(path: str = "") -> None:
    """Write what follows from the code; with a result of the study, its tables and picture, too."""
    replace(PAGE, {"cost": cost(), "hints": hints(), "reasons": reasons()})
    if path:
        replace(PAGE, measured(path))
