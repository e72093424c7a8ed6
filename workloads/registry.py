"""Workloads by name; ``make("gru:hidden=1536,batch=32")`` builds one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from keyword import iskeyword

from pysim.errors import InputError, WorkloadError, brief
from pysim.machine.system import Machine, resolve
from pysim.program.definition_check import MAX_ARGS
from pysim.program.job import Job, Kernel, Memory
from pysim.program.memory_budget import claim_launches
from pysim.program.origin import Origin

from .applications.blockmaestro import APPS
from .applications.dynamic_networks import network
from .applications.random_dag import random_dag
from .applications.rigid_bodies import rigid
from .kernels import copy as copies
from .kernels import micro
from .kernels.gemm import adds_to_c
from .kernels.gemm import gemm as gemm_kernel
from .kernels.gemm_case import column_major
from .kernels.gemm_choice import (
    FP16,
    FP32,
    MMA,
    AnyTiling,
    Dtype,
    choose_tiling,
    occupancy,
    with_loop_yields,
)  # fmt: skip
from .kernels.machine_hints import MachineHints
from .kernels.pointwise import pointwise as pointwise_kernel
from .kernels.stream_k import stream_k as stream_k_gemm
from .kernels.stream_k import workspace
from .kernels.tiling import Tiling
from .networks.experts import moe_block
from .networks.language import LANGUAGE
from .networks.llama import LLAMAS
from .networks.mlp import mlp as make_mlp
from .networks.persistent_rnn import persistent_rnn
from .networks.pytorch import Kernels
from .networks.recurrent.deepbench import deepbench
from .networks.recurrent.named import SEQUENCES
from .networks.recurrent.variants import rnn_net
from .networks.rnn import gru, lstm, vanilla
from .networks.transformer import transformer as make_transformer
from .networks.vision.named import VISION

Factory = Callable[..., Job]
MACHINE = "hints"  # the parameter of a factory that says which machine it makes kernels for


def gemm(
    m: int = 1024,
    n: int = 1024,
    k: int = 1024,
    dtype: Dtype = "fp32",
    a_t: bool = False,
    b_t: bool = False,
    beta: int = 1,
    tile: str = "auto",
    repeat: int = 1,
    split: bool = True,
    stream_k: str = "",
    slots: int = 0,
    hints: MachineHints | None = None,
) -> Job:
    """Multiply as cuBLAS and DeepBench do (beta 1): column-major C[m, n] = op(A) op(B) + beta C.

    ``stream_k``: ``slots`` TBs share the steps of all tiles (``stream_k``): basic, one_tile or
    two_tile. ``slots`` 0: as many as the GPU holds at once.
    """
    if min(m, n, k) < 1:
        raise WorkloadError(f"gemm: m = {m}, n = {n}, k = {k}: must be positive")
    machine = hints or MachineHints()
    rows, cols, depth, left_t, right_t = column_major(m, n, k, a_t, b_t)
    if tile == "auto":
        parts = split and not stream_k
        tiling = choose_tiling(
            rows, cols, depth, dtype, a_t=left_t, b_t=right_t, beta=beta, split=parts, hints=machine
        )
    else:
        tiling = _tile(tile, left_t, right_t)
    item = 4 if dtype == "fp32" else 2
    memory = Memory()
    a = memory.tensor("a", *((depth, rows) if left_t else (rows, depth)), item)
    b = memory.tensor("b", *((cols, depth) if right_t else (depth, cols)), item)
    c = memory.tensor("c", rows, cols, item)
    claim_launches(2 * repeat, f"gemm: repeat = {repeat:,}", 4 * repeat)
    if stream_k:
        slots = slots or machine.sms * occupancy(tiling, item, machine)
        sums = workspace(memory, "sums", tiling, slots)
        made = stream_k_gemm(
            "gemm", a, b, c, tiling, sums, kind=stream_k, a_t=left_t, b_t=right_t, beta=float(beta)
        )
        return Job(f"gemm:m={m},n={n},k={k},stream_k={stream_k}", [made] * repeat)
    kernels: list[Kernel] = []
    for _ in range(repeat):
        if adds_to_c(tiling) and not beta:
            kernels.append(copies.fill("gemm_zero", c))
        kernels.append(gemm_kernel("gemm", a, b, c, tiling, a_t=left_t, b_t=right_t, beta=beta))
    return Job(f"gemm:m={m},n={n},k={k}", kernels)


def _tile(name: str, a_t: bool, b_t: bool) -> AnyTiling:
    """Return the tile of the lists of this name, for operands stored so."""
    known: dict[str, AnyTiling] = {t.name: t for t in (*FP32, *FP16, *MMA)}
    if name not in known:
        raise WorkloadError(f"gemm: no tile {name!r}: tiles are {', '.join(known)}")
    tile = known[name]
    return with_loop_yields(tile, a_t, b_t) if isinstance(tile, Tiling) else tile


def copy(nbytes: int = 1 << 26, threads: int = 256, unroll: int = 4) -> Job:
    """Copy ``nbytes`` within the device."""
    memory = Memory()
    source = memory.tensor("source", 1, nbytes // 4, 4)
    target = memory.tensor("target", 1, nbytes // 4, 4)
    return Job("copy", [copies.copy("copy", source, target, threads=threads, unroll=unroll)])


def pointwise(elements: int = 1 << 22, inputs: int = 2) -> Job:
    """Add ``inputs`` fp32 tensors of ``elements`` elements."""
    if inputs >= MAX_ARGS:
        raise WorkloadError(f"pointwise: inputs = {inputs}: at most {MAX_ARGS - 1}")
    memory = Memory()
    sources = [memory.tensor(f"in{i}", 1, elements, 4) for i in range(inputs)]
    return Job("pointwise", [pointwise_kernel("add", sources, [memory.tensor("out", 1, elements, 4)])])


def empty(tbs: int = 1, warps: int = 1, kernels: int = 1) -> Job:
    """Launch kernels that do nothing."""
    claim_launches(kernels, "empty", 0)
    return Job("empty", [micro.empty(tbs, warps)] * kernels)


def ffma(tbs: int = 80, warps: int = 8, count: int = 64, iterations: int = 256) -> Job:
    """Run FFMA only."""
    return Job("ffma", [micro.ffma(tbs, warps, count, iterations)])


def tensor(tbs: int = 80, warps: int = 8, count: int = 64, iterations: int = 256) -> Job:
    """Run tensor-core steps only."""
    return Job("tensor", [micro.tensor(tbs, warps, count, iterations)])


def read(
    tbs: int = 320,
    warps: int = 8,
    chunk: int = 1 << 18,
    passes: int = 1,
    shared: bool = False,
    bypass: bool = False,
) -> Job:
    """Read a contiguous chunk a TB."""
    kernel = micro.read(Memory(), tbs, warps, chunk, passes=passes, shared=shared, bypass_l1=bypass)
    return Job("read", [kernel])


def columns(rows: int = 16384, cols: int = 1024, lead: int = 4096) -> Job:
    """Read columns of a row-major fp32 matrix, 32 by 32; ``lead``: elements from a row to the next."""
    return Job("columns", [micro.columns(Memory(), rows, cols, lead)])


def chase(footprint: int = 1 << 20, stride: int = 128, passes: int = 2, bypass: bool = False) -> Job:
    """Follow a chain of dependent loads."""
    return Job("chase", [micro.chase(Memory(), footprint, stride, passes, bypass_l1=bypass)])


def transformer(
    layers: int = 6,
    hidden: int = 512,
    heads: int = 8,
    sequence: int = 128,
    batch: int = 4,
    ffn: int = 2048,
    dtype: Dtype = "fp16",
    kernels: Kernels = "own",
    fused: bool = False,
    hints: MachineHints | None = None,
) -> Job:
    """Make encoder layers of a Transformer, see ``transformer.transformer``."""
    return make_transformer(layers, hidden, heads, sequence, batch, ffn, dtype, kernels, fused, hints)


def mlp(
    layers: int = 8,
    width: int = 1024,
    batch: int = 128,
    dtype: Dtype = "fp16",
    kernels: Kernels = "own",
    hints: MachineHints | None = None,
) -> Job:
    """Make a multi-layer perceptron, a GEMM a layer, see ``mlp.mlp``."""
    return make_mlp(layers, width, batch, dtype, kernels, hints)


# networks of published shapes (``networks.shapes``)
ZOO: dict[str, Factory] = {
    "deepbench": deepbench,
    "rnn-net": rnn_net,
    **LANGUAGE,
    **LLAMAS,
    **VISION,
    **SEQUENCES,
    "moe-block": moe_block,
}
WORKLOADS: dict[str, Factory] = {
    "gemm": gemm,
    "gru": gru,
    "lstm": lstm,
    "vanilla": vanilla,
    "persistent_rnn": persistent_rnn,
    "transformer": transformer,
    "mlp": mlp,
    "copy": copy,
    "pointwise": pointwise,
    "random_dag": random_dag,
    "empty": empty,
    "ffma": ffma,
    "tensor": tensor,
    "read": read,
    "columns": columns,
    "chase": chase,
    "mixed": micro.mixed,
    **{name: app.make for name, app in APPS.items()},
    "rigid": rigid,
    "network": network,
    **ZOO,
}


def _hint(word: str, known: list[str]) -> str:
    close = get_close_matches(word, known, 1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"


def _value(text: str, default: object, where: str) -> object:
    """Read ``text`` as the type of the default."""
    if isinstance(default, bool):
        if text.lower() in ("1", "true", "yes", "0", "false", "no"):
            return text.lower() in ("1", "true", "yes")
        raise WorkloadError(f"{where} = {text}: must be 0 or 1")
    if isinstance(default, int):
        try:
            value = int(text, 0)
        except ValueError:
            raise WorkloadError(f"{where} = {brief(text)}: must be an integer") from None
        if abs(value) >= 1 << 63:
            raise WorkloadError(f"{where} = {brief(text)}: must be an integer of 64 bits")
        return value
    return text


def arguments_of(name: str) -> dict[str, inspect.Parameter]:
    """Return the keys of a workload, with their defaults; the machine is none of them.

    A parameter such as ``pass_`` is a key without what keeps it from being a word of Python.
    """
    known = inspect.signature(WORKLOADS[name]).parameters
    return {key.rstrip("_"): known[key] for key in known if key != MACHINE}


def unknown_workload(name: str) -> str:
    """Return the error message for a name that no workload has."""
    ours = "a job of your own is simulated in Python: pysim.simulate(GPU, JOB, SCHEMES)"
    return f"no workload {name!r}: {ours if name.endswith('.py') else _hint(name, list(WORKLOADS))}"


def parse(text: str) -> tuple[str, dict[str, object]]:
    """Split ``name:key=value,key=value`` into the name and typed arguments; unknown ones are refused."""
    name, _, rest = text.partition(":")
    if name not in WORKLOADS:
        raise WorkloadError(unknown_workload(name))
    known = {key: row.default for key, row in arguments_of(name).items()}
    return name, read_arguments("workload", name, rest, known)


def read_arguments(what: str, name: str, text: str, known: Mapping[str, object]) -> dict[str, object]:
    """Read ``key=value,key=value``; values get the types of the defaults in ``known``.

    Raises WorkloadError, which begins with ``what`` and ``name``, for an unknown key, one that is given
    twice, and a value that is not of its type.
    """
    arguments: dict[str, object] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if key not in known:
            raise WorkloadError(f"{what} {name} has no key {key!r}: {_hint(key, list(known))}")
        if not equals or key in arguments:
            raise WorkloadError(f"{what} {name}: {part!r}: give each key once, as key=value")
        arguments[key] = _value(value, known[key], f"{name}: {key}")
    return arguments


def make(text: str, gpu: Machine | None = None) -> Job:
    """Build the job that ``name:key=value,...`` names; its ``arguments`` hold all keys, defaults too.

    ``gpu``: the machine that it is to run on, as ``simulate`` takes it; libraries choose their kernels by its
    SMs, registers, shared memory and tensor instruction. Without it they choose as for a V100, and for
    networks of published shapes (``networks.shapes``) as for an H200.

    Raises InputError, a WorkloadError, for an unknown name or key, a value that is not taken, and a type that
    there is no kernel of on the machine; ConfigError for an unknown machine.
    """
    machine = None if gpu is None else resolve(gpu)
    hints = None if machine is None else MachineHints.of(machine)
    try:
        name, arguments = parse(text)
        factory = WORKLOADS[name]
        given = {key: row.default for key, row in arguments_of(name).items()} | arguments
        if hints is not None and MACHINE in inspect.signature(factory).parameters:
            arguments[MACHINE] = hints
        origin = Origin(make, (text, machine), {"workload": text}, machine)
        named = {f"{key}_" if iskeyword(key) else key: value for key, value in arguments.items()}
        return factory(**named).with_arguments(given).with_origin(origin)
    except WorkloadError as error:
        raise InputError(str(error)) from error
