"""Turns programs into recorded ones, with the addresses as they are or each written down."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pysim._ffi import dtype_of
from pysim.program.job import Job, tb_variants
from pysim.program.ops import lower_programs
from pysim.program.recorded_program import CodeTables, RecordedAccesses, RecordedProgram
from pysim.program.warp_program import OP

from .walker import walk

MEMORY = (OP["LOAD"], OP["STORE"], OP["REDUCE"])


def table(ctype, rows):
    made = np.zeros(len(rows), dtype_of(ctype))
    for name in rows[0] if rows else ():
        made[name] = [row[name] for row in rows]
    return made


class Writer:
    """Accesses and templates, each template once."""

    def __init__(self):
        self.accesses, self.templates, self.parts, self.known = [], [], [], {}
        self.add(np.arange(4))

    def add(self, addresses):
        lines = {}
        for sector in addresses // 32:
            lines[int(sector) >> 2] = lines.get(int(sector) >> 2, 0) | 1 << (int(sector) & 3)
        first = next(iter(lines), 0)
        key = tuple((line - first, mask) for line, mask in lines.items())
        if key not in self.known:
            self.known[key] = len(self.templates)
            sectors = sum(mask.bit_count() for _, mask in key)
            self.templates.append({"first": len(self.parts), "lines": len(key), "sectors": sectors})
            self.parts += [{"line": line, "mask": mask} for line, mask in key]
        return first | self.known[key] << 32

    def memory(self):
        return RecordedAccesses(
            np.array(self.accesses, np.uint64),
            table("gs_template", self.templates),
            table("gs_part", self.parts),
        )


def segment(ops, entry):
    end = entry
    while ops[end]["kind"] != OP["EXIT"]:
        end += 1
    return range(entry, end)


def placed(ops, entries):
    """Give every memory op a place in its warp's block; return the places and the size of each block."""
    place, size = {}, {}
    for entry in sorted(set(entries)):
        at = 0
        for i in segment(ops, entry):
            op = ops[i]
            if op["kind"] not in MEMORY:
                continue
            counts = [1, 1, 1]
            for j in segment(ops, entry):
                if ops[j]["kind"] == OP["LOOP"] and ops[j]["target"] <= i <= j:
                    counts[ops[j]["level"]] = ops[j]["count"]
            inner, outer = counts[op["level"]], max(n for k, n in enumerate(counts) if k != op["level"])
            other = next((k for k, n in enumerate(counts) if k != op["level"] and n > 1), op["level"])
            place[i] = (at, inner, other, outer)
            at += inner * outer
        size[entry] = at
    return place, size


def write_down(writer, kernel, ops, patterns, entry_of, every):
    """Replace every pattern by places in blocks; return the ops, the patterns and the blocks."""
    entries = [int(e) for e in entry_of]
    place, size = placed(ops, every)
    ops, made, blocks = [dict(op) for op in ops], [], []
    for i, (at, inner, other, outer) in place.items():
        old = patterns[ops[i]["pattern"]]
        row = dict.fromkeys(old, 0) | {"minor": 32, "width": 4, "align": 4, "arg": old["arg"]}
        row |= {"recorded": 1, "base": at - ops[i]["count_plus"], "step": 1}
        row |= {"step2": inner if outer > 1 else 0, "level2": other}
        ops[i] |= {"pattern": len(made), "per_warp": 0}
        made.append(row)
    for tb in range(kernel.tbs):
        entry = entries[tb]
        for warp in range(kernel.program.warps):
            blocks.append(len(writer.accesses))
            mine = [0] * size[entry]
            pc, counter = entry, [0, 0, 0]
            steps = (s for s in walk(kernel, tb, warp) if s.kind in ("LOAD", "STORE", "REDUCE"))
            while ops[pc]["kind"] != OP["EXIT"]:
                op, pc = ops[pc], pc + 1
                if op["kind"] in MEMORY:
                    k = counter[op["level"]] + op["count_plus"]
                    if not op["count"] or k < op["count"]:
                        at, inner, other, _ = place[pc - 1]
                        index = (
                            at
                            + counter[op["level"]]
                            + (inner * counter[other] if inner and other != op["level"] else 0)
                        )
                        mine[index] = writer.add(next(steps).addresses)
                if op["kind"] == OP["LOOP"]:
                    counter[op["level"]] += 1
                    if counter[op["level"]] < op["count"]:
                        pc = op["target"]
                    else:
                        counter[op["level"]] = 0
            writer.accesses += mine
    return ops, made, blocks


def recorded(job, longest, explicit):
    """Return the job with recorded programs."""
    writer, kernels = Writer(), []
    for kernel in job.kernels:
        made = lower_programs(Job("one", [kernel]), longest)
        ops, patterns, blocks = made.ops, made.patterns, None
        which = tb_variants(kernel)
        first = made.programs[0]["entry"]
        if explicit:
            ops, patterns, blocks = write_down(
                writer, kernel, ops, patterns, [first[v] for v in which], first
            )
        pattern_table = table("gs_pattern", patterns)
        tables = CodeTables(
            table("gs_op", ops),
            pattern_table,
            np.zeros((0,), dtype_of("gs_lanes")),
            np.repeat(np.array(first, np.uint32)[:, None], kernel.program.warps, 1),
        )
        rows = which.astype(np.uint32) if len(set(first)) > 1 else None
        old = kernel.program
        names = ("name", "warps", "registers", "smem", "args")
        program = RecordedProgram(
            *(getattr(old, name) for name in names),
            lambda _values, tables=tables: tables,
            tb_rows=rows,
            access_starts=np.array(blocks, np.uint32) if explicit else None,
        )
        kernels.append(replace(kernel, program=program))
    if not explicit:
        return Job(job.name, kernels, job.events)
    memory = writer.memory()
    whole = [
        replace(k, program=replace(k.program, memory=memory, access_count=len(memory.accesses)))
        for k in kernels
    ]
    return Job(job.name, whole, job.events)
