"""What the library's choice of a kernel says, and the problem it was made for."""

from __future__ import annotations

from dataclasses import dataclass

from pysim.errors import WorkloadError

DTYPES = ("fp16", "bf16", "tf32", "fp32")
TRANSPOSES = ("N", "T")
MOST = 2**31 - 1  # BLAS takes int


@dataclass(frozen=True, slots=True)
class Problem:
    """A GEMM in BLAS terms, column-major: C[m, n] = op(A)[m, k] op(B)[k, n], without padding of rows.

    Attributes
    ----------
    m, n, k : int
        Sizes in elements, 1 to 2^31 - 1.
    trans_a, trans_b : str
        ``N`` or ``T``. A linear layer of PyTorch is (outputs, tokens, inputs, T, N).
    dtype : str
        ``fp16``, ``bf16``, ``tf32`` (fp32 data, TF32 allowed) or ``fp32``.
    batch : int
        Products of as many A and B, which lie one behind another.
    """

    m: int
    n: int
    k: int
    trans_a: str
    trans_b: str
    dtype: str
    batch: int = 1

    @property
    def item(self) -> int:
        """Bytes of an element of A, B and C."""
        return 2 if self.dtype in ("fp16", "bf16") else 4

    @property
    def leading(self) -> tuple[int, int, int]:
        """Leading dimensions of A, B and C in elements."""
        return (
            self.m if self.trans_a == "N" else self.k,
            self.k if self.trans_b == "N" else self.n,
            self.m,
        )

    def alignment(self, *, result: bool = True) -> int:
        """Return the most elements, at most 16 B, that divide all leading dimensions (of C with `result`)."""
        sizes = self.leading if result else self.leading[:2]
        most = 16 // self.item
        while any(size % most for size in sizes):
            most //= 2
        return most


@dataclass(frozen=True, slots=True)
class GemmChoice:
    """The kernel that a library launches for a GEMM.

    Attributes
    ----------
    name : str
        The kernel's name as a profiler reports it; without arguments and template parameters that do not
        follow from the choice.
    family : str
        The beginning of the name that says for which machine and instruction it is written.
    tile : tuple of int
        Elements along m, n and k of a TB's tile and k-step; zeros where a name says nothing.
    stages : int
        K-steps in shared memory; 0: not known.
    cluster : tuple of int
        TBs of a cluster along m and n.
    split_k : int
        Parts of K; 0: TBs take runs of k-steps across tiles (stream-K).
    reduction : str
        Who adds the parts: ``""`` nobody, ``kernel`` a second kernel, ``serial`` the TBs one after another,
        ``update`` the TBs in any order.
    order : str
        ``h`` or ``v``: clusters walk C along n or m first; empty: not known.
    cooperative : str
        ``coopA``, ``coopB`` or empty: how warp groups share a tile.
    grid : tuple of int
        TBs in x, y and z.
    cost : float
        What the rule compares, in cycles; 0 where it does not compare.
    reasons : tuple of str
        Why, one sentence each.
    runners_up : tuple of GemmChoice
        The best kernels of other tiles, best first; they have none themselves.
    """

    name: str
    family: str
    tile: tuple[int, int, int]
    stages: int = 0
    cluster: tuple[int, int] = (1, 1)
    split_k: int = 1
    reduction: str = ""
    order: str = ""
    cooperative: str = ""
    grid: tuple[int, int, int] = (1, 1, 1)
    cost: float = 0.0
    reasons: tuple[str, ...] = ()
    runners_up: tuple[GemmChoice, ...] = ()

    @property
    def unit(self) -> str:
        """What computes: ``wgmma``, ``mma`` or ``ffma`` with tiles of C, else ``vector``."""
        if self.family.startswith(("gem", "dot", "sgemm_largek")):
            return "vector"
        if self.family.startswith(("nvjet", "sm90")):
            return "wgmma"
        ffma = "simt" in self.family or "_ffma_" in self.name or self.family.startswith("sgemm_")
        return "ffma" if ffma else "mma"

    @property
    def tbs(self) -> int:
        """TBs of the launch."""
        return self.grid[0] * self.grid[1] * self.grid[2]


def checked(m: int, n: int, k: int, trans_a: str, trans_b: str, dtype: str, batch: int = 1) -> Problem:
    """Return the problem, or say what is wrong with it.

    Raises
    ------
    WorkloadError
        For a size that is no positive int of 32 bits, an unknown transpose or type.
    """
    for name, size in (("m", m), ("n", n), ("k", k), ("batch", batch)):
        if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= MOST:
            raise WorkloadError(f"library GEMM: {name} is {size}: a whole number from 1 to {MOST} is needed")
    for name, value in (("trans_a", trans_a), ("trans_b", trans_b)):
        if value not in TRANSPOSES:
            raise WorkloadError(f"library GEMM: {name} is {value}: N or T is needed")
    if dtype not in DTYPES:
        raise WorkloadError(f"library GEMM: dtype {dtype}: there are {', '.join(DTYPES)}")
    return Problem(m, n, k, trans_a, trans_b, dtype, batch)
