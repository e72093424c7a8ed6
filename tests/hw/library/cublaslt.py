"""cuBLASLt through ctypes: the candidates of its heuristic for a GEMM, and launches of them.

Numbers are those of cublasLt.h and library_types.h of CUDA 13.0.
"""

import ctypes
import functools
import re
from ctypes import POINTER, byref, c_float, c_int, c_int32, c_int64, c_size_t, c_uint16, c_uint32, c_uint64
from ctypes import c_void_p as handle
from pathlib import Path

import torch

SONAME = "libcublasLt.so.13"
WORKSPACE_BYTES = 32 << 20  # as PyTorch gives cuBLAS on Hopper
MOST_CANDIDATES = 16

DATA_TYPES = {"fp32": 0, "tf32": 0, "fp16": 2, "bf16": 14}  # CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF
COMPUTE_32F, COMPUTE_32F_FAST_TF32 = 68, 77
OPERATIONS = {"N": 0, "T": 1}
DESC_TRANSA, DESC_TRANSB, DESC_EPILOGUE, DESC_BIAS_POINTER = 3, 4, 7, 8
EPILOGUE_BGRADB = 512
PREF_MAX_WORKSPACE_BYTES = 1
ALGO_CONFIG = {
    "algo_id": (0, c_int32),
    "tile_id": (1, c_uint32),
    "split_k": (2, c_int32),
    "reduction_scheme": (3, c_uint32),
    "swizzle": (4, c_uint32),
    "custom_option": (5, c_uint32),
    "stages_id": (6, c_uint32),
    "inner_shape_id": (7, c_uint16),
    "cluster_shape_id": (8, c_uint16),
}
CONFIG_COLUMNS = [*ALGO_CONFIG, "workspace_B", "waves"]


class Algo(ctypes.Structure):
    """cublasLtMatmulAlgo_t."""

    _fields_ = (("data", c_uint64 * 8),)


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algo", Algo),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    )


SIGNATURES = {
    "cublasLtCreate": [POINTER(handle)],
    "cublasLtMatmulDescCreate": [POINTER(handle), c_int, c_int],
    "cublasLtMatmulDescSetAttribute": [handle, c_int, handle, c_size_t],
    "cublasLtMatrixLayoutCreate": [POINTER(handle), c_int, c_uint64, c_uint64, c_int64],
    "cublasLtMatmulPreferenceCreate": [POINTER(handle)],
    "cublasLtMatmulPreferenceSetAttribute": [handle, c_int, handle, c_size_t],
    "cublasLtMatmulAlgoGetHeuristic": [*[handle] * 7, c_int, POINTER(Heuristic), POINTER(c_int)],
    "cublasLtMatmulAlgoConfigGetAttribute": [POINTER(Algo), c_int, handle, c_size_t, POINTER(c_size_t)],
    "cublasLtMatmul": [
        *(handle, handle, handle, handle, handle, handle, handle, handle),
        *(handle, handle, handle, handle, POINTER(Algo), handle, c_size_t, handle),
    ],
}


class CublasLtError(Exception):
    """A call of cuBLASLt returned another status than success."""


