"""The CTC loss of PyTorch on a tape: log-softmax, alphas forward, betas and the gradient backward.

``ctc_loss_log_alpha_gpu_kernel``, its mirror, and ``ctc_loss_backward_collect_gpu_kernel`` (ATen,
native/cuda/LossCTC): of an utterance a thread block goes from step to step, a thread a state (two a label and
one), each from three states of the step before. Not measured: instructions are by reason.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Tensor
from pysim.program.library_kernels import stand_in
from pysim.program.warp_program import Code, Program
from pysim.workloads.framework.tape import Gradients, Tape, Value, one
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.pointwise_flat import vectorised
from pysim.workloads.library.memory.pointwise_parts import Work, line, rows, whole

STANDS_IN = stand_in("ctc_loss_")
MOST_STATES = 1024
FLOAT = 4
COLLECT = Work(fp32=12, sfu=2, ints=10)
# of a state: the largest of three, three exponentials, a logarithm
STATE_FP32, STATE_SFU, CHAIN = 12, 4, 160


def ctc_loss(tape: Tape, scores: Value, utterances: int, labels: int) -> Value:
    """Return the loss; ``scores``: [steps * utterances, alphabet], of which ``labels`` are wanted."""
    t, memory = scores.tensor, tape.memory
    steps, states = t.rows // utterances, 2 * labels + 1
    if states > MOST_STATES:
        raise WorkloadError(f"CTC: {labels} labels: at most {MOST_STATES // 2 - 1}")
    x = t if t.item == FLOAT else tape.run(memory_ops.cast(memory, t, tape.amp or "fp16", "fp32"))
    shares = tape.run(memory_ops.softmax(memory, x))
    alphas, loss = (
        memory.tensor(name, utterances, n, FLOAT) for name, n in (("alphas", steps * states), ("loss", 1))
    )
    tape.launch([_walk("alpha", shares, alphas, loss, states)])

    def backward(given: Gradients) -> Gradients:
        betas = memory.tensor("betas", utterances, steps * states, FLOAT)
        tape.launch([_walk("backward_log_beta", shares, betas, one(given), states)])
        made = memory.tensor("grad_log", t.rows, t.cols, FLOAT)
        kernel = vectorised("ctc_collect", [shares], [made], COLLECT)
        needed = (whole(alphas), whole(betas))
        tape.launch(
            [replace(kernel, accesses=(*kernel.accesses, *needed), library=f"{STANDS_IN}backward_collect")]
        )
        launched = memory_ops.softmax_backward(memory, made, shares)
        back = tape.run(launched)
        if t.item != FLOAT:
            back = tape.run(memory_ops.cast(memory, back, "fp32", tape.amp or "fp16"))
        return (back,)

    return tape.record((loss,), (scores,), backward)[0]


def _walk(name: str, shares: Tensor, states: Tensor, loss: Tensor, wide: int) -> Kernel:
    utterances = states.rows
    steps = states.cols // wide
    program = _program(steps, wide, shares.cols, utterances)
    reads = [whole(shares)]
    if name == "alpha":
        reads.append(rows(loss, "write"))
    else:
        reads.append(whole(loss))
    accesses = (*reads, rows(states, "write"))
    grid = (utterances, 1, 1)
    return Kernel(
        f"ctc_{name}", program, grid, (shares, states, loss), accesses, library=f"{STANDS_IN}{name}"
    )


@lru_cache(maxsize=64)
def _program(steps: int, wide: int, alphabet: int, utterances: int) -> Program:
    warps = -(-wide // WARP)
    threads, pitch = warps * WARP, alphabet * FLOAT
    code = Code()
    code.compute(int=60, control=6, chain=300)
    mark = code.loop_begin()
    active = min(alphabet, WARP)
    code.load(0, *line(0, FLOAT, WARP, bx=pitch, step=utterances * pitch, active=active))
    code.wait(0)
    code.compute(fp32=STATE_FP32, sfu=STATE_SFU, int=20, chain=CHAIN)
    code.store(1, *line(1, FLOAT, threads, bx=steps * wide * FLOAT, step=wide * FLOAT, active=wide))
    code.barrier()
    code.loop_end(mark, steps)
    code.exit()
    return Program("ctc", (tuple(code.ops),), warps, 32, 0, 3)
