"""The applications of BlockMaestro (Abdolrashidi et al., ISCA 2021), and its wavefront example.

Rodinia, PolyBench, SHOC and Tango give them; the study states kernel counts of nine of twelve and no input
sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pysim.program.job import Job

from .alexnet import alexnet
from .linear_algebra import bicg, gaussian, gramschm, lud, mvt, three_mm
from .stencils import fdtd2d, fft, hotspot, nw, pathfinder, wavefront


@dataclass(frozen=True, slots=True)
class App:
    """``kernels``: the published count, 0 where none was; ``small``: arguments of a quick run of its kind."""

    make: Callable[..., Job]
    kernels: int
    small: str


APPS: dict[str, App] = {
    "3mm": App(three_mm, 0, "n=128"),
    "alexnet": App(alexnet, 22, "width=128,thin=8"),
    "bicg": App(bicg, 2, "n=256"),
    "fdtd2d": App(fdtd2d, 24, "n=64,steps=2"),
    "fft": App(fft, 60, "kernels=4,batch=8"),
    "gaussian": App(gaussian, 510, "n=48"),
    "gramschm": App(gramschm, 192, "cols=8,rows=256"),
    "hotspot": App(hotspot, 0, "n=48,kernels=4"),
    "lud": App(lud, 46, "n=80"),
    "mvt": App(mvt, 2, "n=256"),
    "nw": App(nw, 255, "n=128"),
    "pathfinder": App(pathfinder, 0, "cols=1080,kernels=3"),
    "wavefront": App(wavefront, 0, "graphs=2,side=8"),
}
