"""Instruction counts of PyTorch's memory-bound kernels: the only constants of these templates.

Counts are by reason, from the public sources (ATen/native/cuda of PyTorch 2.11, CUDA's math library): how
many operations of each kind they have. They were then fitted, as were all waits (cycles), to rows of the
suite ``h200-library-pointwise``: waits to the smallest sizes, which one TB decides, counts to sizes that fit
in L2, which issue decides. First values had both halves in sight, the last ones half ``fit`` alone.
"""

from __future__ import annotations

from dataclasses import replace

from .pointwise_layernorm import GammaCost, LayerNormCost
from .pointwise_loops import AdamCost, DropoutCost
from .pointwise_parts import Work
from .pointwise_reduce import ReduceCost
from .pointwise_softmax import SoftmaxCost

# of an element; a multiplication, an addition with alpha, a maximum and a test for NaN
ADD, MUL, RELU = Work(fp32=1), Work(fp32=1), Work(fp32=2, wait=100)
COPY = Work()
RSQRT = Work(fp32=4, sfu=1)  # with a step of Newton's method; by reason
SILU = Work(fp32=10, ints=3, sfu=2, control=1)  # an exponential and a division; by reason
TANH = Work(fp32=10, ints=3, sfu=2, control=2)  # as that of GELU
# tanh: exponential and reciprocal beside a polynomial, and a choice
GELU_TANH = Work(fp32=18, ints=5, sfu=2, control=2)
# erf: two polynomials, coefficients chosen one by one, an exponential
GELU_ERF = Work(fp32=20, ints=10, sfu=1, control=2, wait=100)
# erf, and the density beside it
GELU_ERF_BACKWARD = Work(fp32=30, ints=12, sfu=2, control=2, wait=550)
# tanh as above, its derivative and that of its cubic argument: by reason, never fitted
GELU_TANH_BACKWARD = Work(fp32=30, ints=6, sfu=2, control=2, wait=100)
CONVERT = 1  # integer instructions to widen or narrow an element of 2 B
CAST = Work(fp32=2, ints=14, control=14, wait=120)  # a load or a store through a branch on the type; fitted
STRIDED = Work(ints=14, control=1, wait=330)  # two divisions by multiplication for an offset

# ten rounds of two wide multiplications and four exclusive ors, and the keys; then to floating point
DROPOUT = DropoutCost(Work(ints=40, control=10, wait=1300), Work(ints=100, fp32=8, sfu=4))
# rates are double, so that each operand is converted twice; two powers in double before the loop
ADAMW = {
    item: AdamCost(Work(fp64=100, ints=100, wait=1200), Work(fp32=6, fp64=10, sfu=sfu, ints=4))
    for item, sfu in ((4, 9), (2, 10))
}

SOFTMAX = SoftmaxCost(
    Work(fp32=9, ints=4, sfu=1, control=2),
    Work(fp32=8, ints=6, sfu=1, control=5, wait=60),
    Work(wait=1750),
    2,
)
SOFTMAX_BACKWARD = SoftmaxCost(Work(fp32=1, ints=2, control=1), Work(fp32=2, ints=2, control=1), Work(), 1)

# Welford: a division an element, as IEEE asks; merging two moments has another. Counts of both are fitted;
# the fp32 kernel, of 39 registers for 32, issues more
LAYER_NORM = {
    item: LayerNormCost(
        first=Work(fp32=fp32, ints=6, sfu=1, control=4, wait=250),
        second=Work(fp32=3, ints=2),
        step=Work(fp32=20, ints=6, sfu=1, control=4, wait=250),
        row=Work(fp32=6, sfu=1),
        shuffle=3,
    )
    for item, fp32 in ((4, 30), (2, 19))
}
LAYER_NORM_BACKWARD = LayerNormCost(
    first=Work(fp32=8, ints=4),
    second=Work(fp32=9, ints=4),
    step=Work(fp32=2),
    row=Work(fp32=4, wait=350),
    shuffle=2,
)
GAMMA_BETA = GammaCost(
    row=Work(fp32=5, ints=4), turn=Work(ints=30, control=4), end=Work(ints=30, control=4, wait=400), at_once=4
)

REDUCE = ReduceCost(
    begin=Work(ints=90, control=8, wait=560),
    load=Work(fp32=4, ints=8, control=1, wait=20),
    end=Work(ints=10, control=2, wait=500),
    share=Work(ints=20, control=4, wait=1000),
    partial=Work(fp32=4, ints=20, control=1, wait=100),
)
# After kernels of other code a sum takes longer, whatever their data: its instructions are in no cache. Of
# rows 0.23 us, of columns 0.71 to 0.98; where TBs share an output 0.26 and 0.8 more (h200_cold_code.csv)
COLD = {True: (450, 500), False: (1700, 1700)}  # cycles before the first load, and to share; by rows or not
REDUCE_COLD = {
    by_rows: replace(
        REDUCE,
        begin=replace(REDUCE.begin, wait=REDUCE.begin.wait + first),
        share=replace(REDUCE.share, wait=REDUCE.share.wait + share),
    )
    for by_rows, (first, share) in COLD.items()
}
# Of LAMB (apex), by reason: a sum of squares; moments, bias corrections and an update; a scaled step
NORM = AdamCost(Work(ints=40, wait=200), Work(fp32=1, ints=1))
LAMB_1 = AdamCost(Work(fp32=20, sfu=4, ints=60, wait=400), Work(fp32=12, sfu=3, ints=4))
LAMB_2 = AdamCost(Work(fp32=10, sfu=3, ints=60, wait=400), Work(fp32=2, ints=2))
# of foreach kernels, by reason: a multiplication; an addition of a multiple
FOREACH_MUL = FOREACH_ADD = AdamCost(Work(ints=40, wait=200), Work(fp32=1, ints=1))
