"""``pysim.from_torch``: a PyTorch model as a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pysim.errors import MissingLibraryError

if TYPE_CHECKING:
    from pysim.program.job import Job

    from .graph import Graph


def from_torch(
    model: Any,
    example_inputs: Any,
    *,
    train: str | bool | Callable[[Any], Any] | None = None,
    loss: Callable[[Any], Any] | None = None,
    decode: int = 0,
    device: str = "h200",
    approximate: bool = False,
) -> Job:
    """Return the kernels that one iteration of a PyTorch model launches on a GPU, as a job.

    Needs neither weights nor a GPU: a copy of the model runs on tensors without data, in eager order. The job
    is for the shapes of the example.

    Parameters
    ----------
    model : torch.nn.Module
        On any device, meta included. It is not changed.
    example_inputs : tensor, tuple or dict
        The argument, the arguments or the named arguments of a call. Shapes and types count, and values of
        integers (masks) where the model asks for them.
    train : str, bool or callable, optional
        Forward, backward and optimiser: ``sgd``, ``momentum``, ``adam``, ``adamw`` (also True),
        ``sgd_fused``, ``adam_fused``, ``adamw_fused``, or a function of the parameters that returns a
        ``torch.optim.Optimizer``. Without ``fused=True`` an optimiser runs over lists of tensors (foreach),
        as on CUDA. None or False: forward, in evaluation.
    loss : callable, optional
        Of the model's result: what backward begins with. Default: its ``loss``, else its first tensor's mean.
    decode : int
        Run the example after so many past tokens, whose keys and values are in a cache (models of Hugging
        Face that take ``use_cache``). 0: no cache.
    device : str
        Whose library kernels run: ``h200``, ``h100``, or one of Volta and Ampere, where others stand in.
    approximate : bool
        Let kernels that read and write as many bytes stand in for operators without a template. Tables show
        ``approximate: NAME`` as their library kernel.

    Returns
    -------
    Job
        ``totals`` has parameters and floating-point operations.

    Raises
    ------
    MissingLibraryError
        PyTorch is not installed.
    ConfigError
        Unknown names.
    WorkloadError
        Operators without a template, all in one line; control flow that depends on data; what the model
        itself refuses.
    """
    from .building.kernels import job_of

    graph = recorded(model, example_inputs, train=train, loss=loss, decode=decode)
    arguments = {"pass": "training" if train else "decode" if decode else "forward", "decode": decode or None}
    for note in graph.notes:
        key, _, value = note.partition(" ")
        arguments[key] = value.replace(", ", " ")
    return job_of(graph, device=device, approximate=approximate, arguments=arguments)


def recorded(
    model: Any,
    example_inputs: Any,
    *,
    train: str | bool | Callable[[Any], Any] | None = None,
    loss: Callable[[Any], Any] | None = None,
    decode: int = 0,
) -> Graph:
    """Return the operations of an iteration, for the arguments of :func:`from_torch`."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingLibraryError("pysim.from_torch", "PyTorch", "torch") from error
    from .recording.run import record

    return record(model, example_inputs, train=train, loss=loss, decode=decode)
