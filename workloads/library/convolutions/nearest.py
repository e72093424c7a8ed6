"""The kernels of a convolution, with a stand-in where what the library chooses has no template.

Without template are some transforms (FFT; Winograd of other filters than 3 x 3 of stride 1), and templates
of some kernels do not fit sizes that are odd. An implicit GEMM of the same type and direction, which the
library chooses for other sizes, stands in for them, and says so in reports.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.program.library_kernels import stand_in
from pysim.program.pattern_check import check_kernel_patterns

from .chooser import choose_convolution, of_family

if TYPE_CHECKING:
    from pysim.program.job import Kernel, Memory

    from .shape import Convolution

# families of implicit GEMMs by direction, the first that has kernels of the type is taken
IMPLICIT = {
    "forward": ("sm80_xmma_fprop_implicit_gemm",),
    "backward_data": ("sm80_xmma_dgrad_implicit_gemm", "dgrad_engine"),
    "backward_weights": ("sm80_xmma_wgrad_implicit_gemm_indexed", "wgrad_alg0_engine"),
}
PADDED = ", channels padded"
EVEN = 8  # channels and filters of whole vectors
OPERANDS = 3  # of the main kernel, at the least


def nearest_convolution(conv: Convolution, memory: Memory) -> list[Kernel]:
    """Return the kernels that the library launches for a convolution, or those that stand in for them.

    The main kernel's name in the library is its ``Kernel.library``. Raises WorkloadError for a type and
    layout that were not measured, and where nothing can stand in.
    """
    from .convolution import convolution  # with all templates: names of networks are known without them

    try:
        told, others = choose_convolution(conv)
        return _named(_sound(convolution(told, others, conv, memory), conv), told.name)
    except WorkloadError as error:
        refused = error
    made = implicit_convolution(conv, memory)
    if made:
        return made
    sizes = f"{conv.channels} channels to {conv.filters}"
    raise WorkloadError(
        f"convolution of {sizes}, {conv.dtype}, {conv.direction}: no template fits"
    ) from refused


def implicit_convolution(conv: Convolution, memory: Memory, where: str = "") -> list[Kernel]:
    """Return an implicit GEMM that stands in, or nothing where no template fits.

    It is one for Ampere where there is one of the type; ``where``: what reports say behind its name. Channels
    and filters are padded to whole vectors where no template takes them as they are.
    """
    from .convolution import convolution

    padded = replace(conv, channels=-(-conv.channels // EVEN) * EVEN, filters=-(-conv.filters // EVEN) * EVEN)
    for problem in (conv, padded) if where and padded != conv else (conv,):
        for family in IMPLICIT[conv.direction]:
            try:
                told, others = of_family(problem, family)
                made = _sound(convolution(told, others, problem, memory), problem)
            except WorkloadError:
                continue
            return _named(made, stand_in(told.name + where + (PADDED if problem != conv else "")))
    return []


def _sound(kernels: list[Kernel], conv: Convolution) -> list[Kernel]:
    """Return kernels that touch no more than they declare; raise WorkloadError for others.

    Only templates of odd sizes may: the others are not looked at.
    """
    for kernel in kernels if conv.channels % EVEN or conv.filters % EVEN else ():
        check_kernel_patterns(f"convolution: kernel {kernel.name}", kernel)
    return kernels


def _named(kernels: list[Kernel], library: str) -> list[Kernel]:
    """Return the kernels, of which that with the most operands has its name in the library."""
    main = max(range(len(kernels)), key=lambda at: (len(kernels[at].args) >= OPERANDS, kernels[at].tbs))
    return [replace(k, library=library) if at == main else k for at, k in enumerate(kernels)]