def _load():
    """Return the library that PyTorch has loaded, else the one that the loader finds."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    found = re.search(rf"(/\S*{re.escape(SONAME)})\S*$", maps, re.MULTILINE)
    loaded = ctypes.CDLL(found[0] if found else SONAME)
    for name, arguments in SIGNATURES.items():
        function = getattr(loaded, name)
        function.argtypes, function.restype = arguments, c_int
    return loaded


class CublasLt:
    """A handle of the library, its preference and a workspace; for the life of the process."""

    def __init__(self):
        self.library = _load()
        self.handle, self.preference = handle(), handle()
        self("cublasLtCreate", byref(self.handle))
        self("cublasLtMatmulPreferenceCreate", byref(self.preference))
        most = c_uint64(WORKSPACE_BYTES)
        self._set("cublasLtMatmulPreferenceSetAttribute", self.preference, PREF_MAX_WORKSPACE_BYTES, most)
        self.workspace = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")
        self.one, self.zero = c_float(1), c_float(0)

    def __call__(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise CublasLtError(f"{name}: status {status}")

    def _set(self, name, what, attribute, value):
        self(name, what, attribute, byref(value), ctypes.sizeof(value))

    def operation(self, dtype, trans_a, trans_b, bias_gradient=None):
        """Return a descriptor; `bias_gradient`: a tensor of n values for the sums of op(B) over k."""
        made = handle()
        compute = COMPUTE_32F_FAST_TF32 if dtype == "tf32" else COMPUTE_32F
        self("cublasLtMatmulDescCreate", byref(made), compute, DATA_TYPES["fp32"])
        name = "cublasLtMatmulDescSetAttribute"
        self._set(name, made, DESC_TRANSA, c_int32(OPERATIONS[trans_a]))
        self._set(name, made, DESC_TRANSB, c_int32(OPERATIONS[trans_b]))
        if bias_gradient is not None:
            self._set(name, made, DESC_EPILOGUE, c_uint32(EPILOGUE_BGRADB))
            self._set(name, made, DESC_BIAS_POINTER, handle(bias_gradient.data_ptr()))
        return made

    def layout(self, dtype, rows, cols):
        """Return the layout of a column-major matrix without padding."""
        made = handle()
        self("cublasLtMatrixLayoutCreate", byref(made), DATA_TYPES[dtype], rows, cols, rows)
        return made


@functools.cache
def library():
    """Return the process's only handle, made at the first call."""
    return CublasLt()


class Gemm:
    """C[m, n] = op(A)[m, k] op(B)[k, n], column-major, with the candidates of the heuristic in its order."""

    def __init__(self, lt, dtype, sizes, trans_a, trans_b, bias_gradient=None):
        m, n, k = sizes
        self.lt = lt
        self.keep = bias_gradient
        self.operation = lt.operation(dtype, trans_a, trans_b, bias_gradient)
        self.a = lt.layout(dtype, *((m, k) if trans_a == "N" else (k, m)))
        self.b = lt.layout(dtype, *((k, n) if trans_b == "N" else (n, k)))
        self.c = lt.layout(dtype, m, n)
        results, count = (Heuristic * MOST_CANDIDATES)(), c_int()
        layouts = (self.a, self.b, self.c, self.c)
        lt(
            "cublasLtMatmulAlgoGetHeuristic",
            *(lt.handle, self.operation, *layouts, lt.preference),
            *(MOST_CANDIDATES, results, byref(count)),
        )
        self.results = results  # owns the memory of the candidates
        self.candidates = [r for r in results[: count.value] if r.state == 0]

    def config(self, rank):
        """Return CONFIG_COLUMNS of a candidate; empty where it does not have the attribute."""
        found = self.candidates[rank]
        row = {}
        for name, (attribute, kind) in ALGO_CONFIG.items():
            value, written = kind(), c_size_t()
            arguments = (byref(value), ctypes.sizeof(value), byref(written))
            status = self.lt.library.cublasLtMatmulAlgoConfigGetAttribute(
                byref(found.algo), attribute, *arguments
            )
            row[name] = "" if status else value.value
        return {**row, "workspace_B": found.workspace, "waves": f"{found.waves:.3f}"}

    def launch(self, rank, a, b, c):
        """Launch a candidate on PyTorch's current stream; tensors hold the matrices column-major."""
        lt, found = self.lt, self.candidates[rank]
        lt(
            "cublasLtMatmul",
            *(lt.handle, self.operation, byref(lt.one), a.data_ptr(), self.a, b.data_ptr(), self.b),
            *(byref(lt.zero), c.data_ptr(), self.c, c.data_ptr(), self.c, byref(found.algo)),
            *(lt.workspace.data_ptr(), WORKSPACE_BYTES, torch.cuda.current_stream().cuda_stream),
        )
