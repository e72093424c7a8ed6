"""One iteration of a model, recorded: forward; forward, backward and optimiser; or a step with a KV cache."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from pysim.errors import ConfigError, SimError, WorkloadError
from pysim.workloads.imported.graph import Graph

from .functions import cuda_functions
from .optimizers import Factory, as_on_cuda, optimizer_of, with_state
from .recorder import NeedsData, Recorder
from .values import tensors_in
from .without_data import meta_inputs, meta_model

# of what PyTorch says where a model asks for data, and what it asked for
READS = (
    ("meta tensor", "item"),
    ("Tensor.item()", "item"),
    ("data-independent implementation", "nonzero"),
    ("meta device type tensor to numpy", "numpy"),
)
STDLIB = str(Path(copy.__file__).parent)


def record(
    model: Any,
    example_inputs: Any,
    *,
    train: str | bool | Factory | None = None,
    loss: Callable[[Any], Any] | None = None,
    decode: int = 0,
) -> Graph:
    """Return the operations of one iteration, for the arguments of ``pysim.from_torch``."""
    args, kwargs = _call_of(example_inputs)
    train = None if train is False else train
    if train is not None and decode:
        raise ConfigError("from_torch: train and decode: a step with a cache has no gradients: give one")
    made = meta_model(model)
    given = list(tensors_in((args, kwargs)))
    args, kwargs = meta_inputs(args), meta_inputs(kwargs)
    graph = Graph(type(model).__name__)
    flags = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    graph.tf32 = tuple(what for what, on in zip(("gemm", "convolution"), flags, strict=True) if on)
    graph.parameters = sum(p.numel() for p in made.parameters())
    recorder = Recorder(graph)
    recorder.know(made.parameters(), "parameter")
    recorder.asked = f"decode = {decode}: " if decode else ""
    recorder.names = {p.untyped_storage()._cdata: name for name, p in made.named_parameters()}
    recorder.know(made.buffers(), "buffer")
    recorder.know(tensors_in((args, kwargs)), "input")
    for tensor, value in zip(tensors_in((args, kwargs)), given, strict=True):
        recorder.values.know(tensor, value)
    with warnings.catch_warnings(), as_on_cuda():
        warnings.simplefilter("ignore")  # of PyTorch on devices that are not there
        try:
            if train is not None:
                _training(made, args, kwargs, train, loss, recorder)
            else:
                made.eval()
                with torch.no_grad():
                    if decode:
                        args, kwargs = _cached(made, args, kwargs, decode, recorder)
                    with recorder, cuda_functions(recorder):
                        result = made(*args, **kwargs)
                    recorder.keep(tensors_in(result))
        except SimError:
            raise
        except NeedsData as error:
            raise WorkloadError(_needs_data(error, str(error))) from None
        except Exception as error:
            if what := next((what for text, what in READS if text in str(error)), None):
                raise WorkloadError(_needs_data(error, what)) from None
            line = next(iter(str(error).strip().splitlines()), "")
            where = f"{type(model).__name__}{_where(error)}"
            raise WorkloadError(f"from_torch: {where}: {type(error).__name__}: {line}") from error
    return graph


def _training(
    made: Any, args: Any, kwargs: Any, train: str | bool | Factory, loss: Any, recorder: Recorder
) -> None:
    made.train()
    wanted = [p for p in made.parameters() if p.requires_grad]
    if not wanted:
        raise WorkloadError("from_torch: train: no parameter requires a gradient")
    optimizer, note = optimizer_of(train, wanted)
    recorder.graph.notes += (note,)
    with_state(optimizer)
    recorder.know((t for s in optimizer.state.values() for t in s.values() if _meta(t)), "buffer")
    with recorder, cuda_functions(recorder):
        result = made(*args, **kwargs)
        number = _loss(result) if loss is None else loss(result)
        if not isinstance(number, torch.Tensor) or number.numel() != 1 or not number.requires_grad:
            raise WorkloadError("from_torch: loss: must return a tensor of one element that needs a gradient")
        number.backward()
        del result, number
        optimizer.step()
    recorder.keep(p.grad for p in wanted if p.grad is not None)


def _loss(result: Any) -> Any:
    """Return the result's own loss, or the mean of its first tensor."""
    own = getattr(result, "loss", None)
    if isinstance(own, torch.Tensor):
        return own
    for tensor in tensors_in(result):
        if tensor.is_floating_point():
            return tensor.float().mean()
    raise WorkloadError("from_torch: train: the model returns no tensor to begin backward with: give loss")


def _cached(
    made: Any, args: Any, kwargs: dict[str, Any], past: int, recorder: Recorder
) -> tuple[Any, dict[str, Any]]:
    """Return the arguments of a step with a cache of ``past`` tokens, made by a run that is not recorded.

    Of an encoder and decoder the step takes the encoder's result, which that run makes as well.
    """
    if type(past) is not int or past < 1:
        raise ConfigError(f"from_torch: decode = {past!r}: must be a number of past tokens, at least 1")
    pair = getattr(getattr(made, "config", None), "is_encoder_decoder", False)
    given = [kwargs.get("decoder_input_ids")] if pair else (*args, *kwargs.values())
    first = next((t for t in given if isinstance(t, torch.Tensor)), None)
    if first is None or first.ndim < 2:
        which = "decoder_input_ids" if pair else "the first input"
        raise WorkloadError(f"from_torch: decode: {which} must be tokens, [batch, new tokens]")
    prompt = torch.empty((first.shape[0], past), dtype=first.dtype, device="meta")
    call = (args, {**kwargs, "decoder_input_ids": prompt}) if pair else ((prompt,), {})
    recorder.on = False
    with recorder, cuda_functions(recorder):
        try:
            result = made(*call[0], **call[1], use_cache=True)
        except TypeError as error:
            raise WorkloadError(
                f"from_torch: decode: the model takes no cache (use_cache): {error}"
            ) from None
    recorder.on = True
    kept = getattr(result, "past_key_values", None)
    if kept is None:
        raise WorkloadError("from_torch: decode: the model returns no past_key_values with use_cache=True")
    step = {**kwargs, "past_key_values": kept, "use_cache": True}
    if pair:
        args, step["encoder_outputs"] = (), (result.encoder_last_hidden_state,)
        step.pop("input_ids", None)
    return args, step


def _call_of(example_inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and named arguments: of a tensor, a sequence or a mapping."""
    if isinstance(example_inputs, torch.Tensor):
        return (example_inputs,), {}
    if isinstance(example_inputs, Mapping):
        return (), dict(example_inputs)
    if isinstance(example_inputs, Sequence) and not isinstance(example_inputs, str):
        return tuple(example_inputs), {}
    raise WorkloadError(
        f"from_torch: example_inputs = {type(example_inputs).__name__}: must be a tensor, a tuple of"
        " arguments or a dictionary of named ones"
    )


def _meta(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_meta


def _needs_data(error: BaseException, what: str) -> str:
    return (
        f"from_torch: {what} of a tensor{_where(error)}: what runs depends on data, which an import has not:"
        " take the shapes of an example into the code"
    )


def _where(error: BaseException) -> str:
    """Return the last line of the model's own code that an error came from."""
    found, step = "", error.__traceback__
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        if (
            not name.startswith(("<", STDLIB))
            and "/torch/" not in name
            and "/workloads/imported/" not in name
        ):
            found = f" ({name.rpartition('/')[2]}:{step.tb_lineno})"
        step = step.tb_next
    return found
