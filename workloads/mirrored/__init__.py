"""Templates that mirror the kernels measured on an H200, line by line after their sources and SASS.

``job_of("vecadd", "n=270336")`` is one launch of one of them. Names and parameters are those of
``workloads/measured/h200_counters.csv``. Instruction counts follow from the SASS and the sizes; none is
fitted.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

from pysim.errors import WorkloadError
from pysim.program.job import Job

from .cells import gru_cell, lstm_cell
from .code import Launch
from .conv import conv3x3_direct
from .hgemm import hgemm_64x64x32, hgemm_128x128x32_4warps, hgemm_128x128x32_8warps
from .reduce import block_reduce, gemv, layernorm, row_softmax
from .sgemm import sgemm_32x32x32, sgemm_64x64x16, sgemm_128x128x8
from .stream import saxpy4, strided_copy, vecadd
from .transpose import transpose_naive, transpose_tiled

TEMPLATES: dict[str, Callable[..., Launch]] = {
    "vecadd": vecadd,
    "saxpy4": saxpy4,
    "strided_copy": strided_copy,
    "transpose_naive": transpose_naive,
    "transpose_tiled": transpose_tiled,
    "block_reduce": block_reduce,
    "row_softmax": row_softmax,
    "layernorm": layernorm,
    "gru_cell": gru_cell,
    "lstm_cell": lstm_cell,
    "gemv": gemv,
    "conv3x3_direct": conv3x3_direct,
    "sgemm_64x64x16": sgemm_64x64x16,
    "sgemm_128x128x8": sgemm_128x128x8,
    "sgemm_32x32x32": sgemm_32x32x32,
    "hgemm_128x128x32_8warps": hgemm_128x128x32_8warps,
    "hgemm_128x128x32_4warps": hgemm_128x128x32_4warps,
    "hgemm_64x64x32": hgemm_64x64x32,
}
# the measured table's spelling of parameters that are no Python names
_SPELLED = {"H=W": "size"}


def parameters(kernel: str, params: str | Mapping[str, int]) -> dict[str, int]:
    """Return the arguments of a template from ``"M=64;N=64;K=512"``, or from a mapping with such keys."""
    if kernel not in TEMPLATES:
        raise WorkloadError(f"no measured kernel {kernel!r}: known are {', '.join(TEMPLATES)}")
    if isinstance(params, str):
        pairs = [part.rpartition("=")[::2] for part in filter(None, params.split(";"))]
    else:
        pairs = [(key, str(value)) for key, value in params.items()]
    known = {name.lower(): name for name in inspect.signature(TEMPLATES[kernel]).parameters}
    made: dict[str, int] = {}
    for key, value in pairs:
        name = known.get(_SPELLED.get(key, key).lower())
        if name is None or name in made:
            raise WorkloadError(f"{kernel}: {key} = {value}: parameters are {', '.join(known.values())}")
        try:
            made[name] = int(value)
        except ValueError:
            raise WorkloadError(f"{kernel}: {key} = {value}: must be an integer") from None
    return made


def launch_of(kernel: str, params: str | Mapping[str, int]) -> Launch:
    """Return one launch of a measured kernel with the counts of its instructions."""
    arguments = parameters(kernel, params)
    return TEMPLATES[kernel](**arguments)


def job_of(kernel: str, params: str | Mapping[str, int]) -> Job:
    """Return a job of one launch; ``params`` as in the measured table, such as ``"rows=512;cols=1024"``.

    Raises a WorkloadError for a kernel or a parameter that is not known. For the measured warm times run the
    kernel several times in one stream: ``Job(name, [job.kernels[0]] * n)``; tensors keep their addresses.
    """
    spelled = params if isinstance(params, str) else ";".join(f"{k}={v}" for k, v in params.items())
    return Job(f"{kernel}:{spelled}", [launch_of(kernel, params).kernel])
