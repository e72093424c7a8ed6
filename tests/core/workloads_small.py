"""Jobs of every kind, small enough for tiny machines."""

from __future__ import annotations

import numpy as np

from pysim.program.copies import copy_kernel
from pysim.program.job import Job, Memory
from pysim.trace.copies import with_copies
from pysim.workloads.kernels import micro
from pysim.workloads.kernels.copy import fill
from pysim.workloads.kernels.gemm import gemm
from pysim.workloads.kernels.tiling import Tiling
from pysim.workloads.registry import make

F32 = Tiling("t32", 32, 32, 8, 4)
WIDE = Tiling("t32w", 32, 32, 32, 4)
SPLIT = Tiling("split", 32, 32, 8, 4, split_k=3)
SLICED = Tiling("sliced", 32, 32, 32, 4, slices=4)

FAR = (1 << 28) + (1 << 21)  # behind the tensors of small jobs


def random_dag(seed, kernels, streams):
    """Small random kernels in streams that share three tensors."""
    text = f"random_dag:kernels={kernels},streams={streams},seed={seed},elements=2048,largest=700,tensors=3"
    return make(text)


def product(m, n, k, tiling=F32, *, beta=0.0, chain=1, a_t=False, b_t=False):
    """C = A B ``chain`` times, each on the result of the one before."""
    memory = Memory()
    item = 4 if tiling.math == "ffma" else 2
    kernels = []
    a = memory.tensor("a", *((k, m) if a_t else (m, k)), item)
    for step in range(chain):
        depth = a.cols if not a_t else a.rows
        b = memory.tensor(f"b{step}", *((n, depth) if b_t else (depth, n)), item)
        c = memory.tensor(f"c{step}", m, n, item)
        if tiling.split_k > 1:
            kernels.append(fill(f"zero{step}", c))
        kernels.append(gemm(f"gemm{step}", a, b, c, tiling, a_t=a_t, b_t=b_t, beta=beta))
        a, a_t = c, False
    return Job("product", kernels)


def copied(timed):
    """The chain with copies of what it reads, of what it has read, and to memory that nobody touches."""
    kernels = product(130, 70, 64, chain=3).kernels

    def copy(*spans):
        return copy_kernel(np.array(spans, np.int64), timed, 1)

    inputs = [
        [(a.tensor.address, a.tensor.address + a.tensor.nbytes) for a in kernel.accesses if a.mode == "read"]
        for kernel in kernels
    ]
    before = [
        [copy(inputs[0][0]), copy(*inputs[0])],
        [copy(inputs[0][0]), copy(inputs[1][1])],
        [
            copy((FAR, FAR + 999_999), (FAR + (1 << 21), FAR + (1 << 21) + 77)),
            copy(inputs[2][1]),
        ],
    ]
    return Job("copied", *with_copies(kernels, before))


def jobs():
    """Name to a function that makes the job."""
    return {
        "gemm_edges": lambda: product(150, 100, 45),
        "gemm_beta": lambda: product(96, 64, 40, beta=1.0, a_t=True, b_t=True),
        "gemm_chain": lambda: product(130, 70, 64, chain=3),
        "split_k": lambda: product(64, 96, 130, SPLIT, chain=2),
        "sliced": lambda: product(70, 64, 128, SLICED),
        "hgemm": lambda: make("gemm:m=300,n=200,k=128,dtype=fp16"),
        "gru": lambda: make("gru:hidden=64,batch=8,timesteps=3,layers=2"),
        "gru_hoisted": lambda: make("gru:hidden=48,batch=4,timesteps=3,layers=2,input=hoisted"),
        "read": lambda: Job("read", [micro.read(Memory(), 24, 4, 1 << 14, passes=2)]),
        "shared_read": lambda: Job("read", [micro.read(Memory(), 30, 4, 1 << 14, shared=True, passes=2)]),
        "copy": lambda: make("copy:nbytes=262144"),
        "chase": lambda: make("chase:footprint=16384,passes=2"),
        "pointwise": lambda: make("pointwise:elements=40000"),
        "mixed": lambda: micro.mixed(8, 32, 1 << 14),
        "random_dag": lambda: make("random_dag:kernels=24,seed=5"),
        "empty": lambda: make("empty:tbs=300,kernels=3"),
    }


JOBS = jobs()
# kernels and copies
WITH_COPIES = {"copied": lambda: copied(timed=False), "copied_in_time": lambda: copied(timed=True)}
ALL = JOBS | WITH_COPIES
