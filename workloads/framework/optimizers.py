"""Optimisers on a tape whose gradients are there: kernels that pass over lists of all parameters.

``adamw``: ``torch.optim.AdamW(fused=True)`` of parameters, gradients and moments of one type. ``lamb``:
``FusedLAMB`` of NVIDIA's apex (csrc/multi_tensor_lamb.cu), as NVIDIA and MLPerf train BERT: the norm of all
gradients; norms of parameters; stage 1, moments and an update in place of the gradient; norms of updates;
stage 2, parameters. Parameters and moments are fp32; of gradients of 16 bits stage 2 writes the model's
parameters of 16 bits, too. ``sgd``: ``torch.optim.SGD(momentum=...)`` from the second step on, as its
``foreach`` launches it: moments times a number, gradients added to moments, moments added to parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Memory, Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.library.arguments import check_names
from pysim.workloads.library.memory import multi_tensor as multi
from pysim.workloads.library.memory import pointwise_costs as costs
from pysim.workloads.library.memory.norm_sums import norms_of_sums
from pysim.workloads.library.memory.pointwise_loops import ADAM_REGISTERS

from .tape import Value

OPTIMIZERS = ("adamw", "lamb", "sgd", "none")
APEX = stand_in("apex ", measured=False)
FLOAT = 4


def optimizer(name: str, weights: Sequence[Value], memory: Memory) -> list[Kernel]:
    """Return the step of an optimiser, one of ``OPTIMIZERS``; parameters without a gradient are left out.

    Raises WorkloadError for an unknown name, and where no parameter has a gradient.
    """
    check_names("optimizer", OPTIMIZERS, name=name)
    if name == "none":
        return []
    pairs = [(w.tensor, w.gradient) for w in weights if w.gradient is not None]
    if not pairs:
        raise WorkloadError(f"optimizer {name}: no parameter has a gradient")
    parameters, gradients = [p for p, _ in pairs], [g for _, g in pairs]
    steps = {"adamw": _adamw, "lamb": _lamb, "sgd": _sgd}
    return steps[name](parameters, gradients, memory)


def _like(memory: Memory, name: str, tensors: Sequence[Tensor], item: int = 0) -> list[Tensor]:
    return [memory.tensor(name, t.rows, t.cols, item or t.item) for t in tensors]


def _adamw(parameters: list[Tensor], gradients: list[Tensor], memory: Memory) -> list[Kernel]:
    lists = parameters, gradients, *(_like(memory, name, parameters) for name in ("moment1", "moment2"))
    item = parameters[0].item
    return multi.multi_tensor(
        multi.Pass("adamw", (0, 1, 2, 3), (0, 2, 3), costs.ADAMW[item], ADAM_REGISTERS[item]), lists
    )


def _lamb(parameters: list[Tensor], gradients: list[Tensor], memory: Memory) -> list[Kernel]:
    half = parameters[0].item < FLOAT
    masters = _like(memory, "master", parameters, FLOAT) if half else parameters
    moments = [_like(memory, name, parameters, FLOAT) for name in ("moment1", "moment2")]

    def norm(tensors: list[Tensor], each: bool) -> tuple[list[Kernel], Tensor]:
        """Return the kernels of the norm of all tensors, or of each one, and where it is."""
        counts = multi.partial_sums(tensors)
        sums = memory.tensor("sums", 1, sum(counts), FLOAT)
        norms = memory.tensor("norms", 1, len(tensors) if each else 1, FLOAT)
        passed = multi.Pass("l2norm", (0,), (), costs.NORM, 32, APEX + "multi_tensor_l2norm", partial=True)
        last = norms_of_sums(sums, counts if each else [sum(counts)], norms, APEX + "cleanup")
        return [*multi.multi_tensor(passed, [tensors], sums), last], norms

    stage1 = multi.Pass("lamb_stage_1", (0, 1, 2, 3), (0, 2, 3), costs.LAMB_1, 48, APEX + "LAMBStage1")
    places = (1, 2) if half else (1,)
    stage2 = multi.Pass("lamb_stage_2", (0, 1), places, costs.LAMB_2, 32, APEX + "LAMBStage2")
    clipped, clip = norm(gradients, each=False)
    sized, of_parameters = norm(masters, each=True)
    updated, of_updates = norm(gradients, each=True)
    halves = [parameters] if half else []
    return [
        *clipped,
        *sized,
        *multi.multi_tensor(stage1, [gradients, masters, *moments], numbers=[clip]),
        *updated,
        *multi.multi_tensor(stage2, [gradients, masters, *halves], numbers=[of_parameters, of_updates]),
    ]


def _sgd(parameters: list[Tensor], gradients: list[Tensor], memory: Memory) -> list[Kernel]:
    moments, stands = (
        _like(memory, "moment", parameters),
        stand_in("multi_tensor_apply_kernel, ", measured=False),
    )
    scaled = multi.Pass("foreach_mul", (0,), (0,), costs.FOREACH_MUL, 32, f"{stands}BinaryOpScalarFunctor")
    added = multi.Pass(
        "foreach_add", (0, 1), (0,), costs.FOREACH_ADD, 32, f"{stands}BinaryOpListAlphaFunctor"
    )
    return [
        *multi.multi_tensor(scaled, [moments]),
        *multi.multi_tensor(added, [moments, gradients]),
        *multi.multi_tensor(added, [parameters, moments]),
    ]
