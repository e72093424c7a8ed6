"""The kernels of the microbenchmarks, with the loops and address arithmetic of the measured ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.program.job import Job, Memory
from pysim.program.warp_program import Affine, Code, TensorTile

from .bench import VECTOR, buffer, kernel, pattern

if TYPE_CHECKING:
    from pysim.program.job import Kernel

SHIFT = 4
LOOP = {"int": 2, "control": 1}  # count, compare, branch


def _loop(code: Code, mark: int, iterations: int, level: int = 0) -> None:
    if iterations > 1:
        code.loop_end(mark, iterations, level)


def arithmetic(pipe: str, tbs: int, threads: int, ops: int, iterations: int, *, chain: int = 0) -> Kernel:
    """Make a loop of ``ops`` instructions of a pipe, or of shared memory (``shfl``)."""
    code = Code()
    mark = code.loop_begin()
    if pipe == "shfl":
        code.compute(smem=ops, smem_ops=ops, chain=chain, **LOOP)
    else:
        counts = dict(LOOP)
        counts[pipe] = counts.get(pipe, 0) + ops
        code.compute(chain=chain, **counts)
    _loop(code, mark, iterations)
    code.exit()
    return kernel(pipe, code, tbs, threads, registers=32 if threads == 1024 else 64)


def chained(pipe: str, count: int, latency: int) -> Kernel:
    """Make one warp run a chain of dependent instructions, without a loop's instructions."""
    code = Code()
    mark = code.loop_begin()
    if pipe == "shfl":
        code.compute(smem=1, smem_ops=1, chain=latency - 1)
    else:
        code.compute(chain=latency - 1, **{pipe: 1})
    _loop(code, mark, count)
    code.exit()
    return kernel(pipe, code, 1, 32)


def read(tbs: int, iterations: int, threads: int = 512) -> Kernel:
    """Read memory once in a grid-stride loop: four 16 B loads a lane, then their sums."""
    stride = tbs * threads * 16
    source = buffer(Memory(), "source", 4 * stride * iterations)
    code = Code()
    mark = code.loop_begin()
    for i in range(4):
        where = pattern(grid=threads * 16, base=i * stride, step=4 * stride)
        code.load(0, where)
    code.wait(0)
    # sixteen additions one after another, then the 64-bit counter, its comparison and the branch
    code.compute(fp32=16, int=8, control=1, chain=16 * 4 + 24)
    _loop(code, mark, iterations)
    code.exit()
    return kernel("read", code, tbs, threads, reads=(source,))


def write(tbs: int, iterations: int, passes: int = 1, threads: int = 512) -> Kernel:
    """Write 16 B a lane in a grid-stride loop, ``passes`` times over the same memory."""
    stride = tbs * threads * 16
    target = buffer(Memory(), "target", stride * iterations)
    code = Code()
    mark = code.loop_begin()
    code.store(0, pattern(grid=threads * 16, step=stride))
    code.compute(fp32=2, int=6, control=1)
    _loop(code, mark, iterations)
    _loop(code, mark, passes, 1)
    code.exit()
    return kernel("write", code, tbs, threads, writes=(target,))


def copy(tbs: int, iterations: int, threads: int = 512) -> Kernel:
    """Copy in a grid-stride loop: four loads of 16 B a lane, then four stores."""
    stride = tbs * threads * 16
    memory = Memory()
    source = buffer(memory, "source", 4 * stride * iterations)
    target = buffer(memory, "target", 4 * stride * iterations)
    code = Code()
    mark = code.loop_begin()
    for i in range(4):
        code.load(0, pattern(0, grid=threads * 16, base=i * stride, step=4 * stride))
    code.wait(0)
    for i in range(4):
        code.store(1, pattern(1, grid=threads * 16, base=i * stride, step=4 * stride))
    code.compute(int=8, control=1)
    _loop(code, mark, iterations)
    code.exit()
    return kernel("copy", code, tbs, threads, reads=(source,), writes=(target,))


def l2_read(tbs: int, steps: int, turns: int, fold: int = 1, threads: int = 512) -> Kernel:
    """Read a set bypassing L1, ``turns`` times forwards and backwards, four loads of 16 B a lane at a time.

    The set is ``steps`` times what the grid reads at once; ``fold`` TBs read the same part.
    Every second pass has TBs in opposite order, so that a line is read by another SM each time, most often on
    the other side of the chip: ``SHIFT`` TBs on, as TBs are dispatched to the GPCs of both sides in turn.
    """
    if tbs % fold:
        raise WorkloadError(f"l2_read: {tbs} TBs in {fold} equal parts: must come out even")
    chunk, parts = threads * 16, tbs // fold
    source = buffer(Memory(), "set", parts * chunk * steps + SHIFT * chunk)
    order = [(step, way) for way in (1, 1, -1, -1) for step in range(steps)]
    code = Code()
    mark = code.loop_begin()
    for i, (step, way) in enumerate(order):
        first = step * parts * chunk + (0 if way > 0 else (parts - 1 + SHIFT) * chunk)
        code.load(0, pattern(grid=way * chunk, base=first), bypass_l1=True)
        if i % 4 == 3:
            code.wait(0)
            code.compute(fp32=4, int=14, control=1)
    _loop(code, mark, turns)
    code.exit()
    return kernel("l2_read", code, (parts, fold, 1), threads, reads=(source,))


