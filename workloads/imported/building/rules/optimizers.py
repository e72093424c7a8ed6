"""Steps of optimisers over lists of tensors: fused, or an operation after another (``_foreach_*``)."""

from __future__ import annotations

from collections.abc import Callable

from pysim.errors import WorkloadError
from pysim.program.library_kernels import stand_in
from pysim.workloads.imported.building.builder import Builder
from pysim.workloads.imported.graph import Node, Ref
from pysim.workloads.library.memory import pointwise_costs as costs
from pysim.workloads.library.memory.multi_tensor import Pass, multi_tensor
from pysim.workloads.library.memory.pointwise_loops import ADAM_REGISTERS, AdamCost
from pysim.workloads.library.memory.pointwise_parts import Work

from .pointwise import element_wise

Rule = Callable[[Builder, Node], None]
BEGIN, REGISTERS = Work(ints=20, control=4), 32  # the place of a chunk among tensors: by reason
NOT_MEASURED = stand_in("multi_tensor_apply", measured=False)


def foreach(work: Work) -> Rule:
    """Return the rule of an operation on each element of lists of tensors; ``work``: of an element."""

    def rule(builder: Builder, node: Node) -> None:
        lists = [
            node.refs_in(name)
            for name, value in node.args.items()
            if isinstance(value, tuple) and _refs(value)
        ]
        many = len(lists[0])
        fresh = bool(node.outputs) and not node.written
        if fresh:
            lists.append(node.outputs)
        if any(len(each) != many for each in lists):
            raise WorkloadError(f"{node.op}: lists of {', '.join(str(len(each)) for each in lists)} tensors")
        if any([ref.shape for ref in each] != [ref.shape for ref in lists[0]] for each in lists):
            for refs in zip(*lists, strict=True):  # numbers beside tensors: no fast path, a kernel each
                inputs, target = (refs[:-1], refs[-1]) if fresh else (refs, refs[0])
                element_wise(builder, _name(node), inputs, [target], work)
            return
        reads = tuple(range(len(lists) - fresh))
        writes = (len(lists) - 1,) if fresh else (0,)
        what = Pass(f"multi_{_name(node)}", reads, writes, AdamCost(BEGIN, work), REGISTERS)
        tensors = [[builder.flat(ref) for ref in each] for each in lists]
        builder.launch(multi_tensor(what, tensors), library=NOT_MEASURED)

    return rule


def fused_adam(builder: Builder, node: Node) -> None:
    """``_fused_adam_`` and ``_fused_adamw_``: parameters, gradients and moments in one pass."""
    names = "self", "grads", "exp_avgs", "exp_avg_sqs"
    lists = [[builder.flat(ref) for ref in node.refs_in(name)] for name in names]
    item = lists[0][0].item
    if item not in costs.ADAMW or node.refs_in("max_exp_avg_sqs"):
        raise WorkloadError(f"fused Adam of {item} B, or with amsgrad: no template")
    builder.launch(
        multi_tensor(Pass("adamw", (0, 1, 2, 3), (0, 2, 3), costs.ADAMW[item], ADAM_REGISTERS[item]), lists)
    )


def fused_sgd(builder: Builder, node: Node) -> None:
    """``_fused_sgd_``: parameters, gradients and, with momentum, its buffers in one pass."""
    names = ("self", "grads", "momentum_buffer_list")
    lists = [[builder.flat(ref) for ref in refs] for refs in map(node.refs_in, names) if refs]
    writes = (0, *range(2, len(lists)))
    cost = AdamCost(BEGIN, costs.ADD.times(len(lists)))
    made = Pass("sgd", tuple(range(len(lists))), writes, cost, REGISTERS)
    builder.launch(multi_tensor(made, lists), library=NOT_MEASURED)


def _name(node: Node) -> str:
    return node.op.partition(".")[2].strip("_").removeprefix("foreach_")


def _refs(value: tuple[object, ...]) -> bool:
    return bool(value) and all(isinstance(each, Ref) for each in value)
