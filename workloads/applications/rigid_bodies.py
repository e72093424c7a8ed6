"""Steps of rigid-body simulations, batched over environments, as Brax launches them: kernels by contact.

A kernel works on one kind of joint, or one pair of bodies that touch, for all environments; a TB on 128 of
them, a thread each. Which pairs touch is input, so the graph of kernels is known a substep ahead at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from pysim.errors import WorkloadError
from pysim.program.job import Job, Kernel, Memory, Tensor
from pysim.program.warp_program import Affine
from pysim.workloads.kernels.region import Block, region_kernel

THREADS = 128
FLOATS = 16  # of a body: position, rotation, velocity and angular velocity, padded to two sectors
GROUND = -1
# chance that a pair begins to touch in a substep, and that it ceases to
TOUCH, PART = 0.3, 0.3


@dataclass(frozen=True, slots=True)
class Joints:
    """``count`` joints of a kind: joint i holds body ``parent + apart * i`` to body ``child + i``."""

    parent: int
    apart: int
    child: int
    count: int


@dataclass(frozen=True, slots=True)
class System:
    """Bodies, kinds of joints, pairs of bodies that may touch, substeps of a step."""

    bodies: int
    joints: tuple[Joints, ...]
    pairs: tuple[tuple[int, int], ...]
    substeps: int


def _ground(*bodies: int) -> tuple[tuple[int, int], ...]:
    return tuple((body, GROUND) for body in bodies)


# limbs in pairs: each kind of joint holds the next two bodies
_LEGS = (Joints(0, 0, 1, 2), Joints(1, 1, 3, 2), Joints(3, 1, 5, 2))
SYSTEMS: dict[str, System] = {
    # torso, four upper and four lower legs
    "ant": System(9, (Joints(0, 0, 1, 4), Joints(1, 1, 5, 4)), _ground(0, 5, 6, 7, 8), 10),
    # palm, four fingers of three links, and what they grasp
    "grasp": System(
        14, (Joints(0, 0, 1, 4), Joints(1, 1, 5, 4), Joints(5, 1, 9, 4)),
        (*((13, link) for link in range(13)), *_ground(13)), 10,
    ),
    # torso, waist, pelvis; thighs, shins, upper and lower arms
    "humanoid": System(
        11,
        (Joints(0, 1, 1, 2), Joints(2, 0, 3, 2), Joints(3, 1, 5, 2), Joints(0, 0, 7, 2), Joints(7, 1, 9, 2)),
        _ground(0, 5, 6, 9, 10), 8,
    ),
    # torso, thighs, shins, feet
    "cheetah": System(7, _LEGS, (*_ground(*range(7)), (5, 6)), 16),
    "walker": System(7, _LEGS, _ground(*range(7)), 10),
}  # fmt: skip


@dataclass(slots=True)
class _World:
    """Tensors of a job: a row a body, joint or contact, and in it 16 floats an environment."""

    envs: int
    state: Tensor
    made: list[Kernel]

    def kernel(
        self, name: str, high: int, reads: list[Block], writes: list[Block], work: dict[str, int]
    ) -> None:
        grid = self.envs // THREADS, high
        self.made.append(region_kernel(name, grid, THREADS // 32, reads, writes, work, registers=64))


def _block(tensor: Tensor, rows: int, base: int = 0, by: int = 0) -> Block:
    """``rows`` rows of a TB's environments, from row ``base + by * y`` on."""
    wide = THREADS * FLOATS
    return Block(tensor, rows, wide, row=Affine(base=base, by=by), col=Affine(bx=wide))


def _substep(world: _World, system: System, rows: dict[str, Tensor], touching: list[int]) -> None:
    state, done = world.state, 0
    for joints in system.joints:
        ends = [_block(state, 1, joints.parent, joints.apart), _block(state, 1, joints.child, 1)]
        action, torque, pull = (_block(rows[name], 1, done, 1) for name in ("action", "torque", "pull"))
        world.kernel("actuate", joints.count, [*ends, action], [torque], {"fp32": 90, "int": 30})
        world.kernel("joint", joints.count, ends, [pull], {"fp32": 260, "int": 60, "sfu": 12})
        done += joints.count
    every = _block(state, system.bodies)
    sums = [_block(rows[name], done) for name in ("torque", "pull")]
    pushes = rows["push"]
    work = {"fp32": 70 * system.bodies, "int": 20 * system.bodies, "sfu": 3 * system.bodies}
    world.kernel("integrate", 1, [every, *sums], [every], work)
    for pair in touching:
        one, other = system.pairs[pair]
        bodies = [_block(state, 1, body) for body in (one, other) if body != GROUND]
        world.kernel("contact", 1, bodies, [_block(pushes, 1, pair)], {"fp32": 220, "int": 60, "sfu": 10})
    if touching:
        # each body that something pushes is moved; the others are left alone
        parts = [_block(pushes, 1, pair) for pair in touching]
        moved = sorted({body for pair in touching for body in system.pairs[pair] if body != GROUND})
        bodies = [_block(state, 1, body) for body in moved]
        work = {"fp32": 60 * len(moved), "int": 15 * len(moved)}
        world.kernel("resolve", 1, [*bodies, *parts], bodies, work)


def rigid(system: str = "ant", envs: int = 2048, steps: int = 2, seed: int = 1) -> Job:
    """Make steps of one of Brax's systems: actuators and joints by kind, integration, contacts, resolution.

    Bodies, kinds of joints and pairs after Brax's own systems in their first version (of ``grasp`` and of
    what may touch the ground, assumed). Assumed too: 2048 environments, a kernel for each kind and each pair
    that touches in any of them, instruction counts, and contacts: a pair begins to touch in a substep with
    probability 0.3 and ceases to with 0.3, by ``seed``. The policy between the steps is left out.
    """
    if system not in SYSTEMS:
        raise WorkloadError(f"rigid: system = {system[:20]}: must be one of {', '.join(SYSTEMS)}")
    if envs < THREADS or envs % THREADS or envs > 1 << 16:
        raise WorkloadError(f"rigid: envs = {envs}: must be a multiple of {THREADS}, at most 65536")
    if not 1 <= steps <= 1000:
        raise WorkloadError(f"rigid: steps = {steps}: must be from 1 to 1000")
    parts, random = SYSTEMS[system], Random(seed)
    memory = Memory()
    world = _World(envs, memory.tensor("state", parts.bodies, envs * FLOATS, 4), [])
    joints = sum(kind.count for kind in parts.joints)
    rows = {
        name: memory.tensor(name, count, envs * FLOATS, 4)
        for name, count in (
            ("action", joints),
            ("torque", joints),
            ("pull", joints),
            ("push", len(parts.pairs)),
        )
    }
    touches = [random.random() < TOUCH / (TOUCH + PART) for _ in parts.pairs]
    for _ in range(steps * parts.substeps):
        touches = [random.random() >= PART if on else random.random() < TOUCH for on in touches]
        now = [pair for pair, on in enumerate(touches) if on]
        _substep(world, parts, rows, now)
    return Job(f"rigid:system={system},seed={seed}", world.made, steps=steps)
