"""All kernel templates by name, as ``pysim kernels`` lists them.

Most take a name, tensors (``Memory().tensor(...)``) and a tile, and return a Kernel. Those with the name
``mirrored.NAME`` mirror kernels that were measured on an H200, and return a Launch:
``pysim.workloads.mirrored.job_of(NAME, "n=4096")`` makes a job of one that takes only sizes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, get_args

from .kernels import copy as copies
from .kernels import micro
from .kernels.batched_gemm import batched_gemm
from .kernels.cutlass import cutlass_gemm
from .kernels.gemm import gemm
from .kernels.gemm_choice import Dtype, family
from .kernels.image_gemm import filter_gradient, image_gemm
from .kernels.implicit_gemm import convolution
from .kernels.machine_hints import MachineHints
from .kernels.pointwise import cell, elementwise, pointwise
from .kernels.region import region_kernel
from .kernels.row_reductions import layernorm, softmax
from .kernels.stream_k import stream_k
from .kernels.volta_gemm import volta_gemm
from .mirrored import TEMPLATES
from .mirrored.chain_kernels import fence, gru_tile, softmax_rows
from .mirrored.hgemm import hgemm
from .mirrored.sgemm import sgemm

KERNELS: dict[str, Callable[..., Any]] = {
    "gemm": gemm,
    "volta_gemm": volta_gemm,
    "batched_gemm": batched_gemm,
    "cutlass_gemm": cutlass_gemm,
    "stream_k": stream_k,
    "convolution": convolution,
    "image_gemm": image_gemm,
    "filter_gradient": filter_gradient,
    "softmax": softmax,
    "layernorm": layernorm,
    "pointwise": pointwise,
    "elementwise": elementwise,
    "cell": cell,
    "region_kernel": region_kernel,
    "copy": copies.copy,
    "fill": copies.fill,
    "copy_rows": copies.copy_rows,
    "empty": micro.empty,
    "ffma": micro.ffma,
    "tensor": micro.tensor,
    "read": micro.read,
    "columns": micro.columns,
    "chase": micro.chase,
    **{f"mirrored.{name}": made for name, made in TEMPLATES.items()},
    "mirrored.sgemm": sgemm,
    "mirrored.hgemm": hgemm,
    "mirrored.gru_tile": gru_tile,
    "mirrored.softmax_rows": softmax_rows,
    "mirrored.fence": fence,
}


def gemm_families(hints: Iterable[MachineHints]) -> list[tuple[str, str, list[str]]]:
    """Return (type, family of tiles, names of the machines whose GEMMs take it) of these machines."""
    made: dict[tuple[str, str], list[str]] = {}
    for each in hints:
        for dtype in get_args(Dtype):
            made.setdefault((dtype, family(dtype, each)), []).append(each.name)
    return [(*key, names) for key, names in sorted(made.items())]


def arguments(name: str) -> str:
    """Return the arguments of a template as a call has them, those with a default as ``key=value``."""
    made = []
    for p in inspect.signature(KERNELS[name]).parameters.values():
        if p.kind is p.KEYWORD_ONLY and "*" not in made:
            made.append("*")
        made.append(p.name if p.default is p.empty else f"{p.name}={p.default!r}")
    return ", ".join(made)