def l1_read(sms: int, width: int, rounds: int, iterations: int = 64) -> Kernel:
    """Read 32 KiB an SM again and again through L1, eight loads an iteration; 1,024 threads."""
    threads = 1024
    source = buffer(Memory(), "source", sms * 32768)
    code = Code()
    mark = code.loop_begin()
    for i in range(8):
        base = (i % 4) * 4096 if width == 16 else i * 4096
        code.load(0, pattern(grid=32768, warp=32 * width, base=base, width=width))
    code.wait(0)
    # in machine code five ALU instructions and a carry on the FMA pipe make the 64-bit address of each load:
    # with 4 B a lane they, and not L1, set the pace
    code.compute(fp32=8 * width // 4 + 8, int=5 * 8 + 2, control=1)
    _loop(code, mark, iterations)
    if rounds > 1:
        code.barrier()
        code.loop_end(mark, rounds, 1)
    code.exit()
    return kernel("l1_read", code, sms, threads, smem=32768, reads=(source,))


def shared_read(sms: int, width: int, iterations: int = 64) -> Kernel:
    """Read shared memory again and again, eight loads an iteration; 1,024 threads."""
    code = Code()
    mark = code.loop_begin()
    # mask, add and scale of each address: 2.5 of the integer pipe, the rest on others
    code.compute(
        smem=8 * width // 4,
        smem_ops=8,
        fp32=8 * width // 4,
        int=20 if width == 4 else 16,
        control=1,
        chain=23,
    )
    _loop(code, mark, iterations)
    code.exit()
    return kernel("shared_read", code, sms, 1024, smem=32768)


def reduces(tbs: int, stride: int, count: int = 512) -> Kernel:
    """One lane of a warp adds to one address again and again; TBs' addresses are ``stride`` bytes apart."""
    target = buffer(Memory(), "target", max(1024, tbs * stride))
    code = Code()
    mark = code.loop_begin()
    code.reduce(0, pattern(grid=stride, warp=0, width=4, lanes=1))
    _loop(code, mark, count)
    code.exit()
    return kernel("reduce", code, tbs, 32, updates=(target,))


def spin(tbs: int, threads: int, cycles: int, smem: int = 0) -> Kernel:
    """Hold an SM's slots for a while, then a barrier and a record of 40 B."""
    target = buffer(Memory(), "records", max(1024, tbs * 64))
    code = Code()
    code.delay(cycles)
    code.barrier()
    # one lane of the first warp stores the record
    code.store(
        0, *(pattern(grid=64, width=4, warp=0, lanes=1023 if i == 0 else 0) for i in range(-(-threads // 32)))
    )
    code.exit()
    return kernel("spin", code, tbs, threads, smem=smem, writes=(target,))


def empty(tbs: int, threads: int, *, stream: int = 0) -> Kernel:
    """Make a kernel whose warps end at once."""
    code = Code()
    code.exit()
    return kernel("empty", code, tbs, threads, registers=16, stream=stream)


def chain(count: int, tbs: int, threads: int, streams: int = 1) -> Job:
    """Return a chain of dependent empty kernels.

    By stream order, graph edge or event; or inside its program, where the scheme launches early.
    """
    token = buffer(Memory(), "token", 1024)
    code = Code()
    code.mark_input(TensorTile(0, Affine(), token.rows, Affine(), token.cols))
    code.exit()
    made = [
        kernel("empty", code, tbs, threads, registers=16, writes=(token,), stream=i % streams)
        for i in range(count)
    ]
    events = [(i, i + 1) for i in range(count - 1)] if streams > 1 else []
    return Job("chain", made, events)


def diamonds(count: int) -> Job:
    """Return ``count`` times a kernel, then two beside each other, then the next of both; one TB each."""
    memory = Memory()
    left, right = (buffer(memory, name, 1024) for name in ("left", "right"))
    code = Code()
    code.exit()
    made: list[Kernel] = []
    for _ in range(count):
        made.append(kernel("fork", code, 1, 32, registers=16, writes=(left, right)))
        made += [kernel("branch", code, 1, 32, registers=16, writes=(side,)) for side in (left, right)]
    return Job("diamonds", made)


def steps_of(tbs: int, nbytes: int, threads: int = 512) -> float:
    """Return how often the grid's 16 B a thread fit ``nbytes``."""
    if nbytes < VECTOR:
        raise WorkloadError(f"a set of {nbytes} B: must be at least {VECTOR} B")
    return nbytes / (tbs * threads * 16)
